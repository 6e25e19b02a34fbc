//! The fleet: names and metadata of sessions, what all of them are at, and who watches that.
//!
//! What is inside: the contract's `Fleet` on behalf of a caller, the log of changes that watchers read,
//! and the two tasks that look after sessions which nobody asks for. What must never enter: a second
//! record of what a session is at. Each summary is made by the session's channel, in the step in which
//! its events are folded, or of the rows of a session that has no channel (decision 0038).

mod answers;
mod create;
mod delete;
mod digests;
pub(crate) mod eraser;
mod face;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod ground;
pub(crate) mod hub;
mod interactions;
mod list;
mod moving;
mod names;
mod order;
pub(crate) mod seats;
pub(crate) mod stalls;
mod token;
mod update;
mod view;
mod watch;

pub(crate) use answers::{has_children, mismatch};
pub(crate) use ground::{Ground, barred, usual};
pub(crate) use list::MAX_PAGE;
pub(crate) use names::check_name;
