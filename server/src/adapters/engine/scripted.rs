//! An engine that does what its prompt says, step by step.
//!
//! The prompt, a steer or a follow-up is a scenario in a small language, documented for people in
//! `docs/scripted-engine.md`. What is inside: that language and its player. What must never enter:
//! a model, a clock or chance that a test does not own; and, but for `hands`, which only one in a process
//! of its own has, a process or a file.

mod ask;
mod compact;
mod engine;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod hands;
mod lex;
mod odd;
mod parse;
mod play;
mod scenario;
mod tool;

pub use engine::{SCRIPTED_VERB, ScriptedEngine, serve_scripted};
