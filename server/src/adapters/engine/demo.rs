//! The agent of a fresh server: answers questions about a folder by searching and reading it.
//!
//! There is no model and nothing to configure, so that a newcomer can invoke, watch, steer and abort
//! something real within a minute. What is inside: reading a question, walking and searching a
//! folder, ranking what is found, and telling it. What must never enter: a write, a path outside of
//! the folder that was given, a network, a pretence of understanding.
//!
//! Everything is read through one `cap_std` directory handle. A symbolic link or a `..` that leads
//! out of it is refused by that handle, not by a check of ours.

mod answer;
mod engine;
mod files;
mod focus;
mod page;
mod question;
mod rank;
mod run;
mod scan;
mod term;
mod tools;
mod voice;

pub use engine::{DemoEngine, Pace};
