//! Durable, append-only conversation records.

use std::sync::Arc;

use super::artifact::ArtifactRef;
use super::compaction::CompactionTrigger;
use super::data::Data;
use super::ids::{EntryId, EntrySeq, InputId, RunId};
use super::limits::MAX_EVENT_TEXT_BYTES;
use super::provenance::Origin;
use super::settings::SettingsOverride;
use super::text::BoundedText;
use super::time::Timestamp;
use super::usage::Usage;
use super::withholding::influences;

/// One record of a session's conversation tree.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Its id, which holds its place in the append order.
    pub id: EntryId,
    /// The entry it follows in the tree.
    pub parent: Option<EntryId>,
    /// The run that wrote it; none for what is written outside of runs.
    pub run: Option<RunId>,
    /// When it was decided.
    pub at: Timestamp,
    /// What holds at this entry, itself included.
    pub path: PathMarks,
    /// What it says.
    pub body: EntryBody,
}

/// The newest entries of some kinds on the way from an entry to the root, itself included: with
/// them a leaf can be moved anywhere without walking there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathMarks {
    /// The newest `settings` entry.
    pub settings: Option<EntrySeq>,
    /// The newest `compaction` entry.
    pub compaction: Option<EntrySeq>,
    /// The newest entry of the conversation itself before the newest `settings` entry. An entry of
    /// the conversation is not marked by itself.
    pub said: Option<EntrySeq>,
    /// The newest entry of a sender, if it brought data: what has come since is under its influence.
    pub untrusted: Option<EntrySeq>,
}

impl PathMarks {
    /// The marks of an entry that follows `parent`, which has these.
    #[must_use]
    pub fn then(self, parent: Option<EntrySeq>, seq: EntrySeq, body: &EntryBody) -> Self {
        match body {
            EntryBody::Settings { .. } => Self {
                settings: Some(seq),
                said: self.said_at(parent),
                ..self
            },
            EntryBody::Compaction { .. } => Self {
                compaction: Some(seq),
                ..self
            },
            EntryBody::User { data, origin, .. } => {
                let brings = influences(origin, data.as_deref());
                Self {
                    untrusted: brings.then_some(seq),
                    ..self
                }
            }
            EntryBody::Assistant { .. } | EntryBody::Tool { .. } | EntryBody::Notice { .. } => self,
        }
    }

    /// Whether anything was said since the last compaction, or at all, on the way to `leaf`, which
    /// has these marks: a choice of settings says nothing.
    #[must_use]
    pub fn says_more_than_its_summary(self, leaf: Option<EntrySeq>) -> bool {
        self.said_at(leaf) > self.compaction
    }

    fn said_at(self, leaf: Option<EntrySeq>) -> Option<EntrySeq> {
        if leaf == self.settings || leaf == self.compaction {
            self.said
        } else {
            leaf
        }
    }
}

/// What an entry says.
#[derive(Clone, PartialEq, Debug)]
pub enum EntryBody {
    /// A prompt, steer or follow-up.
    User {
        /// The text as the sender gave it.
        text: Arc<str>,
        /// Bytes left out before the text (only where an event carries the entry).
        omitted_bytes: u64,
        /// Who sent it.
        origin: Origin,
        /// The dispatched input that it delivers, if it is not the run's prompt.
        input: Option<InputId>,
        /// What was given beside the text, or in its place: then the text is empty.
        data: Option<Arc<Data>>,
    },
    /// What the model said.
    Assistant {
        /// The message's id within its run, as `message_delta` events name it.
        message: String,
        /// The model that said it, where the engine has one.
        model: Option<String>,
        /// The text.
        text: BoundedText,
        /// What it thought aloud. Never folded into the text.
        thinking: BoundedText,
        /// The message was cut by an abort, a failure or a crash.
        partial: bool,
        /// What this message used.
        usage: Usage,
    },
    /// A tool call and its result.
    Tool {
        /// The engine's id of the call.
        call_id: String,
        /// The tool's name.
        name: String,
        /// Its arguments, as JSON text.
        input_json: BoundedText,
        /// What it gave back.
        output: BoundedText,
        /// It reported a failure.
        failed: bool,
        /// The whole of what it gave back, where that is more than an event carries.
        artifact: Option<ArtifactRef>,
    },
    /// Model and level chosen from here on.
    Settings {
        /// What is chosen by now.
        chosen: SettingsOverride,
    },
    /// The engine's transcript was compacted: the model reads the summary in place of what it read
    /// before the first entry that was kept.
    Compaction {
        /// The summary.
        summary: BoundedText,
        /// The first entry that is still read as it is, with all that was read after it and in that
        /// order; without one, none before this entry is. It is among what was read before this
        /// compaction: perhaps an earlier summary, or an entry of the session that this one goes on
        /// from, or of that one's parent.
        first_kept: Option<EntryId>,
        /// The context's size before, in tokens, where the engine says.
        tokens_before: Option<u64>,
        /// The context's size after, in tokens, where the engine says.
        tokens_after: Option<u64>,
        /// Why.
        trigger: CompactionTrigger,
    },
    /// A note of the control plane itself, for example that a crash cut the run.
    Notice {
        /// A stable word.
        code: String,
        /// What happened, for a person.
        text: String,
    },
}

