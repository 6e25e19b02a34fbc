//! Observing a session across broken connections, restarts and too slow reading: one stream that
//! takes itself up again with one call. What it must not do: judge events, or hide a loss.

mod cursor;

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use sessionplane_core::contract::{ResultStream, SessionState};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::event::EventEnvelope;
use sessionplane_core::domain::ids::{EntryId, SessionId, SessionRef};
use sessionplane_core::domain::position::Position;
use tokio::time::{Instant, Sleep};

use crate::backoff::Backoff;
use crate::clock::{bounded, instant};
use crate::connection::Client;
use crate::convert::observation::Received;
use crate::outcome::{Moment, ended_early, may_resume};
use crate::retry::{Effect, Patience};
use cursor::Cursor;

/// A connection that lasted so long was a good one: the next failure is the first again.
const GOOD_CONNECTION: Duration = Duration::from_secs(10);

/// Where a watch starts, and how stubborn it is. A time of more than a year counts as a year.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchOptions {
    /// Go on after this position, if its events are retained.
    pub resume: Option<Position>,
    /// Entries after this one are sent before the snapshot; all of them without it.
    pub entries_since: Option<EntryId>,
    /// How often and how fast a lost stream is taken up again. Before the first success the
    /// client's own patience counts instead, so that a wrong address is told soon.
    pub reconnect: Backoff,
    /// A stream that is silent for so long counts as lost. Servers send a heartbeat every 15 s
    /// unless configured otherwise; none switches the watchdog off.
    pub silence: Option<Duration>,
    /// Longest wait for a stream's first message.
    pub open_deadline: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            resume: None,
            entries_since: None,
            reconnect: Backoff::STREAMS,
            silence: Some(Duration::from_secs(40)),
            open_deadline: Duration::from_secs(10),
        }
    }
}

/// What a watch yields.
#[derive(Clone, PartialEq, Debug)]
pub enum WatchItem {
    /// The observation began. Once, unless the stream is lost before.
    Subscribed {
        /// The session, however it was named.
        session: SessionId,
        /// The serving incarnation that numbers the events.
        epoch: u64,
    },
    /// The stream was lost; it is taken up again after a delay.
    Reconnecting {
        /// Failures in a row, from 1.
        attempt: u32,
        /// How long until the next attempt.
        delay: Duration,
        /// What ended it.
        error: CallError,
    },
    /// The stream goes on after a [`WatchItem::Reconnecting`].
    Reconnected {
        /// No event was missed.
        resumed: bool,
    },
    /// The session is served anew since: another incarnation numbers the events.
    EpochChanged {
        /// The incarnation before.
        from: u64,
        /// The present one.
        to: u64,
    },
    /// Live events were lost. Entries were not: those appended meanwhile follow.
    Gap,
    /// Entries that were not seen before, in append order.
    Entries {
        /// The entries.
        entries: Vec<Entry>,
        /// The server did not know the cursor: forget the entries seen before. Told once, in the
        /// first page of those that start from the beginning.
        full_backfill: bool,
    },
    /// The state, after which nothing is missed. Again after every reconnect.
    Snapshot(Box<SessionState>),
    /// A live event, once.
    Event(EventEnvelope),
    /// A live event of a type this client does not know.
    Unknown {
        /// The word that names its type.
        event_type: String,
        /// Its place.
        position: Position,
    },
    /// Nothing happened; everything up to here was considered.
    Heartbeat(Position),
}

/// A stream of [`WatchItem`]s that takes itself up again. It ends with an error only: one that
/// another attempt would not cure, or the last one when attempts are used up.
///
/// It reads at its consumer's pace and holds a handful of items. Dropping it ends the
/// observation; a dropped `next` loses nothing.
pub struct Watch {
    client: Client,
    session: SessionRef,
    options: WatchOptions,
    cursor: Cursor,
    ready: VecDeque<WatchItem>,
    phase: Phase,
    failures: u32,
    opened: Option<Instant>,
}

