//! An observer's stream, read with a deadline and judged by C30 and C31 as it is read.

use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_core::contract::{EventFilter, EventItem, ResultStream, SessionState};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::run::RunRecord;

use super::desk::within;

/// An observer whose snapshot was read.
pub(crate) struct Watch {
    pub(crate) epoch: u64,
    pub(crate) resumed: bool,
    pub(crate) gap: bool,
    pub(crate) heartbeat_interval: Option<Duration>,
    /// Durable entries that came before the snapshot.
    pub(crate) backfill: Vec<Entry>,
    pub(crate) full_backfill: bool,
    /// Events that came before the snapshot: what a resuming observer had missed.
    pub(crate) missed: Vec<EventEnvelope>,
    pub(crate) snapshot: SessionState,
    /// The last event or snapshot that was read; under a filter also the last heartbeat's place.
    pub(crate) position: Position,
    filter: EventFilter,
    stream: ResultStream<EventItem>,
}

impl Watch {
    /// Reads the beginning, in the order of C31, of a stream that was asked for with a filter.
    pub(crate) async fn open(mut stream: ResultStream<EventItem>, filter: EventFilter) -> Self {
        let first = within("subscribed", stream.next()).await;
        let Some(Ok(EventItem::Subscribed {
            epoch,
            resumed,
            gap,
            heartbeat_interval,
            ..
        })) = first
        else {
            panic!("not subscribed first: {first:?}");
        };
        let (mut backfill, mut missed, mut full_backfill) = (Vec::new(), Vec::new(), false);
        loop {
            match within("the snapshot", stream.next()).await {
                Some(Ok(EventItem::Entries {
                    entries,
                    full_backfill: full,
                })) => {
                    assert!(!resumed, "who resumes needs no entries");
                    assert!(entries.len() <= 256, "an item is one page");
                    assert!(!full || backfill.is_empty(), "only the first page says so");
                    full_backfill |= full;
                    backfill.extend(entries);
                }
                Some(Ok(EventItem::Event(event))) => {
                    assert!(resumed, "an event before the snapshot: {event:?}");
                    assert!(filter.admits(&event.event.body), "unwanted: {event:?}");
                    missed.push(event);
                }
                Some(Ok(EventItem::Snapshot(snapshot))) => {
                    assert_eq!(snapshot.position.epoch, epoch);
                    return Self {
                        epoch,
                        resumed,
                        gap,
                        heartbeat_interval,
                        backfill,
                        full_backfill,
                        missed,
                        position: snapshot.position,
                        snapshot: *snapshot,
                        filter,
                        stream,
                    };
                }
                other => panic!("before the snapshot: {other:?}"),
            }
        }
    }

    /// The next item, heartbeats among them.
    pub(crate) async fn item(&mut self) -> Option<Result<EventItem, CallError>> {
        within("the next item", self.stream.next()).await
    }

    /// The next event. Numbers grow by one; under a filter they grow.
    pub(crate) async fn next(&mut self) -> Option<Result<EventEnvelope, CallError>> {
        loop {
            match self.item().await? {
                Ok(EventItem::Event(envelope)) => {
                    let at = Position {
                        epoch: envelope.epoch,
                        seq: envelope.seq,
                    };
                    let next = Position {
                        seq: self.position.seq + 1,
                        ..self.position
                    };
                    if self.filter.is_open() {
                        assert_eq!(at, next, "{envelope:?}");
                    } else {
                        assert_eq!(at.epoch, next.epoch);
                        assert!(at.seq >= next.seq, "{envelope:?} after {next:?}");
                        assert!(self.filter.admits(&envelope.event.body), "{envelope:?}");
                    }
                    self.position = at;
                    return Some(Ok(envelope));
                }
                Ok(EventItem::Heartbeat(position)) if self.filter.is_open() => {
                    assert!(
                        position <= self.position,
                        "a heartbeat tells of an event that was not sent"
                    );
                }
                Ok(EventItem::Heartbeat(position)) => {
                    assert!(position >= self.position, "a heartbeat goes back");
                    self.position = position;
                }
                Ok(other) => panic!("after the snapshot: {other:?}"),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The next event, which must come.
    pub(crate) async fn event(&mut self) -> EventEnvelope {
        let event = self.next().await.expect("an event, not the end");
        event.unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Reads up to the first event of a kind.
    pub(crate) async fn until(
        &mut self,
        wanted: impl Fn(&EventBody) -> bool,
    ) -> Vec<EventEnvelope> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await;
            let last = wanted(&event.event.body);
            events.push(event);
            if last {
                return events;
            }
        }
    }

    /// Reads up to the end of the run that is active, or comes next.
    pub(crate) async fn until_settled(&mut self) -> Vec<EventEnvelope> {
        self.until(|body| matches!(body, EventBody::RunSettled { .. }))
            .await
    }

    /// Reads up to the first event of a type.
    pub(crate) async fn until_type(&mut self, wanted: &str) -> Vec<EventEnvelope> {
        self.until(|body| body.event_type() == wanted).await
    }

    /// Reads to the status that the stream ends with: the events before it, and the status.
    pub(crate) async fn error(&mut self) -> (Vec<EventEnvelope>, CallError) {
        let mut events = Vec::new();
        loop {
            match self.next().await {
                Some(Ok(event)) => events.push(event),
                Some(Err(error)) => {
                    assert!(self.item().await.is_none(), "nothing follows the status");
                    return (events, error);
                }
                None => panic!("the stream ended in silence"),
            }
        }
    }
}

/// The types of events.
pub(crate) fn types(events: &[EventEnvelope]) -> Vec<&'static str> {
    events
        .iter()
        .map(|event| event.event.body.event_type())
        .collect()
}

/// The records of the runs that events say have settled.
pub(crate) fn settled(events: &[EventEnvelope]) -> Vec<RunRecord> {
    let record = |event: &EventEnvelope| match &event.event.body {
        EventBody::RunSettled { run } => Some((**run).clone()),
        _ => None,
    };
    events.iter().filter_map(record).collect()
}

/// The runs that events say have started.
pub(crate) fn started(events: &[EventEnvelope]) -> Vec<RunId> {
    let run = |event: &EventEnvelope| match &event.event.body {
        EventBody::RunStarted { .. } => event.event.run,
        _ => None,
    };
    events.iter().filter_map(run).collect()
}

/// The entries that events say are durable.
pub(crate) fn appended(events: &[EventEnvelope]) -> Vec<Entry> {
    let entry = |event: &EventEnvelope| match &event.event.body {
        EventBody::EntryAppended { entry } => Some((**entry).clone()),
        _ => None,
    };
    events.iter().filter_map(entry).collect()
}
