//! The gRPC face of the server.
//!
//! What is inside: the three public services, health and reflection, who-calls, the one mapping of
//! errors to statuses, and the listener with its connections. What must never enter: a rule of the
//! domain, an adapter's name, a second place that makes a status.
//!
//! The way of a call: `server` accepts its connection (`admission` says whether, `tls` shakes hands, `peer` reads whose
//! certificate it is), `web`
//! turns strange pages away and gRPC-Web into gRPC, `reading` sees to
//! it that it is gRPC and arrives, `routes` asks `authn` who calls and finds the service (`methods`
//! knows which of its methods stream), the service parses with `convert`, asks the application layer once and converts
//! the answer, `compress` shortens what is long for who can read that, and `ending` lets the response end when its
//! connection or its deadline does.

use std::future::Future;
use std::pin::Pin;

mod admission;
mod answer;
mod audit;
mod authn;
mod call;
mod compress;
mod connection;
mod convert;
mod ending;
pub mod events;
mod fleet;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod health;
mod hearing;
mod invoke;
pub mod listener;
mod methods;
pub mod peer;
mod probes;
mod reading;
mod reflection;
mod routes;
pub(crate) mod seldom;
pub mod server;
mod session_control;
mod shares;
mod status;
pub mod tls;
pub mod web;

/// Names in each list of a filter at most, for the table of limits.
pub(crate) const FILTER_MOST: usize = convert::observe::FILTER.0;
/// Streams of strangers at a time, for the table of limits.
pub(crate) const STRANGERS_STREAMS: usize = routes::STRANGERS_STREAMS;
/// Largest question to health, in bytes, for the table of limits.
pub(crate) const HEALTH_QUESTION_BYTES: usize = health::MAX_QUESTION_BYTES;

/// The time of the transport: its timers are tokio's, and so is their clock, which a test may pause.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place where the transport reads its clock; nothing durable depends on it"
)]
fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// A response on its way.
type Responding = Pin<Box<dyn Future<Output = http::Response<tonic::body::Body>> + Send>>;
