//! An engine that does what its prompt says, step by step.
//!
//! The prompt, a steer or a follow-up is a scenario in a small language, documented for people in
//! `docs/scripted-engine.md`. What is inside: that language and its player. What must never enter:
//! a model, a process, a file, a clock or chance that a test does not own.

mod ask;
mod compact;
mod engine;
mod lex;
mod odd;
mod parse;
mod play;
mod scenario;
mod tool;

pub use engine::ScriptedEngine;
