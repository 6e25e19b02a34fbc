//! Who may do what, over the real wire: every RPC for who is nobody, who may not, who is of another
//! tenant and who may; and what is hidden from a caller, which is as if it were not there.
#![cfg(test)]

#[path = "policy/coverage.rs"]
mod coverage;
#[path = "policy/hidden.rs"]
mod hidden;
#[path = "policy/streams.rs"]
mod streams;
#[path = "policy/world.rs"]
mod world;
