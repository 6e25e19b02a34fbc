//! Turning facts into lines and pieces of text. Nothing here writes, waits or asks a server.

mod entry;
mod event;
mod fleet;
mod flow;
mod interaction;
mod live;
mod run;
mod state;
mod thread;
mod time;

pub(crate) use entry::entry_lines;
pub(crate) use event::{Log, STARTS_OVER, compaction_words, connection_line};
pub(crate) use fleet::{
    Growing, Places, branch, content, in_order, last_words, name_in_columns, named, none_line,
    order, path_in_columns, phase_words, session_lines, since, state, summary_line, table,
};
pub(crate) use flow::Flow;
pub(crate) use interaction::{Desk, asked, question_lines, which};
pub(crate) use run::{run_lines, run_row, runs_heading, settled_lines};
pub(crate) use state::{bar, called, capability_lines, offer_lines, state_lines, summary};
pub(crate) use thread::Thread;
pub(crate) use time::{ago, rfc3339};

use super::screen::WIDTH;
