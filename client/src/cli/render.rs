//! Turning facts into lines and pieces of text. Nothing here writes, waits or asks a server.

mod entry;
mod event;
mod flow;
mod run;
mod state;
mod time;

pub(crate) use entry::{entry_block, entry_lines};
pub(crate) use event::event_line;
pub(crate) use flow::Flow;
pub(crate) use run::{run_lines, settled_line};
pub(crate) use state::{capability_lines, state_lines, summary};
pub(crate) use time::rfc3339;

/// How wide a line of facts may be.
const WIDTH: usize = 80;
