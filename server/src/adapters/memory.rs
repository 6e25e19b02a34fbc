//! The store that forgets: `Repository` and `LeaseStore` in memory, for tests and simulations. No
//! configuration of the server selects it.
//!
//! It judges commits by the same rules as every store and keeps the domain's own types, so nothing
//! of a stored form, a file or a wire type may enter.

mod chains;
mod fleet;
mod gate;
mod store;
mod tables;

pub use gate::{CommitGate, CommitStep, Passing};
pub use store::MemoryStore;
