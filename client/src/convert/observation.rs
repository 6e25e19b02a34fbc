//! Observations: the items of an `Events` stream.

use sessionplane::v1::{self, events_response::Item};
use sessionplane_core::contract::{EventItem, EventsRequest};
use sessionplane_core::domain::position::Position;

use super::field::{Malformed, duration, id, required};
use super::{entry, event, position, session, state};

/// What came on an observer's stream, with what [`EventItem`] has no place for.
#[expect(
    clippy::large_enum_variant,
    reason = "events are nearly all there is, and a handful of items exist at a time"
)]
pub(crate) enum Received {
    /// All but an event of a type this client does not know.
    Item(EventItem),
    /// An event of a type this client does not know.
    Unknown {
        /// The word that names its type.
        event_type: String,
        /// Its place.
        position: Position,
    },
}

impl Received {
    /// The contract's item for it, if it has one.
    pub(crate) fn item(self) -> Option<EventItem> {
        match self {
            Self::Item(item) => Some(item),
            Self::Unknown { .. } => None,
        }
    }
}

/// Asks to observe.
pub(crate) fn request(request: EventsRequest) -> v1::EventsRequest {
    v1::EventsRequest {
        session: Some(session::reference(&request.session)),
        resume: request.resume.map(position::write),
        entries_since: request.entries_since.unwrap_or_default(),
        filter: (!request.filter.is_open()).then(|| v1::EventFilter {
            types: request.filter.types.into_iter().collect(),
            no_thinking: request.filter.no_thinking,
        }),
    }
}

/// Reads one item; none if this client does not know it.
pub(crate) fn item(response: v1::EventsResponse) -> Result<Option<Received>, Malformed> {
    let Some(item) = response.item else {
        return Ok(None);
    };
    Ok(Some(match item {
        Item::Subscribed(subscribed) => Received::Item(EventItem::Subscribed {
            session: id("subscribed.session_id", &subscribed.session_id)?,
            epoch: subscribed.epoch,
            resumed: subscribed.resumed,
            gap: subscribed.gap,
            heartbeat_interval: subscribed
                .heartbeat_interval
                .map(|interval| duration(Some(interval))),
        }),
        Item::Entries(page) => Received::Item(EventItem::Entries {
            entries: entry::all(page.entries)?,
            full_backfill: page.full_backfill,
        }),
        Item::Snapshot(snapshot) => {
            let state = state::read(required("snapshot.state", snapshot.state)?)?;
            Received::Item(EventItem::Snapshot(Box::new(state)))
        }
        Item::Event(envelope) => event::read(envelope)?,
        Item::Heartbeat(heartbeat) => Received::Item(EventItem::Heartbeat(position::read(
            "heartbeat.position",
            heartbeat.position,
        )?)),
    }))
}
