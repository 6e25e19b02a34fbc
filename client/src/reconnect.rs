//! One stream that takes itself up again when it is lost, whatever it tells: the rules of what is
//! worth another attempt, when that is made and when to give up, once for all. What it must not
//! do: know what the messages mean.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sessionplane_core::contract::ResultStream;
use sessionplane_core::domain::error::{CallError, Reason};
use tokio::time::{Instant, Sleep};

use crate::backoff::Backoff;
use crate::clock::{bounded, instant};
use crate::outcome::{Moment, ended_early, may_resume};

/// A connection that lasted so long was a good one: the next failure is the first again.
const GOOD_CONNECTION: Duration = Duration::from_secs(10);

/// The last attempt before giving up begins so long before the end of all patience.
const LAST_ATTEMPT: Duration = Duration::from_secs(1);

/// One attempt to open a stream. Resolves once the stream's first message came.
pub(crate) type Opening<W> =
    Pin<Box<dyn Future<Output = Result<ResultStream<W>, CallError>> + Send>>;

/// What a message meant for how far the reader has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// The reader knows something that it did not know before.
    Further,
    /// Nothing new: the server takes the reader up, or tells again.
    Same,
    /// Nothing follows.
    Last,
}

/// How stubbornly a lost stream is taken up again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Persistence {
    /// How often in a row, and how long between.
    pub(crate) backoff: Backoff,
    /// Longest time without any message, waits and attempts included; no limit of its own without.
    pub(crate) unreachable: Option<Duration>,
    /// An open stream that is silent for so long counts as lost; none is silent too long without.
    pub(crate) silence: Option<Duration>,
}

/// What is taken up again: knows how to open it, and what is new in it.
pub(crate) trait Resume {
    /// What the stream yields.
    type Wire;
    /// What its reader gets.
    type Item;

    /// One attempt that goes on from where the reader is. It may take no longer than `within`,
    /// which is told when patience has begun to run out.
    fn open(&self, within: Option<Duration>) -> Opening<Self::Wire>;

    /// Takes a message and adds what is new of it to `out`.
    ///
    /// # Errors
    /// When it makes no sense after what came before; nothing more is read then.
    fn admit(
        &mut self,
        wire: Self::Wire,
        out: &mut VecDeque<Self::Item>,
    ) -> Result<Progress, CallError>;

    /// An error as it concerns the whole, not only the attempt that it ended.
    fn judge(&self, error: CallError) -> CallError;

    /// The stream was lost and is taken up again after `delay`; `attempt` counts failures in a
    /// row from 1.
    fn lost(&mut self, attempt: u32, delay: Duration, error: CallError) -> Self::Item;

    /// How stubborn to be by now.
    fn persistence(&self) -> Persistence;
}

enum Phase<W> {
    Opening(Opening<W>),
    Reading {
        stream: ResultStream<W>,
        watchdog: Option<Pin<Box<Sleep>>>,
    },
    Waiting(Pin<Box<Sleep>>),
    Ended,
}

/// A stream that takes itself up again. Ends after the last message, or with an error: one that
/// another attempt would not cure, or the last one when patience is at its end.
///
/// It reads at its consumer's pace and holds the items of one message and a loss.
pub(crate) struct Reconnecting<R: Resume> {
    pub(crate) resume: R,
    ready: VecDeque<R::Item>,
    phase: Phase<R::Wire>,
    /// Failures in a row.
    failures: u32,
    /// Since when the present stream is open.
    opened: Option<Instant>,
    /// Since when no message has come.
    lost_at: Option<Instant>,
}

impl<R: Resume> Reconnecting<R> {
    pub(crate) fn new(resume: R) -> Self {
        let phase = Phase::Opening(resume.open(None));
        Self {
            resume,
            ready: VecDeque::new(),
            phase,
            failures: 0,
            opened: None,
            lost_at: None,
        }
    }

