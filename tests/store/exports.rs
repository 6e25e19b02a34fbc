//! What is exported is everything, and what is imported is equal to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::ports::artifact_store::ArtifactStore as _;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_core::ports::repository::Repository as _;
use sessionplane_server::adapters::artifacts::MemoryArtifacts;
use sessionplane_server::adapters::sled::tools::{
    Contents, DumpError, Inspection, LoadError, load,
};
use sessionplane_server::adapters::sled::{OpenError, SledStore, StoreOptions};
use tempfile::TempDir;

use crate::suite::reading::read_all;
use crate::suite::script::Script;
use crate::verify::{busy, verified};

/// Contents in memory.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<BTreeMap<ArtifactId, Vec<u8>>>);

impl Shelf {
    pub(crate) fn put(&self, id: ArtifactId, content: &[u8]) {
        self.0.lock().unwrap().insert(id, content.to_vec());
    }

    pub(crate) fn lose(&self, id: ArtifactId) {
        self.0.lock().unwrap().remove(&id).expect("it is there");
    }
}

impl Contents for Shelf {
    fn content(&self, id: ArtifactId) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.lock().unwrap().get(&id).cloned())
    }
    fn keep(&self, id: ArtifactId, content: Vec<u8>) -> Result<(), String> {
        self.0.lock().unwrap().insert(id, content);
        Ok(())
    }
}

fn exported(path: &Path, chosen: Option<&[String]>, shelf: &Shelf) -> Vec<u8> {
    let store = Inspection::open(path).unwrap();
    let mut lines = Vec::new();
    store
        .export(chosen, shelf, &mut lines, &mut |_, _| {})
        .unwrap();
    lines
}

async fn sha256(content: &[u8]) -> Digest {
    let id = ArtifactId::from_bytes([0; 16]);
    let kept = MemoryArtifacts::default().put(id, content.into()).await;
    kept.unwrap()
}

/// An export some of whose lines were changed by somebody who knows of its last line.
async fn resealed(lines: &[u8], change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    let all: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    let (last, before) = all.split_last().unwrap();
    let mut changed = Vec::new();
    for line in before {
        let mut value: serde_json::Value = serde_json::from_slice(line).unwrap();
        let former = value.clone();
        change(&mut value);
        if value == former {
            changed.extend_from_slice(line);
        } else {
            serde_json::to_writer(&mut changed, &value).unwrap();
            changed.push(b'\n');
        }
    }
    let mut last: serde_json::Value = serde_json::from_slice(last).unwrap();
    last["sha256"] = sha256(&changed).await.to_string().into();
    serde_json::to_writer(&mut changed, &last).unwrap();
    changed.push(b'\n');
    changed
}

/// All lines but the first and the last, which tell of the directory.
pub(crate) fn records(lines: &[u8]) -> Vec<&[u8]> {
    let lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    lines[1..lines.len() - 1].to_vec()
}

fn imported(lines: &[u8], path: &Path, all: bool, shelf: &Shelf) -> Result<(), LoadError> {
    load(path, all, shelf, &mut &lines[..], &mut |_, _| {}).map(drop)
}

/// One session whose tool left a content that takes several lines.
async fn with_artifact(directory: &Path, shelf: &Shelf) -> Script {
    use sessionplane_core::domain::artifact::ArtifactRef;
    use sessionplane_core::domain::entry::EntryBody;
    use sessionplane_core::domain::text::BoundedText;
    let store = crate::open(directory);
    let mut script = Script::new(3);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(&store, admit).await.unwrap();
    for (n, length) in [(1, 0), (2, 700_000), (3, 5)] {
        let id = ArtifactId::from_bytes([n; 16]);
        let content: Vec<u8> = (0..=250).cycle().take(length).collect();
        shelf.put(id, &content);
        let artifact = Some(ArtifactRef {
            id,
            bytes: length as u64,
            sha256: Some(sha256(&content).await),
        });
        let tool = EntryBody::Tool {
            call_id: "c".to_owned(),
            name: "cat".to_owned(),
            input_json: BoundedText::default(),
            output: BoundedText::default(),
            failed: false,
            artifact,
        };
        let say = script.say(vec![tool]);
        script.write(&store, say).await.unwrap();
    }
    store.close().await;
    script
}

