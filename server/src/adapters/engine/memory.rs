//! What an engine without a transcript of its own remembers of the durable conversation.
//!
//! What is inside: one bounded reading of our entries when a session is opened. What must never
//! enter: a write, or a copy of the whole conversation.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::ids::{EntryId, IdError};
use sessionplane_core::domain::provenance::{Channel, Trust};
use sessionplane_core::domain::text::head;
use sessionplane_core::ports::engine::{EngineError, OpenSession, Revalidation};

/// How many of the newest entries are read: opening a session costs the same however long it is.
const ENTRIES: usize = 256;
/// How many of the newest user texts are remembered.
const TEXTS: usize = 8;
/// How many bytes of each.
const TEXT_BYTES: usize = 16 * 1024;

/// The end of the durable conversation, as far as an engine of this process needs it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Memory {
    /// The number of the leaf, 0 before the first entry: how many entries its session had, over all
    /// branches, when it was written.
    pub(super) leaf: u64,
    /// The newest texts that users sent, oldest first: at most eight, each cut to 16 KiB.
    pub(super) texts: VecDeque<Said>,
    /// The newest entries, oldest first: at most 256.
    newest: Vec<EntryId>,
}

/// The same as it is told to a process apart.
#[derive(Serialize, Deserialize)]
pub(super) struct Remembered {
    leaf: u64,
    texts: Vec<RememberedText>,
    newest: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct RememberedText {
    text: String,
    /// It stands for what came before: the summary of a compaction.
    summary: bool,
    entry: Option<String>,
}

/// What a user sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Said {
    /// The text, cut.
    pub(super) text: Arc<str>,
    /// How it came: a steer changes what was asked, and asks nothing by itself.
    pub(super) channel: Channel,
    /// Where it stands; none for what came since the session was opened.
    entry: Option<EntryId>,
}

impl Memory {
    /// Reads the end of the session's conversation.
    ///
    /// # Errors
    /// When the transcript cannot be read, or does not advance.
    pub(super) async fn read(open: &OpenSession) -> Result<(Self, Revalidation), EngineError> {
        let Some(leaf) = open.leaf else {
            return Ok((Self::default(), Revalidation::Current));
        };
        let mut memory = Self {
            leaf: leaf.seq,
            ..Self::default()
        };
        let newest = open.transcript.newest(ENTRIES).await?;
        if newest.is_empty() {
            tracing::warn!(session = %open.session, %leaf, "the transcript is empty");
            return Ok((Self::default(), Revalidation::Replaced));
        }
        for entry in &newest {
            let id = Some(entry.id);
            match &entry.body {
                // Data is shown fenced or not at all: it is not remembered.
                EntryBody::User { text, origin, .. } if origin.trust > Trust::Untrusted => {
                    memory.add(text, origin.channel, id);
                }
                // What it stands for is no longer before the model.
                EntryBody::Compaction { summary, .. } => {
                    memory.add(&summary.text, Channel::Control, id);
                }
                _ => {}
            }
        }
        memory.newest = newest.iter().map(|entry| entry.id).collect();
        // It keeps no transcript of its own that could disagree with ours.
        Ok((memory, Revalidation::Current))
    }

    /// What another process needs to remember the same.
    pub(super) fn told(&self) -> Remembered {
        let text = |said: &Said| RememberedText {
            text: said.text.to_string(),
            summary: said.channel == Channel::Control,
            entry: said.entry.map(|entry| entry.to_string()),
        };
        Remembered {
            leaf: self.leaf,
            texts: self.texts.iter().map(text).collect(),
            newest: self.newest.iter().map(ToString::to_string).collect(),
        }
    }

    /// What was told. How a text came makes no difference to who is told so, but for a summary.
    ///
    /// # Errors
    /// When what it names cannot be.
    pub(super) fn of(told: Remembered) -> Result<Self, IdError> {
        let said = |told: RememberedText| {
            let entry = told.entry.map(|entry| entry.parse()).transpose()?;
            let channel = if told.summary {
                Channel::Control
            } else {
                Channel::Invoke
            };
            let text = told.text.into();
            Ok(Said {
                text,
                channel,
                entry,
            })
        };
        let texts = told.texts.into_iter().map(said);
        let newest = told.newest.iter().map(|entry| entry.parse());
        Ok(Self {
            leaf: told.leaf,
            texts: texts.collect::<Result<_, IdError>>()?,
            newest: newest.collect::<Result<_, IdError>>()?,
        })
    }

    /// Adds the newest text.
    pub(super) fn remember(&mut self, text: &str, channel: Channel) {
        self.add(text, channel, None);
    }

    fn add(&mut self, text: &str, channel: Channel, entry: Option<EntryId>) {
        if self.texts.len() == TEXTS {
            self.texts.pop_front();
        }
        self.texts.push_back(Said {
            text: head(text, TEXT_BYTES).into(),
            channel,
            entry,
        });
    }

    /// The first of the newest `kept` entries that were there when the session was opened: of all
    /// there are, if they are fewer.
    pub(super) fn first_kept(&self, kept: usize) -> Option<EntryId> {
        let from = self.newest.len().saturating_sub(kept);
        self.newest.get(from).copied()
    }