type Opening = Pin<Box<dyn Future<Output = Result<ResultStream<Received>, CallError>> + Send>>;

enum Phase {
    Opening(Opening),
    Reading {
        stream: ResultStream<Received>,
        watchdog: Option<Pin<Box<Sleep>>>,
    },
    Waiting(Pin<Box<Sleep>>),
    Ended,
}

impl Client {
    /// Observes a session until it is dropped, taking the stream up again when it is lost.
    #[must_use]
    pub fn watch(&self, session: SessionRef, mut options: WatchOptions) -> Watch {
        options.silence = options.silence.map(bounded);
        options.open_deadline = bounded(options.open_deadline);
        let cursor = Cursor::new(options.resume, options.entries_since);
        let mut watch = Watch {
            client: self.clone(),
            session,
            options,
            cursor,
            ready: VecDeque::new(),
            phase: Phase::Ended,
            failures: 0,
            opened: None,
        };
        watch.phase = watch.open();
        watch
    }
}

impl Watch {
    /// The next item; `None` once the watch ended with an error.
    pub async fn next(&mut self) -> Option<Result<WatchItem, CallError>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// The last place that was considered: a later watch may resume from it.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.cursor.position()
    }

    /// The newest entry that was seen: a later watch may start after it.
    #[must_use]
    pub fn last_entry(&self) -> Option<EntryId> {
        self.cursor.last_entry()
    }

    /// One attempt; the waits between attempts are this room's own, so that they can be told.
    fn open(&self) -> Phase {
        let request = self.cursor.request(&self.session);
        let client = self.client.clone();
        let patience = Patience {
            deadline: self.options.open_deadline,
            backoff: Backoff {
                attempts: 1,
                ..self.options.reconnect
            },
            effect: Effect::Reads,
        };
        Phase::Opening(Box::pin(
            async move { client.receive(request, patience).await },
        ))
    }

    fn opened(&mut self, stream: ResultStream<Received>) {
        self.opened = Some(instant());
        let watchdog = self.options.silence.map(|silence| {
            let sleep = tokio::time::sleep(silence);
            Box::pin(sleep)
        });
        self.phase = Phase::Reading { stream, watchdog };
    }

    fn received(&mut self, received: Received) {
        if let Phase::Reading {
            watchdog: Some(watchdog),
            ..
        } = &mut self.phase
            && let Some(silence) = self.options.silence
        {
            watchdog.as_mut().reset(instant() + silence);
        }
        if self.cursor.admit(received, &mut self.ready) {
            self.failures = 0;
        }
    }

    /// Plans the next attempt; the error if there is none.
    fn lost(&mut self, error: CallError) -> Result<(), CallError> {
        self.phase = Phase::Ended;
        if !may_resume(&error) {
            return Err(error);
        }
        let lasted = self.opened.take().map(|opened| instant() - opened);
        if lasted.is_some_and(|lasted| lasted >= GOOD_CONNECTION) {
            self.failures = 0;
        }
        self.failures += 1;
        let backoff = if self.cursor.is_known() {
            self.options.reconnect
        } else {
            self.client.backoff()
        };
        let Some(delay) = backoff.delay(self.failures, error.retry_after) else {
            return Err(error);
        };
        self.phase = Phase::Waiting(Box::pin(tokio::time::sleep(delay)));
        self.ready.push_back(WatchItem::Reconnecting {
            attempt: self.failures,
            delay,
            error,
        });
        Ok(())
    }

    /// Drives the present phase one step; an error ends the watch.
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
                Poll::Ready(Some(Ok(received))) => {
                    self.received(received);
                    return Poll::Ready(Ok(()));
                }
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
                self.phase = self.open();
                return Poll::Ready(Ok(()));
            }
            Phase::Ended => return Poll::Ready(Ok(())),
        };
        Poll::Ready(self.lost(lost))
    }
}

impl Stream for Watch {
    type Item = Result<WatchItem, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if matches!(self.phase, Phase::Ended) {
                return Poll::Ready(None);
            }
            if let Err(error) = ready!(self.step(context)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}
