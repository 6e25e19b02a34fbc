//! Durable entries and pages of them.

use std::sync::Arc;

use sessionplane::v1::{self, entry::Body};
use sessionplane_core::contract::{EntryPage, ListEntriesRequest};
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::compaction::CompactionTrigger;
use sessionplane_core::domain::entry::{Entry, EntryBody, PathMarks};
use sessionplane_core::domain::settings::SettingsOverride;

use super::field::{Malformed, bounded, id, optional_id, optional_text, time};
use super::{data, origin, session, usage};

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

/// An entry; none if this client does not know its kind.
pub(crate) fn read(entry: v1::Entry) -> Result<Option<Entry>, Malformed> {
    let Some(wire) = entry.body else {
        return Ok(None);
    };
    Ok(Some(Entry {
        id: id("entry.id", &entry.id)?,
        parent: optional_id("entry.parent_id", &entry.parent_id)?,
        run: optional_id("entry.run_id", &entry.run_id)?,
        // Not told: only who moves the leaf needs it.
        path: PathMarks::default(),
        at: time("entry.created_at", entry.created_at)?,
        body: body(wire)?,
    }))
}

/// Where a content is kept whole.
pub(crate) fn artifact(
    artifact: Option<v1::ArtifactRef>,
) -> Result<Option<ArtifactRef>, Malformed> {
    artifact
        .map(|artifact| {
            Ok(ArtifactRef {
                id: id("artifact.id", &artifact.id)?,
                bytes: artifact.bytes,
                // What it says of a content is not told to clients.
                sha256: None,
            })
        })
        .transpose()
}

fn body(body: Body) -> Result<EntryBody, Malformed> {
    Ok(match body {
        Body::User(user) => EntryBody::User {
            text: user.text.into(),
            omitted_bytes: user.omitted_bytes,
            origin: origin::read("entry.user.origin", user.origin)?,
            input: optional_id("entry.user.input_id", &user.input_id)?,
            data: user.data.map(data::read).transpose()?.map(Arc::new),
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
            artifact: artifact(tool.artifact)?,
        },
        Body::Settings(settings) => EntryBody::Settings {
            chosen: SettingsOverride {
                model: settings.model,
                thinking_level: settings.thinking_level,
            },
        },
        Body::Compaction(compaction) => EntryBody::Compaction {
            summary: bounded(compaction.summary, compaction.omitted_bytes),
            first_kept: optional_id(
                "entry.compaction.first_kept_entry_id",
                &compaction.first_kept_entry_id,
            )?,
            tokens_before: compaction.tokens_before,
            tokens_after: compaction.tokens_after,
            trigger: if compaction.overflow {
                CompactionTrigger::Overflow
            } else {
                CompactionTrigger::Manual
            },
        },
        Body::Notice(notice) => EntryBody::Notice {
            code: notice.code,
            text: notice.text,
        },
    })
}
