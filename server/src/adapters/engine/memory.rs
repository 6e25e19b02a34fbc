//! What an engine without a transcript of its own remembers of the durable conversation.
//!
//! What is inside: one bounded reading of our entries when a session is opened. What must never
//! enter: a write, or a copy of the whole conversation.

use std::collections::VecDeque;
use std::sync::Arc;

use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::text::head;
use sessionplane_core::ports::engine::{EngineError, OpenSession, Revalidation};

/// How many of the newest user texts are remembered.
const TEXTS: usize = 8;
/// How many bytes of each.
const TEXT_BYTES: usize = 16 * 1024;

/// The end of the durable conversation, as far as an engine of this process needs it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Memory {
    /// How many entries there are.
    pub(super) entries: u64,
    /// The newest texts that users sent, oldest first: at most eight, each cut to 16 KiB.
    pub(super) texts: VecDeque<Arc<str>>,
}

impl Memory {
    /// Reads the session's entries from the start.
    ///
    /// # Errors
    /// When the transcript cannot be read, or does not advance.
    pub(super) async fn read(open: &OpenSession) -> Result<(Self, Revalidation), EngineError> {
        let Some(leaf) = open.leaf else {
            return Ok((Self::default(), Revalidation::Current));
        };
        let mut memory = Self::default();
        let mut after = 0;
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
            memory.entries += page.len() as u64;
            for entry in page {
                if let EntryBody::User { text, .. } = &entry.body {
                    memory.remember(text);
                }
            }
        }
        // It keeps no transcript of its own that could disagree with ours.
        Ok((memory, Revalidation::Current))
    }

    /// Adds the newest text.
    pub(super) fn remember(&mut self, text: &str) {
        if self.texts.len() == TEXTS {
            self.texts.pop_front();
        }
        self.texts.push_back(head(text, TEXT_BYTES).into());
    }
}
