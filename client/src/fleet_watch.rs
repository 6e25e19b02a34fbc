//! Watching sessions across broken connections, restarts and too slow reading: one stream that takes
//! itself up again from its last bookmark, and tells each change once. What it must not do: judge
//! sessions, or hide a loss.

mod book;

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use sessionplane_core::contract::ResultStream;
use sessionplane_core::contract::fleet::{SessionWatchItem, WatchSessions};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;

use crate::backoff::Backoff;
use crate::clock::bounded;
use crate::connection::Client;
use crate::reconnect::{Opening, Persistence, Progress, Reconnecting, Resume};
use crate::retry::{Effect, Patience};
use book::Book;

/// Which sessions are watched, and how stubbornly. A time of more than a year counts as a year.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetWatchOptions {
    /// Which sessions are wanted; empty: all.
    pub filter: String,
    /// How often and how fast a lost stream is taken up again. Before the first success the
    /// client's own patience counts instead, so that a wrong address is told soon.
    pub reconnect: Backoff,
    /// Longest wait for a stream's first message.
    pub open_deadline: Duration,
}

impl Default for FleetWatchOptions {
    fn default() -> Self {
        Self {
            filter: String::new(),
            reconnect: Backoff::STREAMS,
            open_deadline: Duration::from_secs(10),
        }
    }
}

/// What a watch of sessions yields.
#[derive(Clone, PartialEq, Debug)]
pub enum FleetWatchItem {
    /// Sessions that are new, or have changed since they were told, and those that are not wanted
    /// any more, or are no more. Never empty.
    Changed {
        /// Those that are wanted, as they are now.
        sessions: Vec<SessionSummary>,
        /// Those that were told before and are not wanted any more.
        gone: Vec<SessionId>,
    },
    /// Everything that there is was told: what was told so far is the fleet of one moment. After
    /// the snapshot, and after each batch of changes.
    Current,
    /// The stream was lost; it is taken up again after a delay. What was told stays until something
    /// else is told.
    Reconnecting {
        /// Failures in a row, from 1.
        attempt: u32,
        /// How long until the next attempt.
        delay: Duration,
        /// What ended it.
        error: CallError,
    },
}

/// Sessions, watched until it is dropped. Holds the revision of each session that was told.
pub struct FleetWatch(Reconnecting<Follow>);

struct Follow {
    client: Client,
    options: FleetWatchOptions,
    book: Book,
}

impl Client {
    /// Watches the sessions that a filter wants, taking the stream up again when it is lost.
    #[must_use]
    pub fn watch_fleet(&self, mut options: FleetWatchOptions) -> FleetWatch {
        options.open_deadline = bounded(options.open_deadline);
        FleetWatch(Reconnecting::new(Follow {
            client: self.clone(),
            options,
            book: Book::default(),
        }))
    }
}

impl FleetWatch {
    /// The next item; `None` once the watch ended with an error.
    pub async fn next(&mut self) -> Option<Result<FleetWatchItem, CallError>> {
        std::future::poll_fn(|context| self.0.poll_item(context)).await
    }
}

impl Stream for FleetWatch {
    type Item = Result<FleetWatchItem, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_item(context)
    }
}

impl Resume for Follow {
    type Wire = Opened;
    type Item = FleetWatchItem;

    fn open(&self, within: Option<Duration>) -> Opening<Opened> {
        let request = WatchSessions {
            filter: self.options.filter.clone(),
            bookmark: self.book.bookmark().map(str::to_owned),
        };
        let anew = request.bookmark.is_none();
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
        Box::pin(async move {
            let items = client.receive_sessions(request, patience).await?;
            let items = items.map(|item| item.map(Opened::Item));
            let first = stream::iter(anew.then_some(Ok(Opened::Anew)));
            Ok(Box::pin(first.chain(items)) as ResultStream<Opened>)
        })
    }

    fn admit(
        &mut self,
        received: Opened,
        out: &mut VecDeque<FleetWatchItem>,
    ) -> Result<Progress, CallError> {
        Ok(match received {
            Opened::Anew => {
                self.book.anew();
                Progress::Same
            }
            Opened::Item(item) => self.book.admit(item, out),
        })
    }

    fn judge(&self, error: CallError) -> CallError {
        error
    }

    fn lost(&mut self, attempt: u32, delay: Duration, error: CallError) -> FleetWatchItem {
        FleetWatchItem::Reconnecting {
            attempt,
            delay,
            error,
        }
    }

    fn persistence(&self) -> Persistence {
        let backoff = if self.book.is_known() {
            self.options.reconnect
        } else {
            self.client.backoff()
        };
        Persistence {
            backoff,
            unreachable: None,
            // A quiet fleet is silent; the transport asks by itself whether the server is there.
            silence: None,
        }
    }
}

/// What comes on a stream that was opened.
enum Opened {
    /// It begins with a snapshot.
    Anew,
    /// An item of it.
    Item(SessionWatchItem),
}
