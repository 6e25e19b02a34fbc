//! Engines: what drives a model, or stands in for one, on behalf of a session.
//!
//! What is inside: one room for each engine, and the two small rooms that engines of this process
//! share. What must never enter: a rule of the contract (the core decides, an engine reports), and
//! one engine's name inside another.
//!
//! - [`demo`] answers questions about a folder by reading it; it is what a fresh server runs.
//! - [`scripted`] does what its prompt says; tests and people who try things out use it.
//! - [`apart`] is an engine that has a process of its own: the scripted one can be.
//! - [`hostile`] breaks every habit that the port tolerates, by seed.

pub mod apart;
pub mod demo;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub mod hostile;
mod link;
mod memory;
pub mod scripted;
