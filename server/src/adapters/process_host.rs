//! Programs that engines run as, and all that these start: begun under a ruleset, stopped within a
//! bound, and found again after a crash.
//!
//! What is inside: a program in a process of its own, its standard streams, and its end. What must
//! never enter: what is said over these streams, what a session is, a configuration.
//!
//! # How a program starts
//! `sessiond` starts itself anew, twice, and nothing runs between a fork and an exec in a program of
//! many threads (decision 0040):
//!
//! ```text
//! sessiond --- keeper (a task)
//!    '- sessiond, the supervisor   a session of its own; all orphans of the tree fall to it
//!          '- sessiond, setting up -> the program   its own session, ruleset and filter, a new environment
//!                '- whatever it starts
//! ```
//!
//! What it is to do comes over a socket, with the descriptors that it gets and no others. It goes on
//! to the program only when it is told to: when the note is synced by which a later start finds it.
//!
//! # How it ends
//! By the end of its input; after a time SIGTERM to the tree; after another SIGKILL, to processes that
//! were stopped before, so that none forks away. The supervisor sees orphans, whatever process groups
//! and sessions they made. It ends when all are reaped; when `sessiond` is gone, it kills at once.
//!
//! Where the supervisor itself was killed, its tree is found by the mark in its environment and by the
//! note, now and at the next start; what cleared its environment falls to `sessiond`, and is found as
//! its child. What lost both is found by neither: under a ruleset and the filter nobody but the
//! system's user can bring that about (Landlock's scope of signals, since Linux 6.12).

mod filter;
mod handover;
mod host;
mod inherited;
mod keeper;
mod leftover;
mod lines;
mod note;
mod order;
mod ruleset;
mod setup;
mod supervise;
mod tree;

pub use host::{Bounds, HostError, ProcessHost, Where, apart};
pub use keeper::{Hold, Started};
pub use lines::{Lines, MAX_LINE_BYTES};
pub use note::NOTES;
pub use order::{Order, Program};
pub use ruleset::{Edition, Reach};
pub use setup::{SETUP_VERB, setup};
pub use supervise::{SUPERVISE_VERB, supervise};
