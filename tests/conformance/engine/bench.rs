//! Where an engine is tried: a counted spawner, a transcript from memory, and reads with a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::entry::{Entry, EntryBody, PathMarks};
use sessionplane_core::domain::ids::{EntryId, InputId, PrincipalId, RunId, SessionId};
use sessionplane_core::domain::interaction::{InteractionAnswer, Question, Shape};
use sessionplane_core::domain::place::Place;
use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
use sessionplane_core::domain::run::{Failure, RunSettings};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::withholding::Withheld;
use sessionplane_core::ports::clock::{BoxFuture, Spawner, TaskHandle};
use sessionplane_core::ports::engine::{
    Engine, EngineCommand, EngineCommands, EngineError, EngineEvent, EngineOutput,
    MAX_REPORT_TEXT_BYTES, OpenSession, Revalidation, StopReason, Transcript,
};
use sessionplane_server::adapters::clock::{TokioClock, TokioSpawner};

use super::Subject;

/// How long, in virtual time, an engine may take for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
/// More events than any prompt of the suite causes.
const MOST_EVENTS: usize = 100_000;

/// Awaits with a deadline on the virtual clock.
pub(crate) async fn within<F: Future>(limit: Duration, what: &str, future: F) -> F::Output {
    let done = tokio::time::timeout(limit, future).await;
    done.unwrap_or_else(|_| panic!("{what}: not within {limit:?}"))
}

/// The engine under test and what surrounds it.
pub(crate) struct Bench {
    pub(crate) subject: Subject,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) clock: TokioClock,
    /// Where sessions are told to work.
    pub(crate) place: Option<Place>,
    tasks: Arc<AtomicUsize>,
}

impl Bench {
    pub(crate) fn new(subject: Subject) -> Self {
        let tasks = Arc::new(AtomicUsize::new(0));
        let clock = TokioClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
        let spawner = CountingSpawner {
            inner: TokioSpawner::current(),
            tasks: tasks.clone(),
        };
        let engine = (subject.factory)(Arc::new(clock.clone()), Arc::new(spawner));
        Self {
            subject,
            engine,
            clock,
            place: None,
            tasks,
        }
    }

    /// Opens a new session.
    pub(crate) async fn open(&self) -> Opened {
        self.reopen(session(1), Vec::new()).await
    }

    /// Opens a session with a durable conversation.
    pub(crate) async fn reopen(&self, session: SessionId, entries: Vec<Entry>) -> Opened {
        let settings = self.engine.describe().models.default.clone();
        self.open_with(session, entries, settings).await
    }

    /// Opens a session with a durable conversation, and a model and a level.
    pub(crate) async fn open_with(
        &self,
        session: SessionId,
        entries: Vec<Entry>,
        settings: RunSettings,
    ) -> Opened {
        let open = OpenSession {
            session,
            leaf: entries.last().map(|entry| entry.id),
            settings,
            place: self.place.clone(),
            transcript: Arc::new(Pages(entries)),
        };
        let opened = within(DEADLINE, "open", self.engine.open(open)).await;
        let connection = opened.unwrap_or_else(|error| panic!("open: {error}"));
        Opened {
            commands: connection.commands,
            output: connection.output,
            revalidation: connection.revalidation,
            run: run(1),
            prompts: 0,
            rest: self.subject.patience.rest,
        }
    }

    /// Lets an engine that nobody reads come to where it can do nothing more.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(self.subject.patience.settle).await;
    }

    /// Waits until no task of the engine is left.
    pub(crate) async fn tasks_end(&self) {
        let poll = async {
            while self.tasks.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within(DEADLINE, "the engine's tasks end", poll).await;
    }

    pub(crate) fn tasks(&self) -> usize {
        self.tasks.load(Ordering::SeqCst)
    }
}

/// An open connection.
pub(crate) struct Opened {
    pub(crate) commands: Box<dyn EngineCommands>,
    pub(crate) output: Box<dyn EngineOutput>,
    pub(crate) revalidation: Revalidation,
    pub(crate) run: RunId,
    /// The number of the last prompt.
    pub(crate) prompts: u32,
    rest: Duration,
}

impl Opened {
    /// Hands a command over; handing over never waits.
    pub(crate) async fn send(&mut self, command: EngineCommand) -> Result<(), EngineError> {
        within(DEADLINE, "send", self.commands.send(command)).await
    }

