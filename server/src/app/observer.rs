//! An observer's stream in the order of C31: subscribed, durable entries, snapshot, live events.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;
use sessionplane_core::contract::{EventFilter, EventItem, EventsRequest, SessionState};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::EntrySeq;
use sessionplane_core::ports::clock::BoxFuture;
use sessionplane_core::ports::repository::{EntryRange, ReadError};

use tokio_util::sync::WaitForCancellationFutureOwned;

use super::caller::store;
use super::channel::Channel;
use super::context::Context;
use super::cursor::{Cursor, Cut};
use super::heartbeat::Heartbeat;
use super::observation::Observed;
use super::observe::{PAGE_BYTES, since};
use super::pages;
use super::session_loss::Loss;

/// Entries in one page of a backfill.
const PAGE_ENTRIES: usize = 256;
/// Unwanted events that are passed over at a time; then other tasks have their turn.
const PASSED_AT_ONCE: usize = 1024;

type Polled = Poll<Option<Result<Observed, CallError>>>;
type Step = Result<(Vec<Observed>, Next), ReadError>;

#[derive(Clone, Copy)]
enum Next {
    /// More entries are durable after this one.
    Page(EntrySeq),
    /// The snapshot was taken at this place.
    Live(u64),
}

enum Phase {
    Backfill(BoxFuture<Step>),
    Live(Cursor),
    /// What is ready goes out, then this error.
    Ending(Box<CallError>),
    Over,
}

/// An observer's stream.
pub(crate) struct Observer {
    context: Arc<Context>,
    channel: Arc<Channel>,
    ready: VecDeque<Observed>,
    /// What a resumed stream tells once it has told the events before it.
    due: Option<Box<SessionState>>,
    phase: Phase,
    /// Applied here, behind the ring: what nobody wants is never encoded, and what one leaves out
    /// another still gets.
    filter: EventFilter,
    /// Events that were told so far.
    told: u64,
    heartbeat: Heartbeat,
    _place: Arc<()>,
    /// Completes when the server begins to stop; none once it has.
    drained: Option<Drained>,
}

type Drained = Pin<Box<WaitForCancellationFutureOwned>>;

impl Observer {
    pub(crate) fn open(
        context: Arc<Context>,
        channel: Arc<Channel>,
        request: &EventsRequest,
    ) -> Result<Self, CallError> {
        let most = context.config.max_observers;
        let place = channel.place(most).ok_or_else(|| too_many(most))?;
        if context.draining.is_cancelled() && !channel.is_at_work() {
            return Err(draining());
        }
        let drained = Box::pin(context.draining.clone().cancelled_owned());
        let heartbeat = Heartbeat::new(context.ports.clock.clone(), context.config.heartbeat);
        let resumed = request
            .resume
            .filter(|position| position.epoch == channel.epoch())
            .and_then(|from| Some((from.seq, channel.resume_after(from.seq)?)));
        let subscribed = EventItem::Subscribed {
            session: channel.session(),
            epoch: channel.epoch(),
            resumed: resumed.is_some(),
            gap: resumed.is_none() && request.resume.is_some(),
            heartbeat_interval: Some(context.config.heartbeat),
        };
        let ready = VecDeque::from([Observed::Other(Box::new(subscribed))]);
        let mut due = None;
        let phase = if let Some((from, state)) = resumed {
            due = Some(Box::new(context.state(state)));
            // What was missed is read from the ring like everything that follows, so that who does
            // not read keeps nothing alive, and is cut.
            Phase::Live(Cursor::after(channel.clone(), from))
        } else {
            let newest = channel.with_view(|view| view.entries);
            let (after, full) = since(channel.session(), request.entries_since.as_deref(), newest);
            Phase::Backfill(Box::pin(backfill(
                context.clone(),
                channel.clone(),
                after,
                full,
            )))
        };
        Ok(Self {
            context,
            channel,
            ready,
            due,
            phase,
            filter: request.filter.clone(),
            told: 0,
            heartbeat,
            _place: place,
            drained: Some(drained),
        })
    }

