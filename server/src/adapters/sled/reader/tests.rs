//! Reads of damaged and of long series.

use prost::Message as _;
use sessionplane_core::domain::entry::{EntryBody, PathMarks};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::session::SessionHead;
use sessionplane_core::domain::time::Timestamp;

use super::*;
use crate::adapters::sled::convert::Stored as _;
use crate::adapters::sled::inflight::Replaced;

fn session() -> SessionId {
    SessionId::from_bytes([1; 16])
}

/// A reader of three chained entries; `texts` names what the second and third say.
fn talk(directory: &tempfile::TempDir) -> (Reader, Db) {
    let db = ::sled::Config::new()
        .path(directory.path())
        .flush_every_ms(None)
        .open()
        .unwrap();
    let mut entries_checksum = 0;
    for seq in 1..=3 {
        entries_checksum = put_entry(&db, seq, "as it was", entries_checksum);
    }
    let head = SessionHead {
        token: LeaseToken(1),
        entries: 3,
        ..SessionHead::empty()
    };
    let row = HeadRow {
        head,
        entries_checksum,
        entries_digest: None,
    };
    put(&db, keys::head(session()), &row.form().encode_to_vec());
    (Reader::new(db.clone(), Arc::default()), db)
}

fn put(db: &Db, key: Key, payload: &[u8]) {
    for (key, value) in frame::values(key, payload, || 1) {
        db.insert(key, value).unwrap();
    }
}

fn put_entry(db: &Db, seq: u64, text: &str, previous_checksum: u32) -> u32 {
    let id = EntryId {
        session: session(),
        seq,
    };
    let entry = Entry {
        id,
        parent: None,
        run: Some(RunId::from_bytes([2; 16])),
        at: Timestamp::from_millis(1),
        path: PathMarks::default(),
        body: EntryBody::Notice {
            code: "x".to_owned(),
            text: text.to_owned(),
        },
    };
    let record = ChainedEntry {
        entry,
        previous_checksum,
        previous_digest: None,
    };
    let payload = record.form().encode_to_vec();
    put(db, keys::entry(id), &payload);
    crc32fast::hash(&payload)
}

fn page(reader: &Reader, after: u64, max_entries: usize) -> Result<usize, ReadError> {
    let range = EntryRange {
        after,
        up_to: u64::MAX,
        max_entries,
        max_bytes: usize::MAX,
    };
    reader
        .entries(session(), range)
        .map(|entries| entries.len())
}

#[test]
fn b52_an_entry_that_does_not_follow_the_one_before_it_is_told_on_every_page() {
    let directory = tempfile::TempDir::new().unwrap();
    let (reader, db) = talk(&directory);
    assert_eq!(page(&reader, 0, 9), Ok(3));
    assert_eq!(page(&reader, 1, 1), Ok(1));
    // A whole record under its own key, but of another conversation.
    put_entry(&db, 2, "as it never was", 5);
    for (after, max_entries) in [(0, 9), (1, 1), (2, 1)] {
        let told = page(&reader, after, max_entries);
        assert!(matches!(told, Err(ReadError::Damaged { .. })), "{told:?}");
    }
    assert_eq!(page(&reader, 0, 1), Ok(1), "what is whole is read");
}

#[test]
fn b52_a_last_entry_that_the_head_does_not_name_is_told() {
    let directory = tempfile::TempDir::new().unwrap();
    let (reader, db) = talk(&directory);
    let id = EntryId {
        session: session(),
        seq: 2,
    };
    let second = crc32fast::hash(&reader.entry(id, None).unwrap().1);
    put_entry(&db, 3, "as it never was", second);
    let told = page(&reader, 2, 1);
    assert!(matches!(told, Err(ReadError::Damaged { .. })), "{told:?}");
}

/// A scan that held the in-flight map to its end would not see what comes in meanwhile.
#[test]
fn a_long_scan_goes_on_from_page_to_page_and_holds_nobody_up_in_between() {
    let directory = tempfile::TempDir::new().unwrap();
    let (reader, db) = talk(&directory);
    let run = |number: u128| RunId::from_bytes(number.to_be_bytes());
    let mark = |number| {
        let first_entry = EntryId {
            session: session(),
            seq: u64::try_from(number).unwrap() + 1,
        };
        keys::run_of_session(first_entry, run(number))
    };
    let count = 2 * PAGE as u128 + 1;
    for number in 0..count {
        db.insert(mark(number), b"x").unwrap();
    }
    let hidden = Replaced::from([(IVec::from(mark(3)), None)]);
    let mut seen = Vec::new();
    let prefix = keys::runs_of_session(session());
    reader
        .scan(&prefix, |key, _| {
            if seen.is_empty() {
                reader.inflight.begin(hidden.clone());
                db.insert(mark(count), b"x").unwrap();
            }
            seen.push(keys::marked_run(key).unwrap());
            Ok(())
        })
        .unwrap();
    let all: Vec<RunId> = (0..=count).map(run).collect();
    assert_eq!(seen, all, "in order, and what came in is there");
    let visible = all.into_iter().filter(|seen| *seen != run(3));
    assert_eq!(reader.runs_of(session()), Ok(visible.collect()));
}

#[test]
fn a_page_that_is_full_reads_no_further() {
    let directory = tempfile::TempDir::new().unwrap();
    let (reader, db) = talk(&directory);
    db.insert(
        keys::entry(EntryId {
            session: session(),
            seq: 3,
        }),
        b"?".as_slice(),
    )
    .unwrap();
    assert_eq!(page(&reader, 0, 2), Ok(2));
}
