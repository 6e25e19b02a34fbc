//! Floors and ours in one run: what a bare server of the same libraries costs, and what Sessionplane
//! costs on top.
//!
//! Each row measures a floor and the real `sessiond` in alternating rounds, with the same client
//! code, payloads, connections and callers. Servers are processes of their own, so that CPU per
//! operation is theirs alone; the load is made in this process. The floors stand in [`floor`] and
//! [`raw_log`]: they must never be made slower than the libraries allow. `make bench` runs it;
//! `docs/performance.md` tells how to read it.
//!
//! `BENCH_SECONDS` (2) is the length of a round, `BENCH_ROUNDS` (5) their number, `BENCH_ROWS`
//! (`unary,tls,events,dispatch,lossless,lag,admission,runs,burst,reconnect,pages,dormant,watch,fleet,policy`) which rows
//! run. `BENCH_QUICK` makes everything small and short, to see that it runs.

#![allow(clippy::print_stdout, reason = "the table is what it is for")]

mod engine;
#[path = "../tests/scale/fill.rs"]
#[allow(
    clippy::unwrap_used,
    reason = "a store that cannot be filled ends the benchmark"
)]
mod fill;
mod floor;
mod load;
mod process;
mod raw_log;
mod report;
mod rows;
#[path = "../tests/conformance/repository/script.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the tests' way to write a session's story; they use the rest"
)]
mod script;
mod settings;

use std::error::Error;
use std::process::ExitCode;

/// What `sessiond` uses, so that the floor has it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Any failure ends the benchmark: a number from a run that went wrong is worse than none.
type Failure = Box<dyn Error + Send + Sync>;
type Outcome<T> = Result<T, Failure>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ended = match arguments.first().map(String::as_str) {
        Some("floor") => floor::main(&arguments[1..]),
        Some("open") => engine::main(&arguments[1..]),
        _ => rows::main(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
