//! The rooms of `sessionctl`, the command line client: one file per verb, rendering apart from
//! them. No verb writes to a terminal or exits the process by itself.

mod answering;
mod args;
mod audit_file;
mod completing;
mod context;
mod credentials;
mod echo;
mod entry;
mod exit;
mod fleet;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod hint;
mod interrupt;
mod json;
mod markdown;
mod mistyped;
mod outage;
mod pages;
mod place;
mod program;
mod prompt;
mod render;
mod screen;
mod session;
#[cfg(test)]
pub(crate) mod testing;
mod top;
mod verbs;
mod visible;
mod wrap;

pub use entry::main;
