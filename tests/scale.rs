//! What a start costs on a large store, and after much was written: against the same directory opened
//! by the storage engine alone, in a process of its own.
//!
//! `SESSIONPLANE_DORMANT` is the number of sessions that are at rest (2,000), `SESSIONPLANE_UPDATES`
//! that of small updates over data that does not grow (20,000). In release mode the bounds are those
//! that docs/store.md states.
#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "it measures what a process really takes"
)]

#[path = "scale/backups.rs"]
mod backups;
#[path = "scale/churn.rs"]
mod churn;
#[path = "crash/daemon.rs"]
#[allow(dead_code, reason = "suites that make calls have a use for the rest")]
mod daemon;
#[path = "scale/dormant.rs"]
mod dormant;
#[path = "scale/engine.rs"]
mod engine;
#[path = "scale/fill.rs"]
mod fill;
#[path = "conformance/repository/script.rs"]
#[allow(dead_code, reason = "a suite of its own has a use for the rest")]
mod script;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A count that the environment may set.
fn count(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}"))
    })
}
