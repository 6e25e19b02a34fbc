//! The line between a connection's two halves and the task of an engine that lives in this process.
//!
//! What is inside: two bounded queues, the task's ownership, and the waits during which an engine
//! still hears a steer or an abort. What must never enter: what an engine does.
//!
//! Nothing here waits for a reader before it takes a command: a task that waits for room in its
//! output takes commands meanwhile.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sessionplane_core::domain::ids::{InputId, RunId};
use sessionplane_core::ports::clock::{BoxFuture, Clock, Spawner, TaskHandle};
use sessionplane_core::ports::engine::{
    EngineCommand, EngineCommands, EngineConnection, EngineError, EngineEvent, EngineOutput,
    Revalidation, StopReason,
};
use tokio::sync::mpsc;

/// Commands that wait to be taken. The control plane has at most a prompt, a steer and an abort
/// outstanding; the rest is room for repeats.
const COMMANDS: usize = 16;
/// Events that wait to be read. When it is full the engine waits.
const EVENTS: usize = 64;
/// Steers that were taken and not shown. The control plane hands over one at a time.
const HANDED: usize = 16;

/// Starts an engine's task and returns the two halves that the control plane holds. The command
/// half owns the task: dropping it ends the task at its next suspension point.
pub(super) fn connect<F>(
    spawner: &dyn Spawner,
    clock: Arc<dyn Clock>,
    revalidation: Revalidation,
    engine: impl FnOnce(Link) -> F,
) -> EngineConnection
where
    F: Future<Output = ()> + Send + 'static,
{
    let (commands, taken) = mpsc::channel(COMMANDS);
    let (events, output) = mpsc::channel(EVENTS);
    let link = Link {
        commands: taken,
        output: events,
        clock,
        handed: VecDeque::new(),
        prompt: None,
        running: false,
    };
    let task = spawner.spawn("engine", Box::pin(engine(link)));
    EngineConnection {
        commands: Box::new(Commands {
            queue: commands,
            _task: task,
        }),
        output: Box::new(Output(output)),
        revalidation,
    }
}

/// The command half.
struct Commands {
    queue: mpsc::Sender<EngineCommand>,
    _task: Box<dyn TaskHandle>,
}

#[async_trait]
impl EngineCommands for Commands {
    async fn send(&mut self, command: EngineCommand) -> Result<(), EngineError> {
        self.queue.try_send(command).map_err(|error| {
            EngineError(match error {
                mpsc::error::TrySendError::Closed(_) => "the engine is gone".to_owned(),
                mpsc::error::TrySendError::Full(_) => {
                    format!("the engine left {COMMANDS} commands untaken")
                }
            })
        })
    }
}

/// The output half.
struct Output(mpsc::Receiver<EngineEvent>);

#[async_trait]
impl EngineOutput for Output {
    async fn next(&mut self) -> Option<EngineEvent> {
        self.0.recv().await
    }
}

/// Why an engine leaves what it is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Halt {
    /// The run is to stop.
    Aborted,
    /// Nobody holds the other end any more.
    Gone,
}

/// A text to begin or continue a run with.
pub(super) struct Prompt {
    /// The run.
    pub(super) run: RunId,
    /// The text.
    pub(super) text: Arc<str>,
    /// The dispatched input that it is.
    pub(super) input: Option<InputId>,
}

/// A text that was handed over in the middle of a run.
pub(super) struct Steer {
    /// The input that it is.
    pub(super) input: InputId,
    /// The text.
    pub(super) text: Arc<str>,
}

/// The engine's end of the line.
pub(super) struct Link {
    commands: mpsc::Receiver<EngineCommand>,
    output: mpsc::Sender<EngineEvent>,
    clock: Arc<dyn Clock>,
    handed: VecDeque<Steer>,
    prompt: Option<Prompt>,
    running: bool,
}

