//! Durable conversation records.

use sessionplane::v1 as wire;
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::compaction::CompactionTrigger;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::text::BoundedText;
use wire::entry::Body;

use super::{origin, time, usage};

/// An entry.
pub(crate) fn to_wire(entry: &Entry) -> wire::Entry {
    wire::Entry {
        id: entry.id.to_string(),
        parent_id: entry.parent.map(|id| id.to_string()).unwrap_or_default(),
        run_id: entry.run.map(|id| id.to_string()).unwrap_or_default(),
        created_at: Some(time::timestamp(entry.at)),
        kind: entry.body.kind().to_owned(),
        body: Some(body(&entry.body)),
    }
}

fn body(body: &EntryBody) -> Body {
    match body {
        EntryBody::User {
            text,
            omitted_bytes,
            origin,
            input,
            data,
        } => Body::User(wire::UserEntry {
            text: text.to_string(),
            origin: Some(origin::to_wire(origin)),
            input_id: input.map(|id| id.to_string()).unwrap_or_default(),
            omitted_bytes: *omitted_bytes,
            data: data.as_deref().map(super::data::to_wire),
        }),
        EntryBody::Assistant {
            message,
            model,
            text,
            thinking,
            partial,
            usage,
        } => Body::Assistant(wire::AssistantEntry {
            text: text.text.clone(),
            thinking: thinking.text.clone(),
            model: model.clone().unwrap_or_default(),
            usage: Some(usage::to_wire(*usage)),
            omitted_bytes: text.omitted_bytes,
            partial: *partial,
            message_id: message.clone(),
            thinking_omitted_bytes: thinking.omitted_bytes,
        }),
        EntryBody::Tool {
            call_id,
            name,
            input_json,
            output,
            failed,
            artifact,
        } => Body::Tool(wire::ToolEntry {
            artifact: artifact.as_ref().map(artifact_ref),
            ..tool(call_id, name, input_json, output, *failed)
        }),
        EntryBody::Settings { chosen } => Body::Settings(wire::SettingsEntry {
            model: chosen.model.clone(),
            thinking_level: chosen.thinking_level.clone(),
        }),
        EntryBody::Compaction {
            summary,
            first_kept,
            tokens_before,
            tokens_after,
            trigger,
        } => Body::Compaction(wire::CompactionEntry {
            summary: summary.text.clone(),
            omitted_bytes: summary.omitted_bytes,
            first_kept_entry_id: first_kept.map(|id| id.to_string()).unwrap_or_default(),
            tokens_before: *tokens_before,
            tokens_after: *tokens_after,
            overflow: *trigger == CompactionTrigger::Overflow,
        }),
        EntryBody::Notice { code, text } => Body::Notice(wire::NoticeEntry {
            code: code.clone(),
            text: text.clone(),
        }),
    }
}

/// A stored content.
pub(crate) fn artifact_ref(artifact: &ArtifactRef) -> wire::ArtifactRef {
    wire::ArtifactRef {
        id: artifact.id.to_string(),
        bytes: artifact.bytes,
    }
}

fn tool(
    call: &str,
    name: &str,
    input: &BoundedText,
    output: &BoundedText,
    failed: bool,
) -> wire::ToolEntry {
    wire::ToolEntry {
        tool_call_id: call.to_owned(),
        name: name.to_owned(),
        input_json: input.text.clone(),
        output: output.text.clone(),
        failed,
        omitted_bytes: output.omitted_bytes,
        input_omitted_bytes: input.omitted_bytes,
        artifact: None,
    }
}