#[tokio::test]
async fn c39_an_export_that_is_imported_is_an_equal_store_that_goes_on() {
    let (directory, rests, mut cut) = busy().await;
    let shelf = Shelf::default();
    with_artifact(directory.path(), &shelf).await;
    let lines = exported(directory.path(), None, &shelf);
    let (fresh, second) = (TempDir::new().unwrap(), Shelf::default());
    imported(&lines, fresh.path(), true, &second).unwrap();
    let findings = Inspection::open(fresh.path())
        .unwrap()
        .verify(Some(&second), &mut |_, _| {});
    assert!(findings.whole(), "{:?}", findings.faults);
    assert_eq!(findings.artifacts, 3);
    let again = exported(fresh.path(), None, &second);
    assert!(
        records(&again) == records(&lines),
        "the same store gives other lines"
    );
    // It is no copy to look at, but a store: its run that was cut is settled, new ones are taken.
    // The lost one went on after the export: nobody may take what it told for the new one's.
    for _ in 0..3 {
        crate::open(directory.path()).close().await;
    }
    let (old, new) = (crate::open(directory.path()), crate::open(fresh.path()));
    assert!(
        new.mint().await.unwrap() > old.mint().await.unwrap(),
        "a number of the lost store is given again"
    );
    for script in [&rests, &cut] {
        let (a, b) = (
            read_all(&old, script, 100, usize::MAX),
            read_all(&new, script, 100, usize::MAX),
        );
        assert!(a.await == b.await);
        assert_eq!(
            old.session(script.id()).await.unwrap(),
            new.session(script.id()).await.unwrap()
        );
    }
    assert!(
        new.mint().await.unwrap() > cut.head.token,
        "an old token could be given again"
    );
    let recover = cut.recover(new.mint().await.unwrap());
    cut.write(&new, recover).await.unwrap();
    new.close().await;
    old.close().await;
    assert!(verified(fresh.path()).whole());
}

#[tokio::test]
async fn c39_chosen_sessions_are_exported_with_what_is_theirs_and_nothing_else() {
    let (directory, rests, cut) = busy().await;
    let shelf = Shelf::default();
    let chosen = [rests.id().to_string()];
    let lines = exported(directory.path(), Some(&chosen), &shelf);
    let text = String::from_utf8(lines.clone()).unwrap();
    assert!(
        !text.contains(&cut.id().to_string()),
        "another session is in it"
    );
    let fresh = TempDir::new().unwrap();
    let refused = imported(&lines, fresh.path(), true, &shelf);
    assert!(matches!(refused, Err(LoadError::NotAll)), "{refused:?}");
    imported(&lines, fresh.path(), false, &shelf).unwrap();
    let findings = verified(fresh.path());
    assert!(findings.whole(), "{:?}", findings.faults);
    assert_eq!(
        (findings.sessions, findings.entries),
        (1, rests.head.entries)
    );
    let store = Inspection::open(directory.path()).unwrap();
    let unknown = store.export(
        Some(&["nobody".to_owned()]),
        &shelf,
        &mut Vec::new(),
        &mut |_, _| {},
    );
    assert!(matches!(unknown, Err(DumpError::NoSuchSession(_))));
}

#[tokio::test]
async fn b54_an_export_that_was_cut_or_changed_makes_no_store() {
    let (directory, ..) = busy().await;
    let shelf = Shelf::default();
    with_artifact(directory.path(), &shelf).await;
    let lines = exported(directory.path(), None, &shelf);
    let text: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    let without = |at: usize| [text[..at].concat(), text[at + 1..].concat()].concat();
    let mut twice = text.clone();
    twice.insert(3, text[2]);
    let mut damaged: Vec<Vec<u8>> = vec![
        Vec::new(),
        text[0].to_vec(),
        lines[..lines.len() - 1].to_vec(),
        lines[..lines.len() / 2].to_vec(),
        without(0),
        without(1),
        without(text.len() - 2),
        without(text.len() - 1),
        twice.concat(),
        [&lines[..], b"{}\n"].concat(),
    ];
    for n in 1..40 {
        let mut flipped = lines.clone();
        let at = lines.len() * n / 40;
        flipped[at] ^= 1;
        damaged.push(flipped);
    }
    let mut untouched = 0;
    for (n, damaged) in damaged.iter().enumerate() {
        let fresh = TempDir::new().unwrap();
        let refused = imported(damaged, fresh.path(), true, &Shelf::default());
        assert!(refused.is_err(), "{n} was taken");
        if !fresh.path().join("db").exists() {
            untouched += 1;
            continue;
        }
        let started =
            SledStore::open(fresh.path(), &StoreOptions::new(7)).map(|store| store.boots());
        let Err(error @ OpenError::Unfinished { .. }) = started else {
            panic!("{n}: half an import is served: {started:?}");
        };
        assert!(error.to_string().contains("import"), "{error}");
    }
    assert!(untouched < 10, "{untouched} of {}", damaged.len());
    let newer = String::from_utf8(lines.clone()).unwrap();
    let newer = newer.replacen("\"version\":1", "\"version\":2", 1);
    let fresh = TempDir::new().unwrap();
    let refused = imported(newer.as_bytes(), fresh.path(), true, &shelf);
    assert!(matches!(refused, Err(LoadError::Newer { found: 2, .. })));
    let taken = imported(&lines, directory.path(), true, &shelf);
    assert!(
        matches!(taken, Err(LoadError::Open(OpenError::Io { .. }))),
        "{taken:?}"
    );
}

