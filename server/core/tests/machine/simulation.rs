//! Many seeds of the simulation. A seed that fails is printed; `SESSIONPLANE_SEED=n` replays it,
//! `SESSIONPLANE_SEEDS=n` sets how many are tried, starting at a fresh place each time.

use std::collections::BTreeSet;

use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::domain::interaction::ResolutionCause;
use sessionplane_core::domain::run::RunOutcome;

use crate::driver::store::Store;
use crate::driver::world::{Tally, World};

const ACTIONS: u32 = 60;
/// A few seconds in a debug build.
const SEEDS: u64 = 400;

/// Prints the seed when the thread panics.
struct Seed(u64);

impl Drop for Seed {
    #[allow(clippy::print_stderr, reason = "a failing test tells how to repeat it")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the simulation failed: repeat it with SESSIONPLANE_SEED={}",
                self.0
            );
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text:?} is not a number")),
    )
}

fn live(seed: u64) -> World {
    let _told = Seed(seed);
    let mut world = World::new(seed);
    world.live(ACTIONS);
    world
}

fn add<const N: usize>(sums: &mut [u64; N], more: [u64; N]) {
    for (sum, count) in sums.iter_mut().zip(more) {
        *sum += count;
    }
}

/// How many entries a conversation was taken up again from.
fn branches(store: &Store) -> u64 {
    let (mut seen, mut branches) = (BTreeSet::new(), 0);
    for parent in store.entries.iter().filter_map(|entry| entry.parent) {
        branches += u64::from(!seen.insert(parent));
    }
    branches
}

/// What all seeds together reached.
#[derive(Default, Debug)]
struct Reached {
    tally: Tally,
    completed: u64,
    failed: u64,
    interrupted: u64,
    aborted: u64,
    delivered: u64,
    discarded: [u64; 4],
    /// Questions that were answered, aborted, expired, and that the engine gave up.
    resolved: [u64; 4],
    /// Entries that two others follow.
    branches: u64,
}

impl Reached {
    fn add(&mut self, world: &World) {
        let tally = world.tally;
        self.tally.admitted += tally.admitted;
        self.tally.busy += tally.busy;
        self.tally.crashes += tally.crashes;
        self.tally.unknown_commits += tally.unknown_commits;
        self.tally.changed += tally.changed;
        add(&mut self.tally.compactions, tally.compactions);
        add(&mut self.tally.in_runs, tally.in_runs);
        self.branches += branches(&world.shell.store);
        for run in world.shell.store.runs.values() {
            match &run.settled.as_ref().expect("it is quiet").outcome {
                RunOutcome::Completed => self.completed += 1,
                RunOutcome::Aborted => self.aborted += 1,
                RunOutcome::Failed(failure) if failure.code == "interrupted" => {
                    self.interrupted += 1;
                }
                RunOutcome::Failed(_) => self.failed += 1,
            }
        }
        for input in world.shell.store.inputs.values() {
            match input.fate {
                InputFate::Pending => unreachable!("it is quiet"),
                InputFate::Delivered(_) => self.delivered += 1,
                InputFate::Discarded(DiscardCause::Aborted) => self.discarded[0] += 1,
                InputFate::Discarded(DiscardCause::Failed) => self.discarded[1] += 1,
                InputFate::Discarded(DiscardCause::Interrupted) => self.discarded[2] += 1,
                InputFate::Discarded(DiscardCause::Lost) => self.discarded[3] += 1,
            }
        }
        for asked in world.shell.store.interactions.values() {
            let resolution = asked.resolution.as_ref().expect("it is quiet");
            self.resolved[match resolution.cause {
                ResolutionCause::Answered => 0,
                ResolutionCause::Aborted => 1,
                ResolutionCause::Expired => 2,
                ResolutionCause::EngineGone => 3,
            }] += 1;
        }
    }

    fn is_everything(&self) -> bool {
        let Tally {
            crashes,
            unknown_commits,
            busy,
            admitted,
            compactions,
            in_runs,
            changed,
        } = self.tally;
        let runs = [self.completed, self.failed, self.interrupted, self.aborted];
        let rest = [crashes, unknown_commits, busy, admitted, self.delivered];
        runs.iter()
            .chain(&rest)
            .chain(&self.discarded)
            .chain(&self.resolved)
            .chain(&compactions)
            .chain(&in_runs)
            .chain(&[self.branches, changed])
            .all(|count| *count > 0)
    }
}

#[test]
fn every_invariant_holds_whatever_callers_engines_and_disks_do() {
    if let Some(seed) = number("SESSIONPLANE_SEED") {
        live(seed);
        return;
    }
    let fresh = number("SESSIONPLANE_SEEDS");
    let first = fresh.map_or(1, |_| u64::from(std::process::id()) << 32);
    let mut reached = Reached::default();
    for seed in first..first + fresh.unwrap_or(SEEDS) {
        reached.add(&live(seed));
    }
    assert!(
        fresh.is_some_and(|seeds| seeds < SEEDS) || reached.is_everything(),
        "the seeds never reached some of what they are for: {reached:?}"
    );
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let hash = |seed| live(seed).shell.fingerprint;
    for seed in [1, 7, 42] {
        assert_eq!(hash(seed), hash(seed), "seed {seed}");
    }
    assert_ne!(hash(1), hash(2), "the fingerprint sees nothing");
}
