//! What an opening does to a data directory of an earlier format, before anything is served.
//!
//! Format 2 has more fields than format 1, which read as absent where format 1 wrote the record, and
//! marks a session's runs in the order of their admission. Only those marks are written anew, a
//! slice at a time; the format's number is raised after the last, so that a start that is cut goes
//! on at the next one. Records are never rewritten here: there may be any number.
//!
//! Format 3 chains entries by digests and sums up what the store holds. What was written before has
//! no digest, and gets none: the chain begins with the next entry. The sum is counted once, by
//! reading everything.
//!
//! Format 4 finds sessions by indexes (`indexing`): the rows of every session are written once.
//!
//! Format 5 seals audit records (`sealing`): each gets its link in its tenant's chain, and knows its
//! number. It is the one upgrade that writes records anew.

use std::path::Path;

use ::sled::{Db, IVec};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::ports::repository::ReadError;

use super::boot::{FORMAT_VERSION, INDEXES, SEALED, count_boot};
use super::committer::Direct;
use super::convert::Meta;
use super::device::Device;
use super::open::{OpenError, damaged};
use super::round::{failed, fetch};
use super::tally::Tally;
use super::{frame, keys};

mod indexing;
mod sealing;

/// Marks that are moved, or sessions that are indexed, at a time: what an upgrade holds in memory.
const SLICE: usize = 4096;

/// Brings the store to the present format; gives its record, which is still to be written.
pub(super) fn upgrade(path: &Path, device: &mut Device, found: Meta) -> Result<Meta, OpenError> {
    let failed = |error| match error {
        Failed::Read(error) => damaged(path, error.to_string()),
        Failed::Write(problem) => OpenError::Io {
            path: path.to_owned(),
            problem,
        },
    };
    if found.format_version < 2 {
        let moved = order_run_marks(device, SLICE).map_err(failed)?;
        tracing::info!(moved, "the runs of the data directory are in a new order");
    }
    if found.format_version < INDEXES {
        let sessions = indexing::index_sessions(device, SLICE).map_err(failed)?;
        tracing::info!(
            sessions,
            "the sessions of the data directory are in indexes"
        );
    }
    if found.format_version < SEALED {
        // Counted before long values are written, whose pieces are numbered by it: an attempt that is
        // cut has used its numbers.
        count_boot(path, device, found)?;
        let records = sealing::seal_all(device, found.boots, SLICE).map_err(failed)?;
        tracing::info!(
            records,
            "the audit records of the data directory are sealed"
        );
    }
    if found.format_version < FORMAT_VERSION {
        tracing::info!(
            from = found.format_version,
            to = FORMAT_VERSION,
            "the data directory has a new format"
        );
    }
    Ok(Meta {
        format_version: FORMAT_VERSION,
        ..found
    })
}

/// What a store of an earlier format holds. Reads all of it, which happens once.
pub(super) fn counted(path: &Path, db: &Db) -> Result<Tally, OpenError> {
    let mut tally = Tally::default();
    for record in db.iter() {
        let read = |error| damaged(path, failed(b"x", &error).to_string());
        let (key, value) = record.map_err(read)?;
        if *key != *keys::round() {
            tally.add(&key, &value);
        }
    }
    Ok(tally)
}

/// Why an upgrade stopped.
enum Failed {
    /// The storage engine cannot read on.
    Read(ReadError),
    /// The disk refused a slice.
    Write(String),
}

/// Writes marks of format 1 anew, under their runs' first entries. Gives how many there were.
fn order_run_marks(device: &mut Device, slice: usize) -> Result<usize, Failed> {
    let mut from = keys::run_marks();
    let mut moved = 0;
    loop {
        let marks = unordered(device, &from, slice).map_err(Failed::Read)?;
        let Some(last) = marks.last() else {
            return Ok(moved);
        };
        from = [last.as_ref(), &[0]].concat();
        let mut writes = Vec::new();
        for mark in &marks {
            let run = match ordered(device, mark) {
                Ok(run) => run,
                // Damage in one session's records is told where they are read.
                Err(error @ ReadError::Damaged { .. }) => {
                    tracing::warn!(%error, "a run keeps the place that its id gives it");
                    continue;
                }
                Err(error) => return Err(Failed::Read(error)),
            };
            writes.push((mark.to_vec(), None));
            let marked = frame::values(run, &[], || 0).into_iter();
            writes.extend(marked.map(|(key, value)| (key, Some(value))));
            moved += 1;
        }
        device.write_alone(writes).map_err(Failed::Write)?;
    }
}

/// The next marks of format 1.
fn unordered(device: &Device, from: &[u8], max: usize) -> Result<Vec<IVec>, ReadError> {
    let all = keys::run_marks();
    let mut marks = Vec::new();
    for record in device.db().range(from..) {
        let (mark, _) = record.map_err(|error| failed(&all, &error))?;
        if !mark.starts_with(&all) || marks.len() == max {
            break;
        }
        if keys::is_unordered(&mark) {
            marks.push(mark);
        }
    }
    Ok(marks)
}

