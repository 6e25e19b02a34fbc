//! What an engine reads of a conversation: the active path, from the newest compaction on, with the
//! past that a session took over from its parent before it.
//!
//! The path is walked back, along parents, a page of entries at a time; its entries are then handed
//! out in order. Nothing here knows an engine.

mod backwards;

use std::sync::Arc;

use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{EntryId, EntrySeq};
use sessionplane_core::ports::engine::{EngineError, Transcript};
use sessionplane_core::ports::repository::{EntryRange, ReadError, Repository};
use tokio::sync::OnceCell;

use backwards::Backwards;

/// Entries, and bytes, that are read at a time.
const PAGE: (usize, usize) = (256, 1024 * 1024);

/// The conversation up to a leaf, as it is stored.
pub(crate) struct StoredTranscript {
    leaf: Option<EntryId>,
    repository: Arc<dyn Repository>,
    path: OnceCell<Vec<EntryId>>,
}

impl StoredTranscript {
    /// The conversation up to `leaf`, which may be one of a parent session.
    pub(crate) fn new(leaf: Option<EntryId>, repository: Arc<dyn Repository>) -> Self {
        Self {
            leaf,
            repository,
            path: OnceCell::new(),
        }
    }

    /// How many entries a model reads from this one on; none if it is not among the newest `most`.
    /// Costs as much as it counts.
    pub(crate) async fn length_from(
        &self,
        id: EntryId,
        most: usize,
    ) -> Result<Option<usize>, ReadError> {
        let mut back = self.backwards();
        for place in 1..=most {
            match back.next(most - place + 1).await? {
                Some(entry) if entry.id == id => return Ok(Some(place)),
                Some(_) => {}
                None => break,
            }
        }
        Ok(None)
    }

    fn backwards(&self) -> Backwards<'_> {
        Backwards::from(self.leaf, self.repository.as_ref())
    }

    async fn path(&self) -> Result<&Vec<EntryId>, ReadError> {
        self.path.get_or_try_init(|| self.walk()).await
    }

    /// All that a model reads, in the order in which it reads it.
    async fn walk(&self) -> Result<Vec<EntryId>, ReadError> {
        let mut back = self.backwards();
        let mut path = Vec::new();
        while let Some(entry) = back.next(usize::MAX).await? {
            path.push(entry.id);
        }
        path.reverse();
        Ok(path)
    }

    async fn last(&self, max: usize) -> Result<Vec<Entry>, ReadError> {
        let mut back = self.backwards();
        let mut entries = Vec::new();
        while entries.len() < max {
            let Some(entry) = back.next(max - entries.len()).await? else {
                break;
            };
            entries.push(entry);
        }
        entries.reverse();
        Ok(entries)
    }

    /// The entries at the head of `wanted` that follow each other, at most a page of them.
    async fn read(&self, wanted: &[EntryId]) -> Result<Vec<Entry>, ReadError> {
        let wanted = run_of(&wanted[..wanted.len().min(PAGE.0)]);
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
            return Ok(Vec::new());
        };
        let range = range(first.seq - 1, last.seq, wanted.len());
        self.repository.entries(first.session, range).await
    }
}

fn range(after: EntrySeq, up_to: EntrySeq, max_entries: usize) -> EntryRange {
    EntryRange {
        after,
        up_to,
        max_entries,
        max_bytes: PAGE.1,
    }
}

/// The entries at the head of `wanted` that follow each other in one session.
fn run_of(wanted: &[EntryId]) -> &[EntryId] {
    let follows =
        |pair: &[EntryId]| pair[0].session == pair[1].session && pair[0].seq + 1 == pair[1].seq;
    let length = wanted.windows(2).take_while(|pair| follows(pair)).count() + 1;
    &wanted[..length.min(wanted.len())]
}

fn failed(error: &ReadError) -> EngineError {
    EngineError(error.to_string())
}

#[async_trait::async_trait]
impl Transcript for StoredTranscript {
    async fn page(&self, from: usize) -> Result<Vec<Entry>, EngineError> {
        let path = self.path().await.map_err(|error| failed(&error))?;
        let wanted = path.get(from..).unwrap_or_default();
        self.read(wanted).await.map_err(|error| failed(&error))
    }

    async fn newest(&self, max: usize) -> Result<Vec<Entry>, EngineError> {
        self.last(max).await.map_err(|error| failed(&error))
    }
}
