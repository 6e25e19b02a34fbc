//! The durable store on one machine: `Repository` and `LeaseStore` over sled 0.34.
//!
//! - `keys`: where each record lies. `convert`: what it looks like there. `frame`: how a value is
//!   guarded, and cut in pieces where it is long.
//! - `chain`: what an entry's digest is. `seal`: audit records as links of their tenant's chain. `tally`: the sum over everything.
//! - `committer`: the one thread that writes, in rounds. `round`: what a round is about to write.
//!   `write`: a commit as keys and values. `sweep`: forgetting old bindings. `erase`: what
//!   deleted sessions held. `facts`: what a commit is judged by. `device`: how a round reaches the
//!   disk.
//! - `inflight`: what keeps readers from seeing a round before it is synced. `reader`: all reads.
//!   `lookup`: the thread that looks request ids up.
//! - `open`: opening. `engine`: how sled is started. `importing`: a directory whose import goes on.
//!   `directory`: whose it is, and what a cut start left there. `boot`: what must
//!   be in order then. `upgrade`: from an earlier format. `witness`: noticing that sled lost its end.
//!   `store`: the ports over all of it.
//! - `snapshot`: everything as of one round, while others are written. `walk`: going through
//!   everything. `tools`: what an operator does with a store.
//!
//! How sled is used, and why: one tree; `flush` reaches the operating system only, so the database
//! file is synced through a descriptor of our own; no `flush_async` (it deadlocks), no sled
//! transactions (they stall the next flush), no watchers; no call on a runtime thread. No rule
//! about commits may enter: those are the core's, shared by all stores.

mod boot;
mod chain;
mod committer;
mod convert;
mod device;
mod directory;
mod engine;
mod erase;
mod facts;
mod frame;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod importing;
mod inflight;
mod keys;
mod lookup;
mod open;
mod reader;
mod recent;
mod round;
mod seal;
mod snapshot;
mod store;
mod sweep;
mod tally;
pub mod tools;
mod trail;
mod upgrade;
mod walk;
mod witness;
mod write;

pub use device::{RoundProbe, RoundStep};
pub(crate) use directory::open_again;
pub use directory::{create_private, in_use};
pub use open::{OpenError, StoreOptions};
pub use snapshot::Snapshot;
pub use store::{SledStore, StoreCounters};
