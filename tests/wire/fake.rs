//! An application layer that does as the test says, and remembers what it was asked.

mod audit;
pub(crate) mod fleet;

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::{StreamExt, stream};
use sessionplane_core::contract::{
    Agent, CallOptions, CapabilityReport, CapabilityTarget, DispatchRequest, EntryPage, EventItem,
    EventsRequest, InvokeEvent, InvokeRequest, ListEntriesRequest, ListRunsRequest, OfferedCommand,
    ResultStream, RunPage, SessionControl, SessionState,
};
use sessionplane_core::domain::capabilities::{Capabilities, SandboxLevel};
use sessionplane_core::domain::command::{Acceptance, CommandKind, DispatchAnswer};
use sessionplane_core::domain::entry::{Entry, EntryBody, PathMarks};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::{Event, EventBody, EventEnvelope, OutputChannel};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{AgentName, EntryId, RunId, SessionId, SessionRef, TenantId};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::domain::settings::ModelPolicy;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::view::SessionView;
use sessionplane_server::app::face::{Caller, Face, Faces};
use sessionplane_server::app::observation::{Observation, Observed, Published};
use tokio::sync::watch;

pub(crate) const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The application layer. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Fake(Arc<State>);

struct State {
    /// Every call fails with this.
    failure: Mutex<Option<CallError>>,
    /// Unary calls never answer.
    hangs: Mutex<bool>,
    /// How long observers wait for their stream.
    opens_after: Mutex<Duration>,
    /// What streams hold before they wait for ever.
    events: Mutex<Vec<Arc<Published>>>,
    /// What streams fail with after their events.
    breaks: Mutex<Option<CallError>>,
    /// Streams repeat their events without end.
    firehose: Mutex<bool>,
    /// How many entries a page holds.
    entries: Mutex<u64>,
    asked: Mutex<Vec<(Caller, CallOptions)>>,
    open: AtomicUsize,
    open_told: watch::Sender<usize>,
    /// Something is at work: a drain waits for it.
    at_work: watch::Sender<bool>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self(Arc::new(State {
            failure: Mutex::default(),
            hangs: Mutex::default(),
            opens_after: Mutex::default(),
            events: Mutex::default(),
            breaks: Mutex::default(),
            firehose: Mutex::default(),
            entries: Mutex::default(),
            asked: Mutex::default(),
            open: AtomicUsize::new(0),
            open_told: watch::Sender::new(0),
            at_work: watch::Sender::new(false),
        }))
    }
    /// Says whether something is at work, which a drain waits for.
    pub(crate) fn works(&self, does: bool) {
        self.0.at_work.send_replace(does);
    }
    pub(crate) fn fail_with(&self, error: CallError) {
        *self.0.failure.lock().unwrap() = Some(error);
    }
    pub(crate) fn break_streams_with(&self, error: CallError) {
        *self.0.breaks.lock().unwrap() = Some(error);
    }
    pub(crate) fn hang(&self) {
        *self.0.hangs.lock().unwrap() = true;
    }
    pub(crate) fn open_after(&self, delay: Duration) {
        *self.0.opens_after.lock().unwrap() = delay;
    }
    pub(crate) fn hold_entries(&self, entries: u64) {
        *self.0.entries.lock().unwrap() = entries;
    }
    pub(crate) fn publish(&self, events: impl IntoIterator<Item = Published>) {
        self.0
            .events
            .lock()
            .unwrap()
            .extend(events.into_iter().map(Arc::new));
    }
    pub(crate) fn repeat_without_end(&self) {
        *self.0.firehose.lock().unwrap() = true;
    }
    /// The newest call: who made it and with which options.
    pub(crate) fn asked(&self) -> (Caller, CallOptions) {
        self.0
            .asked
            .lock()
            .unwrap()
            .last()
            .expect("the call reached the application")
            .clone()
    }
    pub(crate) fn was_asked(&self) -> bool {
        self.times_asked() > 0
    }
    pub(crate) fn times_asked(&self) -> usize {
        self.0.asked.lock().unwrap().len()
    }
    /// Waits until so many streams are open.
    pub(crate) async fn until_open(&self, streams: usize) {
        let mut told = self.0.open_told.subscribe();
        let reached = told.wait_for(|open| *open == streams);
        tokio::time::timeout(Duration::from_secs(10), reached)
            .await
            .expect("in time")
            .unwrap();
    }
}

