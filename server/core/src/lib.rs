//! The pure heart of Sessionplane.
//!
//! What is inside: the domain (ids, records, events, the session state machine), the ports
//! (traits that adapters implement) and the contract (the two traits that the server's app layer
//! and the Rust client both implement).
//!
//! What must never enter: tokio, tonic, prost, a clock read, a random number, a file or a socket.
//! Everything that needs I/O arrives here as a fact inside an input, and leaves as an effect.

pub mod contract;
pub mod domain;
pub mod ports;
