//! What can happen to a session, with every fact that the decision needs.

use std::sync::Arc;

use crate::contract::OnDisconnect;
use crate::domain::artifact::ArtifactRef;
use crate::domain::audit::AuditActor;
use crate::domain::binding::BindingKey;
use crate::domain::capabilities::{Capabilities, SandboxLevel};
use crate::domain::command::Command;
use crate::domain::data::Data;
use crate::domain::entry::PathMarks;
use crate::domain::ids::{EntryId, RequestId, RunId, WorkspaceName};
use crate::domain::lease::LeaseToken;
use crate::domain::place::{Checkout, Place};
use crate::domain::provenance::{Digest, Origin};
use crate::domain::rendering::ON_FILE;
use crate::domain::settings::{ModelPolicy, SettingsOverride};
use crate::domain::withholding::Withheld;
use crate::ports::engine::{EngineEvent, Revalidation};

/// Where the shell sends an answer. Opaque to the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReplyId(pub u64);

/// One attached invoke stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u64);

/// Says which run and which opening of its engine an asynchronous result belongs to. A result
/// with a stale tag is ignored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EngineTag {
    /// The run; none for a compaction outside of a run.
    pub run: Option<RunId>,
    /// The lease that it works under.
    pub token: LeaseToken,
    /// The opening of the engine within the run. A run opens its engine once: always 1.
    pub generation: u32,
}

/// Delays that the machine asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The engine had long enough to stop after an abort.
    AbortGrace,
    /// The callers that left a CANCEL run had long enough to come back.
    DisconnectGrace,
    /// Those whose streams the server ended had, too.
    RejoinGrace,
    /// Held-back progress and usage are due.
    Conflation,
    /// The question of this number in the run was open for long enough.
    Interaction(u32),
}

impl Timer {
    /// Every delay that a run as such may have asked for; that of a question ends with it.
    pub const ALL: [Self; 4] = [
        Self::AbortGrace,
        Self::DisconnectGrace,
        Self::RejoinGrace,
        Self::Conflation,
    ];
}

/// Why an invoke stream is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DetachCause {
    /// Its caller left, or its connection did.
    CallerGone,
    /// The server ended it: too slow, drain. Never a cancellation.
    ServerEnded,
}

/// What is known of an accepted caller's call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallFacts {
    /// Who stands behind it.
    pub actor: AuditActor,
    /// SHA-256 over the decoded fields; keyed for an answer, which may be a secret.
    pub digest: Digest,
    /// The caller's key, if it gave one.
    pub request_id: Option<RequestId>,
    /// What an acceptance is bound to, if the caller gave a key.
    pub binding: Option<BindingKey>,
}

/// What is known of a session's agent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgentFacts {
    /// What its engine can do.
    pub capabilities: Capabilities,
    /// The models that it may use.
    pub models: ModelPolicy,
    /// The workspaces that it may work in, the first one unless another is named; none where it sees
    /// no files.
    pub workspaces: Vec<WorkspaceName>,
    /// What it goes without after data.
    pub withholds: Withheld,
    /// What it is to do with data without an instruction; the server's default if nothing is said.
    pub on_file: Option<Arc<str>>,
}

impl AgentFacts {
    /// What to do with data without an instruction.
    #[must_use]
    pub fn on_file(&self) -> Arc<str> {
        self.on_file.clone().unwrap_or_else(|| ON_FILE.into())
    }
}

/// What is known of the entry that a `navigate` names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NavigationTarget {
    /// The entry.
    pub entry: EntryId,
    /// What holds at it.
    pub path: PathMarks,
    /// What is chosen at it: what the entry that `path.settings` names says.
    pub chosen: SettingsOverride,
}

