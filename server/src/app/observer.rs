//! An observer's stream in the order of C31: subscribed, durable entries, snapshot, live events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;
use sessionplane_core::contract::{EventFilter, EventItem, EventsRequest, SessionState};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::EntrySeq;
use sessionplane_core::domain::position::Position;
use sessionplane_core::ports::clock::BoxFuture;
use sessionplane_core::ports::repository::{EntryRange, ReadError};

use super::caller::store;
use super::channel::Channel;
use super::context::Context;
use super::cursor::{Cursor, Cut};
use super::heartbeat::Heartbeat;
use super::observation::Observed;
use super::observe::{PAGE_BYTES, since};

/// Entries in one page of a backfill.
const PAGE_ENTRIES: usize = 256;

type Step = Result<(Vec<Observed>, Next), ReadError>;

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
    /// The same for what was missed and for what comes.
    filter: EventFilter,
    ready: VecDeque<Observed>,
    /// What a resumed stream tells once it has told the events before it.
    due: Option<Box<SessionState>>,
    phase: Phase,
    /// The last event that was sent. What the filter holds back leaves the stream as quiet as before.
    told: u64,
    heartbeat: Heartbeat,
}

impl Observer {
    pub(crate) fn open(
        context: Arc<Context>,
        channel: Arc<Channel>,
        request: &EventsRequest,
    ) -> Self {
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
        let phase = if let Some((from, (view, position))) = resumed {
            due = Some(Box::new(SessionState { view, position }));
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
        Self {
            context,
            channel,
            filter: request.filter.clone(),
            ready,
            due,
            phase,
            told: 0,
            heartbeat,
        }
    }

    fn over(&mut self, error: CallError) -> Poll<Option<Result<Observed, CallError>>> {
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

    /// Says that everything up to `position` was sent. It is the reader's own place, not the
    /// channel's: an event that is published right now has not been sent, and who resumed behind
    /// it would never see it.
    fn beat(
        &mut self,
        position: Position,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Observed, CallError>>> {
        std::task::ready!(self.heartbeat.poll_due(self.told, cx));
        Poll::Ready(Some(Ok(Observed::Other(Box::new(EventItem::Heartbeat(
            position,
        ))))))
    }
}

impl Stream for Observer {
    type Item = Result<Observed, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
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
                Phase::Backfill(step) => match std::task::ready!(step.as_mut().poll(cx)) {
                    Err(error) => {
                        let CallError {
                            reason, message, ..
                        } = store(error);
                        return this.over(CallError::stream_ended(reason, message));
                    }
                    Ok((items, next)) => {
                        this.ready.extend(items);
                        this.phase = match next {
                            Next::Live(seq) => {
                                Phase::Live(Cursor::after(this.channel.clone(), seq))
                            }
                            Next::Page(after) => {
                                let (context, channel) =
                                    (this.context.clone(), this.channel.clone());
                                // Only the first page says that the reader is to forget.
                                Phase::Backfill(Box::pin(backfill(context, channel, after, false)))
                            }
                        };
                    }
                },
                Phase::Live(cursor) => match Pin::new(&mut *cursor).poll_next(cx) {
                    Poll::Ready(Some(Ok(event))) => {
                        if matches!(event.envelope().event.body, EventBody::ServingError { .. }) {
                            this.ready.push_back(Observed::Event(event));
                            this.phase = Phase::Ending(Box::new(lost()));
                            continue;
                        }
                        if !this.filter.admits(&event.envelope().event.body) {
                            continue;
                        }
                        this.told = event.envelope().seq;
                        return Poll::Ready(Some(Ok(Observed::Event(event))));
                    }
                    Poll::Ready(Some(Err(Cut::Closed))) => return this.over(lost()),
                    Poll::Ready(Some(Err(Cut::Lapped))) => {
                        let message = "events were read too slowly and the next ones are gone; \
                                       subscribe again with resume and entries_since";
                        return this
                            .over(CallError::stream_ended(Reason::ObserverTooSlow, message));
                    }
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => {
                        let position = cursor.position();
                        return this.beat(position, cx);
                    }
                },
            }
        }
    }
}

fn lost() -> CallError {
    let message = "this server no longer serves the session; subscribe again";
    CallError::stream_ended(Reason::ServingLost, message)
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
    let state = Box::new(SessionState { view, position });
    items.push(Observed::Other(Box::new(EventItem::Snapshot(state))));
    Ok((items, Next::Live(position.seq)))
}

async fn page(
    context: &Context,
    channel: &Channel,
    after: EntrySeq,
    up_to: EntrySeq,
) -> Result<Vec<sessionplane_core::domain::entry::Entry>, ReadError> {
    if after >= up_to {
        return Ok(Vec::new());
    }
    let range = EntryRange {
        after,
        up_to,
        max_entries: PAGE_ENTRIES,
        max_bytes: PAGE_BYTES,
    };
    context
        .ports
        .repository
        .entries(channel.session(), range)
        .await
}

fn batch(entries: Vec<sessionplane_core::domain::entry::Entry>, full_backfill: bool) -> Observed {
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
