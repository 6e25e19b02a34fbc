//! `verify` says of a whole store that it is whole, and names what is not.

use std::path::Path;

use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::adapters::sled::tools::{Findings, Inspection};
use tempfile::TempDir;

use crate::suite::script::{Script, binding_key, said};

/// Two sessions with a bit of everything: one is at rest, one was cut in its run.
pub(crate) async fn busy() -> (TempDir, Script, Script) {
    let directory = TempDir::new().unwrap();
    let store = crate::open(directory.path());
    let mut rests = Script::new(1)
        .named("fix")
        .keyed("K-1")
        .labelled(&[("team", "net")])
        .placed("main");
    let mut cut = Script::new(2).named("other");
    for script in [&mut rests, &mut cut] {
        let mut admit = script.admit(store.mint().await.unwrap(), "go");
        script.bind(&mut admit, binding_key("acme", &script.id().to_string()));
        script.write(&store, admit).await.unwrap();
        let steer = script.steer("and this");
        let steered = steer.inputs.clone();
        script.write(&store, steer).await.unwrap();
        let ask = script.ask("May I?");
        script.write(&store, ask).await.unwrap();
        // What a run leaves open is ended with it; a script leaves that to its test.
        let answer = script.answer("yes");
        script.write(&store, answer).await.unwrap();
        let mut lost = script.say(Vec::new());
        lost.inputs.clone_from(&steered);
        for input in &mut lost.inputs {
            input.fate = InputFate::Discarded(DiscardCause::Lost);
        }
        script.write(&store, lost).await.unwrap();
        for n in 0..12 {
            let say = script.say(vec![said(&"v".repeat(n * 900))]);
            script.write(&store, say).await.unwrap();
        }
    }
    let settle = rests.settle();
    rests.write(&store, settle).await.unwrap();
    let choose = rests.choose(store.mint().await.unwrap(), "large");
    rests.write(&store, choose).await.unwrap();
    for paused in [true, false, true] {
        let pause = rests.pause(paused);
        rests.set(&store, pause).await.unwrap();
    }
    store.close().await;
    (directory, rests, cut)
}

pub(crate) fn verified(path: &Path) -> Findings {
    let store = Inspection::open(path).unwrap();
    store.verify(None, &mut |_, _| {})
}

/// The database, opened past the server, to be broken.
fn broken(path: &Path, change: impl FnOnce(&sled::Db)) -> Findings {
    let db = sled::Config::new()
        .path(path)
        .flush_every_ms(None)
        .open()
        .unwrap();
    change(&db);
    db.flush().unwrap();
    drop(db);
    verified(path)
}

/// The key of a record, by its tag and what follows.
fn key(tag: u8, script: &Script, number: Option<u64>) -> Vec<u8> {
    let mut key = vec![tag];
    key.extend_from_slice(&script.id().to_bytes());
    key.extend(number.into_iter().flat_map(u64::to_be_bytes));
    key
}

#[tokio::test]
async fn b52_a_whole_store_is_whole_and_stays_so_over_openings_and_recovery() {
    let (directory, rests, mut cut) = busy().await;
    let findings = verified(directory.path());
    assert!(findings.whole(), "{:?}", findings.faults);
    assert_eq!(findings.sessions, 2);
    assert_eq!(findings.entries, rests.head.entries + cut.head.entries);
    assert_eq!(findings.unlinked_entries, 0);
    // Looking changes nothing that a look would see.
    assert_eq!(verified(directory.path()), findings);
    let store = crate::open(directory.path());
    let recover = cut.recover(store.mint().await.unwrap());
    cut.write(&store, recover).await.unwrap();
    store.close().await;
    let findings = verified(directory.path());
    assert!(findings.whole(), "{:?}", findings.faults);
}

