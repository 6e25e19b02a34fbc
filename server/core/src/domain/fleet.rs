//! The fleet: sessions as people and schedulers see them from outside, told apart by their names and
//! labels, found by filters.
//!
//! Pure values. What must never enter: how a store finds a session, or how a watcher is told.

pub mod filter;
pub mod labels;
pub mod metadata;
pub mod phase;
pub mod summary;
pub mod terms;
