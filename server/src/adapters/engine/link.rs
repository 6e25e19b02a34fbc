//! The line between a connection's two halves and the task of an engine that lives in this process.
//!
//! What is inside: two bounded queues, the task's ownership, and the waits during which an engine
//! still hears a steer or an abort. What must never enter: what an engine does.
//!
//! Nothing here waits for a reader before it takes a command: a task that waits for room in its
//! output takes commands meanwhile.

mod cut;
mod halves;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::ids::{InputId, RunId};
use sessionplane_core::domain::interaction::InteractionAnswer;
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::withholding::Withheld;
use sessionplane_core::ports::clock::{BoxFuture, Clock};
use sessionplane_core::ports::engine::{
    EngineCommand, EngineEvent, MAX_REPORT_TEXT_BYTES, MAX_UNSETTLED_ASKS, MAX_WAITING_COMMANDS,
    StopReason,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

pub(super) use self::cut::cut;
pub(super) use self::halves::connect;
use self::halves::{Output, Unread};

/// Events that wait to be read. When there are so many the engine waits.
const EVENTS: usize = 64;
/// Bytes of text in them, likewise.
const UNREAD_BYTES: usize = 2 * MAX_REPORT_TEXT_BYTES;
/// Steers that were taken and not shown. The control plane hands over one at a time.
const HANDED: usize = 16;

/// Both ends of a line.
fn line(clock: Arc<dyn Clock>) -> (Link, mpsc::Sender<EngineCommand>, Output) {
    let (queue, commands) = mpsc::channel(MAX_WAITING_COMMANDS);
    let (output, unread) = mpsc::channel(EVENTS);
    let link = Link {
        commands,
        output,
        unread: Arc::new(Semaphore::new(UNREAD_BYTES)),
        clock,
        handed: VecDeque::new(),
        number: 0,
        begun: None,
        waiting: None,
        answers: VecDeque::new(),
        running: false,
    };
    (link, queue, Output(unread))
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
    /// The number that the report of its end names.
    pub(super) number: u32,
    /// The run.
    pub(super) run: RunId,
    /// The text, as a model gets it: rendered by its trust.
    pub(super) text: Arc<str>,
    /// The dispatched input that it is.
    pub(super) input: Option<InputId>,
    /// What is not to be used from here on.
    pub(super) withheld: Withheld,
}

/// A text that was handed over in the middle of a run.
#[derive(Clone)]
pub(super) struct Steer {
    /// The input that it is.
    pub(super) input: InputId,
    /// The text, as a model gets it: rendered by its trust.
    pub(super) text: Arc<str>,
    /// What is not to be used from when it is shown on.
    pub(super) withheld: Withheld,
}

/// Room for one event in the output.
struct Room {
    place: mpsc::OwnedPermit<Unread>,
    share: OwnedSemaphorePermit,
}

/// The engine's end of the line.
pub(super) struct Link {
    commands: mpsc::Receiver<EngineCommand>,
    output: mpsc::Sender<Unread>,
    /// Bytes that may still be told before one is read.
    unread: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    /// Steers that were neither shown nor given back, oldest first. One leaves only in the step
    /// that tells what became of it, so that an abort at any moment finds it here.
    handed: VecDeque<Steer>,
    /// The number of the prompt that began last.
    number: u32,
    /// The input that the running prompt is, likewise.
    begun: Option<InputId>,
    waiting: Option<Waiting>,
    /// Answers that were given and not taken, oldest first: at most [`MAX_UNSETTLED_ASKS`].
    answers: VecDeque<Answered>,
    running: bool,
}

/// What an engine at rest is told to do.
pub(super) enum Work {
    /// Begin or continue a run.
    Prompt(Prompt),
    /// Compact its transcript.
    Compact {
        /// What the summary should keep.
        instructions: Option<Arc<str>>,
    },
}

/// What became of a question: its name, and the answer, if somebody gave one.
pub(super) type Answered = (String, Option<InteractionAnswer>);

/// What an aborted compaction ends with.
pub(super) fn cut_short() -> Failure {
    Failure {
        code: "aborted".to_owned(),
        details: "the compaction was aborted".to_owned(),
        retryable: true,
    }
}

/// What a compaction ends with where the engine has no such thing.
pub(super) fn cannot_compact() -> Failure {
    Failure {
        code: "unsupported".to_owned(),
        details: "this agent cannot compact".to_owned(),
        retryable: false,
    }
}

/// Something to do that has not begun.
struct Waiting {
    work: Work,
    /// An abort came after it: it never begins.
    aborted: bool,
}

impl Link {
    /// Waits, at rest, for the next prompt; from then on the engine runs until [`Self::stop`].
    /// For an engine that cannot compact: it says so. `None`: the other end is gone.
    pub(super) async fn next_prompt(&mut self) -> Option<Prompt> {
        loop {
            match self.next_work().await? {
                Work::Prompt(prompt) => return Some(prompt),
                Work::Compact { .. } => {
                    self.compacted(Err(cannot_compact())).await.ok()?;
                }
            }
        }
    }

    /// Waits, at rest, for what to do next; from then on the engine runs until [`Self::stop`] or
    /// [`Self::compacted`]. A steer that comes too late is given back. `None`: the other end is
    /// gone.
    pub(super) async fn next_work(&mut self) -> Option<Work> {
        loop {
            while let Some(input) = self.handed.front().map(|steer| steer.input) {
                let back = EngineEvent::InputTakenBack { input };
                self.emit(back).await.ok()?;
            }
            if let Some(Waiting { work, aborted }) = self.waiting.take() {
                // They came before it, and are of what went before.
                self.answers.clear();
                self.running = !aborted;
                match &work {
                    Work::Prompt(prompt) => {
                        self.number = prompt.number;
                        self.begun = prompt.input;
                    }
                    Work::Compact { .. } => self.begun = None,
                }
                if !aborted {
                    return Some(work);
                }
                match work {
                    Work::Prompt(_) => self.stop(StopReason::Aborted).await.ok()?,
                    Work::Compact { .. } => {
                        self.compacted(Err(cut_short())).await.ok()?;
                    }
                }
            }
            let command = self.commands.recv().await?;
            self.take(command).ok()?;
        }
    }

    /// Reports how a compaction ended: the engine is at rest. Returns whether it was told so; one
    /// that is aborted before there is room to tell ended as aborted.
    pub(super) async fn compacted(
        &mut self,
        result: Result<Compacted, Failure>,
    ) -> Result<bool, Halt> {
        let told = self.emit(EngineEvent::CompactionFinished(result)).await;
        self.running = false;
        match told {
            Err(Halt::Aborted) => {
                let ended = EngineEvent::CompactionFinished(Err(cut_short()));
                self.emit(ended).await?;
                Ok(false)
            }
            told => told.map(|()| true),
        }
    }

    /// Waits for an answer to any open question: which one, and the answer, if somebody gave one.
    pub(super) async fn wait_answer(&mut self) -> Result<Answered, Halt> {
        loop {
            if let Some(answered) = self.answers.pop_front() {
                return Ok(answered);
            }
            let command = self.commands.recv().await.ok_or(Halt::Gone)?;
            self.take(command)?;
        }
    }

    /// Waits for an answer to any open question, or for a steer, which [`Self::next_steer`] then
    /// returns. None: there is a steer.
    pub(super) async fn wait_answer_or_steer(&mut self) -> Result<Option<Answered>, Halt> {
        loop {
            if let Some(answered) = self.answers.pop_front() {
                return Ok(Some(answered));
            }
            if !self.handed.is_empty() {
                return Ok(None);
            }
            let command = self.commands.recv().await.ok_or(Halt::Gone)?;
            self.take(command)?;
        }
    }

    /// Drops what became of some questions, of which nobody wants to know any more.
    pub(super) fn forget_answers(&mut self, of: impl Fn(&str) -> bool) {
        self.answers.retain(|(ask, _)| !of(ask));
    }

    /// Reports an event, waiting for room. What is too long in it is cut.
    pub(super) async fn emit(&mut self, mut event: EngineEvent) -> Result<(), Halt> {
        cut(&mut event);
        let room = self.room(&event).await?;
        self.tell(room, event);
        Ok(())
    }

    /// Waits for room for an event, and takes commands before and meanwhile.
    async fn room(&mut self, event: &EngineEvent) -> Result<Room, Halt> {
        // The waits below may go without a look at the commands where there is room at once.
        self.hear()?;
        let bytes: usize = event.texts().map(str::len).sum();
        let bytes = u32::try_from(bytes.min(UNREAD_BYTES)).unwrap_or(u32::MAX);
        let share = self.unread.clone().acquire_many_owned(bytes);
        let share = self.until(share).await?.map_err(|_| Halt::Gone)?;
        let place = match self.output.clone().try_reserve_owned() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Halt::Gone),
            Err(mpsc::error::TrySendError::Full(output)) => {
                let place = self.until(output.reserve_owned()).await?;
                place.map_err(|_| Halt::Gone)?
            }
        };
        Ok(Room { place, share })
    }

    /// Reports an event; from here on an input that it tells of is no longer ours.
    fn tell(&mut self, room: Room, event: EngineEvent) {
        if let EngineEvent::InputShown { input } | EngineEvent::InputTakenBack { input } = event {
            self.handed.retain(|steer| steer.input != input);
            self.begun.take_if(|begun| *begun == input);
        }
        let Room { place, share } = room;
        place.send(Unread { event, share });
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

    /// The oldest steer that has not been shown, if there is one. It is the oldest until its
    /// [`EngineEvent::InputShown`] is emitted.
    pub(super) fn next_steer(&mut self) -> Result<Option<Steer>, Halt> {
        self.hear()?;
        Ok(self.handed.front().cloned())
    }

    /// Waits for a steer, as [`Self::next_steer`] returns it.
    pub(super) async fn wait_steer(&mut self) -> Result<Steer, Halt> {
        loop {
            if let Some(steer) = self.handed.front() {
                return Ok(steer.clone());
            }
            let command = self.commands.recv().await.ok_or(Halt::Gone)?;
            self.take(command)?;
        }
    }

    /// Reports that the run is over: the engine is at rest. After an abort, also one that is heard
    /// only now, what was handed and not shown is given back first; otherwise it is lost with the
    /// run.
    pub(super) async fn stop(&mut self, reason: StopReason) -> Result<(), Halt> {
        if reason != StopReason::Aborted {
            // What is handed while this waits for room comes too late for the run. It is not lost
            // with it, but given back at rest.
            let lost = self.handed.len();
            let mut stopped = self.stopped(reason);
            cut(&mut stopped);
            match self.room(&stopped).await {
                Ok(room) => {
                    self.running = false;
                    self.handed.drain(..lost);
                    self.begun = None;
                    self.tell(room, stopped);
                    return Ok(());
                }
                Err(Halt::Aborted) => {}
                Err(Halt::Gone) => return Err(Halt::Gone),
            }
        }
        self.running = false;
        loop {
            let stopped = self.stopped(StopReason::Aborted);
            let room = self.room(&stopped).await?;
            let handed = self.handed.front().map(|steer| steer.input);
            let Some(input) = self.begun.or(handed) else {
                self.tell(room, stopped);
                return Ok(());
            };
            self.tell(room, EngineEvent::InputTakenBack { input });
        }
    }

    fn stopped(&self, reason: StopReason) -> EngineEvent {
        let prompt = self.number;
        EngineEvent::Stopped { prompt, reason }
    }

    /// Forgets the input that the prompt is: nothing will be told of it. For an engine that loses
    /// what it is given.
    pub(super) fn forget_prompt(&mut self) {
        self.begun = None;
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

    fn wait_with(&mut self, work: Work) {
        if self.waiting.is_some() {
            tracing::warn!("something to do waits already; this is dropped");
        } else {
            let aborted = false;
            self.waiting = Some(Waiting { work, aborted });
        }
    }

    fn take(&mut self, command: EngineCommand) -> Result<(), Halt> {
        match command {
            EngineCommand::Prompt {
                number,
                run,
                text,
                input,
                withheld,
            } => {
                let prompt = Prompt {
                    number,
                    run,
                    text,
                    input,
                    withheld,
                };
                self.wait_with(Work::Prompt(prompt));
            }
            EngineCommand::Compact { instructions } => {
                self.wait_with(Work::Compact { instructions });
            }
            EngineCommand::Answer { ask, answer } => {
                if self.answers.len() == MAX_UNSETTLED_ASKS {
                    // One that is left out would be waited for for ever.
                    tracing::warn!("an engine takes no answers; it is given up");
                    return Err(Halt::Gone);
                }
                self.answers.push_back((ask, answer));
            }
            EngineCommand::Steer {
                input,
                text,
                withheld,
            } => {
                if self.handed.len() < HANDED {
                    self.handed.push_back(Steer {
                        input,
                        text,
                        withheld,
                    });
                } else {
                    tracing::warn!(%input, "more steers than an engine is handed; dropped");
                }
            }
            EngineCommand::Abort => {
                if let Some(waiting) = &mut self.waiting {
                    waiting.aborted = true;
                }
                if self.running {
                    return Err(Halt::Aborted);
                }
                // Else it crossed with our own end: there is nothing more to stop.
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests;
