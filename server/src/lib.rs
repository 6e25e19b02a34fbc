//! The Sessionplane server: what happens (`app`), what it happens on (`adapters`), and the faces it
//! shows to callers (`grpc`). `process` wires them, `main` runs it.
//!
//! Dependencies point inwards only: `grpc` never names an adapter, an adapter never names `grpc`,
//! `app` or another adapter, `app` never names a tonic or prost type.

pub mod adapters;
pub mod app;
pub mod config;
mod failpoint;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod grpc;
pub mod process;
