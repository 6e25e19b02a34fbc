//! Reading a session: pages of entries, and what an observer's stream holds besides events.

use sessionplane::v1 as wire;
use sessionplane_core::contract::{
    EntryPage, EventFilter, EventItem, EventsRequest, ListEntriesRequest, SessionState,
};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::error::CallError;
use wire::events_response::Item;

use super::{entry, event, field, position, session, time};

/// A request for a page of entries.
pub(crate) fn list_request(
    request: wire::ListEntriesRequest,
) -> Result<ListEntriesRequest, CallError> {
    Ok(ListEntriesRequest {
        session: session::reference(request.session)?,
        since: field::optional_text(request.since),
        page_size: request.page_size,
    })
}

/// A page of entries.
pub(crate) fn page(page: &EntryPage) -> wire::ListEntriesResponse {
    wire::ListEntriesResponse {
        entries: page.entries.iter().map(entry::to_wire).collect(),
        leaf_entry_id: page.leaf.map(|id| id.to_string()).unwrap_or_default(),
        full_backfill: page.full_backfill,
        next_since: page.next_since.clone().unwrap_or_default(),
        has_more: page.has_more,
    }
}

/// A request to observe.
pub(crate) fn events_request(request: wire::EventsRequest) -> Result<EventsRequest, CallError> {
    Ok(EventsRequest {
        session: session::reference(request.session)?,
        resume: request.resume.map(position::from_wire),
        entries_since: field::optional_text(request.entries_since),
        filter: filter(request.filter)?,
    })
}

/// Names in a filter at most, and bytes of one.
pub(crate) const FILTER: (usize, usize) = (64, 64);

fn filter(filter: Option<wire::EventFilter>) -> Result<EventFilter, CallError> {
    let Some(filter) = filter else {
        return Ok(EventFilter::default());
    };
    let (names, bytes) = FILTER;
    if filter.types.len() > names || filter.types.iter().any(|it| it.len() > bytes) {
        return Err(CallError::invalid(
            "filter.types",
            format!("holds more than {names} names, or one of more than {bytes} bytes"),
        ));
    }
    Ok(EventFilter {
        types: filter.types.into_iter().collect(),
        no_thinking: filter.no_thinking,
    })
}

/// One item of an observation.
pub(crate) fn item(item: &EventItem) -> wire::EventsResponse {
    let item = match item {
        EventItem::Subscribed {
            session,
            epoch,
            resumed,
            gap,
            heartbeat_interval,
        } => Item::Subscribed(wire::Subscribed {
            session_id: session.to_string(),
            epoch: *epoch,
            resumed: *resumed,
            gap: *gap,
            heartbeat_interval: heartbeat_interval.map(time::duration),
        }),
        EventItem::Entries {
            entries,
            full_backfill,
        } => Item::Entries(entries_page(entries, *full_backfill)),
        EventItem::Snapshot(state) => Item::Snapshot(snapshot(state)),
        EventItem::Event(envelope) => Item::Event(event::envelope(envelope)),
        EventItem::Heartbeat(at) => Item::Heartbeat(wire::Heartbeat {
            position: Some(position::to_wire(*at)),
        }),
    };
    wire::EventsResponse { item: Some(item) }
}

fn entries_page(entries: &[Entry], full_backfill: bool) -> wire::EntriesPage {
    wire::EntriesPage {
        entries: entries.iter().map(entry::to_wire).collect(),
        full_backfill,
    }
}

fn snapshot(state: &SessionState) -> wire::Snapshot {
    let state_at = session::state(state);
    wire::Snapshot {
        leaf_entry_id: state_at.leaf_entry_id.clone(),
        position: state_at.position,
        state: Some(state_at),
    }
}
