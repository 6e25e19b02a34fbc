//! A conversation read from its end: what a model reads, newest first.

use std::collections::HashMap;

use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::ids::{EntryId, EntrySeq};
use sessionplane_core::ports::repository::{ReadError, Repository};

use super::{PAGE, range};

/// The way back from a leaf.
///
/// A compaction puts its summary before what it kept, and it kept the end of what was read before
/// it, in the order in which it was read. So on the way back its summary is passed, and told once
/// the first entry that it kept has been. A compaction that is passed further back is told after
/// what it kept itself, unless a newer one kept less; then it stood before that, and is left out.
///
/// Whether the entry that a compaction names is still to come is not looked up, for that could cost
/// more than is asked for: it was, before the compaction became an entry. One that never comes would
/// mean that everything was kept.
pub(super) struct Backwards<'r> {
    repository: &'r dyn Repository,
    window: Window,
    /// The entry that is next; none once what the summaries kept is told.
    at: Option<EntryId>,
    /// Compactions whose summaries are still to be told, newest first.
    passed: Vec<EntryId>,
    /// The first entries that they kept: the place in `passed` of the newest that names one.
    first_kept: HashMap<EntryId, usize>,
}

impl<'r> Backwards<'r> {
    pub(super) fn from(leaf: Option<EntryId>, repository: &'r dyn Repository) -> Self {
        Self {
            repository,
            window: Window::default(),
            at: leaf,
            passed: Vec::new(),
            first_kept: HashMap::new(),
        }
    }

    /// The next entry; none at the end. Reads little more than what is told in the end, which is at
    /// most `most` entries, this one included; compactions that are passed and left out are read
    /// besides.
    pub(super) async fn next(&mut self, most: usize) -> Result<Option<Entry>, ReadError> {
        while let Some(id) = self.at.take() {
            // What is not there any more is where the conversation begins.
            let Some(entry) = self.window.entry(self.repository, id, most).await? else {
                break;
            };
            if let EntryBody::Compaction {
                first_kept: Some(first),
                ..
            } = entry.body
            {
                self.first_kept.entry(first).or_insert(self.passed.len());
                self.passed.push(id);
                self.at = self.before(&entry).await?;
                continue;
            }
            let keeps_none = matches!(entry.body, EntryBody::Compaction { .. });
            if !self.begins_with(id) && !keeps_none {
                self.at = self.before(&entry).await?;
            }
            return Ok(Some(entry));
        }
        while let Some(id) = self.passed.pop() {
            self.begins_with(id);
            if let Some(entry) = self.repository.entry(id).await? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Whether a compaction kept nothing before this entry. Those between the two are left out.
    fn begins_with(&mut self, id: EntryId) -> bool {
        let place = self.first_kept.get(&id).copied();
        let place = place.filter(|place| *place < self.passed.len());
        if let Some(place) = place {
            self.passed.truncate(place + 1);
        }
        place.is_some()
    }

    /// The entry before one: the root of a session follows the place in its parent's conversation
    /// that the session goes on from. A parent was there before its child, so this ends.
    async fn before(&self, entry: &Entry) -> Result<Option<EntryId>, ReadError> {
        if entry.parent.is_some() {
            return Ok(entry.parent);
        }
        let stored = self.repository.session(entry.id.session).await?;
        let lineage = stored.and_then(|stored| stored.record.lineage);
        Ok(lineage.and_then(|lineage| lineage.entry))
    }
}

/// The entries that were read last, of which mostly one is next.
struct Window {
    /// In append order; its end is used up first, since parents are older than their children.
    page: Vec<Entry>,
    /// How many of them were next so far.
    used: usize,
    /// How many to read when it is used up.
    size: usize,
    /// How many of their weight make a page.
    fits: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            page: Vec::new(),
            used: 0,
            size: PAGE.0,
            fits: PAGE.0,
        }
    }
}

impl Window {
    async fn entry(
        &mut self,
        repository: &dyn Repository,
        id: EntryId,
        most: usize,
    ) -> Result<Option<Entry>, ReadError> {
        if let Some(entry) = self.take(id) {
            return Ok(Some(entry));
        }
        // Twice as many as were of use: a long branch is read by the page, and one that is mixed
        // with others, or heavy, costs no more than in proportion to what is told of it.
        if self.used > 0 {
            self.size = (2 * self.used).min(self.fits).min(PAGE.0);
        }
        self.used = 0;
        let size = self.size.min(most).max(1);
        let after = id.seq.saturating_sub(size as EntrySeq);
        self.page = repository
            .entries(id.session, range(after, id.seq, size))
            .await?;
        let (read, weight) = (self.page.len(), self.page.iter().map(Entry::weight).sum());
        self.fits = (PAGE.1 * read).checked_div(weight).unwrap_or(PAGE.0).max(1);
        if let Some(entry) = self.take(id) {
            return Ok(Some(entry));
        }
        // The page was cut short by its bytes, which cuts its end.
        self.page.clear();
        self.size = (read / 2).max(1);
        repository.entry(id).await
    }

    fn take(&mut self, id: EntryId) -> Option<Entry> {
        let younger = |last: &mut Entry| last.id.session == id.session && last.id.seq > id.seq;
        while self.page.pop_if(younger).is_some() {}
        let entry = self.page.pop_if(|last| last.id == id)?;
        self.used += 1;
        Some(entry)
    }
}