/// The chain has the entry, and the entry the content: whoever has the last digest has proof of both.
#[tokio::test]
async fn b52_a_content_that_is_not_the_one_its_entry_names_is_told_by_every_tool() {
    let (directory, shelf) = (TempDir::new().unwrap(), Shelf::default());
    with_artifact(directory.path(), &shelf).await;
    let lines = exported(directory.path(), None, &shelf);
    let refused = async |problem: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let fresh = TempDir::new().unwrap();
        let changed = resealed(&lines, change).await;
        let refused = imported(&changed, fresh.path(), true, &Shelf::default());
        let Err(error @ LoadError::Line { .. }) = refused else {
            panic!("{problem}: {refused:?}");
        };
        assert!(error.to_string().contains(problem), "{error}");
    };
    refused("SHA-256", &|line| {
        // The five bytes of the last one, and others.
        if line["bytes"] == 5 {
            line["data"] = "AAECAwU=".into();
        }
    })
    .await;
    refused("names no such content", &|line| {
        if line["bytes"] == 5 {
            line["artifact"] = ArtifactId::from_bytes([9; 16]).to_string().into();
        }
    })
    .await;
    refused("bytes, not", &|line| {
        if line["bytes"] == 5 {
            (line["data"], line["bytes"]) = ("AAEC".into(), 3.into());
        }
    })
    .await;
    // In a directory, as in an export of it.
    shelf.put(ArtifactId::from_bytes([3; 16]), &[0, 1, 2, 3, 5]);
    let store = Inspection::open(directory.path()).unwrap();
    let findings = store.verify(Some(&shelf), &mut |_, _| {});
    assert_eq!(findings.fault_count, 1, "{:?}", findings.faults);
    assert!(findings.faults[0].problem.contains("SHA-256"));
    let mut out = Vec::new();
    let dumped = store.export(None, &shelf, &mut out, &mut |_, _| {});
    assert_eq!(dumped.unwrap().missing, 1);
}

/// What no start would take is not made, and what is made is verified as a start takes it.
#[tokio::test]
async fn b54_an_import_takes_nothing_that_a_start_or_verify_would_refuse() {
    let (directory, ..) = busy().await;
    let lines = exported(directory.path(), None, &Shelf::default());
    let headers: [(&str, u64); 4] = [
        ("store_format", 0),
        ("boots", 1 << 24),
        ("boots", (1 << 24) - 4097),
        ("boots", u64::from(u32::MAX)),
    ];
    for (field, value) in headers {
        let changed = resealed(&lines, |line| {
            if line["export"].is_string() {
                line[field] = value.into();
            }
        })
        .await;
        let fresh = TempDir::new().unwrap();
        let refused = imported(&changed, fresh.path(), true, &Shelf::default());
        assert!(
            matches!(refused, Err(LoadError::Line { line: 1, .. })),
            "{field} {value}: {refused:?}"
        );
        assert!(!fresh.path().join("db").exists(), "something was made");
    }
    // The last number that a start takes.
    let changed = resealed(&lines, |line| {
        if line["export"].is_string() {
            line["boots"] = ((1 << 24) - 4098).into();
        }
    })
    .await;
    let fresh = TempDir::new().unwrap();
    imported(&changed, fresh.path(), true, &Shelf::default()).unwrap();
    assert!(verified(fresh.path()).whole());
    crate::open(fresh.path()).close().await;
    let findings = verified(fresh.path());
    assert_eq!(findings.fault_count, 1, "{:?}", findings.faults);
    assert!(findings.faults[0].problem.contains("boot counter"));
    // Marks, of which the key is all that counts.
    for kind in ["run_of_session", "binding_by_time"] {
        let changed = resealed(&lines, |line| {
            if line["record"]
                .as_str()
                .is_some_and(|is| is.starts_with(kind))
            {
                line["value"] = "/////w==".into();
            }
        })
        .await;
        assert!(changed != lines, "there is no {kind}");
        let fresh = TempDir::new().unwrap();
        imported(&changed, fresh.path(), true, &Shelf::default()).unwrap();
        let findings = verified(fresh.path());
        assert_eq!(findings.fault_count, 2, "{kind}: {:?}", findings.faults);
        assert!(findings.faults[0].key.starts_with(kind));
    }
}

