//! Between wire messages and domain types, one room per noun.
//!
//! Requests are parsed here, once and completely: whatever leaves this room is inside the domain's
//! limits. What must never enter: a call of the application layer, a status, a transport.

pub(crate) mod audit;
pub(crate) mod capabilities;
pub(crate) mod command;
mod data;
pub(crate) mod entry;
pub(crate) mod event;
pub(crate) mod field;
pub(crate) mod fleet;
pub(crate) mod input;
pub(crate) mod interaction;
pub(crate) mod invoke;
pub(crate) mod labels;
pub(crate) mod observe;
pub(crate) mod origin;
pub(crate) mod position;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod summary;
pub(crate) mod time;
pub(crate) mod usage;
