//! What a life came to, counted: that the seeds together reach what they are for.

use std::collections::BTreeMap;

use sessionplane_core::domain::audit::AuditAction;
use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::domain::interaction::ResolutionCause;
use sessionplane_core::domain::run::{RunOutcome, RunRecord, code};

use crate::books::Inner;
use crate::facts::Deed;

/// What all seeds together must have reached, or they prove little.
pub(crate) const REACHED: [&str; 42] = [
    "events",
    "states",
    "starts",
    "failed commits",
    "failed reads",
    "run: completed",
    "run: failed",
    "run: aborted",
    "run: interrupted",
    "input: delivered",
    "input: aborted",
    "input: failed",
    "input: interrupted",
    "input: lost",
    "question: answered",
    "question: aborted",
    "question: expired",
    "question: engine_gone",
    "answers told",
    "entry: user",
    "entry: assistant",
    "entry: tool",
    "entry: settings",
    "entry: compaction",
    "entry: notice",
    "compaction: completed",
    "compaction: failed",
    "compaction: aborted",
    "compaction: cut",
    "stream: resumed",
    "stream: gap",
    "stream: too slow",
    "stream: held",
    "stream: watch resumed",
    "stream: watch too slow",
    "stream: bookmark expired",
    "session: changed",
    "session: renamed",
    "session: deleted",
    "session: moved",
    "session: noted",
    "stream: nowhere",
];

/// What a seed reached.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tally(BTreeMap<String, u64>);

impl Tally {
    pub(crate) fn add(&mut self, what: impl Into<String>, count: u64) {
        *self.0.entry(what.into()).or_default() += count;
    }

    pub(crate) fn join(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            self.add(what, *count);
        }
    }

    /// What of [`REACHED`] never happened.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let never = |what: &&str| self.0.get(*what).is_none_or(|count| *count == 0);
        REACHED.into_iter().filter(never).collect()
    }

    /// Counts what is stored.
    pub(crate) fn count(&mut self, books: &Inner) {
        for run in books.runs.values() {
            self.add(format!("run: {}", outcome(run)), 1);
        }
        for input in books.inputs.values() {
            self.add(format!("input: {}", fate(input.fate)), 1);
        }
        for asked in books.interactions.values() {
            let cause = asked.resolution.as_ref().map(|it| it.cause);
            let cause = cause.map_or("open", ResolutionCause::as_str);
            self.add(format!("question: {cause}"), 1);
        }
        for stored in books.sessions.values() {
            for entry in &stored.entries {
                self.add(format!("entry: {}", entry.body.kind()), 1);
            }
            for end in stored.deeds.iter().filter_map(compaction) {
                self.add(format!("compaction: {end}"), 1);
            }
        }
    }
}

fn outcome(run: &RunRecord) -> &'static str {
    match run.settled.as_ref().map(|it| &it.outcome) {
        Some(RunOutcome::Completed) => "completed",
        Some(RunOutcome::Aborted) => "aborted",
        Some(RunOutcome::Failed(it)) if it.code == code::INTERRUPTED => "interrupted",
        _ => "failed",
    }
}

fn fate(fate: InputFate) -> &'static str {
    match fate {
        InputFate::Delivered(_) => "delivered",
        InputFate::Discarded(DiscardCause::Aborted) => "aborted",
        InputFate::Discarded(DiscardCause::Failed) => "failed",
        InputFate::Discarded(DiscardCause::Interrupted) => "interrupted",
        InputFate::Discarded(DiscardCause::Lost) => "lost",
        InputFate::Pending => "pending",
    }
}

/// The end of a compaction outside of runs. The only other thing that could be cut there, a change
/// of settings or leaf, takes the lease and gives it up in one commit.
fn compaction(deed: &Deed) -> Option<&'static str> {
    match deed.action {
        _ if deed.run.is_some() => None,
        AuditAction::Compacted => Some(deed.outcome),
        AuditAction::Recover => Some("cut"),
        _ => None,
    }
}
