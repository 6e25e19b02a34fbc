//! Compaction: an engine replaces the earlier part of its transcript by a summary. Our own record
//! loses nothing by it; an entry tells where the summary stands and what it is of.

use super::ids::EntryId;
use super::run::Failure;

/// Why an engine compacts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompactionTrigger {
    /// Somebody dispatched `compact`.
    Manual,
    /// The model's context was full, within a run.
    Overflow,
}

impl CompactionTrigger {
    /// The trigger as it stands in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Overflow => "overflow",
        }
    }
}

/// How a compaction ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CompactionOutcome {
    /// The summary is this entry.
    Completed(EntryId),
    /// The transcript is as it was.
    Failed(Failure),
    /// Somebody aborted it; the transcript is as it was.
    Aborted,
}

impl CompactionOutcome {
    /// The bytes of what it says in words.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Failed(failure) => failure.details.len(),
            Self::Completed(_) | Self::Aborted => 0,
        }
    }

    /// The outcome as a stable word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Aborted => "aborted",
        }
    }
}

/// What an engine made of its transcript.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compacted {
    /// What the model reads in place of what came before.
    pub summary: String,
    /// The first entry that is still read as it is, in the order in which the engine was given them;
    /// without one, only what comes after the summary is. One that it was not given, or has
    /// compacted away since, keeps nothing.
    pub first_kept: Option<EntryId>,
    /// The context's size before, in tokens, where the engine says.
    pub tokens_before: Option<u64>,
    /// The context's size after, in tokens, where the engine says.
    pub tokens_after: Option<u64>,
}
