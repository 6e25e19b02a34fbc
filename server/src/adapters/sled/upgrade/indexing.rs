//! The rows of the indexes, for sessions that a server wrote which had none.
//!
//! A session's rows are written in one round, so that one of them tells of all: an upgrade that was
//! cut passes over what it has done.

use ::sled::IVec;
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::ports::repository::ReadError;

use super::Failed;
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::device::Device;
use crate::adapters::sled::frame::{self, Source as _};
use crate::adapters::sled::keys::{self, Key};
use crate::adapters::sled::round::{decode, failed};
use crate::adapters::sled::write::indexes;

/// After how many slices it is told how far it is: some seconds.
const TOLD: usize = 16;

/// Writes the rows of all sessions that have none; gives how many sessions those are.
pub(super) fn index_sessions(device: &mut Device, slice: usize) -> Result<usize, Failed> {
    let mut from = keys::sessions();
    let (mut indexed, mut slices) = (0, 0_usize);
    loop {
        let sessions = page(device, &from, slice).map_err(Failed::Read)?;
        let Some((last, _)) = sessions.last() else {
            return Ok(indexed);
        };
        from = keys::after(last);
        let mut writes = Vec::new();
        for (key, value) in sessions {
            match rows(device, &key, value) {
                Ok(rows) if rows.is_empty() => {}
                Ok(rows) => {
                    indexed += 1;
                    let rows = rows
                        .into_iter()
                        .flat_map(|row| frame::values(row, &[], || 0));
                    writes.extend(rows.map(|(key, value)| (key, Some(value))));
                }
                // Damage in one session's records is told where they are read.
                Err(error @ ReadError::Damaged { .. }) => {
                    tracing::warn!(%error, "a session is in no index");
                }
                Err(error) => return Err(Failed::Read(error)),
            }
        }
        if !writes.is_empty() {
            device.write_alone(writes).map_err(Failed::Write)?;
        }
        slices += 1;
        if slices.is_multiple_of(TOLD) {
            tracing::info!(sessions = indexed, "indexes are being written");
        }
    }
}

/// The next sessions.
fn page(device: &Device, from: &[u8], max: usize) -> Result<Vec<(IVec, IVec)>, ReadError> {
    let end = keys::below(keys::sessions()).end;
    let sessions = device.db().range(from.to_vec()..end).take(max);
    let sessions = sessions.map(|record| record.map_err(|error| failed(from, &error)));
    sessions.collect()
}