impl EntryBody {
    /// The entry's kind as a stable word. `user`, `assistant` and `tool` are guaranteed; a reader
    /// may skip others.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
            Self::Tool { .. } => "tool",
            Self::Settings { .. } => "settings",
            Self::Compaction { .. } => "compaction",
            Self::Notice { .. } => "notice",
        }
    }

    /// The contents that it names, in its order.
    pub fn artifacts(&self) -> impl Iterator<Item = &ArtifactRef> {
        let (of_tool, of_data) = match self {
            Self::Tool { artifact, .. } => (artifact.as_ref(), None),
            Self::User { data, .. } => (None, data.as_deref()),
            Self::Assistant { .. }
            | Self::Settings { .. }
            | Self::Compaction { .. }
            | Self::Notice { .. } => (None, None),
        };
        of_tool
            .into_iter()
            .chain(of_data.into_iter().flat_map(Data::artifacts))
    }
}

impl Entry {
    /// The entry's weight in a page, in bytes: its texts, and a flat 256 for the rest. The same in
    /// every store, so that a page ends at the same entry whatever keeps it.
    #[must_use]
    pub fn weight(&self) -> usize {
        let texts = match &self.body {
            EntryBody::User { text, data, .. } => {
                text.len() + data.as_ref().map_or(0, |data| data.carried())
            }
            EntryBody::Assistant { text, thinking, .. } => text.text.len() + thinking.text.len(),
            EntryBody::Tool {
                input_json, output, ..
            } => input_json.text.len() + output.text.len(),
            EntryBody::Settings { chosen } => {
                chosen.model.as_ref().map_or(0, String::len)
                    + chosen.thinking_level.as_ref().map_or(0, String::len)
            }
            EntryBody::Compaction { summary, .. } => summary.text.len(),
            EntryBody::Notice { code, text } => code.len() + text.len(),
        };
        256 + texts
    }

    /// The entry as an event may carry it: long texts reduced to their tails.
    #[must_use]
    pub fn for_event(&self) -> Self {
        let max = MAX_EVENT_TEXT_BYTES;
        let body = match &self.body {
            EntryBody::User {
                text,
                omitted_bytes,
                origin,
                input,
                data,
            } if text.len() > max => {
                let kept = BoundedText::new(text, max);
                EntryBody::User {
                    text: kept.text.into(),
                    omitted_bytes: omitted_bytes + kept.omitted_bytes,
                    origin: origin.clone(),
                    input: *input,
                    data: data.clone(),
                }
            }
            EntryBody::Assistant {
                message,
                model,
                text,
                thinking,
                partial,
                usage,
            } => EntryBody::Assistant {
                message: message.clone(),
                model: model.clone(),
                text: text.narrowed(max),
                thinking: thinking.narrowed(max),
                partial: *partial,
                usage: *usage,
            },
            EntryBody::Tool {
                call_id,
                name,
                input_json,
                output,
                failed,
                artifact,
            } => EntryBody::Tool {
                call_id: call_id.clone(),
                name: name.clone(),
                input_json: input_json.narrowed(max),
                output: output.narrowed(max),
                failed: *failed,
                artifact: artifact.clone(),
            },
            EntryBody::Compaction {
                summary,
                first_kept,
                tokens_before,
                tokens_after,
                trigger,
            } => EntryBody::Compaction {
                summary: summary.narrowed(max),
                first_kept: *first_kept,
                tokens_before: *tokens_before,
                tokens_after: *tokens_after,
                trigger: *trigger,
            },
            same => same.clone(),
        };
        Self {
            body,
            ..self.clone()
        }
    }
}