    fn over(&mut self, error: CallError) -> Polled {
        self.phase = Phase::Over;
        Poll::Ready(Some(Err(error)))
    }

    /// C31: the snapshot of a resumed stream, once all that was missed has been told.
    fn snapshot_due(&mut self) -> Option<Observed> {
        let Phase::Live(cursor) = &self.phase else {
            return None;
        };
        let place = cursor.position().seq;
        let state = self.due.take_if(|due| due.position.seq <= place)?;
        Some(Observed::Other(Box::new(EventItem::Snapshot(state))))
    }

    /// Takes what a step of the backfill has read.
    fn proceed(&mut self, items: Vec<Observed>, next: Next) {
        self.ready.extend(items);
        self.phase = match next {
            Next::Live(seq) => Phase::Live(Cursor::after(self.channel.clone(), seq)),
            Next::Page(after) => {
                let (context, channel) = (self.context.clone(), self.channel.clone());
                // Only the first page says that the reader is to forget.
                Phase::Backfill(Box::pin(backfill(context, channel, after, false)))
            }
        };
    }

    /// C63: ends where the server stops and nothing is to be watched any more. Who watches a run
    /// stays until its end was told.
    fn send_away(&mut self, cx: &mut TaskContext<'_>) -> Polled {
        if let Some(drained) = &mut self.drained {
            std::task::ready!(drained.as_mut().poll(cx));
            self.drained = None;
        }
        if self.channel.is_at_work() {
            return Poll::Pending;
        }
        self.over(CallError {
            outcome: Outcome::StreamEnded,
            ..draining()
        })
    }

    /// Says that everything up to the reader's place was considered. Not up to the channel's: an
    /// event that is published right now was not, and who resumed behind it would never see it.
    ///
    /// What was passed over is no sign of life, so an observer that wants nothing of a busy session
    /// has its heartbeats all the same. None comes before the snapshot.
    fn beat(&mut self, cx: &mut TaskContext<'_>) -> Polled {
        let Phase::Live(cursor) = &self.phase else {
            return Poll::Pending;
        };
        if self.due.is_some() {
            return Poll::Pending;
        }
        let position = cursor.position();
        std::task::ready!(self.heartbeat.poll_due(self.told, cx));
        let heartbeat = EventItem::Heartbeat(position);
        Poll::Ready(Some(Ok(Observed::Other(Box::new(heartbeat)))))
    }
}

impl Stream for Observer {
    type Item = Result<Observed, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Polled {
        let this = &mut *self;
        let mut passed = 0;
        loop {
            if let Some(item) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if let Some(snapshot) = this.snapshot_due() {
                return Poll::Ready(Some(Ok(snapshot)));
            }
            match &mut this.phase {
                Phase::Over => return Poll::Ready(None),
                Phase::Ending(error) => {
                    let error = (**error).clone();
                    return this.over(error);
                }
                Phase::Backfill(step) => match step.as_mut().poll(cx) {
                    Poll::Pending => return this.send_away(cx),
                    Poll::Ready(Err(error)) => {
                        let CallError {
                            reason, message, ..
                        } = store(error);
                        return this.over(CallError::stream_ended(reason, message));
                    }
                    Poll::Ready(Ok((items, next))) => this.proceed(items, next),
                },
                Phase::Live(cursor) => match Pin::new(&mut *cursor).poll_next(cx) {
                    Poll::Ready(Some(Ok(event))) => {
                        let body = &event.envelope().event.body;
                        if !this.filter.admits(body) {
                            passed += 1;
                            if passed < PASSED_AT_ONCE {
                                continue;
                            }
                            cx.waker().wake_by_ref();
                            return this.beat(cx);
                        }
                        if matches!(body, EventBody::ServingError { .. }) {
                            this.phase = Phase::Ending(Box::new(lost(cursor.channel())));
                        }
                        this.told += 1;
                        return Poll::Ready(Some(Ok(Observed::Event(event))));
                    }
                    Poll::Ready(Some(Err(Cut::Closed))) => {
                        let lost = lost(cursor.channel());
                        return this.over(lost);
                    }
                    Poll::Ready(Some(Err(Cut::Lapped))) => return this.over(too_slow()),
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => match this.send_away(cx) {
                        Poll::Pending => return this.beat(cx),
                        ended @ Poll::Ready(_) => return ended,
                    },
                },
            }
        }
    }
}

