//! Durable entries and pages of them.

use sessionplane::v1::{self, entry::Body};
use sessionplane_core::contract::{EntryPage, ListEntriesRequest};
use sessionplane_core::domain::entry::{Entry, EntryBody};

use super::field::{Malformed, bounded, id, optional_id, optional_text, time};
use super::{origin, session, usage};

/// Asks for a page.
pub(crate) fn request(request: ListEntriesRequest) -> v1::ListEntriesRequest {
    v1::ListEntriesRequest {
        session: Some(session::reference(&request.session)),
        since: request.since.unwrap_or_default(),
        page_size: request.page_size,
    }
}

/// A page.
pub(crate) fn page(page: v1::ListEntriesResponse) -> Result<EntryPage, Malformed> {
    Ok(EntryPage {
        entries: all(page.entries)?,
        leaf: optional_id("leaf_entry_id", &page.leaf_entry_id)?,
        full_backfill: page.full_backfill,
        next_since: optional_text(page.next_since),
        has_more: page.has_more,
    })
}

/// Entries in their order, without those of a kind this client does not know.
pub(crate) fn all(entries: Vec<v1::Entry>) -> Result<Vec<Entry>, Malformed> {
    entries
        .into_iter()
        .filter_map(|entry| read(entry).transpose())
        .collect()
}

/// An entry; none if this client does not know its kind, or if no run wrote it, as only kinds
/// that this client does not know can say.
pub(crate) fn read(entry: v1::Entry) -> Result<Option<Entry>, Malformed> {
    let run = optional_id("entry.run_id", &entry.run_id)?;
    let (Some(wire), Some(run)) = (entry.body, run) else {
        return Ok(None);
    };
    Ok(Some(Entry {
        id: id("entry.id", &entry.id)?,
        parent: optional_id("entry.parent_id", &entry.parent_id)?,
        run,
        at: time("entry.created_at", entry.created_at)?,
        body: body(wire)?,
    }))
}

fn body(body: Body) -> Result<EntryBody, Malformed> {
    Ok(match body {
        Body::User(user) => EntryBody::User {
            text: user.text.into(),
            omitted_bytes: user.omitted_bytes,
            origin: origin::read("entry.user.origin", user.origin)?,
            input: optional_id("entry.user.input_id", &user.input_id)?,
        },
        Body::Assistant(said) => EntryBody::Assistant {
            message: said.message_id,
            model: optional_text(said.model),
            text: bounded(said.text, said.omitted_bytes),
            thinking: bounded(said.thinking, said.thinking_omitted_bytes),
            partial: said.partial,
            usage: usage::read(said.usage),
        },
        Body::Tool(tool) => EntryBody::Tool {
            call_id: tool.tool_call_id,
            name: tool.name,
            input_json: bounded(tool.input_json, tool.input_omitted_bytes),
            output: bounded(tool.output, tool.omitted_bytes),
            failed: tool.failed,
        },
        Body::Notice(notice) => EntryBody::Notice {
            code: notice.code,
            text: notice.text,
        },
    })
}