#[tokio::test]
async fn b52_a_lost_or_stale_record_of_any_kind_is_named_although_the_rest_is_whole() {
    let (directory, _, cut) = busy().await;
    let all: Vec<Vec<u8>> = {
        let db = sled::open(directory.path()).unwrap();
        db.iter().keys().map(|key| key.unwrap().to_vec()).collect()
    };
    let mut kinds = std::collections::BTreeMap::new();
    for key in all {
        kinds.entry(key[0]).or_insert(key);
    }
    assert!(kinds.len() >= 18, "{kinds:?}");
    for (tag, gone) in kinds {
        // Without these it is no store, which the opening tells.
        if tag == b'm' || tag == b'w' {
            continue;
        }
        let copy = crate::image::take(directory.path());
        let findings = broken(copy.path(), |db| {
            db.remove(&gone).unwrap();
        });
        assert!(!findings.whole(), "nobody misses {}", tag as char);
        for fault in &findings.faults {
            assert!(
                !fault.key.is_empty() && !fault.remedy.is_empty(),
                "{fault:?}"
            );
        }
    }
    // An older version of a record that is whole by itself: only the sum tells.
    let copy = crate::image::take(directory.path());
    let findings = {
        let mut on = cut.clone();
        let store = crate::open(copy.path());
        let head = |path: &Path| {
            let db = sled::open(path).unwrap();
            db.get(key(b'l', &on, None)).unwrap()
        };
        store.close().await;
        let former = head(copy.path()).unwrap();
        let store = crate::open(copy.path());
        let recover = on.recover(store.mint().await.unwrap());
        on.write(&store, recover).await.unwrap();
        let admit = on.admit(store.mint().await.unwrap(), "again");
        on.write(&store, admit).await.unwrap();
        store.close().await;
        broken(copy.path(), |db| {
            db.insert(key(b'l', &on, None), former).unwrap();
        })
    };
    assert!(!findings.whole());
}

#[tokio::test]
async fn b52_a_changed_entry_breaks_its_chain_and_is_named_with_its_session() {
    let (directory, rests, _) = busy().await;
    let last = rests.head.entries;
    for seq in [1, 4, last] {
        let copy = crate::image::take(directory.path());
        let place = key(b'e', &rests, Some(seq));
        let findings = broken(copy.path(), |db| {
            let mut value = db.get(&place).unwrap().unwrap().to_vec();
            // As somebody would who can write to the files, and knows of checksums.
            let letters = |pair: &[u8]| pair.iter().all(u8::is_ascii_lowercase);
            let word = value.windows(2).position(letters).unwrap();
            value[word] ^= 1;
            let mut sum = crc32fast::Hasher::new();
            sum.update(&value[..1]);
            sum.update(&place);
            sum.update(&value[5..]);
            let sum = sum.finalize().to_be_bytes();
            value[1..5].copy_from_slice(&sum);
            db.insert(&place, value).unwrap();
        });
        let named = findings.faults.iter().any(|fault| {
            fault.key.starts_with("entry ") && fault.session == Some(rests.id().to_string())
        });
        assert!(named, "{seq}: {:?}", findings.faults);
    }
}

#[tokio::test]
async fn b52_an_artifact_that_is_missing_is_named_with_its_entry() {
    use sessionplane_core::domain::artifact::ArtifactRef;
    use sessionplane_core::domain::ids::ArtifactId;
    use sessionplane_core::domain::text::BoundedText;
    let directory = TempDir::new().unwrap();
    let store = crate::open(directory.path());
    let mut script = Script::new(1);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(&store, admit).await.unwrap();
    let id = ArtifactId::from_bytes([7; 16]);
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
    let say = script.say(vec![tool]);
    script.write(&store, say).await.unwrap();
    store.close().await;
    let contents = super::exports::Shelf::default();
    let store = Inspection::open(directory.path()).unwrap();
    let findings = store.verify(Some(&contents), &mut |_, _| {});
    assert_eq!(findings.fault_count, 1, "{:?}", findings.faults);
    assert!(findings.faults[0].problem.contains(&id.to_string()));
    contents.put(id, b"hello");
    let findings = store.verify(Some(&contents), &mut |_, _| {});
    assert!(findings.whole(), "{:?}", findings.faults);
    assert_eq!(findings.artifacts, 1);
}

#[tokio::test]
async fn b54_a_store_in_use_is_not_looked_at() {
    let directory = TempDir::new().unwrap();
    let store = crate::open(directory.path());
    let refused = Inspection::open(directory.path()).err();
    assert!(matches!(
        refused,
        Some(sessionplane_server::adapters::sled::OpenError::InUse { .. })
    ));
    store.close().await;
    assert!(Inspection::open(directory.path()).is_ok());
    assert!(Inspection::open(&directory.path().join("nothing")).is_err());
    assert!(!directory.path().join("nothing").exists());
}
