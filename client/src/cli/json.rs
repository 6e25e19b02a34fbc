//! What `--json` prints: one object per line, the fields named as in the API's protos. A field
//! that is not told is `null`; enum values are their short words. Values only; nothing is printed.

mod answer;
mod entry;
mod event;
mod field;
mod fleet;
mod interaction;
mod run;
mod state;

pub(crate) use answer::{capabilities, completions, dispatched, error, offered, pages, version};
pub(crate) use entry::entry;
pub(crate) use event::{
    compacted, full_backfill, invoked, missed, missed_text, rejoined, rejoining, watched,
};
pub(crate) use fleet::{asked, deleted, gone, moved, session};
pub(crate) use interaction::interaction;
pub(crate) use run::run;
pub(crate) use state::state;
