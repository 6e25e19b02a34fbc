//! All reads: the store first, the in-flight map second (see `inflight` for why), pieces put
//! together. Blocking; never called on a runtime thread. Nothing here writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::sled::{Db, IVec};
use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::binding::{Binding, BindingKey};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{EntryId, InputId, RunId, SessionId, SessionRef, TenantId};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::domain::interaction::{Interaction, surplus};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::{SessionRecord, StoredSession};
use sessionplane_core::ports::repository::{DeletedSession, EntryRange, ReadError};
use tokio::sync::watch;

use super::chain as entries_chain;
use super::convert::{Address, ChainedEntry, HeadRow};
use super::frame::{self, Source, damaged};
use super::inflight::{InFlight, settled_scan};
use super::keys::{self, Key};
use super::round::{decode, failed, fetch, fetch_answered};

mod chain;
mod fleet;

/// Records that a scan reads while it holds the committer up.
const PAGE: usize = 256;

type Page = BTreeMap<IVec, IVec>;

/// Reads what is synced.
pub(super) struct Reader {
    db: Db,
    inflight: Arc<InFlight>,
}

impl Source for Reader {
    fn raw(&self, key: &[u8]) -> Result<Option<IVec>, ReadError> {
        #[cfg(test)]
        counted::one();
        let seen = self.db.get(key).map_err(|error| failed(key, &error))?;
        Ok(self.inflight.settled(key, seen))
    }
}

/// How far a session's entries go.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Durable {
    /// How many there are.
    entries: u64,
    /// Checksum and digest of the last one; none where no head names it.
    last: Option<(u32, Option<entries_chain::Link>)>,
}

impl Reader {
    pub(super) fn new(db: Db, inflight: Arc<InFlight>) -> Self {
        Self { db, inflight }
    }

    /// Whether somebody reads a snapshot.
    pub(super) fn snapshots(&self) -> watch::Receiver<bool> {
        self.inflight.snapshots.subscribe()
    }

    pub(super) fn session(&self, id: SessionId) -> Result<Option<Arc<StoredSession>>, ReadError> {
        let recent = &self.inflight.recent;
        let reading = match recent.get(id) {
            Ok(session) => return Ok(Some(session)),
            Err(reading) => reading,
        };
        let (record_key, head_key) = (keys::session(id), keys::head(id));
        let Some(payload) = frame::load(self, &record_key)? else {
            return Ok(None);
        };
        let record: SessionRecord = decode(&record_key, &payload)?;
        // Written by the commit that wrote the record, so it is there whatever is in flight; unless
        // the session was deleted in between.
        let Some(head_payload) = frame::load(self, &head_key)? else {
            return match self.raw(&record_key)? {
                Some(_) => Err(damaged(&head_key, "it is missing")),
                None => Ok(None),
            };
        };
        let HeadRow { head, .. } = decode(&head_key, &head_payload)?;
        let session = Arc::new(StoredSession { record, head });
        recent.keep(reading, &session, payload.len() + head_payload.len());
        Ok(Some(session))
    }

    fn head(&self, id: SessionId) -> Result<Option<HeadRow>, ReadError> {
        fetch(self, &keys::head(id))
    }

