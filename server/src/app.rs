//! The application layer: carries out what the core decides.
//!
//! What is inside: the tasks that own active sessions, the hub that publishes their events, request
//! bindings, recovery, and the contract's two traits for an in-process caller. What must never
//! enter: a tonic or prost type, a database, an engine's name.

pub mod face;
pub mod observation;
