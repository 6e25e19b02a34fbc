//! What an agent's process says, and what a prompt says to the scripted engine.

/// A line of an agent's process.
pub(crate) use super::apart::fuzzing::report;
/// A prompt for the scripted engine.
pub(crate) use super::scripted::fuzzing::scenario;
