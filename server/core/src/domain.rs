//! The vocabulary and the rules of Sessionplane, as values and pure functions.
//!
//! Nothing here performs I/O, reads a clock or knows a wire or storage format.

pub mod access;
pub mod artifact;
pub mod audit;
pub mod binding;
pub mod capabilities;
pub mod certificate;
pub mod command;
pub mod commit;
pub mod compaction;
pub mod data;
pub mod entry;
pub mod error;
pub mod event;
pub mod fleet;
pub mod given;
pub mod ids;
pub mod input;
pub mod interaction;
pub mod invariants;
pub mod lease;
pub mod lifecycle;
pub mod limits;
pub mod place;
pub mod position;
pub mod provenance;
pub mod rendering;
pub mod run;
pub mod session;
pub mod settings;
pub mod text;
pub mod time;
pub mod usage;
pub mod view;
pub mod withholding;
