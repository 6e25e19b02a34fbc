//! Out of a store in which something is damaged, every session that is whole is exported, and nothing
//! of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::ids::{ArtifactId, SessionId};
use sessionplane_core::domain::session::Lineage;
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::adapters::sled::tools::{
    DumpError, DumpedWhole, Inspection, Judged, Without, load,
};
use sessionplane_server::adapters::sled::{OpenError, SledStore};
use tempfile::TempDir;

use crate::exports::{Shelf, records};
use crate::stop::DEADLINE;
use crate::suite::script::{Script, binding_key, said};

/// A family in a line, and one that has nothing to do with it.
const NAMES: [&str; 4] = ["parent", "child", "grandchild", "other"];

/// A store whose sessions each have one of everything; what each of them owns is known.
struct Family {
    directory: TempDir,
    shelf: Shelf,
    ids: [SessionId; 4],
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The lines of an export while all was well, by their keys.
    before: Vec<u8>,
}

async fn filled(store: &SledStore, n: u64, parent: Option<&Script>, shelf: &Shelf) -> Script {
    let name = NAMES[usize::try_from(n).unwrap() - 1];
    let mut script = Script::new(n)
        .named(name)
        .keyed(&format!("K-{n}"))
        .labelled(&[("team", "net")])
        .placed("main");
    script.record.lineage = parent.map(|parent| Lineage {
        parent: parent.id(),
        entry: parent.head.leaf,
    });
    let mut admit = script.admit(store.mint().await.unwrap(), "go");
    script.bind(&mut admit, binding_key("acme", name));
    script.write(store, admit).await.unwrap();
    let pause = script.pause(true);
    script.set(store, pause).await.unwrap();
    let steer = script.steer("and this");
    script.write(store, steer).await.unwrap();
    let ask = script.ask("May I?");
    script.write(store, ask).await.unwrap();
    let id = ArtifactId::from_bytes([u8::try_from(n).unwrap(); 16]);
    shelf.put(id, b"hello");
    let tool = EntryBody::Tool {
        call_id: "c".to_owned(),
        name: "cat".to_owned(),
        input_json: BoundedText::default(),
        output: BoundedText::default(),
        failed: false,
        artifact: Some(ArtifactRef {
            id,
            bytes: 5,
            sha256: None,
        }),
    };
    let say = script.say(vec![tool, said(&"v".repeat(9000))]);
    script.write(store, say).await.unwrap();
    script
}

async fn family() -> Family {
    let (directory, shelf) = (TempDir::new().unwrap(), Shelf::default());
    // Not the first opening, so that how often it was opened can be told wrongly.
    crate::open(directory.path()).close().await;
    let store = crate::open(directory.path());
    let parent = filled(&store, 1, None, &shelf).await;
    let child = filled(&store, 2, Some(&parent), &shelf).await;
    let grandchild = filled(&store, 3, Some(&child), &shelf).await;
    let other = filled(&store, 4, None, &shelf).await;
    store.close().await;
    let ids = [parent, child, grandchild, other].map(|script| script.id());
    let values = database(directory.path(), |db| {
        let all = db.iter().map(Result::unwrap);
        all.map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect()
    });
    let mut before = Vec::new();
    let store = Inspection::open(directory.path()).unwrap();
    store
        .export(None, &shelf, &mut before, &mut |_, _| {})
        .unwrap();
    drop(store);
    Family {
        directory,
        shelf,
        ids,
        values,
        before,
    }
}