    pub(crate) async fn prompt(&mut self, text: &str) {
        let sent = self.try_prompt(text).await;
        sent.unwrap_or_else(|error| panic!("prompt: {error}"));
    }

    pub(crate) async fn try_prompt(&mut self, text: &str) -> Result<(), EngineError> {
        self.try_any_prompt(text, None).await
    }

    async fn try_any_prompt(
        &mut self,
        text: &str,
        input: Option<InputId>,
    ) -> Result<(), EngineError> {
        self.prompts += 1;
        let prompt = EngineCommand::Prompt {
            number: self.prompts,
            run: self.run,
            text: text.into(),
            input,
            withheld: Withheld::Nothing,
        };
        self.send(prompt).await
    }

    pub(crate) async fn follow_up(&mut self, text: &str, input: InputId) {
        let sent = self.try_any_prompt(text, Some(input)).await;
        sent.unwrap_or_else(|error| panic!("follow-up: {error}"));
    }

    pub(crate) async fn steer(&mut self, text: &str, input: InputId) {
        let text = text.into();
        let steer = EngineCommand::Steer {
            input,
            text,
            withheld: Withheld::Nothing,
        };
        let sent = self.send(steer).await;
        sent.unwrap_or_else(|error| panic!("steer: {error}"));
    }

    pub(crate) async fn abort(&mut self) {
        // An engine may be gone already; that ends the run as well.
        let _gone = self.send(EngineCommand::Abort).await;
    }

    /// Tells it what became of a question. It may be gone: then it does not matter any more.
    pub(crate) async fn answer(&mut self, ask: &str, answer: Option<InteractionAnswer>) {
        let ask = ask.to_owned();
        let _gone = self.send(EngineCommand::Answer { ask, answer }).await;
    }

    pub(crate) async fn compact(&mut self, instructions: Option<&str>) {
        let instructions = instructions.map(Into::into);
        let sent = self.send(EngineCommand::Compact { instructions }).await;
        sent.unwrap_or_else(|error| panic!("compact: {error}"));
    }

    /// Reads to the end of a compaction; `None` when the engine is gone before it.
    pub(crate) async fn read_to_compacted(&mut self) -> Option<Result<Compacted, Failure>> {
        while let Some(event) = self.next().await {
            if let EngineEvent::CompactionFinished(result) = event {
                return Some(result);
            }
        }
        None
    }

