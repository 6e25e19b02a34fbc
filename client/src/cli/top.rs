//! `sessionctl top`: the fleet on a whole screen, live, and what can be done to a session from there.
//!
//! What is inside: a board that knows what is shown and what a key means, the drawing of it, and the
//! terminal that both stand on. What must never enter the board and the drawing: a call to a server, a
//! clock, or the terminal itself. The verb (`verbs/top.rs`) brings them together.

mod board;
mod draw;
mod keys;
mod terminal;

pub(crate) use board::{Board, Link, Notice};
pub(crate) use draw::draw;
pub(crate) use keys::{Act, key, pasted};
pub(crate) use terminal::FullScreen;

#[cfg(test)]
mod tests;