impl Faces for Fake {
    type Handle = Handle;
    fn as_caller(&self, caller: Caller) -> Handle {
        Handle {
            state: self.0.clone(),
            caller,
        }
    }
    async fn drain(&self) {
        let mut at_work = self.0.at_work.subscribe();
        at_work.wait_for(|does| !does).await.unwrap();
    }
}

pub(crate) struct Handle {
    state: Arc<State>,
    caller: Caller,
}

impl Handle {
    async fn called(&self, options: CallOptions) -> Result<(), CallError> {
        self.state
            .asked
            .lock()
            .unwrap()
            .push((self.caller.clone(), options));
        if *self.state.hangs.lock().unwrap() {
            std::future::pending::<()>().await;
        }
        let failure = self.state.failure.lock().unwrap().clone();
        failure.map_or(Ok(()), Err)
    }
    /// How streams go on after what they hold: not at all, or they fail.
    fn end<T: Send + 'static>(&self) -> Pin<Box<dyn Stream<Item = Result<T, CallError>> + Send>> {
        match self.state.breaks.lock().unwrap().clone() {
            Some(error) => Box::pin(stream::iter([Err(error)])),
            None => Box::pin(stream::pending()),
        }
    }
    fn counted<S>(&self, stream: S) -> Counted<S> {
        let open = self.state.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.state.open_told.send_replace(open);
        Counted {
            stream,
            state: self.state.clone(),
        }
    }
}

/// A stream whose end the test can see.
struct Counted<S> {
    stream: S,
    state: Arc<State>,
}

impl<S: Stream + Unpin> Stream for Counted<S> {
    type Item = S::Item;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        Pin::new(&mut self.stream).poll_next(cx)
    }
}

impl<S> Drop for Counted<S> {
    fn drop(&mut self) {
        let open = self.state.open.fetch_sub(1, Ordering::SeqCst) - 1;
        self.state.open_told.send_replace(open);
    }
}

#[async_trait::async_trait]
impl Face for Handle {
    async fn observe(
        &self,
        _request: EventsRequest,
        options: CallOptions,
    ) -> Result<Observation, CallError> {
        self.called(options).await?;
        let opens_after = *self.state.opens_after.lock().unwrap();
        tokio::time::sleep(opens_after).await;
        let (session, resumed, gap) = (session(), false, false);
        let subscribed = EventItem::Subscribed {
            session,
            epoch: 1,
            resumed,
            gap,
            heartbeat_interval: None,
        };
        let snapshot = EventItem::Snapshot(Box::new(state()));
        let head = [subscribed, snapshot].map(|item| Ok(Observed::Other(Box::new(item))));
        let events = self.state.events.lock().unwrap().clone();
        let events = events.into_iter().map(Observed::Event);
        let stream = stream::iter(head);
        Ok(if *self.state.firehose.lock().unwrap() {
            Box::pin(self.counted(stream.chain(stream::iter(events.cycle().map(Ok)))))
        } else {
            let events = stream::iter(events.map(Ok)).chain(self.end());
            Box::pin(self.counted(stream.chain(events)))
        })
    }
}

