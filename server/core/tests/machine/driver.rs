//! What drives the machine in these tests: a model of the shell, of the store, of callers and of
//! engines. A model follows the rules that the real part follows, and nothing else.

pub(crate) mod engine;
pub(crate) mod facts;
pub(crate) mod questions;
pub(crate) mod rng;
pub(crate) mod shell;
pub(crate) mod store;
pub(crate) mod world;
