//! What an engine says that it kept when it compacted, held against what it was given to read.

use std::sync::Arc;

use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::run::{Failure, code};
use sessionplane_core::ports::engine::EngineEvent;

use super::transcript::StoredTranscript;

/// Looks up what the compactions of one opened engine kept.
///
/// An engine may name whatever it likes, for example an entry of a branch that was left since. What
/// becomes an entry is true, so that nobody who reads the conversation has to look it up again.
pub(crate) struct Kept {
    transcript: Arc<StoredTranscript>,
    /// How many of the newest entries that the engine was given it still has.
    most: usize,
}

impl Kept {
    /// Nothing was compacted so far.
    pub(crate) fn of(transcript: Arc<StoredTranscript>) -> Self {
        Self {
            transcript,
            most: usize::MAX,
        }
    }

    /// The event, made true: an entry that the engine was not given, or has compacted away before,
    /// keeps nothing. If that cannot be found out, the compaction failed.
    pub(crate) async fn verified(&mut self, event: EngineEvent) -> EngineEvent {
        let EngineEvent::CompactionFinished(Ok(compacted)) = event else {
            return event;
        };
        // Without a summary nothing comes of it.
        if compacted.summary.is_empty() {
            return EngineEvent::CompactionFinished(Ok(compacted));
        }
        EngineEvent::CompactionFinished(self.looked_up(compacted).await)
    }

    async fn looked_up(&mut self, compacted: Compacted) -> Result<Compacted, Failure> {
        let place = match compacted.first_kept {
            None => None,
            Some(first) => {
                let place = self.transcript.length_from(first, self.most).await;
                let place = place.map_err(|error| Failure {
                    code: code::ENGINE_FAILED.to_owned(),
                    details: format!("what it keeps could not be looked up: {error}"),
                    retryable: true,
                })?;
                if place.is_none() {
                    tracing::warn!(entry = %first, "a compaction keeps an entry that its engine does not have");
                }
                place
            }
        };
        self.most = place.unwrap_or(0);
        Ok(Compacted {
            first_kept: compacted.first_kept.filter(|_| place.is_some()),
            ..compacted
        })
    }
}
