//! What a person or a program does at one session, with a deadline on every wait.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::contract::{
    CallOptions, DispatchRequest, EntryPage, EventFilter, EventsRequest, InvokeEvent,
    InvokeRequest, ListEntriesRequest, OnDisconnect, ResultStream, SessionState,
};
use sessionplane_core::domain::command::{Acceptance, Command, DispatchAnswer, RejectionCode};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{
    AgentName, InputId, RequestId, RunId, SessionName, SessionRef,
};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::run::RunRecord;

use super::run::Run;
use super::watch::Watch;
use super::world::{Caller, World};

/// How long anything may take. Generous: it only ends tests that would fail anyway.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Awaits with the deadline.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    let done = tokio::time::timeout(DEADLINE, future).await;
    done.unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

/// An invoke that is being put together. Detached unless it says otherwise, as the SDKs do.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) prompt: String,
    pub(crate) id: Option<String>,
    pub(crate) agent: Option<&'static str>,
    pub(crate) must_exist: bool,
    pub(crate) on_disconnect: OnDisconnect,
}

impl Ask {
    pub(crate) fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            id: None,
            agent: None,
            must_exist: false,
            on_disconnect: OnDisconnect::Detach,
        }
    }
    pub(crate) fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
    pub(crate) fn agent(mut self, agent: &'static str) -> Self {
        self.agent = Some(agent);
        self
    }
    pub(crate) fn cancel(mut self) -> Self {
        self.on_disconnect = OnDisconnect::Cancel;
        self
    }
    pub(crate) fn must_exist(mut self) -> Self {
        self.must_exist = true;
        self
    }
}

impl From<&str> for Ask {
    fn from(prompt: &str) -> Self {
        Self::new(prompt)
    }
}

/// Options with a request id.
pub(crate) fn with_id(id: Option<&str>) -> CallOptions {
    CallOptions {
        request_id: id.map(|id| RequestId::parse(id).expect("a request id")),
        deadline: None,
    }
}

pub(crate) fn named(name: &str) -> SessionRef {
    SessionRef::Name(SessionName::parse(name).expect("a session name"))
}

pub(crate) fn steer(text: &str) -> Command {
    Command::Steer {
        text: text.into(),
        given: Given::default(),
    }
}

pub(crate) fn follow_up(text: &str) -> Command {
    Command::FollowUp {
        text: text.into(),
        given: Given::default(),
    }
}

/// One session, and somebody who works with it. Every call asks the world for its present server.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) world: Arc<dyn World>,
    pub(crate) session: SessionRef,
}

impl Desk {
    pub(crate) fn new(world: &Arc<dyn World>, name: &str) -> Self {
        Self::at(world, named(name))
    }

    pub(crate) fn at(world: &Arc<dyn World>, session: SessionRef) -> Self {
        Self {
            world: world.clone(),
            session,
        }
    }

    pub(crate) fn caller(&self) -> Arc<dyn Caller> {
        self.world.caller()
    }

    /// The stream of an invoke, whatever it says.
    pub(crate) async fn open(
        &self,
        ask: impl Into<Ask>,
    ) -> Result<ResultStream<InvokeEvent>, CallError> {
        let ask = ask.into();
        let request = InvokeRequest {
            session: self.session.clone(),
            prompt: ask.prompt,
            given: Given::default(),
            agent: ask
                .agent
                .map(|agent| AgentName::parse(agent).expect("an agent")),
            parent: None,
            must_exist: ask.must_exist,
            on_disconnect: ask.on_disconnect,
        };
        let options = with_id(ask.id.as_deref());
        within("invoke", self.caller().invoke(request, options)).await
    }

    /// An invoke that must be accepted.
    pub(crate) async fn invoke(&self, ask: impl Into<Ask>) -> Run {
        let stream = self.open(ask).await;
        let stream = stream.unwrap_or_else(|error| panic!("invoke: {error:?}"));
        Run::accepted(stream).await
    }

    /// Invokes and reads to the end: all events after `accepted`, the terminal last.
    pub(crate) async fn run(&self, ask: impl Into<Ask>) -> Vec<InvokeEvent> {
        self.invoke(ask).await.finish().await
    }

    /// Invokes where a run is active: the one event of the answer.
    pub(crate) async fn busy(&self, ask: impl Into<Ask>) -> InvokeEvent {
        let stream = self.open(ask).await;
        let mut stream = stream.unwrap_or_else(|error| panic!("invoke: {error:?}"));
        let first = Run::next_of(&mut stream).await;
        let first = first.expect("one event").expect("an answer, not a status");
        assert!(is_busy(&first), "{first:?}");
        assert_eq!(Run::next_of(&mut stream).await, None, "nothing follows");
        first
    }

    pub(crate) async fn try_dispatch(
        &self,
        command: Command,
        id: Option<&str>,
        expected_run: Option<RunId>,
    ) -> Result<DispatchAnswer, CallError> {
        let request = DispatchRequest {
            session: self.session.clone(),
            command,
            expected_run,
        };
        within("dispatch", self.caller().dispatch(request, with_id(id))).await
    }

    /// A dispatch that must be accepted.
    pub(crate) async fn dispatch(&self, command: Command, id: Option<&str>) -> Acceptance {
        let answer = self.try_dispatch(command.clone(), id, None).await;
        match answer {
            Ok(DispatchAnswer::Accepted(accepted)) => accepted,
            other => panic!("{command:?}: {other:?}"),
        }
    }

