//! Implementations of the core's ports: stores, engines, clocks, authorizers.
//!
//! An adapter knows the core and its own outside world. It never names the application layer, a
//! face, or another adapter.

pub mod memory;
pub mod sled;