/// What is known of an invoke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvokeFacts {
    /// The call.
    pub call: CallFacts,
    /// The id that the run gets if it is admitted.
    pub run: RunId,
    /// The token that it runs under if it is admitted.
    pub token: LeaseToken,
    /// The prompt.
    pub text: Arc<str>,
    /// What was given beside the prompt, or in its place.
    pub data: Option<Arc<Data>>,
    /// Who sent it.
    pub origin: Origin,
    /// What the session's agent can do and use.
    pub agent: Arc<AgentFacts>,
    /// The stream that the caller listens on.
    pub stream: StreamId,
    /// What becomes of the run when its callers are gone.
    pub on_disconnect: OnDisconnect,
    /// Somebody has paused the session, as its task knows it when it steps this.
    pub paused: bool,
    /// The place that was looked at: where a new session is to work, or where the session worked then.
    pub place: Option<Place>,
    /// What version control says of that place.
    pub checkout: Option<Checkout>,
}

/// What is known of a session's new place: of one that is created, or that is moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlaceFacts {
    /// The call.
    pub call: CallFacts,
    /// The token that it writes under.
    pub token: LeaseToken,
    /// The place, as it really is: links resolved.
    pub place: Option<Place>,
    /// Its workspace was not named: it is meant only while the session works in that one.
    pub within: Option<WorkspaceName>,
    /// What version control says of it.
    pub checkout: Option<Checkout>,
    /// What keeps the agent's tools in it.
    pub sandbox: SandboxLevel,
}

/// What is known of a dispatch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DispatchFacts {
    /// The call.
    pub call: CallFacts,
    /// The command.
    pub command: Command,
    /// Who sent its text; the digest in it is of an empty text where the command has none for the
    /// model or engine to read, and for `respond`, whose answer may be a secret.
    pub origin: Origin,
    /// What was given beside its text, or in its place.
    pub data: Option<Arc<Data>>,
    /// Guards against reaching a later run.
    pub expected_run: Option<RunId>,
    /// What the session's agent can do and use.
    pub agent: Arc<AgentFacts>,
    /// For a boundary mutation: the token that it writes under.
    pub token: Option<LeaseToken>,
    /// For a `navigate`: the entry, if the session has it.
    pub target: Option<NavigationTarget>,
    /// Somebody has paused the session, as its task knows it when it steps this.
    pub paused: bool,
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Input {
    /// Somebody wants to start a run.
    Invoke {
        /// Where the answer goes.
        reply: ReplyId,
        /// What is known of it.
        facts: Box<InvokeFacts>,
    },
    /// Somebody wants to modulate the run.
    Dispatch {
        /// Where the answer goes.
        reply: ReplyId,
        /// What is known of it.
        facts: Box<DispatchFacts>,
    },
    /// A further invoke stream joined the run.
    Attach {
        /// Where the answer goes.
        reply: ReplyId,
        /// The run.
        run: RunId,
        /// The stream.
        stream: StreamId,
        /// DETACH makes the run detached; CANCEL changes nothing.
        on_disconnect: OnDisconnect,
    },
    /// An invoke stream is gone.
    Detach {
        /// The run.
        run: RunId,
        /// The stream.
        stream: StreamId,
        /// Why.
        cause: DetachCause,
    },
    /// The engine is open and revalidated.
    EngineOpened {
        /// Which opening.
        tag: EngineTag,
        /// How its transcript stood.
        revalidation: Revalidation,
    },
    /// The engine could not be opened, or is gone.
    EngineGone {
        /// Which opening.
        tag: EngineTag,
        /// Why, for a person.
        reason: String,
    },
    /// The engine reports.
    Engine {
        /// Which opening.
        tag: EngineTag,
        /// What.
        event: EngineEvent,
        /// Where a tool's output is kept whole, if it is more than an event carries.
        artifact: Option<ArtifactRef>,
    },
    /// A delay is over.
    Timer {
        /// For which run.
        tag: EngineTag,
        /// Which one.
        timer: Timer,
    },
    /// Somebody wants the session to be there, at rest.
    Create {
        /// Where the answer goes.
        reply: ReplyId,
        /// What is known of it.
        facts: Box<PlaceFacts>,
    },
    /// Somebody wants the session to work elsewhere.
    Move {
        /// Where the answer goes.
        reply: ReplyId,
        /// What is known of it.
        facts: Box<PlaceFacts>,
    },
    /// Somebody wants the session to end.
    Delete {
        /// Where the answer goes.
        reply: ReplyId,
        /// What is known of it.
        call: Box<CallFacts>,
        /// The token that it is deleted under.
        token: LeaseToken,
        /// The revision that the metadata must have; of any if none is given.
        etag: Option<u64>,
    },
    /// The store did not take the deletion: the session goes on. The shell has answered.
    Kept,
    /// What version control says of a place was looked up, after a run.
    Noted {
        /// The token that it is written under.
        token: LeaseToken,
        /// The place that was looked at.
        place: Place,
        /// What was found.
        checkout: Option<Checkout>,
    },
    /// A round is durable. The shell has performed the round's `after_commit` effects already.
    Committed {
        /// Its number.
        round: u64,
    },
}