    /// The next item; none after the end. What was polled and not taken is not lost.
    pub(crate) fn poll_item(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<R::Item, CallError>>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if matches!(self.phase, Phase::Ended) {
                return Poll::Ready(None);
            }
            if let Err(error) = ready!(self.step(context)) {
                self.phase = Phase::Ended;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    /// Drives the present phase one step; an error ends the whole.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        let lost = match &mut self.phase {
            Phase::Opening(opening) => match ready!(opening.as_mut().poll(context)) {
                Ok(stream) => {
                    self.opened(stream);
                    return Poll::Ready(Ok(()));
                }
                Err(error) => error,
            },
            Phase::Reading { stream, watchdog } => match stream.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(wire))) => return Poll::Ready(self.received(wire)),
                Poll::Ready(Some(Err(error))) => error,
                Poll::Ready(None) => ended_early(Moment::AfterFirst),
                Poll::Pending => {
                    let Some(watchdog) = watchdog else {
                        return Poll::Pending;
                    };
                    ready!(watchdog.as_mut().poll(context));
                    CallError::stream_ended(Reason::Transport, "the server fell silent")
                }
            },
            Phase::Waiting(sleep) => {
                ready!(sleep.as_mut().poll(context));
                let within = self.left(self.resume.persistence(), instant());
                self.phase = Phase::Opening(self.resume.open(within));
                return Poll::Ready(Ok(()));
            }
            Phase::Ended => return Poll::Ready(Ok(())),
        };
        Poll::Ready(self.lost(lost))
    }

    fn opened(&mut self, stream: ResultStream<R::Wire>) {
        self.opened = Some(instant());
        let silence = self.resume.persistence().silence.map(bounded);
        let watchdog = silence.map(|silence| Box::pin(tokio::time::sleep(silence)));
        self.phase = Phase::Reading { stream, watchdog };
    }

    fn received(&mut self, wire: R::Wire) -> Result<(), CallError> {
        self.lost_at = None;
        let progress = self.resume.admit(wire, &mut self.ready);
        match progress.map_err(|error| self.resume.judge(error))? {
            Progress::Further => self.failures = 0,
            Progress::Same => {}
            Progress::Last => {
                self.phase = Phase::Ended;
                return Ok(());
            }
        }
        // Asked for anew: a message may say how often a sign of life is to be expected.
        let silence = self.resume.persistence().silence.map(bounded);
        if let Phase::Reading {
            watchdog: Some(watchdog),
            ..
        } = &mut self.phase
            && let Some(silence) = silence
        {
            watchdog.as_mut().reset(instant() + silence);
        }
        Ok(())
    }

    /// Plans the next attempt; the error if there is none.
    fn lost(&mut self, error: CallError) -> Result<(), CallError> {
        let now = instant();
        self.phase = Phase::Ended;
        let error = self.resume.judge(error);
        if !may_resume(&error) {
            return Err(error);
        }
        let lasted = self.opened.take().map(|opened| now - opened);
        if lasted.is_some_and(|lasted| lasted >= GOOD_CONNECTION) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.lost_at.get_or_insert(now);
        let Some(delay) = self.delay(&error, now) else {
            return Err(error);
        };
        self.phase = Phase::Waiting(Box::pin(tokio::time::sleep(delay)));
        let item = self.resume.lost(self.failures, delay, error);
        self.ready.push_back(item);
        Ok(())
    }

    /// How long to wait for the next attempt; none if there is no further one. It is never sooner
    /// than the server asks, and never so late that it has no time left.
    fn delay(&self, error: &CallError, now: Instant) -> Option<Duration> {
        let persistence = self.resume.persistence();
        let asked = error.retry_after;
        let delay = persistence.backoff.delay(self.failures, asked)?;
        let Some(left) = self.left(persistence, now) else {
            return Some(delay);
        };
        let most = left.saturating_sub(LAST_ATTEMPT);
        let too_late = most.is_zero() || asked.is_some_and(|asked| asked > most);
        (!too_late).then(|| delay.min(most))
    }

    /// How long it may still take until a message comes.
    fn left(&self, persistence: Persistence, now: Instant) -> Option<Duration> {
        let lost_at = self.lost_at?;
        Some(persistence.unreachable?.saturating_sub(now - lost_at))
    }
}

#[cfg(test)]
mod tests;
