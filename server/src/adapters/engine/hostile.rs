//! An engine that breaks the habits which the port tolerates, on purpose and by seed.
//!
//! It is the reason for the port's tolerance: it spends follow-ups without showing them, answers an
//! abort late or never, repeats and reorders what it says, speaks of things that nobody named, asks
//! what cannot be answered and does not listen, compacts out of turn, makes a mess of a compaction that
//! it was asked for, and dies. What is inside: what may go wrong ([`HostileOptions`]), a plan of what it
//! says, and its player. What must never enter: chance that the seed does not determine; a use outside of tests.

mod asides;
mod condense;
mod engine;
mod mangle;
mod options;
mod plan;

pub use engine::HostileEngine;
pub use options::{AbortManner, FollowUpManner, HostileOptions, LabelManner};
