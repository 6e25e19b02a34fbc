//! One opening of a session's engine, as a task that the session's task owns.
//!
//! Commands and reports travel over bounded channels and never wait for each other. Dropping the
//! link cancels the task and with it the engine's connection.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::lifecycle::EngineTag;
use sessionplane_core::domain::limits::MAX_EVENT_TEXT_BYTES;
use sessionplane_core::ports::artifact_store::ArtifactStore;
use sessionplane_core::ports::clock::{Clock, Entropy, Spawner, TaskHandle};
use sessionplane_core::ports::engine::{
    Engine, EngineCommand, EngineCommands, EngineConnection, EngineError, EngineEvent,
    EngineOutput, MAX_WAITING_COMMANDS, OpenSession, Revalidation,
};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};

use super::kept::Kept;
use super::transcript::StoredTranscript;

/// Reports that wait at most; then the engine waits.
const REPORTS: usize = 256;

/// How long a cancelled engine's task may take to end before its session goes on without it.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// What the engine's task reports.
#[derive(Debug)]
pub(crate) enum Report {
    /// It is open.
    Opened(Revalidation),
    /// It said something. What is more than an event carries is kept whole before it is reported.
    Event(EngineEvent, Option<ArtifactRef>),
    /// It is gone, and why.
    Gone(String),
}

/// The session's end of an opened engine.
pub(crate) struct EngineLink {
    pub(crate) tag: EngineTag,
    commands: mpsc::Sender<EngineCommand>,
    reports: mpsc::Receiver<Report>,
    /// It left so much untaken that a command had no place: why it is given up.
    broken: Option<String>,
    over: bool,
    #[allow(dead_code, reason = "held for its drop, which cancels the task")]
    task: Box<dyn TaskHandle>,
}

/// Where the engine of a session sits. Cancelling a task asks it to end; until it has, another
/// engine of the session is not opened beside it.
#[derive(Clone, Default)]
pub(crate) struct Seat(Arc<Mutex<()>>);

impl Seat {
    /// Waits until nobody sits here, and keeps the seat; nothing if that takes too long.
    pub(crate) async fn vacated(&self, clock: &dyn Clock) -> Option<OwnedMutexGuard<()>> {
        let seat = self.0.clone();
        if let Ok(seat) = seat.clone().try_lock_owned() {
            return Some(seat);
        }
        match select(Box::pin(seat.lock_owned()), clock.sleep(ENDS_WITHIN)).await {
            Either::Left((seat, _)) => Some(seat),
            Either::Right(((), _)) => {
                tracing::error!("an agent was dropped and did not end; going on beside it");
                None
            }
        }
    }
}

/// What opening an engine takes.
pub(crate) struct Opening {
    pub(crate) tag: EngineTag,
    pub(crate) engine: Result<Arc<dyn Engine>, EngineError>,
    pub(crate) open: OpenSession,
    /// What `open` gives the engine to read.
    pub(crate) transcript: Arc<StoredTranscript>,
    pub(crate) artifacts: Arc<dyn ArtifactStore>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) timeout: Duration,
    /// Taken before the engine is opened, and kept as long as its task lives.
    pub(crate) seat: Seat,
}

impl EngineLink {
    /// Starts opening.
    pub(crate) fn open(opening: Opening, clock: &Arc<dyn Clock>, spawner: &dyn Spawner) -> Self {
        let tag = opening.tag;
        let (commands, commands_rx) = mpsc::channel(MAX_WAITING_COMMANDS);
        let (reports_tx, reports) = mpsc::channel(REPORTS);
        let task = spawner.spawn(
            "engine",
            Box::pin(host(opening, clock.clone(), commands_rx, reports_tx)),
        );
        Self {
            tag,
            commands,
            reports,
            broken: None,
            over: false,
            task,
        }
    }

