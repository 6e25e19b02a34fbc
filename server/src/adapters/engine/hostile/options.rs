//! What may go wrong.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// What a hostile engine does with a follow-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FollowUpManner {
    /// Shows it first, as it should.
    Shown,
    /// Stops at once without having shown it.
    Lost,
    /// Answers as if it had shown it, and never says so.
    Spent,
}

/// What a hostile engine does after an abort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AbortManner {
    /// Stops.
    Prompt,
    /// Goes on for this long, then stops.
    Late(Duration),
    /// Talks on until it is dropped.
    Never,
}

/// How a hostile engine names messages, calls, tools and failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LabelManner {
    /// Short and unique.
    Plain,
    /// Not at all.
    Empty,
    /// With 64 KiB each, control characters among them.
    Huge,
}

/// What may go wrong, and the seed that decides when. Percentages are per event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostileOptions {
    /// Together with the session's id and its leaf it determines everything.
    pub seed: u64,
    /// What becomes of follow-ups.
    pub follow_up: FollowUpManner,
    /// What an abort leads to.
    pub abort: AbortManner,
    /// How things are named.
    pub labels: LabelManner,
    /// Percentage of events that are said again, soon or after the stop.
    pub repeats: u8,
    /// Percentage of events that change places with a later one.
    pub reorders: u8,
    /// Percentage of events before which something is said that makes no sense.
    pub strays: u8,
    /// Percentage of events before which the engine dies.
    pub dies: u8,
    /// Percentage of events before which it asks a question. If none, it says that it never asks.
    pub asks: u8,
    /// Percentage of questions whose answers it does not wait for.
    pub ignores: u8,
    /// Percentage of events before which it compacts.
    pub compacts: u8,
    /// It says that its transcript can be compacted, that it has models and levels, and that it can
    /// go on from an earlier entry; and what it makes of a compaction is anything.
    pub between_runs: bool,
}

impl HostileOptions {
    /// Nothing goes wrong. A start for a test that wants one thing to.
    #[must_use]
    pub fn tame(seed: u64) -> Self {
        Self {
            seed,
            follow_up: FollowUpManner::Shown,
            abort: AbortManner::Prompt,
            labels: LabelManner::Plain,
            repeats: 0,
            reorders: 0,
            strays: 0,
            dies: 0,
            asks: 0,
            ignores: 0,
            compacts: 0,
            between_runs: false,
        }
    }

    /// Anything may go wrong within runs: the seed draws the options as well.
    #[must_use]
    pub fn wild(seed: u64) -> Self {
        let mut chance = StdRng::seed_from_u64(seed);
        let follow_ups = [
            FollowUpManner::Shown,
            FollowUpManner::Lost,
            FollowUpManner::Spent,
        ];
        let aborts = [
            AbortManner::Prompt,
            AbortManner::Late(Duration::from_millis(chance.random_range(0..20_000))),
            AbortManner::Never,
        ];
        let labels = [LabelManner::Plain, LabelManner::Empty, LabelManner::Huge];
        Self {
            seed,
            follow_up: follow_ups[chance.random_range(0..3)],
            abort: aborts[chance.random_range(0..3)],
            labels: labels[chance.random_range(0..3)],
            repeats: chance.random_range(0..30),
            reorders: chance.random_range(0..30),
            strays: chance.random_range(0..30),
            // Rare: an engine that dies early shows nothing of the rest.
            dies: if chance.random_ratio(1, 4) { 2 } else { 0 },
            asks: chance.random_range(0..15),
            ignores: chance.random_range(0..60),
            compacts: chance.random_range(0..15),
            between_runs: false,
        }
    }
}
