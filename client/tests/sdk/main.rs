//! The client against a server that plays a script: what a real server does seldom, and a network
//! often.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of a test fails the test"
)]

mod answering;
mod attaching;
mod cli;
mod coming_late;
mod compacting;
mod fake;
mod filtering;
mod fleet;
mod fleet_lists;
mod fleet_watching;
mod observing;
mod outcomes;
mod reaching;
mod rejoining;
mod relay;
mod rendering;
mod request_ids;
mod runs;
mod terminal;
mod timeouts;
mod transcripts;
mod verbs;
mod waiting;
mod wire;