    /// Hands a command to the engine's task. Where it has no place, the engine left more untaken
    /// than it may: from then on it is as good as gone, and what it has said by now is followed by
    /// [`Report::Gone`].
    ///
    /// # Errors
    /// When the engine is gone or does not take commands any more.
    pub(crate) fn tell(&mut self, command: EngineCommand) -> Result<(), EngineError> {
        if let Some(reason) = &self.broken {
            return Err(EngineError(reason.clone()));
        }
        match self.commands.try_send(command) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(_)) => Err(EngineError("the agent is gone".to_owned())),
            Err(TrySendError::Full(_)) => {
                let reason = format!("the agent left {MAX_WAITING_COMMANDS} commands untaken");
                tracing::warn!(run = ?self.tag.run, reason, "an agent is given up");
                self.reports.close();
                self.broken = Some(reason.clone());
                Err(EngineError(reason))
            }
        }
    }

    /// Up to `max` reports, at least one. Cancel-safe. After the engine's end it never completes.
    pub(crate) async fn next(&mut self, max: usize) -> Vec<Report> {
        if self.over {
            return std::future::pending().await;
        }
        let mut reports = Vec::new();
        if self.reports.recv_many(&mut reports, max).await == 0 {
            self.over = true;
            let broken = self.broken.take();
            reports.push(Report::Gone(broken.unwrap_or_else(|| {
                "the agent's task ended without a word".to_owned()
            })));
        }
        self.over |= matches!(reports.last(), Some(Report::Gone(_)));
        reports
    }

    /// How many reports wait, an end without a word among them.
    pub(crate) fn unread(&self) -> usize {
        self.reports.len() + usize::from(!self.over && self.reports.is_closed())
    }

    /// What it has said by now, at most as much as its channel holds; it can say no more.
    pub(crate) fn last_words(&mut self) -> Vec<Report> {
        self.reports.close();
        self.over = true;
        std::iter::from_fn(|| self.reports.try_recv().ok()).collect()
    }
}

async fn host(
    opening: Opening,
    clock: Arc<dyn Clock>,
    commands: mpsc::Receiver<EngineCommand>,
    reports: mpsc::Sender<Report>,
) {
    let spill = Spill {
        artifacts: opening.artifacts.clone(),
        entropy: opening.entropy.clone(),
        clock: clock.clone(),
    };
    let kept = Kept::of(opening.transcript.clone());
    let _seat = opening.seat.vacated(clock.as_ref()).await;
    let reason = match open(opening, clock.as_ref()).await {
        Err(error) => error.0,
        Ok(connection) => {
            if reports
                .send(Report::Opened(connection.revalidation))
                .await
                .is_err()
            {
                return;
            }
            let EngineConnection {
                commands: sink,
                output,
                ..
            } = connection;
            let telling = Box::pin(tell(commands, sink));
            let listening = Box::pin(listen(output, spill, kept, reports.clone()));
            match select(telling, listening).await {
                // The engine refuses commands: what it still says is read to the end.
                Either::Left((Some(error), listening)) => {
                    listening.await;
                    error.0
                }
                // Nobody will tell it anything any more.
                Either::Left((None, _)) => return,
                Either::Right(((), _)) => "the agent ended in the middle of the run".to_owned(),
            }
        }
    };
    // A session that is gone needs no report.
    let _ = reports.send(Report::Gone(reason)).await;
}

async fn open(opening: Opening, clock: &dyn Clock) -> Result<EngineConnection, EngineError> {
    let seconds = opening.timeout.as_secs();
    let engine = opening.engine?;
    match select(engine.open(opening.open), clock.sleep(opening.timeout)).await {
        Either::Left((connection, _)) => connection,
        Either::Right(((), _)) => Err(EngineError(format!(
            "the agent did not open within {seconds} s"
        ))),
    }
}

async fn tell(
    mut commands: mpsc::Receiver<EngineCommand>,
    mut sink: Box<dyn EngineCommands>,
) -> Option<EngineError> {
    while let Some(command) = commands.recv().await {
        if let Err(error) = sink.send(command).await {
            return Some(error);
        }
    }
    None
}

async fn listen(
    mut output: Box<dyn EngineOutput>,
    spill: Spill,
    mut kept: Kept,
    reports: mpsc::Sender<Report>,
) {
    while let Some(event) = output.next().await {
        let event = kept.verified(event).await;
        let artifact = spill.whole_of(&event).await;
        if reports.send(Report::Event(event, artifact)).await.is_err() {
            return;
        }
    }
}

/// Keeps outputs that are more than an event carries.
struct Spill {
    artifacts: Arc<dyn ArtifactStore>,
    entropy: Arc<dyn Entropy>,
    clock: Arc<dyn Clock>,
}

impl Spill {
    /// Where an event's output is kept whole: synced before anybody names it. An output that could
    /// not be kept is told without; its tail is in the entry all the same.
    async fn whole_of(&self, event: &EngineEvent) -> Option<ArtifactRef> {
        let EngineEvent::ToolFinished { output, .. } = event else {
            return None;
        };
        if output.len() <= MAX_EVENT_TEXT_BYTES {
            return None;
        }
        let id = ArtifactId::mint(self.clock.now(), self.entropy.random());
        match self.artifacts.put(id, output.as_bytes().into()).await {
            Ok(sha256) => Some(ArtifactRef {
                id,
                bytes: output.len() as u64,
                sha256: Some(sha256),
            }),
            Err(error) => {
                tracing::error!(%error, "a tool's output could not be kept whole");
                None
            }
        }
    }
}
