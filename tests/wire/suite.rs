//! The gRPC face over a fake application layer: what callers see on the wire.
//!
//! What must never enter: a rule about runs or sessions; the conformance suite holds those.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests; a failed expectation is a failed test"
)]

mod contract;
mod credentials;
mod doors;
mod draining;
mod edge;
mod fake;
mod fleet;
mod issuers;
mod peers;
#[path = "../tools/pki.rs"]
mod pki;
mod probes;
mod requests;
mod server;
mod shares;
mod silence;
mod stopping;
mod streams;
mod tls;
mod web;
