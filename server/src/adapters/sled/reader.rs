//! All reads: the store first, the in-flight map second (see `inflight` for why), pieces put
//! together. Blocking; never called on a runtime thread. Nothing here writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::sled::{Db, IVec};
use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::binding::{Binding, BindingKey};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{
    EntryId, EntrySeq, InputId, RunId, SessionId, SessionRef, TenantId,
};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::{SessionRecord, StoredSession};
use sessionplane_core::ports::repository::{EntryRange, ReadError};

use super::convert::{Address, ChainedEntry, HeadRow};
use super::frame::{self, Source, damaged};
use super::inflight::{InFlight, settled_scan};
use super::keys::{self, Key};
use super::round::{decode, failed, fetch, fetch_binding};

/// Reads what is synced.
pub(super) struct Reader {
    db: Db,
    inflight: Arc<InFlight>,
}

impl Source for Reader {
    fn raw(&self, key: &[u8]) -> Result<Option<IVec>, ReadError> {
        let seen = self.db.get(key).map_err(|error| failed(key, &error))?;
        Ok(self.inflight.settled(key, seen))
    }
}

impl Reader {
    pub(super) fn new(db: Db, inflight: Arc<InFlight>) -> Self {
        Self { db, inflight }
    }

    pub(super) fn session(&self, id: SessionId) -> Result<Option<StoredSession>, ReadError> {
        let Some(record) = fetch::<SessionRecord>(self, &keys::session(id))? else {
            return Ok(None);
        };
        // Written by the commit that wrote the record, so it is there whatever is in flight.
        let row = self.head(id)?;
        let row = row.ok_or_else(|| damaged(&keys::head(id), "it is missing"))?;
        let head = row.head;
        Ok(Some(StoredSession { record, head }))
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

    /// Entries up to the durable head: those never change and are never in flight.
    pub(super) fn entries(
        &self,
        session: SessionId,
        range: EntryRange,
    ) -> Result<Vec<Entry>, ReadError> {
        let durable = self.head(session)?.map_or(0, |row| row.head.entries);
        let last = range.up_to.min(durable);
        let mut page = Vec::new();
        let mut bytes = 0;
        let mut previous = None;
        for seq in range.after.saturating_add(1)..=last {
            let (entry, checksum) = self.entry(EntryId { session, seq }, previous)?;
            if !range.admits(page.len(), bytes, entry.weight()) {
                break;
            }
            bytes += entry.weight();
            page.push(entry);
            previous = Some(checksum);
        }
        Ok(page)
    }

    /// One entry and its checksum; `previous` is that of the entry before it, where it was read.
    fn entry(&self, id: EntryId, previous: Option<u32>) -> Result<(Entry, u32), ReadError> {
        let key = keys::entry(id);
        let payload = frame::load(self, &key)?.ok_or_else(|| damaged(&key, "it is missing"))?;
        let ChainedEntry {
            entry,
            previous_checksum,
        } = decode(&key, &payload)?;
        if entry.id != id {
            return Err(damaged(&key, "it is another entry"));
        }
        if previous.is_some_and(|previous| previous != previous_checksum) {
            return Err(damaged(&key, "it does not follow the entry before it"));
        }
        Ok((entry, crc32fast::hash(&payload)))
    }

    /// Whether a session's last entry is there and is the one that its head names.
    pub(super) fn check_last_entry(&self, session: SessionId) -> Result<(), ReadError> {
        let row = self.head(session)?;
        let row = row.ok_or_else(|| damaged(&keys::head(session), "it is missing"))?;
        let seq: EntrySeq = row.head.entries;
        if seq == 0 {
            return Ok(());
        }
        let id = EntryId { session, seq };
        let (_, checksum) = self.entry(id, None)?;
        if checksum == row.entries_checksum {
            Ok(())
        } else {
            Err(damaged(
                &keys::entry(id),
                "it is not the one that the head names",
            ))
        }
    }

    /// Whether a session has a lease record, held or not.
    pub(super) fn is_leased(&self, session: SessionId) -> Result<bool, ReadError> {
        Ok(self.raw(&keys::lease(session))?.is_some())
    }

    pub(super) fn run(&self, id: RunId) -> Result<Option<RunRecord>, ReadError> {
        fetch(self, &keys::run(id))
    }

    pub(super) fn runs_of(&self, session: SessionId) -> Result<Vec<RunId>, ReadError> {
        let marks = self.scan(&keys::runs_of_session(session))?;
        let run = |key: Key| keys::marked_run(&key).ok_or_else(|| damaged(&key, "it names no run"));
        marks.into_iter().map(|(key, _)| run(key)).collect()
    }

    pub(super) fn input(&self, id: InputId) -> Result<Option<InputRecord>, ReadError> {
        fetch(self, &keys::input(id))
    }

    pub(super) fn inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError> {
        let mut inputs = Vec::new();
        for (key, value) in self.scan(&keys::inputs_of_run(run))? {
            if let Some(payload) = frame::open(self, &key, value)? {
                inputs.push(decode(&key, &payload)?);
            }
        }
        Ok(inputs)
    }

    pub(super) fn binding(&self, key: &BindingKey) -> Result<Option<Binding>, ReadError> {
        fetch_binding(self, key)
    }

    pub(super) fn audits(&self, session: SessionId) -> Result<Vec<AuditRecord>, ReadError> {
        let durable = self.head(session)?.map_or(0, |row| row.head.audits);
        let mut audits = Vec::new();
        for ordinal in 1..=durable {
            let key = keys::audit(session, ordinal);
            let record = fetch(self, &key)?.ok_or_else(|| damaged(&key, "it is missing"))?;
            audits.push(record);
        }
        Ok(audits)
    }

    /// A short range, as of one moment.
    fn scan(&self, prefix: &[u8]) -> Result<Vec<(Key, IVec)>, ReadError> {
        let replaced = self.inflight.hold();
        let seen: BTreeMap<IVec, IVec> = self
            .db
            .scan_prefix(prefix)
            .collect::<Result<_, _>>()
            .map_err(|error| failed(prefix, &error))?;
        Ok(settled_scan(prefix, seen, &replaced)
            .into_iter()
            .map(|(key, value)| (key.to_vec(), value))
            .collect())
    }
}
