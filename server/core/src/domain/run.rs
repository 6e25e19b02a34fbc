//! A run: one activity window, from an accepted prompt until everything that joined has settled.

use super::ids::{AgentName, EntryId, RequestId, RunId, SessionId};
use super::input::UndeliveredInput;
use super::provenance::Origin;
use super::time::Timestamp;
use super::usage::Usage;

/// Stable failure codes of our own. Engines may add theirs.
pub mod code {
    /// The session has an active run or boundary mutation.
    pub const SESSION_BUSY: &str = "session_busy";
    /// The run was aborted.
    pub const ABORTED: &str = "aborted";
    /// A crash cut the run.
    pub const INTERRUPTED: &str = "interrupted";
    /// The engine reported a failure without a code of its own.
    pub const ENGINE_FAILED: &str = "engine_failed";
    /// The engine went away in the middle of the run.
    pub const ENGINE_GONE: &str = "engine_gone";
    /// The engine could not be started.
    pub const ENGINE_UNAVAILABLE: &str = "engine_unavailable";
    /// The session is paused: nothing begins until it is resumed.
    pub const SESSION_PAUSED: &str = "session_paused";
    /// The session's directory is gone, or is no directory any more.
    pub const DIRECTORY_UNAVAILABLE: &str = "directory_unavailable";
    /// Codes that only the control plane gives; an engine that claims one gets `engine_failed`.
    pub const RESERVED: [&str; 8] = [
        SESSION_BUSY,
        ABORTED,
        INTERRUPTED,
        ENGINE_GONE,
        ENGINE_UNAVAILABLE,
        SESSION_PAUSED,
        DIRECTORY_UNAVAILABLE,
        "capacity_exhausted",
    ];
}

/// A failure as callers see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// A stable word.
    pub code: String,
    /// What happened, for a person.
    pub details: String,
    /// A new invoke with a new `request_id` may succeed.
    pub retryable: bool,
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunOutcome {
    /// The engine came to its own end.
    Completed,
    /// It failed.
    Failed(Failure),
    /// Somebody aborted it. Nothing ever replays it.
    Aborted,
}

impl RunOutcome {
    /// The bytes of what it says in words.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Failed(failure) => failure.details.len(),
            Self::Completed | Self::Aborted => 0,
        }
    }

    /// The outcome as a stable word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Aborted => "aborted",
        }
    }
    /// The failure code, `aborted` for an abort, none for a completed run.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Completed => None,
            Self::Failed(failure) => Some(&failure.code),
            Self::Aborted => Some(code::ABORTED),
        }
    }
}

/// When and how a run settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settlement {
    /// When it was decided.
    pub at: Timestamp,
    /// How it ended.
    pub outcome: RunOutcome,
}

/// Model and level that a run used. Absent where the engine has none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunSettings {
    /// The model's name as its agent lists it.
    pub model: Option<String>,
    /// The thinking level.
    pub thinking_level: Option<String>,
}

/// The durable record of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// The session it ran in.
    pub session: SessionId,
    /// The agent that ran.
    pub agent: AgentName,
    /// The caller's key for the invoke, if it gave one.
    pub request_id: Option<RequestId>,
    /// Who sent the prompt.
    pub origin: Origin,
    /// When it was admitted.
    pub started_at: Timestamp,
    /// The prompt's entry.
    pub first_entry: EntryId,
    /// The newest entry of the run; absent while it is active.
    pub final_entry: Option<EntryId>,
    /// What the run used, by the engine's word.
    pub usage: Usage,
    /// Inputs that joined and were never shown.
    pub undelivered: Vec<UndeliveredInput>,
    /// Model and level used.
    pub settings: RunSettings,
    /// An abort was accepted: whatever happens, it settles as aborted.
    pub abort_requested: bool,
    /// Absent while the run is active.
    pub settled: Option<Settlement>,
}
