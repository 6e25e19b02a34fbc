//! What an engine without a transcript of its own remembers of the durable conversation.
//!
//! What is inside: one bounded reading of our entries when a session is opened. What must never
//! enter: a write, or a copy of the whole conversation.

use std::collections::VecDeque;
use std::sync::Arc;

use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::provenance::Channel;
use sessionplane_core::domain::text::head;
use sessionplane_core::ports::engine::{EngineError, OpenSession, Revalidation};

/// How many of the newest entries are read: opening a session costs the same however long it is.
const ENTRIES: u64 = 256;
/// How many of the newest user texts are remembered.
const TEXTS: usize = 8;
/// How many bytes of each.
const TEXT_BYTES: usize = 16 * 1024;

/// The end of the durable conversation, as far as an engine of this process needs it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Memory {
    /// How many entries there are up to the leaf.
    pub(super) entries: u64,
    /// The newest texts that users sent, oldest first: at most eight, each cut to 16 KiB.
    pub(super) texts: VecDeque<Said>,
}

/// What a user sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Said {
    /// The text, cut.
    pub(super) text: Arc<str>,
    /// How it came: a steer changes what was asked, and asks nothing by itself.
    pub(super) channel: Channel,
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
            entries: leaf.seq,
            texts: VecDeque::new(),
        };
        let mut after = leaf.seq.saturating_sub(ENTRIES);
        while after < leaf.seq {
            let page = open.transcript.page(after).await?;
            let Some(last) = page.last() else {
                tracing::warn!(session = %open.session, after, %leaf, "the transcript ends early");
                return Ok((Self::default(), Revalidation::Replaced));
            };
            if last.id.seq <= after {
                return Err(EngineError(format!(
                    "the transcript does not advance after entry {after}"
                )));
            }
            after = last.id.seq;
            // What comes after the leaf is not yet part of the conversation: the run's own prompt.
            for entry in page.iter().filter(|entry| entry.id.seq <= leaf.seq) {
                if let EntryBody::User { text, origin, .. } = &entry.body {
                    memory.remember(text, origin.channel);
                }
            }
        }
        // It keeps no transcript of its own that could disagree with ours.
        Ok((memory, Revalidation::Current))
    }

    /// Adds the newest text.
    pub(super) fn remember(&mut self, text: &str, channel: Channel) {
        if self.texts.len() == TEXTS {
            self.texts.pop_front();
        }
        let text = head(text, TEXT_BYTES).into();
        self.texts.push_back(Said { text, channel });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use sessionplane_core::domain::entry::Entry;
    use sessionplane_core::domain::ids::{EntryId, RunId, SessionId};
    use sessionplane_core::domain::time::Timestamp;
    use sessionplane_core::ports::engine::Transcript;

    use super::*;

    /// Pages of notices up to `last`; remembers what it was asked for.
    struct Notices {
        last: u64,
        advances: bool,
        asked: Mutex<Vec<u64>>,
    }

    fn entry(seq: u64) -> Entry {
        let session = SessionId::mint(Timestamp::default(), 1);
        Entry {
            id: EntryId { session, seq },
            parent: None,
            run: RunId::mint(Timestamp::default(), 1),
            at: Timestamp::default(),
            body: EntryBody::Notice {
                code: "note".to_owned(),
                text: String::new(),
            },
        }
    }

    #[async_trait]
    impl Transcript for Notices {
        async fn page(&self, after: u64) -> Result<Vec<Entry>, EngineError> {
            self.asked.lock().expect("unpoisoned").push(after);
            let from = if self.advances { after + 1 } else { 1 };
            Ok((from..=self.last).take(100).map(entry).collect())
        }
    }

    async fn read(last: u64, advances: bool) -> (Result<Revalidation, EngineError>, Vec<u64>) {
        let transcript = Arc::new(Notices {
            last,
            advances,
            asked: Mutex::new(Vec::new()),
        });
        let open = OpenSession {
            session: entry(1).id.session,
            leaf: Some(entry(10_000).id),
            transcript: transcript.clone(),
        };
        let read = Memory::read(&open)
            .await
            .map(|(_, revalidation)| revalidation);
        let asked = transcript.asked.lock().expect("unpoisoned").clone();
        (read, asked)
    }

    #[tokio::test]
    async fn only_the_end_of_a_long_conversation_is_read() {
        let (read, asked) = read(10_000, true).await;
        assert_eq!(read, Ok(Revalidation::Current));
        assert_eq!(asked, [9_744, 9_844, 9_944]);
    }

    #[tokio::test]
    async fn a_conversation_that_ends_early_is_told_and_a_circle_is_refused() {
        assert_eq!(read(9_800, true).await.0, Ok(Revalidation::Replaced));
        assert!(read(10_000, false).await.0.is_err());
    }
}
