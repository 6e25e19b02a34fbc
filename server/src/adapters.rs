//! Implementations of the core's ports: stores, engines, clocks, authorizers.
//!
//! An adapter knows the core and its own outside world. It never names the application layer, a
//! face, or another adapter.

pub mod artifacts;
pub mod authn;
pub mod authz;
pub mod clock;
pub mod engine;
mod hex;
pub mod memory;
mod private_file;
pub mod secret;
pub mod sled;
pub mod tls_files;