fn draining() -> CallError {
    let message = "this server is stopping, and the session has no run to be watched; subscribe \
                   again, over a new connection, when another has taken its place";
    CallError::refused(Reason::ServerDraining, message)
}

fn too_many(most: usize) -> CallError {
    let message = format!(
        "the session has {most} event streams, and limits.max_observers_per_session is {most}; end \
         one that is not needed, or read with GetState and ListEntries"
    );
    CallError::refused(Reason::LimitReached, message)
}

fn too_slow() -> CallError {
    let message = "events were read too slowly and the next ones are gone; subscribe again with \
                   resume and entries_since";
    CallError::stream_ended(Reason::ObserverTooSlow, message)
}

fn lost(channel: &Channel) -> CallError {
    let loss = channel.loss().unwrap_or(Loss::Right);
    let told = match loss {
        Loss::Right => "this server no longer serves the session",
        Loss::Store => loss.told(),
        // What it would ask again for is not there.
        Loss::Deleted => return CallError::no_such_session(),
    };
    CallError::stream_ended(loss.reason(), format!("{told}; subscribe again"))
}

/// The next page of durable entries, and the snapshot once nothing is left after it.
async fn backfill(
    context: Arc<Context>,
    channel: Arc<Channel>,
    after: EntrySeq,
    full_backfill: bool,
) -> Step {
    let newest = channel.with_view(|view| view.entries);
    let entries = page(&context, &channel, after, newest).await?;
    let last = entries.last().map_or(after, |entry| entry.id.seq);
    let mut items = Vec::new();
    if !entries.is_empty() || full_backfill {
        items.push(batch(entries, full_backfill));
    }
    if last < newest {
        return Ok((items, Next::Page(last)));
    }
    // One step under the publisher: position, state and the durable tail belong together.
    let (view, position) = channel.state();
    // What became durable while the page was read is little: mostly one page, an item of its own.
    let rest = page(&context, &channel, last, view.entries).await?;
    let end = rest.last().map_or(last, |entry| entry.id.seq);
    if !rest.is_empty() {
        items.push(batch(rest, false));
    }
    if end < view.entries {
        return Ok((items, Next::Page(end)));
    }
    let state = Box::new(context.state((view, position)));
    items.push(Observed::Other(Box::new(EventItem::Snapshot(state))));
    Ok((items, Next::Live(position.seq)))
}

async fn page(
    context: &Context,
    channel: &Channel,
    after: EntrySeq,
    up_to: EntrySeq,
) -> Result<Vec<Entry>, ReadError> {
    if after >= up_to {
        return Ok(Vec::new());
    }
    let range = EntryRange {
        after,
        up_to,
        max_entries: PAGE_ENTRIES,
        max_bytes: PAGE_BYTES,
    };
    pages::entries(context, channel.session(), range).await
}

fn batch(entries: Vec<Entry>, full_backfill: bool) -> Observed {
    Observed::Other(Box::new(EventItem::Entries {
        entries,
        full_backfill,
    }))
}

/// The item as an in-process caller sees it.
pub(crate) fn to_item(observed: Observed) -> EventItem {
    match observed {
        Observed::Event(event) => EventItem::Event(event.envelope().clone()),
        Observed::Other(item) => *item,
    }
}
