//! The real server under many observers: what it keeps in memory for them.
#![cfg(test)]

#[allow(dead_code, reason = "the crash suite's, which does more with it")]
#[path = "crash/daemon.rs"]
mod daemon;
#[path = "observers/memory.rs"]
mod memory;
