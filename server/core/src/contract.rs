//! The contract as three traits in domain types, one for each plane. The server's app layer and the Rust client both
//! implement them, and one conformance suite takes either: local and remote are isomorphic.
//!
//! Methods carry meaning only. A handle is obtained per caller; request id and deadline ride in
//! [`CallOptions`]; a place in the stream is an opaque [`Position`].

pub mod audit;
pub mod fleet;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;

use crate::domain::artifact::ArtifactRef;
use crate::domain::capabilities::{Capabilities, SandboxLevel};
use crate::domain::command::{Command, CommandKind, DispatchAnswer};
use crate::domain::entry::Entry;
use crate::domain::error::CallError;
use crate::domain::event::{EventBody, EventEnvelope, OutputChannel};
use crate::domain::given::Given;
use crate::domain::ids::{
    AgentName, EntryId, InteractionId, RequestId, RunId, SessionId, SessionRef,
};
use crate::domain::interaction::{Interaction, Resolution};
use crate::domain::position::Position;
use crate::domain::run::RunRecord;
use crate::domain::settings::ModelPolicy;
use crate::domain::text::BoundedText;
use crate::domain::view::SessionView;

/// What rides beside a call's meaning.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The caller's key for this logical call. Without one nothing is bound or joinable.
    pub request_id: Option<RequestId>,
    /// How long the caller waits for the answer. For a stream: for its first message.
    pub deadline: Option<Duration>,
}

/// A stream of results.
pub type ResultStream<T> = Pin<Box<dyn Stream<Item = Result<T, CallError>> + Send>>;

/// What becomes of a run whose callers are gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnDisconnect {
    /// It is aborted.
    Cancel,
    /// It outlives them.
    Detach,
}

/// Starts a run, or joins the one that the same request id started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvokeRequest {
    /// The session. A name or key that does not exist is created, unless `must_exist`.
    pub session: SessionRef,
    /// The prompt, 1 byte to 1 MiB.
    pub prompt: String,
    /// What its sender says of it and gives beside it.
    pub given: Given,
    /// The agent, read only when the session is created.
    pub agent: Option<AgentName>,
    /// The session that a new one branches off, read only when the session is created.
    pub parent: Option<Parent>,
    /// Refuse a session that does not exist.
    pub must_exist: bool,
    /// What becomes of the run when its callers are gone.
    pub on_disconnect: OnDisconnect,
}

/// Where a new session's conversation branches off another's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parent {
    /// The other session. It must exist, and the caller must be allowed to observe it.
    pub session: SessionRef,
    /// The last entry of it that counts as the new session's past; its leaf if none is named.
    pub entry: Option<EntryId>,
}

/// What an invoke streams: a projection of the session's events.
#[derive(Clone, PartialEq, Debug)]
pub enum InvokeEvent {
    /// Always first, unless the terminal is.
    Accepted {
        /// The session, also when it was created just now.
        session: SessionId,
        /// The run.
        run: RunId,
        /// An observer that opens here misses nothing of the run.
        position: Position,
        /// The run had been started by an earlier call with the same request id.
        joined: bool,
    },
    /// A joiner missed this many events of the run, which are no longer retained. Told again where
    /// more of them left the ring before it read them.
    Resumed {
        /// How many.
        skipped: u64,
    },
    /// A piece of a message.
    Delta {
        /// The message.
        message: String,
        /// Answer or thinking.
        channel: OutputChannel,
        /// The piece.
        text: String,
    },
    /// A tool is called.
    ToolStarted {
        /// The call.
        call: String,
        /// The tool's name.
        name: String,
        /// Its arguments as JSON text.
        input_json: BoundedText,
    },
    /// A tool came back.
    ToolEnded {
        /// The call.
        call: String,
        /// It reported a failure.
        failed: bool,
        /// What it gave back: its tail.
        output: BoundedText,
        /// The whole of it, where it is more than an event carries.
        artifact: Option<ArtifactRef>,
    },
    /// The run is suspended on a question. Answer it with [`Command::Respond`].
    InteractionRequested {
        /// The question.
        interaction: Box<Interaction>,
    },
    /// A question is answered, or needs no answer any more.
    InteractionResolved {
        /// The question.
        id: InteractionId,
        /// How it ended.
        resolution: Box<Resolution>,
    },
    /// The engine waits before it calls the model again.
    Retrying {
        /// The attempt to come, from 1.
        attempt: u32,
        /// At most so many; 0 when the engine does not say.
        max_attempts: u32,
        /// How long it waits.
        delay: Duration,
        /// What went wrong.
        reason: String,
    },
    /// The one terminal: the run completed.
    Completed {
        /// The run's record. Its entries hold the answer.
        run: Box<RunRecord>,
    },
    /// The one terminal: the run failed or was aborted, or was not admitted.
    Failed {
        /// A stable word.
        code: String,
        /// What happened, for a person.
        details: String,
        /// A new invoke with a new request id may succeed.
        retryable: bool,
        /// The run's record; none if no run was admitted.
        run: Option<Box<RunRecord>>,
    },
}