    /// Reads up to the stop or the end, and answers every question at once.
    pub(crate) async fn read_answering(&mut self) -> Vec<EngineEvent> {
        let mut events = Vec::new();
        loop {
            events.extend(self.read_to(|event| asked(event).is_some()).await);
            match events.last().and_then(asked) {
                Some((ask, question)) => {
                    let (ask, answer) = (ask.to_owned(), an_answer(question));
                    self.answer(&ask, answer).await;
                }
                None => return events,
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Option<EngineEvent> {
        let event = within(DEADLINE, "the next event", self.output.next()).await;
        event.inspect(is_bounded)
    }

    /// Reads up to the first event of a kind, or to the stop or the end.
    pub(crate) async fn read_to(
        &mut self,
        wanted: impl Fn(&EngineEvent) -> bool,
    ) -> Vec<EngineEvent> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let last = wanted(&event) || stop_of(&event).is_some();
            events.push(event);
            assert!(
                events.len() < MOST_EVENTS,
                "the engine does not come to an end"
            );
            if last {
                break;
            }
        }
        events
    }

    /// Reads up to the stop or the end.
    pub(crate) async fn read_to_stop(&mut self) -> Vec<EngineEvent> {
        self.read_to(|_| false).await
    }

    /// Whatever an engine at rest still says.
    pub(crate) async fn read_at_rest(&mut self) -> Vec<EngineEvent> {
        let mut events = Vec::new();
        while let Ok(Some(event)) = tokio::time::timeout(self.rest, self.output.next()).await {
            is_bounded(&event);
            events.push(event);
            assert!(
                events.len() < MOST_EVENTS,
                "the engine does not come to rest"
            );
        }
        events
    }

    pub(crate) fn input(&self, ordinal: u32) -> InputId {
        InputId {
            run: self.run,
            ordinal,
        }
    }
}

/// Nothing is longer than the port allows.
fn is_bounded(event: &EngineEvent) {
    let longest = event.texts().map(str::len).max();
    assert!(longest <= Some(MAX_REPORT_TEXT_BYTES), "{longest:?} bytes");
}

pub(crate) fn stop_of(event: &EngineEvent) -> Option<&StopReason> {
    match event {
        EngineEvent::Stopped { reason, .. } => Some(reason),
        _ => None,
    }
}

/// The question that an event asks, and what it is called.
pub(crate) fn asked(event: &EngineEvent) -> Option<(&str, &Question)> {
    match event {
        EngineEvent::Asked { ask, question, .. } => Some((ask, question)),
        _ => None,
    }
}

/// Something that answers a question; none where nothing could.
pub(crate) fn an_answer(question: &Question) -> Option<InteractionAnswer> {
    let answer = match &question.shape {
        Shape::Approval(choices) | Shape::Select(choices) => {
            InteractionAnswer::Choice(choices.first()?.id.clone())
        }
        Shape::Confirm => InteractionAnswer::Confirmed(true),
        Shape::Input { .. } => InteractionAnswer::Text("an answer".to_owned()),
        Shape::Form(_) => question
            .default
            .clone()
            .unwrap_or_else(|| InteractionAnswer::Fields([].into())),
    };
    question.check(&answer).is_ok().then_some(answer)
}

/// The inputs that were shown, in order.
pub(crate) fn shown(events: &[EngineEvent]) -> Vec<InputId> {
    let shown = |event: &EngineEvent| match event {
        EngineEvent::InputShown { input } => Some(*input),
        _ => None,
    };
    events.iter().filter_map(shown).collect()
}

pub(crate) fn session(number: u128) -> SessionId {
    SessionId::mint(Timestamp::from_millis(1_700_000_000_000), number)
}

pub(crate) fn run(number: u128) -> RunId {
    RunId::mint(Timestamp::from_millis(1_700_000_000_000), number)
}

/// A durable conversation of so many prompts of a user.
pub(crate) fn conversation(session: SessionId, prompts: u64) -> Vec<Entry> {
    let texts = (1..=prompts).map(|seq| (Channel::Invoke, format!("earlier text {seq}")));
    conversation_of(session, texts)
}

/// A durable conversation of what a user sent.
pub(crate) fn conversation_of(
    session: SessionId,
    texts: impl IntoIterator<Item = (Channel, String)>,
) -> Vec<Entry> {
    let origin = |channel| Origin {
        principal: PrincipalId::parse("somebody").unwrap_or_else(|error| panic!("{error}")),
        kind: PrincipalKind::Human,
        channel,
        trust: Trust::Typed,
        digest: Digest([0; 32]),
        request_id: None,
    };
    let entry = |(seq, (channel, text)): (u64, (Channel, String))| Entry {
        id: EntryId { session, seq },
        parent: (seq > 1).then(|| EntryId {
            session,
            seq: seq - 1,
        }),
        run: Some(run(9)),
        at: Timestamp::from_millis(1_600_000_000_000 + seq),
        path: PathMarks::default(),
        body: EntryBody::User {
            text: text.into(),
            omitted_bytes: 0,
            origin: origin(channel),
            input: None,
            data: None,
        },
    };
    (1..).zip(texts).map(entry).collect()
}

/// A transcript in memory, three entries a page.
pub(crate) struct Pages(pub(crate) Vec<Entry>);

#[async_trait]
impl Transcript for Pages {
    async fn page(&self, from: usize) -> Result<Vec<Entry>, EngineError> {
        Ok(self.0.iter().skip(from).take(3).cloned().collect())
    }

    async fn newest(&self, max: usize) -> Result<Vec<Entry>, EngineError> {
        let first = self.0.len().saturating_sub(max);
        Ok(self.0[first..].to_vec())
    }
}

/// Counts the tasks that live.
struct CountingSpawner {
    inner: TokioSpawner,
    tasks: Arc<AtomicUsize>,
}

/// One living task; counts itself out however it ends.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Spawner for CountingSpawner {
    fn spawn(&self, name: &'static str, task: BoxFuture<()>) -> Box<dyn TaskHandle> {
        self.tasks.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(self.tasks.clone());
        let task = async move {
            let _counted = counted;
            task.await;
        };
        self.inner.spawn(name, Box::pin(task))
    }
}
