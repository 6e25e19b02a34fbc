//! The application layer: carries out what the core decides.
//!
//! What is inside: the tasks that own active sessions, the hub that publishes their events, request
//! bindings, recovery, and the contract's two traits for an in-process caller. What must never
//! enter: a tonic or prost type, a database, an engine's name.

pub mod agents;
mod audit;
pub mod caller;
pub mod channel;
mod channels;
pub mod config;
pub mod context;
pub mod cursor;
pub mod digest;
mod dispatch;
pub mod engine_host;
pub mod face;
mod fleet;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod given;
mod guarded;
mod heartbeat;
mod invoke;
pub mod invoke_stream;
mod kept;
pub mod observation;
mod observe;
mod observer;
pub(crate) mod pages;
mod permission;
pub mod recovery;
pub mod residents;
mod ring_budget;
mod runs;
mod session_check;
mod session_effects;
mod session_loss;
pub mod session_mail;
pub mod session_task;
mod session_timers;
pub mod single_flight;
mod sweeping;
mod transcript;
mod work;

pub(crate) use fleet::MAX_PAGE as MAX_SESSIONS_PAGE;
/// What pages have at most, for the table of limits.
pub(crate) use observe::{MAX_PAGE as MAX_ENTRIES_PAGE, PAGE_BYTES as MAX_PAGE_BYTES};
pub(crate) use runs::MAX_PAGE as MAX_RUNS_PAGE;

pub use caller::AppCaller;
pub use context::{App, Ports};
