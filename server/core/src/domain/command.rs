//! The control plane's verbs and their typed answers.

use std::sync::Arc;

use super::given::Given;
use super::ids::{EntryId, InputId, InteractionId, RunId};
use super::input::{DiscardCause, InputFate};
use super::interaction::InteractionAnswer;

/// A command that modulates a run. There is no `prompt`: only an invoke starts one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Reaches the model after the current turn's tool calls.
    Steer {
        /// The text, 1 byte to 1 MiB.
        text: Arc<str>,
        /// What its sender says of it and gives beside it.
        given: Given,
    },
    /// Is delivered when the run would otherwise stop.
    FollowUp {
        /// The text, 1 byte to 1 MiB.
        text: Arc<str>,
        /// What its sender says of it and gives beside it.
        given: Given,
    },
    /// Stops the run, or a compaction.
    Abort,
    /// Has the engine replace the earlier part of its transcript by a summary.
    Compact {
        /// What the summary should keep, at most 16 KiB.
        instructions: Option<Arc<str>>,
    },
    /// Chooses the model of the runs to come.
    SetModel {
        /// One of the agent's allowed models; none goes back to the agent's default.
        model: Option<String>,
    },
    /// Chooses the thinking level of the runs to come.
    SetThinking {
        /// One of the state's available levels; none goes back to the default.
        level: Option<String>,
    },
    /// Moves the leaf: the next run goes on from there.
    Navigate {
        /// Any entry of the session.
        entry: EntryId,
    },
    /// Answers a question that the run is suspended on.
    Respond {
        /// The question.
        interaction: InteractionId,
        /// The answer, of the shape that the question takes.
        answer: InteractionAnswer,
    },
}

/// The verb of a command, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CommandKind {
    /// See [`Command::Steer`].
    Steer,
    /// See [`Command::FollowUp`].
    FollowUp,
    /// See [`Command::Abort`].
    Abort,
    /// See [`Command::Compact`].
    Compact,
    /// See [`Command::SetModel`].
    SetModel,
    /// See [`Command::SetThinking`].
    SetThinking,
    /// See [`Command::Navigate`].
    Navigate,
    /// See [`Command::Respond`].
    Respond,
}

impl CommandKind {
    /// The verb as it stands in capabilities and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::FollowUp => "follow_up",
            Self::Abort => "abort",
            Self::Compact => "compact",
            Self::SetModel => "set_model",
            Self::SetThinking => "set_thinking",
            Self::Navigate => "navigate",
            Self::Respond => "respond",
        }
    }
    /// Whether it changes the session outside of a run, under a lease of its own.
    #[must_use]
    pub fn is_boundary(self) -> bool {
        match self {
            Self::Compact | Self::SetModel | Self::SetThinking | Self::Navigate => true,
            Self::Steer | Self::FollowUp | Self::Abort | Self::Respond => false,
        }
    }
    /// Every verb there is.
    pub const ALL: [Self; 8] = [
        Self::Steer,
        Self::FollowUp,
        Self::Abort,
        Self::Compact,
        Self::SetModel,
        Self::SetThinking,
        Self::Navigate,
        Self::Respond,
    ];
}

impl Command {
    /// The command's verb.
    #[must_use]
    pub fn kind(&self) -> CommandKind {
        match self {
            Self::Steer { .. } => CommandKind::Steer,
            Self::FollowUp { .. } => CommandKind::FollowUp,
            Self::Abort => CommandKind::Abort,
            Self::Compact { .. } => CommandKind::Compact,
            Self::SetModel { .. } => CommandKind::SetModel,
            Self::SetThinking { .. } => CommandKind::SetThinking,
            Self::Navigate { .. } => CommandKind::Navigate,
            Self::Respond { .. } => CommandKind::Respond,
        }
    }
}

/// Why a command was rejected. The meaning of a code never changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RejectionCode {
    /// The engine does not have this verb.
    UnsupportedCapability,
    /// Nothing is running, or not the expected run.
    NoActiveRun,
    /// The run raced to settlement.
    RunCommandFailed,
    /// The payload makes no sense for the verb.
    InvalidCommand,
    /// The interaction is unknown or answered.
    NoSuchInteraction,
    /// A run or boundary mutation holds the session.
    SessionBusy,
    /// The session was idle, and the boundary mutation could still not be applied: it takes an engine,
    /// and the session is paused, or its agent may not work where the session does.
    BoundaryCommandFailed,
    /// There is nothing to compact.
    NothingToCompact,
}

impl RejectionCode {
    /// The code as it stands in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnsupportedCapability => "unsupported_capability",
            Self::NoActiveRun => "no_active_run",
            Self::RunCommandFailed => "run_command_failed",
            Self::InvalidCommand => "invalid_command",
            Self::NoSuchInteraction => "no_such_interaction",
            Self::SessionBusy => "session_busy",
            Self::BoundaryCommandFailed => "boundary_command_failed",
            Self::NothingToCompact => "nothing_to_compact",
        }
    }
}

/// A typed no: nothing was queued or applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// Why.
    pub code: RejectionCode,
    /// Why, for a person, with the way out.
    pub message: String,
    /// The very same command may succeed later as it is.
    pub retryable: bool,
}

impl Rejection {
    /// The rejection of a command where nothing runs, or not the expected run.
    #[must_use]
    pub fn no_active_run(expected: Option<RunId>) -> Self {
        let message = match expected {
            Some(run) => format!("run {run} is not active; start a new one with invoke"),
            None => "nothing is running in this session; start a run with invoke".to_owned(),
        };
        Self {
            code: RejectionCode::NoActiveRun,
            message,
            retryable: false,
        }
    }
}

/// A typed yes: admitted or applied, never that the run succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acceptance {
    /// The run that was reached; none for a command outside of a run.
    pub run: Option<RunId>,
    /// The input that was queued, for the verbs that queue one.
    pub input: Option<AcceptedInput>,
}

/// A queued input and what has become of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceptedInput {
    /// Its id.
    pub id: InputId,
    /// Its present fate.
    pub fate: InputFate,
}

impl AcceptedInput {
    /// The entry that delivered it, if it was.
    #[must_use]
    pub fn entry(&self) -> Option<EntryId> {
        match self.fate {
            InputFate::Delivered(entry) => Some(entry),
            InputFate::Pending | InputFate::Discarded(_) => None,
        }
    }
    /// Why it was discarded, if it was.
    #[must_use]
    pub fn discarded(&self) -> Option<DiscardCause> {
        match self.fate {
            InputFate::Discarded(cause) => Some(cause),
            InputFate::Pending | InputFate::Delivered(_) => None,
        }
    }
}

/// The answer to a dispatch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DispatchAnswer {
    /// Admitted or applied.
    Accepted(Acceptance),
    /// Nothing happened.
    Rejected(Rejection),
}
