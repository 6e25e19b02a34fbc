//! An engine in a process of its own, under the process host, which speaks our own lines.
//!
//! What is inside: both ends of the pipes, and what a line is: one JSON object, commands one way and
//! reports the other, after an opening that says what the engine has to know. What must never enter:
//! what an engine does, and how a process is started or ended.
//!
//! What comes over the pipe is another process's word: a line that makes no sense is left out and
//! logged, a text that is too long is cut, a line that is too long ends the connection.

mod engine;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod halves;
mod serve;
mod wire;

pub use engine::{ApartEngine, Manned, Room, Rooms};
pub(super) use serve::serve;
pub(super) use wire::Opening;
