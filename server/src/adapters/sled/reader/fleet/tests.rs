//! What finding and resolving cost, in records that are read.

use prost::Message as _;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{ExternalKey, SessionName, SessionRef};
use sessionplane_core::domain::place::{Directory, Place};
use sessionplane_core::domain::session::{Lineage, SessionHead, SessionRecord};
use sessionplane_core::domain::time::Timestamp;

use super::*;
use crate::adapters::sled::convert::{HeadRow, Stored as _};
use crate::adapters::sled::reader::counted;
use crate::adapters::sled::write::indexes;

const SESSIONS: u16 = 1_000;

fn id(n: u16) -> SessionId {
    SessionId::from_bytes(u128::from(n).to_be_bytes())
}

fn name(n: u16) -> SessionName {
    SessionName::parse(&format!("s-{n:04}")).unwrap()
}

fn label() -> (LabelKey, LabelValue) {
    let value = LabelValue::parse("net").unwrap();
    (LabelKey::parse("team").unwrap(), value)
}

/// Sessions that have all that an index can be asked for.
fn crowd(directory: &tempfile::TempDir) -> Reader {
    let db = ::sled::Config::new()
        .path(directory.path())
        .flush_every_ms(None)
        .open()
        .unwrap();
    let put = |key: Key, payload: &[u8]| {
        for (key, value) in frame::values(key, payload, || 1) {
            db.insert(key, value).unwrap();
        }
    };
    let place = Place {
        workspace: "main".parse().unwrap(),
        directory: Directory::root(),
    };
    for n in 1..=SESSIONS {
        let record = SessionRecord {
            id: id(n),
            tenant: "acme".parse().unwrap(),
            metadata: Metadata {
                labels: Labels::of([label()]).unwrap(),
                paused: true,
                ..Metadata::first(Some(name(n)), Timestamp::from_millis(1))
            },
            external_key: Some(ExternalKey::parse(&format!("K-{n}")).unwrap()),
            agent: "coder".parse().unwrap(),
            created_at: Timestamp::from_millis(1),
            lineage: Some(Lineage {
                parent: id(1),
                entry: None,
            }),
        };
        let row = HeadRow {
            head: SessionHead {
                place: Some(place.clone()),
                ..SessionHead::empty()
            },
            entries_checksum: 0,
            entries_digest: None,
        };
        let address = Address(id(n)).form().encode_to_vec();
        put(keys::name(&record.tenant, &name(n)), &address);
        let external = record.external_key.as_ref().unwrap();
        put(keys::external_key(&record.tenant, external), &address);
        for row in indexes(&record, Some(&place)) {
            put(row, &[]);
        }
        put(keys::session(id(n)), &record.form().encode_to_vec());
        put(keys::head(id(n)), &row.form().encode_to_vec());
    }
    Reader::new(db, std::sync::Arc::default())
}

/// A page costs what it holds, wherever it begins and however many there are: a row of each session, its
/// record and its head, and the row that begins the rest. Of what was read a short while ago the rows
/// alone.
#[test]
fn c47_a_page_by_any_term_in_either_order_reads_as_much_as_it_holds() {
    const PAGE: usize = 100;
    let directory = tempfile::TempDir::new().unwrap();
    let reader = crowd(&directory);
    let (key, value) = label();
    for term in [
        StoredTerm::NamePrefix("s-".to_owned()),
        StoredTerm::Label(key, value),
        StoredTerm::Parent(id(1)),
        StoredTerm::Paused,
        StoredTerm::Workspace("main".parse().unwrap()),
        StoredTerm::Agent("coder".parse().unwrap()),
        StoredTerm::Every,
    ] {
        for (descending, after) in [
            (false, None),
            (true, None),
            (false, Some(500)),
            (true, Some(500)),
        ] {
            let after = after.map(|n| match term {
                StoredTerm::NamePrefix(_) => SessionPlace::Name(name(n)),
                _ => SessionPlace::Id(id(n)),
            });
            let query = SessionQuery {
                tenant: "acme".parse().unwrap(),
                term: term.clone(),
                after,
                descending,
                max: PAGE,
            };
            reader.inflight.recent.show((1..=SESSIONS).map(id));
            for reads in [3 * PAGE + 1, PAGE + 1] {
                counted::taken();
                assert_eq!(reader.find(&query).unwrap().len(), PAGE, "{query:?}");
                assert_eq!(counted::taken(), reads, "{query:?}");
            }
        }
    }
}

/// C3, C4: whatever a session is called by, one record tells which it is.
#[test]
fn c04_any_reference_is_resolved_by_one_read() {
    let directory = tempfile::TempDir::new().unwrap();
    let reader = crowd(&directory);
    let tenant = "acme".parse().unwrap();
    for reference in [
        SessionRef::Id(id(700)),
        SessionRef::Name(name(700)),
        SessionRef::ExternalKey(ExternalKey::parse("K-700").unwrap()),
    ] {
        counted::taken();
        assert_eq!(reader.resolve(&tenant, &reference), Ok(Some(id(700))));
        assert_eq!(counted::taken(), 1, "{reference:?}");
    }
}
