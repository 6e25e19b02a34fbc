//! What an engine reads of a conversation: the active path, from the newest compaction on, with the
//! past that a session took over from its parent before it.
//!
//! The path is walked back once, along parents, a page of entries at a time; its entries are then
//! handed out in order. Nothing here knows an engine.

use std::sync::Arc;

use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::ids::{EntryId, EntrySeq};
use sessionplane_core::ports::engine::{EngineError, Transcript};
use sessionplane_core::ports::repository::{EntryRange, ReadError, Repository};
use tokio::sync::OnceCell;

/// Entries, and bytes, that are read at a time.
const PAGE: (usize, usize) = (256, 1024 * 1024);
/// Parents' parents that are followed at most.
const MAX_LINEAGE: usize = 16;

/// The conversation up to a leaf, as it is stored.
pub(crate) struct StoredTranscript {
    leaf: Option<EntryId>,
    /// The place in a parent session that the conversation's own root follows.
    origin: Option<EntryId>,
    repository: Arc<dyn Repository>,
    path: OnceCell<Vec<EntryId>>,
}

impl StoredTranscript {
    /// The conversation up to `leaf`, in a session that goes on from `origin`.
    pub(crate) fn new(
        leaf: Option<EntryId>,
        origin: Option<EntryId>,
        repository: Arc<dyn Repository>,
    ) -> Self {
        Self {
            leaf,
            origin,
            repository,
            path: OnceCell::new(),
        }
    }

    async fn path(&self) -> Result<&Vec<EntryId>, ReadError> {
        self.path.get_or_try_init(|| self.walk(usize::MAX)).await
    }

    /// The newest `max` entries that a model reads, in the order in which it reads them.
    async fn walk(&self, max: usize) -> Result<Vec<EntryId>, ReadError> {
        let mut walked = Walked {
            newest_first: Vec::new(),
            max,
        };
        let mut from = self.leaf;
        let mut origin = self.origin;
        for _ in 0..MAX_LINEAGE {
            if self.own_part(from, &mut walked).await? {
                break;
            }
            let Some(entry) = origin else { break };
            from = Some(entry);
            origin = self.origin_of(entry).await?;
        }
        walked.newest_first.reverse();
        Ok(walked.newest_first)
    }

    /// One session's part of the path, newest first. Says whether that was all: a compaction ends
    /// it, since nothing before that is read.
    async fn own_part(
        &self,
        from: Option<EntryId>,
        walked: &mut Walked,
    ) -> Result<bool, ReadError> {
        let mut window = Window::default();
        let mut at = from;
        while let Some(id) = at.filter(|_| !walked.is_full()) {
            let Some(entry) = window.entry(self.repository.as_ref(), id).await? else {
                return Ok(true);
            };
            at = entry.parent;
            if let EntryBody::Compaction { first_kept, .. } = entry.body {
                self.kept(at, first_kept, &mut window, walked).await?;
                // A summary stands before what it kept.
                walked.add(id);
                return Ok(true);
            }
            walked.add(id);
        }
        Ok(walked.is_full())
    }

    /// What a compaction kept, newest first: from the entry before it back to the first kept one. An
    /// entry that is not on the way back keeps nothing: an engine may name whatever it likes.
    async fn kept(
        &self,
        mut at: Option<EntryId>,
        first: Option<EntryId>,
        window: &mut Window,
        walked: &mut Walked,
    ) -> Result<(), ReadError> {
        let Some(first) = first else { return Ok(()) };
        let mut kept = Vec::new();
        while let Some(id) = at.filter(|id| id.session == first.session && id.seq >= first.seq) {
            // What is beyond the bound is not read; that it would be found is taken for granted.
            if walked.newest_first.len() + kept.len() >= walked.max {
                break;
            }
            let Some(entry) = window.entry(self.repository.as_ref(), id).await? else {
                return Ok(());
            };
            kept.push(id);
            if id == first {
                break;
            }
            at = entry.parent;
        }
        let whole =
            kept.last() == Some(&first) || walked.newest_first.len() + kept.len() >= walked.max;
        if whole {
            for id in kept {
                walked.add(id);
            }
        }
        Ok(())
    }

    async fn origin_of(&self, entry: EntryId) -> Result<Option<EntryId>, ReadError> {
        let stored = self.repository.session(entry.session).await?;
        let lineage = stored.and_then(|stored| stored.record.lineage);
        Ok(lineage.and_then(|lineage| lineage.entry))
    }
}

/// The way back from the leaf, as far as it is wanted.
struct Walked {
    newest_first: Vec<EntryId>,
    max: usize,
}

impl Walked {
    fn is_full(&self) -> bool {
        self.newest_first.len() >= self.max
    }
    fn add(&mut self, id: EntryId) {
        if !self.is_full() {
            self.newest_first.push(id);
        }
    }
}

/// The page of entries that was read last: the next parent is mostly in it.
#[derive(Default)]
struct Window(Vec<Entry>);

impl Window {
    async fn entry(
        &mut self,
        repository: &dyn Repository,
        id: EntryId,
    ) -> Result<Option<Entry>, ReadError> {
        if self.find(id).is_none() {
            // The page that ends with it. It may be cut short by its bytes, which cuts its end.
            let after = id.seq.saturating_sub(PAGE.0 as EntrySeq);
            self.0 = repository.entries(id.session, range(after, id.seq)).await?;
            if self.find(id).is_none() {
                return repository.entry(id).await;
            }
        }
        Ok(self.find(id).cloned())
    }

    fn find(&self, id: EntryId) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.id == id)
    }
}

fn range(after: EntrySeq, up_to: EntrySeq) -> EntryRange {
    EntryRange {
        after,
        up_to,
        max_entries: PAGE.0,
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

impl StoredTranscript {
    /// The entries at the head of `wanted` that follow each other, at most a page of them.
    async fn read(&self, wanted: &[EntryId]) -> Result<Vec<Entry>, ReadError> {
        let wanted = run_of(wanted);
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
            return Ok(Vec::new());
        };
        self.repository
            .entries(first.session, range(first.seq - 1, last.seq))
            .await
    }
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
        let ids = self.walk(max).await.map_err(|error| failed(&error))?;
        let mut entries: Vec<Entry> = Vec::with_capacity(ids.len());
        while let Some(wanted) = ids.get(entries.len()..).filter(|rest| !rest.is_empty()) {
            let page = self.read(wanted).await.map_err(|error| failed(&error))?;
            if page.is_empty() {
                break;
            }
            entries.extend(page);
        }
        Ok(entries)
    }
}
