//! Implementations of the core's ports: stores, engines, clocks, authorizers.
//!
//! An adapter knows the core and its own outside world. It never names the application layer, a
//! face, or another adapter; but for the boundary, through which a workspace is reached, and what
//! reads git through it (`tests/boundaries.rs` lists who names them).

pub mod artifacts;
pub mod authn;
pub mod authz;
pub mod boundary;
pub mod checkpoints;
pub mod clock;
pub mod engine;
pub mod git;
mod hex;
pub mod memory;
pub(crate) mod plain_file;
mod private_file;
pub mod process_host;
pub mod secret;
pub mod sled;
pub mod tls_files;
pub mod workspaces;
