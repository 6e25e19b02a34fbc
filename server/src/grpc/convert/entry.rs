//! Durable conversation records.

use sessionplane::v1 as wire;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::text::BoundedText;
use wire::entry::Body;

use super::{origin, time, usage};

/// An entry.
pub(crate) fn to_wire(entry: &Entry) -> wire::Entry {
    wire::Entry {
        id: entry.id.to_string(),
        parent_id: entry.parent.map(|id| id.to_string()).unwrap_or_default(),
        run_id: entry.run.to_string(),
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
        } => Body::User(wire::UserEntry {
            text: text.to_string(),
            origin: Some(origin::to_wire(origin)),
            input_id: input.map(|id| id.to_string()).unwrap_or_default(),
            omitted_bytes: *omitted_bytes,
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
        } => tool(call_id, name, input_json, output, *failed),
        EntryBody::Notice { code, text } => Body::Notice(wire::NoticeEntry {
            code: code.clone(),
            text: text.clone(),
        }),
    }
}

fn tool(call: &str, name: &str, input: &BoundedText, output: &BoundedText, failed: bool) -> Body {
    Body::Tool(wire::ToolEntry {
        tool_call_id: call.to_owned(),
        name: name.to_owned(),
        input_json: input.text.clone(),
        output: output.text.clone(),
        failed,
        omitted_bytes: output.omitted_bytes,
        input_omitted_bytes: input.omitted_bytes,
    })
}