/// The key that a mark has in format 2.
fn ordered(device: &Device, mark: &[u8]) -> Result<keys::Key, ReadError> {
    let id = keys::marked_run(mark).ok_or_else(|| frame::damaged(mark, "it names no run"))?;
    let run: Option<RunRecord> = fetch(&Direct(device.db()), &keys::run(id))?;
    let run = run.ok_or_else(|| frame::damaged(mark, "its run is missing"))?;
    Ok(keys::run_of_session(run.first_entry, id))
}

#[cfg(test)]
mod tests {
    use ::sled::Db;
    use prost::Message as _;
    use sessionplane_core::domain::access::PrincipalKind;
    use sessionplane_core::domain::commit::Commit;
    use sessionplane_core::domain::entry::{Entry, EntryBody, PathMarks};
    use sessionplane_core::domain::fleet::metadata::Metadata;
    use sessionplane_core::domain::ids::{EntryId, RunId, SessionId};
    use sessionplane_core::domain::lease::{Holder, LeaseClause, LeaseToken};
    use sessionplane_core::domain::provenance::{Channel, Digest, Origin, Trust};
    use sessionplane_core::domain::run::RunSettings;
    use sessionplane_core::domain::session::{SessionHead, SessionRecord};
    use sessionplane_core::domain::time::Timestamp;
    use sessionplane_core::domain::usage::Usage;

    use super::*;
    use crate::adapters::sled::convert::{ChainedEntry, HeadRow, RoundRow, Stored as _};
    use crate::adapters::sled::open::open;
    use crate::adapters::sled::round::{PieceSets, Round};
    use crate::adapters::sled::tools::Inspection;
    use crate::adapters::sled::{StoreOptions, write};

    fn session(n: u8) -> SessionId {
        SessionId::from_bytes([n; 16])
    }

    /// A run whose id sorts by `number`, admitted with its session's entry `seq`.
    fn run(session: SessionId, number: u8, seq: u64) -> RunRecord {
        RunRecord {
            id: RunId::from_bytes([number; 16]),
            session,
            agent: "coder".parse().unwrap(),
            request_id: None,
            origin: Origin {
                principal: "ann".parse().unwrap(),
                kind: PrincipalKind::Human,
                channel: Channel::Invoke,
                trust: Trust::Relayed,
                digest: Digest([3; 32]),
                request_id: None,
            },
            started_at: Timestamp::from_millis(1),
            first_entry: EntryId { session, seq },
            final_entry: None,
            usage: Usage::default(),
            undelivered: Vec::new(),
            settings: RunSettings::default(),
            abort_requested: false,
            settled: None,
        }
    }

    fn put(db: &Db, key: keys::Key, payload: &[u8]) {
        for (key, value) in frame::values(key, payload, || 1) {
            db.insert(key, value).unwrap();
        }
    }

    fn former_mark(run: &RunRecord) -> keys::Key {
        let session = keys::runs_of_session(run.session);
        [session, run.id.to_bytes().to_vec()].concat()
    }

    /// Runs as format 1 kept them.
    fn keep(db: &Db, runs: &[RunRecord]) {
        for run in runs {
            put(db, keys::run(run.id), &run.form().encode_to_vec());
            put(db, former_mark(run), &[]);
        }
    }

    /// A directory of format 1.
    fn former(change: impl FnOnce(&Db)) -> tempfile::TempDir {
        let directory = tempfile::TempDir::new().unwrap();
        let opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
        let meta = Meta {
            format_version: 1,
            ..opened.meta
        };
        let db = opened.device.db();
        put(db, keys::meta(), &meta.form().encode_to_vec());
        change(db);
        db.flush().unwrap();
        directory
    }

    /// Four runs of one session, whose clock went back, and one of a neighbour.
    fn runs() -> Vec<RunRecord> {
        vec![
            run(session(1), 9, 1),
            run(session(1), 2, 4),
            run(session(1), 200, 6),
            run(session(1), 1, 9),
            run(session(2), 5, 1),
        ]
    }

    fn listed(path: &Path, n: u8) -> Vec<RunRecord> {
        let opened = open(path, &StoreOptions::new(7)).unwrap();
        assert_eq!(opened.meta.format_version, FORMAT_VERSION);
        let mut listed = opened.reader.runs(session(n), None, 9).unwrap();
        listed.reverse();
        let ids: Vec<RunId> = listed.iter().map(|run| run.id).collect();
        assert_eq!(opened.reader.runs_of(session(n)), Ok(ids));
        listed
    }

    #[test]
    fn c16_runs_of_an_earlier_format_are_listed_as_they_were_admitted() {
        let runs = runs();
        let directory = former(|db| keep(db, &runs));
        for _ in 0..2 {
            assert_eq!(listed(directory.path(), 1), runs[..4]);
            assert_eq!(listed(directory.path(), 2), runs[4..]);
        }
    }