    /// Puts a summary in the place of what stands before the first entry that is kept, or of
    /// everything.
    pub(super) fn compact(&mut self, summary: &str, first_kept: Option<EntryId>) {
        let from = self.newest.iter().position(|id| Some(*id) == first_kept);
        self.newest.drain(..from.unwrap_or(self.newest.len()));
        let newest = &self.newest;
        self.texts.retain(|said| {
            let is_kept = match said.entry {
                Some(entry) => newest.contains(&entry),
                // A summary of before stands before what is kept; the rest came since.
                None => said.channel != Channel::Control,
            };
            from.is_some() && is_kept
        });
        if self.texts.len() == TEXTS {
            self.texts.pop_front();
        }
        self.texts.push_front(Said {
            text: head(summary, TEXT_BYTES).into(),
            channel: Channel::Control,
            entry: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use sessionplane_core::domain::access::PrincipalKind;
    use sessionplane_core::domain::entry::{Entry, PathMarks};
    use sessionplane_core::domain::ids::{PrincipalId, SessionId};
    use sessionplane_core::domain::provenance::{Digest, Origin, Trust};
    use sessionplane_core::domain::run::RunSettings;
    use sessionplane_core::domain::time::Timestamp;
    use sessionplane_core::ports::engine::Transcript;

    use super::*;

    /// Texts up to `last`; remembers what it was asked for.
    struct Texts {
        last: u64,
        asked: Mutex<Vec<usize>>,
    }

    fn entry(seq: u64) -> Entry {
        let session = SessionId::mint(Timestamp::default(), 1);
        Entry {
            id: EntryId { session, seq },
            parent: None,
            run: None,
            at: Timestamp::default(),
            path: PathMarks::default(),
            body: EntryBody::User {
                text: format!("text {seq}").into(),
                omitted_bytes: 0,
                origin: Origin {
                    principal: PrincipalId::parse("somebody").expect("a name"),
                    kind: PrincipalKind::Human,
                    channel: Channel::Invoke,
                    trust: Trust::Typed,
                    digest: Digest([0; 32]),
                    request_id: None,
                },
                input: None,
                data: None,
            },
        }
    }

    #[async_trait]
    impl Transcript for Texts {
        async fn page(&self, from: usize) -> Result<Vec<Entry>, EngineError> {
            Err(EngineError(format!("asked for a page from {from}")))
        }

        async fn newest(&self, max: usize) -> Result<Vec<Entry>, EngineError> {
            self.asked.lock().expect("unpoisoned").push(max);
            let first = self.last.saturating_sub(max as u64) + 1;
            Ok((first..=self.last).map(entry).collect())
        }
    }

    async fn read(last: u64) -> (Memory, Revalidation, Vec<usize>) {
        let transcript = Arc::new(Texts {
            last,
            asked: Mutex::new(Vec::new()),
        });
        let open = OpenSession {
            session: entry(1).id.session,
            leaf: Some(entry(10_000).id),
            settings: RunSettings::default(),
            place: None,
            transcript: transcript.clone(),
        };
        let (memory, revalidation) = Memory::read(&open).await.expect("it reads");
        let asked = transcript.asked.lock().expect("unpoisoned").clone();
        (memory, revalidation, asked)
    }

    fn texts(memory: &Memory) -> Vec<&str> {
        memory.texts.iter().map(|said| &*said.text).collect()
    }

    #[tokio::test]
    async fn only_the_end_of_a_long_conversation_is_read() {
        let (memory, revalidation, asked) = read(10_000).await;
        assert_eq!(revalidation, Revalidation::Current);
        assert_eq!(asked, [ENTRIES]);
        assert_eq!(memory.leaf, 10_000);
        assert_eq!(texts(&memory)[TEXTS - 1], "text 10000");
    }

    #[tokio::test]
    async fn a_conversation_that_is_lost_is_told() {
        let (memory, revalidation, _) = read(0).await;
        assert_eq!(revalidation, Revalidation::Replaced);
        assert_eq!(memory, Memory::default());
    }

    #[tokio::test]
    async fn c22_a_summary_stands_before_what_was_kept_and_what_came_since() {
        let (mut memory, _, _) = read(10_000).await;
        memory.remember("since", Channel::Invoke);
        let kept = memory.first_kept(2);
        assert_eq!(kept, Some(entry(9_999).id));
        memory.compact("all of it", kept);
        assert_eq!(
            texts(&memory),
            ["all of it", "text 9999", "text 10000", "since"]
        );
        assert_eq!(memory.first_kept(0), None);
        memory.compact("all again", None);
        assert_eq!(texts(&memory), ["all again"]);
    }

    #[tokio::test]
    async fn c22_of_a_short_conversation_no_more_is_kept_than_there_is() {
        let (mut memory, _, _) = read(1).await;
        let kept = memory.first_kept(9);
        assert_eq!(kept, Some(entry(1).id));
        memory.compact("little", kept);
        assert_eq!(texts(&memory), ["little", "text 1"]);
    }
}