/// The way out that `verify` names where the store as a whole is not what it says.
#[tokio::test]
async fn b54_a_session_that_is_whole_is_taken_out_of_a_store_that_is_not() {
    let (directory, rests, cut) = busy().await;
    let shelf = Shelf::default();
    let (whole, broken) = ([rests.id().to_string()], [cut.id().to_string()]);
    let before = exported(directory.path(), Some(&whole), &shelf);
    let third = [&b"e"[..], &cut.id().to_bytes(), &3_u64.to_be_bytes()].concat();
    {
        let db = sled::open(directory.path()).unwrap();
        // Lost without a word; and a binding that nobody knows the session of.
        db.remove(third).unwrap();
        db.insert([b'b'; 33], b"?").unwrap();
    }
    let store = Inspection::open(directory.path()).unwrap();
    let export = |chosen: Option<&[String]>| {
        let mut lines = Vec::new();
        let dumped = store.export(chosen, &shelf, &mut lines, &mut |_, _| {});
        dumped.map(|dumped| (dumped, lines))
    };
    let all = export(None);
    assert!(matches!(all, Err(DumpError::Read(_))), "{all:?}");
    let refused = export(Some(&broken)).unwrap_err().to_string();
    assert!(refused.contains(&broken[0]), "{refused}");
    let (dumped, lines) = export(Some(&whole)).unwrap();
    assert_eq!(dumped.unreadable_bindings, 1);
    assert!(lines == before, "something else was taken out");
    let fresh = TempDir::new().unwrap();
    imported(&lines, fresh.path(), false, &shelf).unwrap();
    let findings = verified(fresh.path());
    assert!(findings.whole(), "{:?}", findings.faults);
}

/// Contents of which one makes the storage engine give up, as sled does on some damage.
struct Panicking;

impl Contents for Panicking {
    fn content(&self, _: ArtifactId) -> Result<Option<Vec<u8>>, String> {
        panic!("a page that is no page")
    }
    fn keep(&self, _: ArtifactId, _: Vec<u8>) -> Result<(), String> {
        panic!("a page that is no page")
    }
}

#[tokio::test]
async fn b54_a_tool_whose_storage_engine_panics_names_what_it_was_at() {
    let directory = TempDir::new().unwrap();
    let shelf = Shelf::default();
    let script = with_artifact(directory.path(), &shelf).await;
    let lines = exported(directory.path(), None, &shelf);
    let store = Inspection::open(directory.path()).unwrap();
    let findings = store.verify(Some(&Panicking), &mut |_, _| {});
    assert_eq!(findings.fault_count, 3, "{:?}", findings.faults);
    let fault = &findings.faults[0];
    assert_eq!(fault.session, Some(script.id().to_string()), "{fault:?}");
    assert!(fault.problem.contains("gave up"), "{fault:?}");
    let told = store.export(None, &Panicking, &mut Vec::new(), &mut |_, _| {});
    assert!(matches!(told, Err(DumpError::Read(_))), "{told:?}");
    let fresh = TempDir::new().unwrap();
    let told = load(
        fresh.path(),
        true,
        &Panicking,
        &mut &lines[..],
        &mut |_, _| {},
    );
    assert!(matches!(told, Err(LoadError::Write(_))), "{told:?}");
}

#[tokio::test]
async fn a_store_is_counted_by_kind_and_by_session() {
    let (directory, rests, cut) = busy().await;
    let store = Inspection::open(directory.path()).unwrap();
    let stats = store.stats(&mut |_, _| {}).unwrap();
    assert_eq!(stats.sessions, 2);
    let entries = stats
        .kinds
        .iter()
        .find(|kind| kind.kind == "entry")
        .unwrap();
    assert_eq!(entries.records, rests.head.entries + cut.head.entries);
    let all: u64 = stats.kinds.iter().map(|kind| kind.records).sum();
    assert_eq!(all, verified_keys(&store));
    let named: Vec<&str> = stats
        .largest
        .iter()
        .map(|found| found.session.as_str())
        .collect();
    assert_eq!(named.len(), 2);
    assert!(named.contains(&rests.id().to_string().as_str()));
    assert!(
        stats
            .files
            .iter()
            .any(|(name, bytes)| name == "db" && *bytes > 0)
    );
}

fn verified_keys(store: &Inspection) -> u64 {
    store.verify(None, &mut |_, _| {}).keys
}