impl Link {
    /// Waits, at rest, for the next prompt; from then on the engine runs until [`Self::stop`].
    /// A steer that comes too late is given back. `None`: the other end is gone.
    pub(super) async fn next_prompt(&mut self) -> Option<Prompt> {
        loop {
            while let Some(steer) = self.handed.pop_front() {
                let back = EngineEvent::InputTakenBack { input: steer.input };
                self.emit(back).await.ok()?;
            }
            if let Some(prompt) = self.prompt.take() {
                self.running = true;
                return Some(prompt);
            }
            let command = self.commands.recv().await?;
            self.take(command).ok()?;
        }
    }

    /// Reports an event, waiting for room.
    pub(super) async fn emit(&mut self, event: EngineEvent) -> Result<(), Halt> {
        self.hear()?;
        match self.output.try_send(event) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Halt::Gone),
            Err(mpsc::error::TrySendError::Full(event)) => {
                let room = self.output.clone().reserve_owned();
                let permit = self.until(room).await?.map_err(|_| Halt::Gone)?;
                permit.send(event);
                Ok(())
            }
        }
    }

    /// Waits for some time of the engine's clock. Zero does not wait.
    pub(super) async fn pause(&mut self, delay: Duration) -> Result<(), Halt> {
        if delay.is_zero() {
            return self.hear();
        }
        let sleep = self.clock.sleep(delay);
        self.until(sleep).await
    }

    /// A future that is ready after some time of the engine's clock.
    pub(super) fn timer(&self, delay: Duration) -> BoxFuture<()> {
        self.clock.sleep(delay)
    }

    /// Waits for `work` and takes commands meanwhile. A halt drops the work.
    pub(super) async fn until<F: Future>(&mut self, work: F) -> Result<F::Output, Halt> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(command) => self.take(command)?,
                    None => return Err(Halt::Gone),
                },
                done = &mut work => return Ok(done),
            }
        }
    }

    /// The oldest steer that has not been shown, if there is one.
    pub(super) fn next_steer(&mut self) -> Result<Option<Steer>, Halt> {
        self.hear()?;
        Ok(self.handed.pop_front())
    }

    /// Waits for a steer.
    pub(super) async fn wait_steer(&mut self) -> Result<Steer, Halt> {
        loop {
            if let Some(steer) = self.handed.pop_front() {
                return Ok(steer);
            }
            let command = self.commands.recv().await.ok_or(Halt::Gone)?;
            self.take(command)?;
        }
    }

    /// Reports that the run is over: the engine is at rest. After an abort, what was handed and not
    /// shown is given back first; otherwise it is lost with the run.
    pub(super) async fn stop(&mut self, reason: StopReason) -> Result<(), Halt> {
        self.running = false;
        let unshown = std::mem::take(&mut self.handed);
        if reason == StopReason::Aborted {
            for steer in unshown {
                let back = EngineEvent::InputTakenBack { input: steer.input };
                self.emit(back).await?;
            }
        }
        self.emit(EngineEvent::Stopped(reason)).await
    }

    /// Hears no further abort of this run.
    pub(super) fn ignore_aborts(&mut self) {
        self.running = false;
    }

    /// Takes the commands that are there, without waiting.
    fn hear(&mut self) -> Result<(), Halt> {
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.take(command)?,
                Err(mpsc::error::TryRecvError::Empty) => return Ok(()),
                Err(mpsc::error::TryRecvError::Disconnected) => return Err(Halt::Gone),
            }
        }
    }

    fn take(&mut self, command: EngineCommand) -> Result<(), Halt> {
        match command {
            EngineCommand::Prompt { run, text, input } => {
                if self.prompt.is_some() {
                    tracing::warn!(%run, "a second prompt waits already; this one is dropped");
                } else {
                    self.prompt = Some(Prompt { run, text, input });
                }
            }
            EngineCommand::Steer { input, text } => {
                if self.handed.len() < HANDED {
                    self.handed.push_back(Steer { input, text });
                } else {
                    tracing::warn!(%input, "more steers than an engine is handed; dropped");
                }
            }
            EngineCommand::Abort if self.running => return Err(Halt::Aborted),
            // It crossed with our own end: there is nothing to stop any more.
            EngineCommand::Abort => {}
        }
        Ok(())
    }
}