impl Input {
    /// Whether it may be stepped while a commit is in flight, by what it is alone.
    pub(super) fn is_live(&self) -> bool {
        match self {
            Self::Invoke { .. }
            | Self::EngineGone { .. }
            | Self::Create { .. }
            | Self::Move { .. }
            | Self::Delete { .. }
            | Self::Noted { .. } => false,
            Self::Dispatch { facts, .. } => facts.command == Command::Abort,
            Self::Engine { event, .. } => match event {
                EngineEvent::MessageFinished { .. }
                | EngineEvent::ToolFinished { .. }
                | EngineEvent::InputShown { .. }
                | EngineEvent::InputTakenBack { .. }
                | EngineEvent::Asked { .. }
                | EngineEvent::AskWithdrawn { .. }
                | EngineEvent::CompactionFinished(_)
                | EngineEvent::Stopped { .. } => false,
                EngineEvent::TurnStarted
                | EngineEvent::TurnFinished
                | EngineEvent::MessageStarted { .. }
                | EngineEvent::MessageDelta { .. }
                | EngineEvent::ToolStarted { .. }
                | EngineEvent::ToolProgress { .. }
                | EngineEvent::CompactionStarted
                | EngineEvent::RetryScheduled { .. } => true,
            },
            // It writes an interaction's end.
            Self::Timer { timer, .. } => !matches!(timer, Timer::Interaction(_)),
            Self::Attach { .. }
            | Self::Detach { .. }
            | Self::EngineOpened { .. }
            | Self::Kept
            | Self::Committed { .. } => true,
        }
    }

    /// Whether it is asked of the session as such, by a caller or by the server.
    pub(super) fn asks_of_session(&self) -> bool {
        match self {
            Self::Invoke { .. }
            | Self::Dispatch { .. }
            | Self::Create { .. }
            | Self::Move { .. }
            | Self::Delete { .. }
            | Self::Noted { .. } => true,
            Self::Attach { .. }
            | Self::Detach { .. }
            | Self::EngineOpened { .. }
            | Self::EngineGone { .. }
            | Self::Engine { .. }
            | Self::Timer { .. }
            | Self::Kept
            | Self::Committed { .. } => false,
        }
    }

    /// Whether it comes from the engine: such inputs keep their order among themselves.
    #[must_use]
    pub fn is_engine(&self) -> bool {
        matches!(
            self,
            Self::Engine { .. } | Self::EngineGone { .. } | Self::EngineOpened { .. }
        )
    }

    /// Whether it says that the engine has come to an end, with a prompt or altogether.
    pub(super) fn ends_work(&self) -> bool {
        match self {
            Self::EngineGone { .. } => true,
            Self::Engine { event, .. } => matches!(event, EngineEvent::Stopped { .. }),
            _ => false,
        }
    }
}
