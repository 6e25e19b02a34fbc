//! Durable entries.

use serde_json::{Value, json};
use sessionplane_core::domain::compaction::CompactionTrigger;
use sessionplane_core::domain::data::{Content, Data};
use sessionplane_core::domain::entry::{Entry, EntryBody};

use super::field::{artifact, maybe, origin, text, time, usage};

/// An entry; its body is in the field that its kind names.
pub(crate) fn entry(entry: &Entry) -> Value {
    let kind = entry.body.kind();
    let mut object = json!({
        "id": text(entry.id),
        "parent_id": maybe(entry.parent),
        "run_id": maybe(entry.run),
        "created_at": time(entry.at),
        "kind": kind,
    });
    object[kind] = body(&entry.body);
    object
}

fn body(body: &EntryBody) -> Value {
    match body {
        EntryBody::User {
            text: said,
            omitted_bytes,
            origin: from,
            input,
            data,
        } => json!({
            "text": **said,
            "origin": origin(from),
            "input_id": maybe(*input),
            "omitted_bytes": omitted_bytes,
            "data": data.as_deref().map(given),
        }),
        EntryBody::Assistant {
            message,
            model,
            text: said,
            thinking,
            partial,
            usage: used,
        } => json!({
            "text": said.text,
            "thinking": thinking.text,
            "model": model,
            "usage": usage(used),
            "omitted_bytes": said.omitted_bytes,
            "partial": partial,
            "message_id": message,
            "thinking_omitted_bytes": thinking.omitted_bytes,
        }),
        EntryBody::Tool {
            call_id,
            name,
            input_json,
            output,
            failed,
            artifact: kept,
        } => json!({
            "artifact": artifact(kept.as_ref()),
            "tool_call_id": call_id,
            "name": name,
            "input_json": input_json.text,
            "output": output.text,
            "failed": failed,
            "omitted_bytes": output.omitted_bytes,
            "input_omitted_bytes": input_json.omitted_bytes,
        }),
        EntryBody::Settings { chosen } => json!({
            "model": chosen.model,
            "thinking_level": chosen.thinking_level,
        }),
        EntryBody::Compaction {
            summary,
            first_kept,
            tokens_before,
            tokens_after,
            trigger,
        } => json!({
            "summary": summary.text,
            "omitted_bytes": summary.omitted_bytes,
            "first_kept_entry_id": maybe(*first_kept),
            "tokens_before": tokens_before,
            "tokens_after": tokens_after,
            "overflow": *trigger == CompactionTrigger::Overflow,
        }),
        EntryBody::Notice { code, text } => json!({ "code": code, "text": text }),
    }
}

/// What was given as data. What is no text has its bytes that are none replaced.
fn given(data: &Data) -> Value {
    let parts = data.parts().iter().map(|part| {
        let (head, tail) = match &part.content {
            Content::Whole(whole) => (&**whole, None),
            Content::Cut { head, tail, .. } => (&**head, Some(&**tail)),
        };
        json!({
            "name": *part.name,
            "media_type": *part.media_type,
            "bytes": part.bytes,
            "sha256": text(part.sha256),
            "head": String::from_utf8_lossy(head),
            "tail": tail.map(String::from_utf8_lossy),
            "artifact": artifact(part.content.artifact()),
        })
    });
    json!({
        "parts": parts.collect::<Vec<_>>(),
        "boundary": data.boundary().as_str(),
        "on_file": data.on_file().map(|text| &**text),
    })
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::text::BoundedText;

    use super::*;

    #[test]
    fn c22_a_compaction_has_the_shape_of_the_proto() {
        for (trigger, overflow) in [
            (CompactionTrigger::Manual, false),
            (CompactionTrigger::Overflow, true),
        ] {
            let compaction = EntryBody::Compaction {
                summary: BoundedText::new("all of it", 100),
                first_kept: None,
                tokens_before: Some(900),
                tokens_after: None,
                trigger,
            };
            let expected = json!({
                "summary": "all of it",
                "omitted_bytes": 0,
                "first_kept_entry_id": null,
                "tokens_before": 900,
                "tokens_after": null,
                "overflow": overflow,
            });
            assert_eq!(body(&compaction), expected);
        }
    }
}
