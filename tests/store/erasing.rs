//! What is left of a deleted session while it is being erased, whose contents go before the entries that
//! name them: neither `verify` nor an export nor a backup misses what is meant to be gone.

use std::sync::Arc;

use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_core::ports::repository::Repository as _;
use sessionplane_server::adapters::sled::SledStore;
use sessionplane_server::adapters::sled::tools::{Dumped, Inspection, dump_snapshot, load};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::exports::Shelf;
use crate::stop::DEADLINE;
use crate::suite::script::Script;

/// A session at rest whose tool gave back something that no entry holds.
async fn with_a_content(store: &SledStore, n: u64, shelf: &Shelf) -> Script {
    let mut script = Script::new(n).named(&format!("s{n}"));
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(store, admit).await.unwrap();
    let id = content(n);
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
    let say = script.say(vec![tool]);
    script.write(store, say).await.unwrap();
    let settle = script.settle();
    script.write(store, settle).await.unwrap();
    script
}

fn content(n: u64) -> ArtifactId {
    ArtifactId::from_bytes([u8::try_from(n).unwrap(); 16])
}

fn faults(directory: &TempDir, shelf: &Shelf) -> Vec<String> {
    let store = Inspection::open(directory.path()).unwrap();
    let findings = store.verify(Some(shelf), &mut |_, _| {});
    let faults = findings.faults.into_iter();
    faults.map(|fault| fault.problem).collect()
}

fn exported(directory: &TempDir, shelf: &Shelf) -> (Dumped, Vec<u8>) {
    let (store, mut lines) = (Inspection::open(directory.path()).unwrap(), Vec::new());
    let dumped = store.export(None, shelf, &mut lines, &mut |_, _| {});
    (dumped.unwrap(), lines)
}

/// Imports what an export wrote; gives what is wrong with it then.
fn imported(lines: &[u8]) -> (TempDir, Vec<String>) {
    let (fresh, shelf) = (TempDir::new().unwrap(), Shelf::default());
    load(fresh.path(), true, &shelf, &mut &lines[..], &mut |_, _| {}).unwrap();
    let faults = faults(&fresh, &shelf);
    (fresh, faults)
}

#[tokio::test]
async fn b52_b54_a_server_that_is_killed_between_a_content_and_its_entry_leaves_no_damage() {
    let (directory, shelf) = (TempDir::new().unwrap(), Shelf::default());
    let store = crate::open(directory.path());
    let script = with_a_content(&store, 1, &shelf).await;
    with_a_content(&store, 2, &shelf).await;
    let token = store.mint().await.unwrap();
    store.delete(script.delete(token)).await.unwrap();
    store.close().await;
    shelf.lose(content(1));
    assert_eq!(faults(&directory, &shelf), [""; 0]);
    let (dumped, lines) = exported(&directory, &shelf);
    assert_eq!((dumped.artifacts, dumped.missing), (1, 0));
    let (fresh, wrong) = imported(&lines);
    assert_eq!(wrong, [""; 0]);
    let store = crate::open(fresh.path());
    assert_eq!(store.erase(script.id(), 0, 100).await, Ok(true));
    store.close().await;
    // Of a session that is there it is told as ever.
    shelf.lose(content(2));
    let told = faults(&directory, &shelf);
    assert!(told.len() == 1 && told[0].contains("missing"), "{told:?}");
    assert_eq!(exported(&directory, &shelf).0.missing, 1);
}

/// The session was there when the backup began: all that it named must stay until that is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c39_nothing_is_erased_of_what_a_backup_that_began_before_the_deletion_still_reads() {
    let (directory, shelf) = (TempDir::new().unwrap(), Shelf::default());
    let store = Arc::new(crate::open(directory.path()));
    let script = with_a_content(&store, 1, &shelf).await;
    let before = store.snapshot().await.unwrap();
    let token = store.mint().await.unwrap();
    store.delete(script.delete(token)).await.unwrap();
    let asked = store.clone();
    let deleted = tokio::spawn(async move { asked.deleted(None).await });
    // It reads what these read, and would have come back.
    for _ in 0..50 {
        assert_eq!(store.session(script.id()).await, Ok(None));
    }
    assert!(!deleted.is_finished(), "it would be erased");
    let mut lines = Vec::new();
    let dumped = dump_snapshot(&before, &shelf, &mut lines, &mut |_, _| {}).unwrap();
    assert_eq!((dumped.artifacts, dumped.missing), (1, 0));
    drop(before);
    let found = timeout(DEADLINE, deleted).await.expect("it goes on");
    assert_eq!(found.unwrap().unwrap().unwrap().session, script.id());
    let (restored, wrong) = imported(&lines);
    assert_eq!(wrong, [""; 0]);
    let restored = crate::open(restored.path());
    let stored = restored.session(script.id()).await;
    assert_eq!(stored, Ok(Some(script.stored())));
    restored.close().await;

    // One that began after it has it as deleted, whatever is erased meanwhile.
    let after = store.snapshot().await.unwrap();
    shelf.lose(content(1));
    assert_eq!(store.erase(script.id(), 0, 100).await, Ok(true));
    let mut lines = Vec::new();
    let dumped = dump_snapshot(&after, &shelf, &mut lines, &mut |_, _| {}).unwrap();
    assert_eq!((dumped.artifacts, dumped.missing), (0, 0));
    assert_eq!(imported(&lines).1, [""; 0]);
    drop(after);
    store.close().await;
    assert_eq!(faults(&directory, &shelf), [""; 0]);
}
