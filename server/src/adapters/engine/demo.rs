//! The agent of a fresh server: answers questions about a folder by searching and reading it.
//!
//! There is no model and nothing to configure, so that a newcomer can invoke, watch, steer and abort
//! something real within a minute. What is inside: reading a question, walking and searching a
//! folder, reading its git data, ranking what is found, asking where several things may be meant, and
//! telling it. What must never enter: a write, a path outside of the folder that was given, a
//! program, a network, a pretence of understanding.
//!
//! Everything is read through one [`Boundary`](crate::adapters::boundary::Boundary), git included.

mod about;
mod answer;
mod count;
mod engine;
mod files;
mod focus;
mod git;
mod lines;
mod locate;
mod page;
mod question;
mod rank;
mod reader;
mod run;
mod scan;
mod taste;
mod term;
mod tools;
mod tree;
mod voice;
mod wish;
mod withheld;
mod work;

pub use engine::{DemoEngine, Pace};
