//! Who calls, with the real programs: tokens that are made and revoked beside a running server, TLS
//! whose certificate changes, addresses that are refused, and tokens that are nowhere to be found.
#![cfg(test)]

#[path = "identity/canary.rs"]
mod canary;
#[expect(dead_code, reason = "others look at more of a server than this")]
#[path = "crash/daemon.rs"]
mod daemon;
#[path = "identity/edge.rs"]
mod edge;
#[path = "tools/pki.rs"]
mod pki;
#[path = "identity/tokens.rs"]
mod tokens;
#[path = "identity/world.rs"]
mod world;
