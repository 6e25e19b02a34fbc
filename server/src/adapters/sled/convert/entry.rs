//! Conversation entries.

use std::sync::Arc;

use sessionplane::store::v1 as form;
use sessionplane_core::domain::compaction::CompactionTrigger;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::domain::time::Timestamp;

use super::{Link, Stored, Unreadable, link, maybe, maybe_run, part, run_form};

/// An entry with what chains it to the record before it.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::adapters::sled) struct ChainedEntry {
    /// The entry.
    pub(in crate::adapters::sled) entry: Entry,
    /// The checksum of the record before it; 0 in the first.
    pub(in crate::adapters::sled) previous_checksum: u32,
    /// The digest of the record before it; zeros where a chain begins, none before format 3.
    pub(in crate::adapters::sled) previous_digest: Option<Link>,
}

impl Stored for ChainedEntry {
    type Form = form::EntryRecord;
    fn form(&self) -> Self::Form {
        let entry = &self.entry;
        form::EntryRecord {
            id: Some(entry.id.form()),
            parent: entry.parent.map(|id| id.form()),
            run: run_form(entry.run),
            at_ms: entry.at.as_millis(),
            previous_checksum: self.previous_checksum,
            body: Some(entry.body.form()),
            path: Some(entry.path.form()),
            previous_digest: self.previous_digest.map(|link| link.to_vec()),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let entry = Entry {
            id: part(form.id, "id")?,
            parent: maybe(form.parent)?,
            run: maybe_run(&form.run)?,
            at: Timestamp::from_millis(form.at_ms),
            path: maybe(form.path)?.unwrap_or_default(),
            body: part(form.body, "body")?,
        };
        Ok(Self {
            entry,
            previous_checksum: form.previous_checksum,
            previous_digest: link(form.previous_digest.as_deref(), "previous_digest")?,
        })
    }
}

impl Stored for EntryBody {
    type Form = form::entry_record::Body;
    fn form(&self) -> Self::Form {
        use form::entry_record::Body;
        match self {
            Self::User {
                text,
                omitted_bytes,
                origin,
                input,
                data,
            } => Body::User(form::UserBody {
                text: text.to_string(),
                omitted_bytes: *omitted_bytes,
                origin: Some(origin.form()),
                input: input.map(|id| id.form()),
                data: data.as_ref().map(|data| data.form()),
            }),
            Self::Assistant {
                message,
                model,
                text,
                thinking,
                partial,
                usage,
            } => Body::Assistant(form::AssistantBody {
                message: message.clone(),
                model: model.clone(),
                text: Some(text.form()),
                thinking: Some(thinking.form()),
                partial: *partial,
                usage: Some(usage.form()),
            }),
            Self::Tool {
                call_id,
                name,
                input_json,
                output,
                failed,
                artifact,
            } => Body::Tool(form::ToolBody {
                call_id: call_id.clone(),
                name: name.clone(),
                input_json: Some(input_json.form()),
                output: Some(output.form()),
                failed: *failed,
                artifact: artifact.as_ref().map(Stored::form),
            }),
            Self::Settings { chosen } => Body::Settings(form::SettingsBody {
                chosen: Some(chosen.form()),
            }),
            Self::Compaction {
                summary,
                first_kept,
                tokens_before,
                tokens_after,
                trigger,
            } => Body::Compaction(form::CompactionBody {
                summary: Some(summary.form()),
                first_kept: first_kept.map(|id| id.form()),
                tokens_before: *tokens_before,
                tokens_after: *tokens_after,
                overflow: *trigger == CompactionTrigger::Overflow,
            }),
            Self::Notice { code, text } => Body::Notice(form::NoticeBody {
                code: code.clone(),
                text: text.clone(),
            }),
        }
    }
    fn read(body: Self::Form) -> Result<Self, Unreadable> {
        use form::entry_record::Body;
        Ok(match body {
            Body::User(user) => Self::User {
                text: user.text.into(),
                omitted_bytes: user.omitted_bytes,
                origin: part(user.origin, "origin")?,
                input: maybe(user.input)?,
                data: maybe(user.data)?.map(Arc::new),
            },
            Body::Assistant(said) => Self::Assistant {
                message: said.message,
                model: said.model,
                text: part(said.text, "text")?,
                thinking: part(said.thinking, "thinking")?,
                partial: said.partial,
                usage: part(said.usage, "usage")?,
            },
            Body::Tool(tool) => Self::Tool {
                call_id: tool.call_id,
                name: tool.name,
                input_json: part(tool.input_json, "input_json")?,
                output: part(tool.output, "output")?,
                failed: tool.failed,
                artifact: maybe(tool.artifact)?,
            },
            Body::Settings(settings) => Self::Settings {
                chosen: part(settings.chosen, "chosen")?,
            },
            Body::Compaction(compaction) => Self::Compaction {
                summary: part(compaction.summary, "summary")?,
                first_kept: maybe(compaction.first_kept)?,
                tokens_before: compaction.tokens_before,
                tokens_after: compaction.tokens_after,
                trigger: if compaction.overflow {
                    CompactionTrigger::Overflow
                } else {
                    CompactionTrigger::Manual
                },
            },
            Body::Notice(notice) => Self::Notice {
                code: notice.code,
                text: notice.text,
            },
        })
    }
}

impl Stored for BoundedText {
    type Form = form::BoundedText;
    fn form(&self) -> Self::Form {
        form::BoundedText {
            text: self.text.clone(),
            omitted_bytes: self.omitted_bytes,
        }
    }
    fn read(text: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            text: text.text,
            omitted_bytes: text.omitted_bytes,
        })
    }
}
