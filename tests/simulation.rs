//! One node, simulated from a seed through the real application: clients, observers, engines, a disk
//! that is slow and fails, and a server that is killed, dropped and stopped. See docs/simulation.md.
//!
//! A seed that fails is printed. `SEED=n` replays it, with `TRACE=1` line by line; `SEEDS=n` tries so
//! many, starting at a fresh place each time.
#![cfg(test)]

#[path = "simulation/books.rs"]
mod books;
#[path = "simulation/chains.rs"]
mod chains;
#[path = "simulation/chronicle.rs"]
mod chronicle;
#[path = "simulation/client.rs"]
mod client;
#[path = "simulation/crew.rs"]
mod crew;
#[path = "simulation/crew_reading.rs"]
mod crew_reading;
#[path = "simulation/disk.rs"]
mod disk;
#[path = "simulation/engines.rs"]
mod engines;
#[path = "simulation/executor.rs"]
mod executor;
#[path = "simulation/facts.rs"]
mod facts;
#[path = "simulation/grounds.rs"]
mod grounds;
#[path = "simulation/invoking.rs"]
mod invoking;
#[path = "simulation/ledger.rs"]
mod ledger;
#[path = "simulation/log.rs"]
mod log;
#[path = "simulation/lookout.rs"]
mod lookout;
#[path = "simulation/panics.rs"]
mod panics;
#[path = "simulation/reader.rs"]
mod reader;
#[path = "simulation/reading.rs"]
mod reading;
#[path = "simulation/rest.rs"]
mod rest;
#[path = "simulation/rng.rs"]
mod rng;
#[path = "simulation/scenario.rs"]
mod scenario;
#[path = "simulation/server.rs"]
mod server;
#[path = "simulation/store.rs"]
mod store;
#[path = "simulation/tally.rs"]
mod tally;
#[path = "simulation/world.rs"]
mod world;

use tally::Tally;
use world::live;

const SEEDS: u64 = 200;

/// Prints the seed when the thread panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the simulation failed: replay it with SEED={} (TRACE=1)",
                self.0
            );
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text:?} is not a number")))
}

#[test]
fn c44_c27_whatever_clients_engines_disks_and_crashes_do_every_promise_holds() {
    if let Some(seed) = number("SEED") {
        let _told = Seed(seed);
        let lived = live(seed);
        println!("seed {seed}: {:?}, {:?}", lived.elapsed, lived.tally);
        return;
    }
    let fresh = number("SEEDS");
    let first = fresh.map_or(1, |_| u64::from(std::process::id()) << 32);
    let mut reached = Tally::default();
    for seed in first..first + fresh.unwrap_or(SEEDS) {
        let _told = Seed(seed);
        reached.join(&live(seed).tally);
    }
    println!("{reached:?}");
    let missing = reached.missing();
    assert!(
        fresh.is_some_and(|seeds| seeds < SEEDS) || missing.is_empty(),
        "the seeds never reached {missing:?}: {reached:?}"
    );
}

#[test]
fn the_same_seed_lives_the_same_life() {
    let fingerprint = |seed| {
        let _told = Seed(seed);
        let lived = live(seed);
        (lived.fingerprint, lived.elapsed)
    };
    for seed in [1, 2, 3, 5, 8, 13] {
        assert_eq!(fingerprint(seed), fingerprint(seed), "seed {seed}");
    }
    assert_ne!(
        fingerprint(1),
        fingerprint(2),
        "the fingerprint sees nothing"
    );
}