/// Does something with the database past the server. Whoever had it last may still be leaving.
#[expect(clippy::disallowed_methods, reason = "a deadline of a test")]
fn database<T>(path: &Path, with: impl FnOnce(&sled::Db) -> T) -> T {
    let settings = sled::Config::new().path(path).flush_every_ms(None);
    let end = Instant::now() + DEADLINE;
    let db = loop {
        match settings.open() {
            Ok(db) => break db,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
    };
    let done = with(&db);
    db.flush().unwrap();
    done
}

/// What a damaged store is exported as.
struct Made {
    judged: Judged,
    whole: DumpedWhole,
    without: Without,
    lines: Vec<u8>,
}

fn export(path: &Path, shelf: &Shelf) -> Result<Made, DumpError> {
    let store = Inspection::open_damaged(path).unwrap();
    let judged = store.judge(Some(shelf), &mut |_, _| {});
    let mut lines = Vec::new();
    let whole = store.export_whole(&judged, shelf, &mut lines, &mut |_, _| {})?;
    let without = store.without();
    Ok(Made {
        judged,
        whole,
        without,
        lines,
    })
}

impl Family {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The export with some records as they are told here, in place of those that are there.
    fn with(&self, damages: &[(&[u8], Option<Vec<u8>>)]) -> Result<Made, DumpError> {
        let put = |key: &[u8], value: Option<&[u8]>| {
            database(self.path(), |db| match value {
                Some(value) => db.insert(key, value).unwrap(),
                None => db.remove(key).unwrap(),
            })
        };
        for (key, value) in damages {
            put(key, value.as_deref());
        }
        let made = export(self.path(), &self.shelf);
        for (key, _) in damages {
            put(key, self.values.get(*key).map(Vec::as_slice));
        }
        made
    }

    /// The session of a record; none for what is the store's, or only leads to a session.
    fn owner(&self, key: &[u8]) -> Option<usize> {
        let at = match key[0] {
            b'a' | b'c' | b'e' | b'h' | b'l' | b's' | b'x' => {
                return self.ids.iter().position(|id| id.to_bytes() == key[1..17]);
            }
            b'i' | b'q' | b'r' => {
                let mut marks = self.values.keys().filter(|mark| mark[0] == b'x');
                marks.find(|mark| mark.ends_with(&key[1..17])).cloned()
            }
            b'p' => self.values.iter().find_map(|(of, value)| {
                let manifest = value[0] == 2 && set(&value[5..]) == key[1..9];
                manifest.then(|| of.clone())
            }),
            _ => return None,
        };
        self.owner(&at.expect("somebody has it"))
    }

    /// The lines of what is not a session's that is left out, without one key.
    fn lines_without(&self, left_out: &BTreeSet<SessionId>, gone: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let mut taken = false;
        for line in records(&self.before) {
            let read: serde_json::Value = serde_json::from_slice(line).unwrap();
            // A content goes where its entry went.
            if let Some(key) = read["key"].as_str() {
                let key = self.keyed(key);
                // Chains have links of all sessions.
                let owned = !b"gj".contains(&key[0]);
                let owner = owned.then(|| self.owner(key).or_else(|| self.led_to(key)).unwrap());
                taken = !gone.contains(&key)
                    && owner.map_or(left_out.is_empty(), |it| !left_out.contains(&self.ids[it]));
            }
            if taken {
                lines.push(line.to_vec());
            }
        }
        lines
    }

    fn keyed(&self, text: &str) -> &[u8] {
        use base64::Engine as _;
        let key = base64::engine::general_purpose::STANDARD
            .decode(text)
            .unwrap();
        self.values.get_key_value(&key).unwrap().0
    }

    /// The session that an index, a binding or the mark of one leads to.
    fn led_to(&self, key: &[u8]) -> Option<usize> {
        let binding = [
            &b"b"[..],
            key.last_chunk::<32>().map_or(&[][..], |it| &it[..]),
        ]
        .concat();
        let value: &[u8] = match key[0] {
            b't' => &self.values[&binding],
            // Its last part; a parent may stand before it.
            b'f' => key.last_chunk::<16>().map_or(&[][..], |id| &id[..]),
            _ => &self.values[key],
        };
        let names = |id: &SessionId| value.windows(16).any(|part| part == id.to_bytes());
        self.ids.iter().position(names)
    }

    /// A session and those that branched off it.
    fn line_of(&self, owner: usize) -> BTreeSet<SessionId> {
        let last = if owner == 3 { 3 } else { 2 };
        self.ids[owner..=last].iter().copied().collect()
    }

    fn imports(&self, made: &Made, case: &str) {
        let fresh = TempDir::new().unwrap();
        let loaded = load(
            fresh.path(),
            false,
            &self.shelf,
            &mut &made.lines[..],
            &mut |_, _| {},
        );
        loaded.unwrap_or_else(|error| panic!("{case}: {error}"));
        let store = Inspection::open(fresh.path()).unwrap();
        let findings = store.verify(Some(&self.shelf), &mut |_, _| {});
        assert!(findings.whole(), "{case}: {:?}", findings.faults);
    }
}

/// The first field of a manifest, as a key has it.
fn set(manifest: &[u8]) -> [u8; 8] {
    assert_eq!(manifest[0], 8);
    let mut set = 0;
    for (n, byte) in manifest[1..].iter().enumerate() {
        set |= u64::from(byte & 127) << (7 * n);
        if byte & 128 == 0 {
            break;
        }
    }
    set.to_be_bytes()
}

fn flipped(value: &[u8]) -> Vec<u8> {
    let mut value = value.to_vec();
    *value.last_mut().unwrap() ^= 1;
    value
}

#[tokio::test]
async fn c39_where_nothing_is_damaged_the_whole_sessions_are_all_byte_for_byte() {
    let family = family().await;
    let made = family.with(&[]).unwrap();
    assert!(made.lines == family.before, "it is another export");
    assert!(made.judged.findings.whole() && made.judged.sum_fits);
    assert_eq!((made.whole.strays, made.whole.made_anew), (0, 0));
}

#[tokio::test]
async fn b54_whatever_record_of_a_session_is_damaged_exactly_the_others_are_exported() {
    let family = family().await;
    let mut kinds = BTreeSet::new();
    for (key, value) in &family.values {
        let Some(owner) = family.owner(key) else {
            continue;
        };
        kinds.insert(key[0]);
        let expected = family.line_of(owner);
        // Nothing but the sum misses these, and it does not tell whose they were.
        let missed = !matches!(key[0], b'i' | b'q');
        let lost = [None].into_iter().filter(|_| missed);
        for damage in lost.chain([Some(flipped(value))]) {
            let case = format!("{} of {} {damage:?}", key[0] as char, NAMES[owner]);
            let made = family.with(&[(key, damage)]).unwrap();
            assert_eq!(made.judged.findings.not_whole, expected, "{case}");
            let lines = family.lines_without(&expected, &[]);
            assert!(records(&made.lines) == lines, "{case}: other records");
            family.imports(&made, &case);
        }
    }
    assert_eq!(kinds, BTreeSet::from(*b"acehilpqrsx"));
}

#[tokio::test]
async fn b54_what_only_leads_to_a_session_is_made_anew_or_left_out_and_the_session_is_exported() {
    let family = family().await;
    let none = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for (key, value) in family
        .values
        .iter()
        .filter(|(key, _)| b"bfknt".contains(&key[0]))
    {
        kinds.insert(key[0]);
        for damage in [None, Some(flipped(value))] {
            let case = format!("{} {damage:?}", key[0] as char);
            let unread = damage.is_some();
            let made = family.with(&[(key, damage)]).unwrap();
            assert_eq!(made.judged.findings.not_whole, none, "{case}");
            assert_eq!(made.whole.strays, 0, "{case}");
            let binding = key[0] == b'b';
            let mark = family
                .values
                .keys()
                .find(|mark| mark.ends_with(&key[1..]) && *mark != key);
            let gone = [&key[..], mark.map_or(&[][..], |mark| mark)];
            let lines = family.lines_without(&none, if binding { &gone } else { &[] });
            assert!(records(&made.lines) == lines, "{case}: other records");
            let counted = made.whole.dumped.unreadable_bindings;
            assert_eq!(counted, u64::from(binding && unread), "{case}");
            assert_eq!(made.whole.made_anew, u64::from(!binding), "{case}");
            assert!(
                made.judged.sum_fits || !unread || b"ft".contains(&key[0]),
                "{case}"
            );
            family.imports(&made, &case);
        }
    }
    assert_eq!(kinds, BTreeSet::from(*b"bfknt"));
}

#[tokio::test]
async fn b54_a_damaged_record_of_the_store_itself_keeps_no_session_from_being_exported() {
    let family = family().await;
    for (own, damaged) in [(b"m", "store itself"), (b"w", "newest round")] {
        let value = &family.values[&own[..]];
        let made = family.with(&[(own, Some(flipped(value)))]).unwrap();
        assert!(records(&made.lines) == records(&family.before), "{damaged}");
        assert!(made.judged.findings.not_whole.is_empty());
        let round = own == b"w";
        assert_eq!((made.without.meta, made.without.round), (!round, round));
        assert_eq!(made.judged.sum_fits, !round);
        let (first, was) = (first(&made.lines), first(&family.before));
        for field in ["store_id", "store_format", "boots"] {
            assert_eq!(first[field], was[field], "{damaged}");
        }
        family.imports(&made, damaged);
        // Elsewhere it is refused as it was.
        let put = |value: &[u8]| database(family.path(), |db| db.insert(own, value).unwrap());
        put(&flipped(value));
        let refused = Inspection::open(family.path()).err();
        assert!(matches!(refused, Some(OpenError::Damaged { .. })));
        put(value);
    }
    // One that is not there is that of an import that was cut.
    database(family.path(), |db| db.remove(b"m").unwrap());
    let refused = Inspection::open_damaged(family.path()).err();
    assert!(matches!(refused, Some(OpenError::Damaged { .. })));
}

fn first(lines: &[u8]) -> serde_json::Value {
    let line = lines.split(|byte| *byte == b'\n').next().unwrap();
    serde_json::from_slice(line).unwrap()
}

#[tokio::test]
async fn b54_what_is_lost_without_a_word_and_what_is_nobodys_is_told_and_stays_out() {
    let family = family().await;
    let asked = family.values.keys().find(|key| key[0] == b'q').unwrap();
    let made = family.with(&[(asked, None)]).unwrap();
    assert!(!made.judged.sum_fits, "nobody missed it");
    let stray = [&b"i"[..], &[7; 20]].concat();
    let value = family.values[asked].clone();
    for (key, counted) in [(&stray[..], 1), (b"?", 1)] {
        let made = family.with(&[(key, Some(value.clone()))]).unwrap();
        assert_eq!(made.whole.strays, counted);
        assert!(records(&made.lines) == records(&family.before));
        family.imports(&made, "a stray");
    }
}

#[tokio::test]
async fn b54_a_session_whose_artifact_is_damaged_is_not_whole() {
    let family = family().await;
    family.shelf.put(ArtifactId::from_bytes([2; 16]), b"other!");
    let made = family.with(&[]).unwrap();
    let expected = family.line_of(1);
    assert_eq!(made.judged.findings.not_whole, expected);
    assert!(records(&made.lines) == family.lines_without(&expected, &[]));
    family.imports(&made, "an artifact");
}
