//! Proves the session state machine: stories per rule, random inputs, and a seeded simulation.
//!
//! Everything runs on one thread, in virtual time, against a model store. No clock, no task, no
//! disk may enter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "all of this crate is test code; the lint spares only functions marked as tests"
)]

mod driver;
mod properties;
mod simulation;
mod stories;
