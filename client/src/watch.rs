//! Observing a session across broken connections, restarts and too slow reading: one stream that
//! takes itself up again with one call. What it must not do: judge events, or hide a loss.

mod cursor;

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use sessionplane_core::contract::{EventFilter, EventItem, SessionState};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::EventEnvelope;
use sessionplane_core::domain::ids::{EntryId, SessionId, SessionRef};
use sessionplane_core::domain::position::Position;

use crate::backoff::Backoff;
use crate::clock::bounded;
use crate::connection::Client;
use crate::convert::observation::Received;
use crate::reconnect::{Opening, Persistence, Progress, Reconnecting, Resume};
use crate::retry::{Effect, Patience};
use cursor::Cursor;

/// Where a watch starts, and how stubborn it is. A time of more than a year counts as a year.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchOptions {
    /// Go on after this position, if its events are retained.
    pub resume: Option<Position>,
    /// Entries after this one are sent before the snapshot; all of them without it.
    pub entries_since: Option<EntryId>,
    /// What live events are wanted: the same after every reconnect. Entries that were appended
    /// while the stream was lost are sent whatever it says.
    pub filter: EventFilter,
    /// How often and how fast a lost stream is taken up again. Before the first success the
    /// client's own patience counts instead, so that a wrong address is told soon.
    pub reconnect: Backoff,
    /// A stream that is silent for so long counts as lost, but not before two and a half of the
    /// heartbeat intervals that its server tells (15 s unless configured otherwise). None switches
    /// the watchdog off.
    pub silence: Option<Duration>,
    /// Longest wait for a stream's first message.
    pub open_deadline: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            resume: None,
            entries_since: None,
            filter: EventFilter::default(),
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
pub struct Watch(Reconnecting<Observe>);

/// A session, and how far its observer has come.
struct Observe {
    client: Client,
    session: SessionRef,
    options: WatchOptions,
    cursor: Cursor,
    /// How often the server of the present stream gives a sign of life, if it tells.
    heartbeat: Option<Duration>,
}

impl Client {
    /// Observes a session until it is dropped, taking the stream up again when it is lost.
    #[must_use]
    pub fn watch(&self, session: SessionRef, mut options: WatchOptions) -> Watch {
        options.silence = options.silence.map(bounded);
        options.open_deadline = bounded(options.open_deadline);
        let cursor = Cursor::new(options.resume, options.entries_since);
        Watch(Reconnecting::new(Observe {
            client: self.clone(),
            session,
            options,
            cursor,
            heartbeat: None,
        }))
    }
}

impl Watch {
    /// The next item; `None` once the watch ended with an error.
    pub async fn next(&mut self) -> Option<Result<WatchItem, CallError>> {
        std::future::poll_fn(|context| self.0.poll_item(context)).await
    }

    /// The last place that was considered: a later watch may resume from it.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.0.resume.cursor.position()
    }

    /// The newest entry that was seen: a later watch may start after it.
    #[must_use]
    pub fn last_entry(&self) -> Option<EntryId> {
        self.0.resume.cursor.last_entry()
    }
}

impl Stream for Watch {
    type Item = Result<WatchItem, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_item(context)
    }
}

impl Resume for Observe {
    type Wire = Received;
    type Item = WatchItem;

    fn open(&self, within: Option<Duration>) -> Opening<Received> {
        let request = self.cursor.request(&self.session, &self.options.filter);
        let client = self.client.clone();
        let deadline = self.options.open_deadline;
        let patience = Patience {
            deadline: within.map_or(deadline, |within| deadline.min(within)),
            // The waits between attempts are told: each attempt is made by itself.
            backoff: Backoff {
                attempts: 1,
                ..self.options.reconnect
            },
            effect: Effect::Reads,
        };
        Box::pin(async move { client.receive(request, patience).await })
    }

    fn admit(
        &mut self,
        received: Received,
        out: &mut VecDeque<WatchItem>,
    ) -> Result<Progress, CallError> {
        if let Received::Item(EventItem::Subscribed {
            heartbeat_interval, ..
        }) = &received
        {
            self.heartbeat = *heartbeat_interval;
        }
        Ok(self.cursor.admit(received, out))
    }

    fn judge(&self, error: CallError) -> CallError {
        error
    }

    fn lost(&mut self, attempt: u32, delay: Duration, error: CallError) -> WatchItem {
        WatchItem::Reconnecting {
            attempt,
            delay,
            error,
        }
    }

    fn persistence(&self) -> Persistence {
        let backoff = if self.cursor.is_known() {
            self.options.reconnect
        } else {
            self.client.backoff()
        };
        Persistence {
            backoff,
            unreachable: None,
            silence: self.options.silence.map(|silence| self.dead_after(silence)),
        }
    }
}

impl Observe {
    /// After how much silence the stream counts as lost: one heartbeat may be late, two may not.
    fn dead_after(&self, silence: Duration) -> Duration {
        let heartbeat = self.heartbeat.unwrap_or_default();
        silence.max(heartbeat.saturating_mul(5) / 2)
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::SessionName;
    use sessionplane_core::domain::time::Timestamp;

    use super::*;
    use crate::options::ClientOptions;

    #[tokio::test]
    async fn c33_a_stream_is_not_dead_while_its_server_still_may_be_silent() {
        let seconds = Duration::from_secs;
        let client = Client::connect(ClientOptions::new("127.0.0.1:1".parse().unwrap()));
        let client = client.unwrap();
        for (silence, heartbeat, dead_after) in [
            (Some(seconds(40)), None, Some(seconds(40))),
            (Some(seconds(40)), Some(seconds(15)), Some(seconds(40))),
            (Some(seconds(40)), Some(seconds(60)), Some(seconds(150))),
            (
                Some(seconds(40)),
                Some(Duration::MAX),
                Some(Duration::MAX / 2),
            ),
            (None, Some(seconds(60)), None),
        ] {
            let options = WatchOptions {
                silence,
                ..WatchOptions::default()
            };
            let session = SessionRef::Name(SessionName::parse("docs").unwrap());
            let mut observe = client.watch(session, options).0.resume;
            let subscribed = Received::Item(EventItem::Subscribed {
                session: SessionId::mint(Timestamp::from_millis(1), 1),
                epoch: 1,
                resumed: false,
                gap: false,
                heartbeat_interval: heartbeat,
            });
            observe.admit(subscribed, &mut VecDeque::new()).unwrap();
            assert_eq!(observe.persistence().silence, dead_after, "{heartbeat:?}");
        }
    }
}