impl InvokeEvent {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Failed { .. })
    }
}

/// A page request over a session's runs, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListRunsRequest {
    /// The session.
    pub session: SessionRef,
    /// Go on after this run: the last one of the page before.
    pub before: Option<RunId>,
    /// Most runs in the page; 0 for the default of 50; at most 500.
    pub page_size: u32,
}

/// A page of runs.
#[derive(Clone, PartialEq, Debug)]
pub struct RunPage {
    /// The runs, newest first.
    pub runs: Vec<RunRecord>,
    /// There are older ones: the last of `runs` is the next page's `before`.
    pub has_more: bool,
}

/// The data plane.
#[async_trait]
pub trait Agent: Send + Sync {
    /// Starts or joins a run. After admission every failure is a [`InvokeEvent::Failed`].
    async fn invoke(
        &self,
        request: InvokeRequest,
        options: CallOptions,
    ) -> Result<ResultStream<InvokeEvent>, CallError>;
    /// A page of a session's runs, newest first.
    async fn list_runs(
        &self,
        request: ListRunsRequest,
        options: CallOptions,
    ) -> Result<RunPage, CallError>;

    /// A run's durable record once it has settled. With a deadline that passes first, the error is
    /// [`crate::domain::error::Reason::DeadlineExceeded`], and the run goes on.
    async fn wait_run(&self, run: RunId, options: CallOptions) -> Result<RunRecord, CallError>;

    /// A run's durable record.
    async fn get_run(&self, run: RunId, options: CallOptions) -> Result<RunRecord, CallError>;
}

/// What capabilities are asked of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CapabilityTarget {
    /// An agent definition.
    Agent(AgentName),
    /// A session.
    Session(SessionRef),
}

/// The answer to `get_capabilities`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapabilityReport {
    /// What the engine can do.
    pub capabilities: Capabilities,
    /// The commands that will not be refused for lack of a capability.
    pub commands: Vec<CommandKind>,
    /// The models that may be chosen, and what is used unless one is.
    pub models: ModelPolicy,
    /// How long a request id stays bound after its run settled, at least.
    pub binding_retention: Duration,
}

/// A name that a composer may offer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfferedCommand {
    /// Its name, without a slash.
    pub name: String,
    /// What it does, in one line.
    pub description: String,
    /// Where it goes.
    pub target: CommandTarget,
}

/// Where an offered command goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommandTarget {
    /// It is a command of `Dispatch`.
    Dispatch(CommandKind),
    /// It is text of a prompt that the engine gives a meaning to.
    Prompt,
}

/// A command on a session: on its active run, or on what it is between runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DispatchRequest {
    /// The session.
    pub session: SessionRef,
    /// The command.
    pub command: Command,
    /// Guards against reaching a later run.
    pub expected_run: Option<RunId>,
}

/// A page request over a session's entries, in append order over all branches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListEntriesRequest {
    /// The session.
    pub session: SessionRef,
    /// The last entry that the reader has. An unknown one means a full backfill.
    pub since: Option<String>,
    /// Most entries in the page; 0 for the default of 100; at most 1,000.
    pub page_size: u32,
}

/// A page of entries.
#[derive(Clone, PartialEq, Debug)]
pub struct EntryPage {
    /// The entries, in append order.
    pub entries: Vec<Entry>,
    /// The leaf: among the entries that a reader ends up with.
    pub leaf: Option<EntryId>,
    /// The cursor was unknown: this page starts from the first entry.
    pub full_backfill: bool,
    /// What to ask for next as `since`, whether or not the reader knows all kinds of entries: the
    /// page's last entry, or the cursor that was asked with. None while there is nothing to name.
    pub next_since: Option<String>,
    /// More entries are durable after this page.
    pub has_more: bool,
}

