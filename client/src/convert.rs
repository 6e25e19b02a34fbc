//! Between the wire and the domain, one room per noun. Requests are written, answers are read:
//! what is malformed is an error, what is only unknown (a newer server's enum value, entry kind
//! or event type) is tolerated. Nothing here calls or waits.

pub(crate) mod audit;
pub(crate) mod capabilities;
pub(crate) mod command;
mod data;
pub(crate) mod entry;
pub(crate) mod event;
mod field;
pub(crate) mod fleet;
pub(crate) mod interaction;
pub(crate) mod invoke;
pub(crate) mod observation;
mod origin;
mod pending;
mod position;
pub(crate) mod run;
mod session;
pub(crate) mod state;
pub(crate) mod summary;
mod usage;

pub(crate) use field::Malformed;