/// The rows that a session lacks: all or none. Its head is not looked at: no server of that format
/// knew of a place.
fn rows(device: &Device, key: &[u8], value: IVec) -> Result<Vec<Key>, ReadError> {
    let source = Direct(device.db());
    let Some(payload) = frame::open(&source, key, value)? else {
        return Ok(Vec::new());
    };
    let record: SessionRecord = decode(key, &payload)?;
    let every = keys::found(&record.tenant, &StoredTerm::Every, record.id);
    if source.raw(&every)?.is_some() {
        return Ok(Vec::new());
    }
    Ok(indexes(&record, None).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ::sled::Db;
    use prost::Message as _;
    use sessionplane_core::domain::fleet::metadata::Metadata;
    use sessionplane_core::domain::ids::SessionId;
    use sessionplane_core::domain::session::{Lineage, SessionHead};
    use sessionplane_core::domain::time::Timestamp;
    use sessionplane_core::ports::repository::SessionQuery;

    use super::*;
    use crate::adapters::sled::StoreOptions;
    use crate::adapters::sled::boot::FORMAT_VERSION;
    use crate::adapters::sled::convert::{HeadRow, Meta, Stored as _};
    use crate::adapters::sled::open::{Opened, open};
    use crate::adapters::sled::tools::Inspection;

    fn session(n: u8) -> SessionId {
        SessionId::from_bytes([n; 16])
    }

    fn put(db: &Db, key: Key, payload: &[u8]) {
        for (key, value) in frame::values(key, payload, || 1) {
            db.insert(key, value).unwrap();
        }
    }

    /// Five sessions as format 3 kept them; the third branches off the first.
    fn keep(db: &Db) {
        for n in 1..=5 {
            let record = SessionRecord {
                id: session(n),
                tenant: "acme".parse().unwrap(),
                metadata: Metadata::first(None, Timestamp::from_millis(1)),
                external_key: None,
                agent: if n < 4 { "coder" } else { "critic" }.parse().unwrap(),
                created_at: Timestamp::from_millis(1),
                lineage: (n == 3).then_some(Lineage {
                    parent: session(1),
                    entry: None,
                }),
            };
            put(db, keys::session(record.id), &record.form().encode_to_vec());
            let row = HeadRow {
                head: SessionHead::empty(),
                entries_checksum: 0,
                entries_digest: None,
            };
            put(db, keys::head(record.id), &row.form().encode_to_vec());
        }
    }

    /// A directory of format 3, whose newest round does not say what it holds; a start counts that.
    fn former(change: impl FnOnce(&Db)) -> tempfile::TempDir {
        let directory = tempfile::TempDir::new().unwrap();
        let opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
        let meta = Meta {
            format_version: 2,
            ..opened.meta
        };
        let db = opened.device.db();
        put(db, keys::meta(), &meta.form().encode_to_vec());
        keep(db);
        change(db);
        let round = crate::adapters::sled::convert::RoundRow {
            number: 9,
            tally: None,
        };
        put(db, keys::round(), &round.form().encode_to_vec());
        db.flush().unwrap();
        directory
    }

    fn found(opened: &Opened, term: StoredTerm) -> Vec<SessionId> {
        let query = SessionQuery {
            tenant: "acme".parse().unwrap(),
            term,
            after: None,
            descending: false,
            max: 9,
        };
        let found = opened.reader.find(&query).unwrap();
        found.iter().map(|it| it.session.record.id).collect()
    }

    fn all_are_found(opened: &Opened) {
        assert_eq!(
            found(opened, StoredTerm::Every),
            [1, 2, 3, 4, 5].map(session)
        );
        let critic = StoredTerm::Agent("critic".parse().unwrap());
        assert_eq!(found(opened, critic), [4, 5].map(session));
        assert_eq!(found(opened, StoredTerm::Parent(session(1))), [session(3)]);
        assert_eq!(found(opened, StoredTerm::Paused), []);
    }

    #[test]
    fn c47_sessions_of_an_earlier_format_are_found_by_every_term() {
        let directory = former(|_| {});
        for _ in 0..2 {
            let opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
            assert_eq!(opened.meta.format_version, FORMAT_VERSION);
            all_are_found(&opened);
        }
        let store = Inspection::open(directory.path()).unwrap();
        let findings = store.verify(None, &mut |_, _| {});
        assert!(findings.whole(), "{:?}", findings.faults);
    }

    #[test]
    fn slices_of_any_size_index_every_session_once() {
        for slice in 1..7 {
            let directory = tempfile::TempDir::new().unwrap();
            let mut opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
            keep(opened.device.db());
            assert_eq!(index_sessions(&mut opened.device, slice).ok(), Some(5));
            all_are_found(&opened);
            assert_eq!(index_sessions(&mut opened.device, slice).ok(), Some(0));
        }
    }

    #[test]
    fn an_upgrade_that_was_cut_goes_on_with_the_sessions_that_lack_their_rows() {
        let directory = tempfile::TempDir::new().unwrap();
        let mut opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
        keep(opened.device.db());
        let first = page(&opened.device, &keys::sessions(), 2).unwrap();
        for (key, value) in first {
            for row in rows(&opened.device, &key, value).unwrap() {
                put(opened.device.db(), row, &[]);
            }
        }
        assert_eq!(index_sessions(&mut opened.device, 2).ok(), Some(3));
        all_are_found(&opened);
    }

    #[test]
    fn b54_a_damaged_session_keeps_no_other_from_its_indexes() {
        let directory = former(|db| {
            db.insert(keys::session(session(2)), b"?").unwrap();
        });
        let opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
        let found: BTreeSet<_> = found(&opened, StoredTerm::Every).into_iter().collect();
        assert_eq!(found, [1, 3, 4, 5].map(session).into());
    }
}