/// A session's state at a position.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionState {
    /// The state.
    pub view: SessionView,
    /// What keeps the session's agent inside its directory; nothing where it is no longer configured.
    pub sandbox: SandboxLevel,
    /// Every event up to here is in it.
    pub position: Position,
}

/// Where an observer starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventsRequest {
    /// The session.
    pub session: SessionRef,
    /// Continue after this position, if it is still retained.
    pub resume: Option<Position>,
    /// The last entry that the reader has; entries after it are sent before the snapshot.
    pub entries_since: Option<String>,
    /// What live events are wanted. The same for the resumed part.
    pub filter: EventFilter,
}

/// What live events an observer wants. Under a filter `seq` may jump; a jump is no loss.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// The types wanted, by name; empty: all. Unknown names match nothing and are no error, since
    /// a newer client may know more types.
    pub types: BTreeSet<String>,
    /// Leave thinking out.
    pub no_thinking: bool,
}

impl EventFilter {
    /// Whether nothing is left out.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.types.is_empty() && !self.no_thinking
    }

    /// Whether an event is wanted. What ends a stream always is.
    #[must_use]
    pub fn admits(&self, event: &EventBody) -> bool {
        let thinking = matches!(
            event,
            EventBody::MessageDelta {
                channel: OutputChannel::Thinking,
                ..
            }
        );
        let last = matches!(event, EventBody::ServingError { .. });
        let typed = self.types.is_empty() || self.types.contains(event.event_type());
        last || (typed && !(thinking && self.no_thinking))
    }
}

/// What an observer receives.
#[allow(
    clippy::large_enum_variant,
    reason = "the large variant is the common one; boxing would cost an allocation per event"
)]
#[derive(Clone, PartialEq, Debug)]
pub enum EventItem {
    /// Always first.
    Subscribed {
        /// The session, resolved.
        session: SessionId,
        /// The serving incarnation that numbers the events.
        epoch: u64,
        /// The missed events follow, nothing is lost.
        resumed: bool,
        /// The asked-for position is no longer retained: live events were lost, entries were not.
        gap: bool,
        /// How often a heartbeat comes while nothing else does; none if the server does not tell.
        heartbeat_interval: Option<Duration>,
    },
    /// Durable entries, unsequenced.
    Entries {
        /// In append order.
        entries: Vec<Entry>,
        /// In the first page only: `entries_since` was unknown, and the entries start from the
        /// session's first.
        full_backfill: bool,
    },
    /// The state, after which nothing is missed.
    Snapshot(Box<SessionState>),
    /// A live event.
    Event(EventEnvelope),
    /// Nothing happened; everything up to here was considered.
    Heartbeat(Position),
}

/// The control and observation planes.
#[async_trait]
pub trait SessionControl: Send + Sync {
    /// Modulates the active run; never starts one.
    async fn dispatch(
        &self,
        request: DispatchRequest,
        options: CallOptions,
    ) -> Result<DispatchAnswer, CallError>;
    /// What an agent or a session can do.
    async fn get_capabilities(
        &self,
        target: CapabilityTarget,
        options: CallOptions,
    ) -> Result<CapabilityReport, CallError>;
    /// The names that a composer may offer.
    async fn list_commands(
        &self,
        target: CapabilityTarget,
        options: CallOptions,
    ) -> Result<Vec<OfferedCommand>, CallError>;

    /// The state, at or after `min_position` if one is given.
    async fn get_state(
        &self,
        session: SessionRef,
        min_position: Option<Position>,
        options: CallOptions,
    ) -> Result<SessionState, CallError>;
    /// A page of durable entries.
    async fn list_entries(
        &self,
        request: ListEntriesRequest,
        options: CallOptions,
    ) -> Result<EntryPage, CallError>;
    /// Live events, after a backfill and a snapshot.
    async fn events(
        &self,
        request: EventsRequest,
        options: CallOptions,
    ) -> Result<ResultStream<EventItem>, CallError>;
}
