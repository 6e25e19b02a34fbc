//! Programs under the process host, with the real binary: how they start, what the system keeps from
//! them, and that nothing of them is left.
#![cfg(test)]
#![cfg(target_os = "linux")]

#[path = "processes/ends.rs"]
mod ends;
#[path = "processes/hall.rs"]
mod hall;
#[path = "processes/reaching.rs"]
mod reaching;
#[path = "processes/starting.rs"]
mod starting;