#[async_trait::async_trait]
impl Agent for Handle {
    async fn invoke(
        &self,
        _request: InvokeRequest,
        options: CallOptions,
    ) -> Result<ResultStream<InvokeEvent>, CallError> {
        self.called(options).await?;
        let position = Position { epoch: 1, seq: 0 };
        let accepted = InvokeEvent::Accepted {
            session: session(),
            run: run(),
            position,
            joined: false,
        };
        let stream = stream::iter([Ok(accepted)]).chain(self.end());
        Ok(Box::pin(self.counted(stream)))
    }
    async fn get_run(&self, _run: RunId, options: CallOptions) -> Result<RunRecord, CallError> {
        self.called(options).await?;
        Err(CallError::no_such_session())
    }
    async fn list_runs(
        &self,
        _request: ListRunsRequest,
        options: CallOptions,
    ) -> Result<RunPage, CallError> {
        self.called(options).await?;
        Ok(RunPage {
            runs: Vec::new(),
            has_more: false,
        })
    }
    async fn wait_run(&self, run: RunId, options: CallOptions) -> Result<RunRecord, CallError> {
        self.get_run(run, options).await
    }
}

#[async_trait::async_trait]
impl SessionControl for Handle {
    async fn dispatch(
        &self,
        _request: DispatchRequest,
        options: CallOptions,
    ) -> Result<DispatchAnswer, CallError> {
        self.called(options).await?;
        Ok(DispatchAnswer::Accepted(Acceptance {
            run: Some(run()),
            input: None,
        }))
    }
    async fn get_capabilities(
        &self,
        _target: CapabilityTarget,
        options: CallOptions,
    ) -> Result<CapabilityReport, CallError> {
        self.called(options).await?;
        Ok(CapabilityReport {
            capabilities: Capabilities::default(),
            commands: vec![CommandKind::Abort],
            models: ModelPolicy::default(),
            binding_retention: Duration::from_secs(86_400),
        })
    }
    async fn list_commands(
        &self,
        _target: CapabilityTarget,
        options: CallOptions,
    ) -> Result<Vec<OfferedCommand>, CallError> {
        self.called(options).await?;
        Ok(Vec::new())
    }
    async fn get_state(
        &self,
        _session: SessionRef,
        _min_position: Option<Position>,
        options: CallOptions,
    ) -> Result<SessionState, CallError> {
        self.called(options).await?;
        Ok(state())
    }
    async fn list_entries(
        &self,
        _request: ListEntriesRequest,
        options: CallOptions,
    ) -> Result<EntryPage, CallError> {
        self.called(options).await?;
        let entries: Vec<_> = (1..=*self.state.entries.lock().unwrap())
            .map(entry)
            .collect();
        let leaf = entries.last().map(|entry| entry.id);
        Ok(EntryPage {
            entries,
            leaf,
            full_backfill: false,
            next_since: leaf.map(|id| id.to_string()),
            has_more: false,
        })
    }
    async fn events(
        &self,
        _request: EventsRequest,
        _options: CallOptions,
    ) -> Result<ResultStream<EventItem>, CallError> {
        unreachable!("the face observes")
    }
}

pub(crate) fn session() -> SessionId {
    SessionId::mint(AT, 1)
}

pub(crate) fn run() -> RunId {
    RunId::mint(AT, 2)
}

fn state() -> SessionState {
    let record = SessionRecord {
        id: session(),
        tenant: TenantId::parse("default").unwrap(),
        metadata: Metadata::first(None, AT),
        external_key: None,
        agent: AgentName::parse("scripted").unwrap(),
        created_at: AT,
        lineage: None,
    };
    SessionState {
        view: SessionView::unborn(record.identity(), &ModelPolicy::default()),
        sandbox: SandboxLevel::Confined,
        position: Position { epoch: 1, seq: 0 },
    }
}

fn entry(seq: u64) -> Entry {
    let body = EntryBody::Notice {
        code: "note".into(),
        text: "words, words, words".into(),
    };
    Entry {
        id: EntryId {
            session: session(),
            seq,
        },
        parent: None,
        run: Some(run()),
        at: AT,
        path: PathMarks::default(),
        body,
    }
}

/// A live event with this number.
pub(crate) fn event(seq: u64, text: &str) -> EventEnvelope {
    let body = EventBody::MessageDelta {
        message: "m".into(),
        channel: OutputChannel::Text,
        text: text.into(),
    };
    let event = Event {
        at: AT,
        run: Some(run()),
        body,
    };
    EventEnvelope {
        session: session(),
        epoch: 1,
        seq,
        event,
    }
}