    pub(super) fn resolve(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<SessionId>, ReadError> {
        let key = match session {
            SessionRef::Id(id) => {
                let record: Option<SessionRecord> = fetch(self, &keys::session(*id))?;
                return Ok(record
                    .filter(|record| record.tenant == *tenant)
                    .map(|record| record.id));
            }
            SessionRef::Name(name) => keys::name(tenant, name),
            SessionRef::ExternalKey(key) => keys::external_key(tenant, key),
        };
        let address: Option<Address> = fetch(self, &key)?;
        Ok(address.map(|Address(id)| id))
    }

    /// What there is of a session's entries: all, or what is left of a deleted one's.
    fn durable(&self, session: SessionId) -> Result<Durable, ReadError> {
        if let Some(row) = self.head(session)? {
            return Ok(Durable {
                entries: row.head.entries,
                last: Some((row.entries_checksum, row.entries_digest)),
            });
        }
        let left: Option<DeletedSession> = fetch(self, &keys::deleted(session))?;
        Ok(Durable {
            entries: left.map_or(0, |left| left.entries),
            last: None,
        })
    }

    /// Reads entries. Those that are there never change and are never in flight, but they go when the
    /// session is deleted: what was missing for that is read again, as it is then.
    fn of_entries<T>(
        &self,
        session: SessionId,
        read: impl Fn(&Self, Durable) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let mut durable = self.durable(session)?;
        loop {
            let found = read(self, durable);
            if !matches!(found, Err(ReadError::Damaged { .. })) {
                return found;
            }
            let now = self.durable(session)?;
            if now == durable {
                return found;
            }
            durable = now;
        }
    }

    /// Entries up to the last. Each is checked against the one before it, on whatever page that was,
    /// and the last against the head.
    pub(super) fn entries(
        &self,
        session: SessionId,
        range: EntryRange,
    ) -> Result<Vec<Entry>, ReadError> {
        self.of_entries(session, |reader, durable| {
            reader.page_of_entries(session, range, durable)
        })
    }

    fn page_of_entries(
        &self,
        session: SessionId,
        range: EntryRange,
        Durable { entries, last: end }: Durable,
    ) -> Result<Vec<Entry>, ReadError> {
        let durable = entries;
        let last = range.up_to.min(durable);
        let mut page = Vec::new();
        if range.after >= last {
            return Ok(page);
        }
        let mut previous = match range.after {
            0 => 0,
            seq => crc32fast::hash(&self.entry(EntryId { session, seq }, None)?.1),
        };
        let mut bytes = 0;
        for seq in range.after + 1..=last {
            // Asked before it is read: an entry is up to a few MiB.
            if !range.admits(page.len(), bytes, 0) {
                break;
            }
            let id = EntryId { session, seq };
            let (record, payload) = self.entry(id, Some(previous))?;
            let (entry, checksum) = (record.entry, crc32fast::hash(&payload));
            if let Some(end) = end.filter(|_| seq == durable) {
                // One digest a page: the chain as a whole is `verify`'s to read.
                let digest = record
                    .previous_digest
                    .map(|_| entries_chain::digest(&payload));
                if (checksum, digest) != end {
                    let problem = "it is not the one that the head names";
                    return Err(damaged(&keys::entry(id), problem));
                }
            }
            if !range.admits(page.len(), bytes, entry.weight()) {
                break;
            }
            bytes += entry.weight();
            page.push(entry);
            previous = checksum;
        }
        Ok(page)
    }

    /// One entry's record, also as it is stored; `previous` is the checksum of the record before it,
    /// where it was read.
    fn entry(
        &self,
        id: EntryId,
        previous: Option<u32>,
    ) -> Result<(ChainedEntry, Vec<u8>), ReadError> {
        let key = keys::entry(id);
        let payload = frame::load(self, &key)?.ok_or_else(|| damaged(&key, "it is missing"))?;
        let record: ChainedEntry = decode(&key, &payload)?;
        if record.entry.id != id {
            return Err(damaged(&key, "it is another entry"));
        }
        if previous.is_some_and(|previous| previous != record.previous_checksum) {
            return Err(damaged(&key, "it does not follow the entry before it"));
        }
        Ok((record, payload))
    }

    /// Whether a session has a lease record, held or not.
    pub(super) fn is_leased(&self, session: SessionId) -> Result<bool, ReadError> {
        Ok(self.raw(&keys::lease(session))?.is_some())
    }

    pub(super) fn run(&self, id: RunId) -> Result<Option<RunRecord>, ReadError> {
        fetch(self, &keys::run(id))
    }

    pub(super) fn runs_of(&self, session: SessionId) -> Result<Vec<RunId>, ReadError> {
        let mut runs = Vec::new();
        self.scan(&keys::runs_of_session(session), |key, _| {
            let run = keys::marked_run(key).ok_or_else(|| damaged(key, "it names no run"))?;
            runs.push(run);
            Ok(())
        })?;
        Ok(runs)
    }

    /// One entry, if the session has it.
    pub(super) fn one_entry(&self, id: EntryId) -> Result<Option<Entry>, ReadError> {
        self.of_entries(id.session, |reader, durable| {
            if !(1..=durable.entries).contains(&id.seq) {
                return Ok(None);
            }
            let (record, _) = reader.entry(id, None)?;
            Ok(Some(record.entry))
        })
    }

    /// A session's runs, newest first: at most `max` before `before`, or of all.
    pub(super) fn runs(
        &self,
        session: SessionId,
        before: Option<RunId>,
        max: usize,
    ) -> Result<Vec<RunRecord>, ReadError> {
        let before = match before {
            None => None,
            Some(id) => match self.run(id)?.filter(|run| run.session == session) {
                None => return Ok(Vec::new()),
                Some(run) => Some(run.first_entry),
            },
        };
        let mut runs = Vec::new();
        if max == 0 {
            return Ok(runs);
        }
        for mark in self.db.range(keys::runs_before(session, before)).rev() {
            let (mark, _) = mark.map_err(|error| failed(b"x", &error))?;
            let id = keys::marked_run(&mark).ok_or_else(|| damaged(&mark, "it names no run"))?;
            // A mark whose run is still being written is not there yet.
            runs.extend(self.run(id)?);
            if runs.len() >= max {
                break;
            }
        }
        Ok(runs)
    }

    pub(super) fn interactions(&self, run: RunId) -> Result<Vec<Interaction>, ReadError> {
        let mut asked = BTreeMap::new();
        self.scan(&keys::interactions_of_run(run), |key, value| {
            if let Some(payload) = frame::open(self, key, value)? {
                let interaction: Interaction = decode(key, &payload)?;
                asked.insert(interaction.id, interaction);
                if let Some(id) = surplus(&asked) {
                    asked.remove(&id);
                }
            }
            Ok(())
        })?;
        Ok(asked.into_values().collect())
    }

    pub(super) fn input(&self, id: InputId) -> Result<Option<InputRecord>, ReadError> {
        fetch(self, &keys::input(id))
    }

    /// The inputs of a run that `wanted` picks.
    pub(super) fn inputs(
        &self,
        run: RunId,
        wanted: impl Fn(&InputRecord) -> bool,
    ) -> Result<Vec<InputRecord>, ReadError> {
        let mut inputs = Vec::new();
        self.scan(&keys::inputs_of_run(run), |key, value| {
            if let Some(payload) = frame::open(self, key, value)? {
                inputs.extend(Some(decode(key, &payload)?).filter(&wanted));
            }
            Ok(())
        })?;
        Ok(inputs)
    }

    pub(super) fn binding(&self, key: &BindingKey) -> Result<Option<Binding>, ReadError> {
        fetch_answered(self, key)
    }

    pub(super) fn audits(&self, session: SessionId) -> Result<Vec<AuditRecord>, ReadError> {
        let Some(row) = self.head(session)? else {
            // Of a deleted session they are all that stays.
            return self.audits_below(&keys::audits_of_session(session));
        };
        let mut audits = Vec::new();
        for ordinal in 1..=row.head.audits {
            let key = keys::audit(session, ordinal);
            let record = fetch(self, &key)?.ok_or_else(|| damaged(&key, "it is missing"))?;
            audits.push(record);
        }
        Ok(audits)
    }

    /// Shows every record under a prefix, page by page. Each page is of one moment, a later one of a
    /// later moment: the committer waits for one page at most.
    fn scan(
        &self,
        prefix: &[u8],
        mut show: impl FnMut(&[u8], IVec) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut from = Some(prefix.to_vec());
        while let Some(first) = from {
            let (page, next) = self.page(prefix, &first)?;
            for (key, value) in page {
                show(&key, value)?;
            }
            from = next;
        }
        Ok(())
    }

    /// The records from `first` on, and where the next page begins.
    fn page(&self, prefix: &[u8], first: &[u8]) -> Result<(Page, Option<Key>), ReadError> {
        let held = self.inflight.hold();
        let mut seen = BTreeMap::new();
        let mut next = None;
        for record in self.db.range(first..) {
            let (key, value) = record.map_err(|error| failed(prefix, &error))?;
            if !key.starts_with(prefix) {
                break;
            }
            if seen.len() == PAGE {
                next = Some(key.to_vec());
                break;
            }
            seen.insert(key, value);
        }
        let settled = settled_scan(prefix, first, next.as_deref(), seen, &held.replaced);
        Ok((settled, next))
    }
}

/// How many records a test's thread has read.
#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local!(static READ: Cell<usize> = const { Cell::new(0) });

    pub(super) fn one() {
        READ.set(READ.get() + 1);
    }

    /// Those since it was asked last.
    pub(super) fn taken() -> usize {
        READ.take()
    }
}

#[cfg(test)]
mod tests;