    #[test]
    fn an_upgrade_that_was_cut_goes_on_at_the_next_start() {
        let runs = runs();
        let directory = former(|db| {
            keep(db, &runs);
            // The first slice got through.
            let moved = &runs[1];
            db.remove(former_mark(moved)).unwrap();
            put(db, keys::run_of_session(moved.first_entry, moved.id), &[]);
        });
        assert_eq!(listed(directory.path(), 1), runs[..4]);
    }

    #[test]
    fn slices_of_any_size_move_every_mark_once() {
        for slice in 1..7 {
            let runs = runs();
            let directory = tempfile::TempDir::new().unwrap();
            let mut opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
            keep(opened.device.db(), &runs);
            let moved = order_run_marks(&mut opened.device, slice).ok();
            assert_eq!(moved, Some(runs.len()));
            let listed = opened.reader.runs(session(1), None, 9).unwrap();
            let listed: Vec<_> = listed.into_iter().rev().collect();
            assert_eq!(listed, runs[..4], "{slice} a slice");
            assert_eq!(order_run_marks(&mut opened.device, slice).ok(), Some(0));
        }
    }

    #[test]
    fn b54_a_damaged_run_keeps_no_directory_from_its_new_format() {
        let runs = runs();
        let directory = former(|db| {
            keep(db, &runs);
            db.insert(keys::run(runs[0].id), b"?").unwrap();
            db.remove(keys::run(runs[1].id)).unwrap();
        });
        let opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
        assert_eq!(opened.meta.format_version, FORMAT_VERSION);
        let told = opened.reader.runs(session(1), None, 9);
        assert!(matches!(told, Err(ReadError::Damaged { .. })), "{told:?}");
        let whole = opened.reader.runs(session(2), None, 9);
        assert_eq!(whole, Ok(runs[4..].to_vec()));
    }

    fn notice(seq: u64) -> Entry {
        Entry {
            id: EntryId {
                session: session(1),
                seq,
            },
            parent: None,
            run: None,
            at: Timestamp::from_millis(seq),
            path: PathMarks::default(),
            body: EntryBody::Notice {
                code: "x".to_owned(),
                text: "y".to_owned(),
            },
        }
    }

    fn head(entries: u64) -> SessionHead {
        SessionHead {
            entries,
            ..SessionHead::empty()
        }
    }

    /// A session of two entries, as format 2 kept it, in a store that knows no sum.
    fn unlinked(db: &Db) {
        let record = SessionRecord {
            id: session(1),
            tenant: "acme".parse().unwrap(),
            metadata: Metadata::first(None, Timestamp::from_millis(1)),
            external_key: None,
            agent: "coder".parse().unwrap(),
            created_at: Timestamp::from_millis(1),
            lineage: None,
        };
        put(
            db,
            keys::session(session(1)),
            &record.form().encode_to_vec(),
        );
        let mut checksum = 0;
        for seq in 1..=2 {
            let entry = ChainedEntry {
                entry: notice(seq),
                previous_checksum: checksum,
                previous_digest: None,
            };
            let payload = entry.form().encode_to_vec();
            put(db, keys::entry(entry.entry.id), &payload);
            checksum = crc32fast::hash(&payload);
        }
        let row = HeadRow {
            head: head(2),
            entries_checksum: checksum,
            entries_digest: None,
        };
        put(db, keys::head(session(1)), &row.form().encode_to_vec());
        let round = RoundRow {
            number: 9,
            tally: None,
        };
        put(db, keys::round(), &round.form().encode_to_vec());
    }

    #[test]
    fn b52_what_an_earlier_format_wrote_has_no_digest_and_the_chain_begins_after_it() {
        let directory = former(unlinked);
        let mut opened = open(directory.path(), &StoreOptions::new(7)).unwrap();
        assert_eq!(opened.meta.format_version, FORMAT_VERSION);
        for seq in 3..=4 {
            let commit = Commit {
                session: session(1),
                lease: LeaseClause::Hold(LeaseToken(0)),
                holder: Holder::Boundary,
                expected_entries: seq - 1,
                expected_audits: 0,
                create: None,
                head: head(seq),
                entries: vec![notice(seq)],
                runs: Vec::new(),
                inputs: Vec::new(),
                interactions: Vec::new(),
                bindings: Vec::new(),
                audits: Vec::new(),
            };
            let (db, mut sets) = (opened.device.db().clone(), PieceSets::of_boot(1));
            let mut round = Round::new(&db, &mut sets);
            write::commit(&mut round, &commit).unwrap();
            opened.device.write(round.into_writes()).unwrap();
        }
        drop(opened);
        let store = Inspection::open(directory.path()).unwrap();
        let findings = store.verify(None, &mut |_, _| {});
        assert!(findings.whole(), "{:?}", findings.faults);
        assert_eq!(findings.entries, 4);
        assert_eq!(findings.unlinked_entries, 2);
        assert_eq!(findings.chains_that_begin_late, 1);
    }
}