    /// A dispatch that must be rejected.
    pub(crate) async fn rejected(&self, command: Command) -> RejectionCode {
        match self.try_dispatch(command.clone(), None, None).await {
            Ok(DispatchAnswer::Rejected(rejection)) => rejection.code,
            other => panic!("{command:?}: {other:?}"),
        }
    }

    /// A steer that must be accepted.
    pub(crate) async fn steer(&self, text: &str) -> InputId {
        let accepted = self.dispatch(steer(text), None).await;
        accepted.input.expect("a queued input").id
    }

    /// A follow-up that must be accepted.
    pub(crate) async fn follow_up(&self, text: &str) -> InputId {
        let accepted = self.dispatch(follow_up(text), None).await;
        accepted.input.expect("a queued input").id
    }

    /// An abort that must be accepted.
    pub(crate) async fn abort(&self) -> Acceptance {
        self.dispatch(Command::Abort, None).await
    }

    pub(crate) async fn state(&self) -> SessionState {
        let state = self.try_state(None).await;
        state.unwrap_or_else(|error| panic!("state: {error:?}"))
    }

    pub(crate) async fn try_state(
        &self,
        min_position: Option<Position>,
    ) -> Result<SessionState, CallError> {
        let caller = self.caller();
        let state = caller.get_state(self.session.clone(), min_position, CallOptions::default());
        within("state", state).await
    }

    /// Waits until the session's events have reached a position.
    pub(crate) async fn reach(&self, position: Position) -> SessionState {
        let reached = async {
            loop {
                if let Ok(state) = self.try_state(Some(position)).await {
                    return state;
                }
            }
        };
        within("a position", reached).await
    }

    pub(crate) async fn page(
        &self,
        since: Option<String>,
        page_size: u32,
    ) -> Result<EntryPage, CallError> {
        let request = ListEntriesRequest {
            session: self.session.clone(),
            since,
            page_size,
        };
        let caller = self.caller();
        within(
            "entries",
            caller.list_entries(request, CallOptions::default()),
        )
        .await
    }

    /// Every durable entry, by pages of a size.
    pub(crate) async fn pages_of(&self, page_size: u32) -> Vec<Entry> {
        let (mut entries, mut since) = (Vec::<Entry>::new(), None);
        loop {
            let page = self.page(since, page_size).await;
            let page = page.unwrap_or_else(|error| panic!("entries: {error:?}"));
            assert!(!page.full_backfill, "the cursor was known");
            assert!(!page.has_more || !page.entries.is_empty(), "no progress");
            entries.extend(page.entries);
            let last = entries.last().map(|entry| entry.id.to_string());
            assert_eq!(page.next_since, last, "where the next page begins");
            since = page.next_since;
            if !page.has_more {
                let leaf = page.leaf;
                let known = |id| entries.iter().any(|entry| Some(entry.id) == id);
                assert!(
                    leaf.is_none() || known(leaf),
                    "the leaf is among the entries"
                );
                return entries;
            }
        }
    }

    pub(crate) async fn entries(&self) -> Vec<Entry> {
        self.pages_of(0).await
    }

    pub(crate) async fn record(&self, run: RunId) -> RunRecord {
        let caller = self.caller();
        let record = within("get_run", caller.get_run(run, CallOptions::default())).await;
        record.unwrap_or_else(|error| panic!("get_run: {error:?}"))
    }

    /// An observer that starts with the whole conversation.
    pub(crate) async fn watch(&self) -> Watch {
        self.watch_from(None, None).await
    }

    pub(crate) async fn watch_from(
        &self,
        resume: Option<Position>,
        entries_since: Option<String>,
    ) -> Watch {
        self.watch_for(EventFilter::default(), resume, entries_since)
            .await
    }

    /// An observer that wants some events only.
    pub(crate) async fn watch_for(
        &self,
        filter: EventFilter,
        resume: Option<Position>,
        entries_since: Option<String>,
    ) -> Watch {
        let request = EventsRequest {
            session: self.session.clone(),
            resume,
            filter: filter.clone(),
            entries_since,
        };
        let stream = within(
            "events",
            self.caller().events(request, CallOptions::default()),
        )
        .await;
        let stream = stream.unwrap_or_else(|error| panic!("events: {error:?}"));
        Watch::open(stream, filter).await
    }

    /// Waits until a run has settled, however often the stream that tells of it has to be opened.
    pub(crate) async fn settled(&self, run: RunId) -> RunRecord {
        let settled = async {
            loop {
                let mut watch = self.watch().await;
                if watch.snapshot.view.active_run != Some(run) {
                    return;
                }
                while let Some(Ok(envelope)) = watch.next().await {
                    let over = matches!(&envelope.event.body, EventBody::RunSettled { run: record } if record.id == run);
                    if over {
                        return;
                    }
                }
            }
        };
        within("the run settles", settled).await;
        self.record(run).await
    }
}

/// Whether an invoke met an active run.
pub(crate) fn is_busy(event: &InvokeEvent) -> bool {
    matches!(event, InvokeEvent::Failed { code, retryable: true, run: None, .. } if code == "session_busy")
}
