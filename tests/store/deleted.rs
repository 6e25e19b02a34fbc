//! Deletions and erasures on disk: killed at any step of any round they go on, readers see each round
//! as a whole, and `verify` and exports know of what is left.

use std::path::Path;
use std::sync::Arc;

use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::ids::{SessionId, SessionRef};
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_core::ports::repository::{
    CommitError, DeletedSession, Repository as _, SessionQuery,
};
use sessionplane_server::adapters::sled::tools::{Inspection, load};
use sessionplane_server::adapters::sled::{RoundStep, SledStore, StoreOptions};
use tempfile::TempDir;

use crate::exports::Shelf;
use crate::image;
use crate::stop::{Stop, begun};
use crate::suite::script::Script;
use crate::verify::{busy, verified};

const STEPS: [RoundStep; 5] = [
    RoundStep::BeforeApply,
    RoundStep::AfterApply,
    RoundStep::BeforeSync,
    RoundStep::AfterSync,
    RoundStep::BeforeAck,
];

fn stoppable(path: &Path) -> (SledStore, Arc<Stop>) {
    let stop = Stop::new();
    let options = StoreOptions {
        probe: Some(stop.clone()),
        ..StoreOptions::new(7)
    };
    (SledStore::open(path, &options).unwrap(), stop)
}

async fn found(store: &SledStore) -> Vec<SessionId> {
    let query = SessionQuery {
        tenant: "acme".parse().unwrap(),
        term: StoredTerm::Every,
        after: None,
        descending: false,
        max: 9,
    };
    let found = store.find(query).await.unwrap();
    found.iter().map(|it| it.session.record.id).collect()
}

/// Opens what a kill left, erases to the end what is deleted, and looks at all of it.
async fn goes_on(image: &TempDir, script: &Script, other: &Script) {
    let findings = verified(image.path());
    assert!(findings.whole(), "{:?}", findings.faults);
    let store = crate::open(image.path());
    if let Some(stored) = store.session(script.id()).await.unwrap() {
        assert_eq!(stored, script.stored());
        assert_eq!(store.deleted(None).await, Ok(None));
        assert_eq!(found(&store).await, [script.id(), other.id()]);
        let token = store.mint().await.unwrap();
        store.delete(script.delete(token)).await.unwrap();
    }
    if store.deleted(None).await.unwrap().is_some() {
        while !store.erase(script.id(), 0, 50).await.unwrap() {}
    }
    assert_eq!(store.deleted(None).await, Ok(None));
    assert_eq!(found(&store).await, [other.id()]);
    assert_eq!(store.runs_of(script.id()).await, Ok(Vec::new()));
    let trail = store.audits(script.id()).await.unwrap();
    assert_eq!(trail.len() as u64, script.head.audits + 1);
    store.close().await;
    let findings = verified(image.path());
    assert!(findings.whole(), "{:?}", findings.faults);
    assert_eq!(findings.sessions, 1);
    assert_eq!(findings.entries, other.head.entries);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c39_b54_a_deletion_that_is_killed_at_any_step_of_any_round_goes_on_to_its_end() {
    for step in STEPS {
        let (directory, script, other) = busy().await;
        let (store, stop) = stoppable(directory.path());
        let token = store.mint().await.unwrap();
        stop.arm(step);
        let deletion = begun(store.delete(script.delete(token))).await;
        stop.reached().await;
        let mut killed = vec![image::take(directory.path())];
        stop.release();
        deletion.await.unwrap();
        loop {
            stop.arm(step);
            let erasing = begun(store.erase(script.id(), 0, 6)).await;
            stop.reached().await;
            killed.push(image::take(directory.path()));
            stop.release();
            if erasing.await.unwrap() {
                break;
            }
        }
        assert!(killed.len() > 4, "it was erased at once");
        store.close().await;
        for image in &killed {
            goes_on(image, &script, &other).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c39_until_it_is_synced_nothing_is_deleted_renamed_or_created_for_readers() {
    let (directory, mut script, other) = busy().await;
    let (store, stop) = stoppable(directory.path());
    let name = SessionRef::Name("fix".parse().unwrap());
    let tenant = script.record.tenant.clone();

    stop.arm(RoundStep::BeforeSync);
    let rename = script.rename(Some("done"));
    let renaming = begun(store.commit_metadata(rename.clone())).await;
    stop.reached().await;
    assert_eq!(store.resolve(&tenant, &name).await, Ok(Some(script.id())));
    assert_eq!(store.session(script.id()).await, Ok(Some(script.stored())));
    stop.release();
    renaming.await.unwrap();
    script.record.metadata = rename.metadata;
    assert_eq!(store.resolve(&tenant, &name).await, Ok(None));

    stop.arm(RoundStep::BeforeSync);
    let late = Script::new(9);
    let token = store.mint().await.unwrap();
    let creating = begun(store.commit(late.admit(token, "go"))).await;
    stop.reached().await;
    assert_eq!(found(&store).await, [script.id(), other.id()]);
    stop.release();
    creating.await.unwrap();
    assert_eq!(found(&store).await.len(), 3);

    stop.arm(RoundStep::BeforeSync);
    let token = store.mint().await.unwrap();
    let deleting = begun(store.delete(script.delete(token))).await;
    stop.reached().await;
    assert_eq!(store.session(script.id()).await, Ok(Some(script.stored())));
    assert_eq!(store.deleted(None).await, Ok(None));
    assert_eq!(found(&store).await.len(), 3);
    stop.release();
    deleting.await.unwrap();
    assert_eq!(found(&store).await, [other.id(), late.id()]);
    let deleted = DeletedSession {
        session: script.id(),
        entries: script.head.entries,
    };
    assert_eq!(store.deleted(None).await, Ok(Some(deleted)));
    store.close().await;
}

#[tokio::test]
async fn c61_what_is_left_of_a_deleted_session_is_exported_and_erased_after_the_import() {
    let (directory, script, other) = busy().await;
    let store = crate::open(directory.path());
    let token = store.mint().await.unwrap();
    store.delete(script.delete(token)).await.unwrap();
    assert_eq!(store.erase(script.id(), 3, 100).await, Ok(false));
    store.close().await;
    let (shelf, mut lines) = (Shelf::default(), Vec::new());
    let inspected = Inspection::open(directory.path()).unwrap();
    inspected
        .export(None, &shelf, &mut lines, &mut |_, _| {})
        .unwrap();
    let refused = inspected.export(
        Some(&[script.id().to_string()]),
        &shelf,
        &mut Vec::new(),
        &mut |_, _| {},
    );
    assert!(refused.is_err(), "a deleted session was exported");
    let mut alone = Vec::new();
    inspected
        .export(
            Some(&[other.id().to_string()]),
            &shelf,
            &mut alone,
            &mut |_, _| {},
        )
        .unwrap();
    drop(inspected);
    for (lines, left) in [(lines, true), (alone, false)] {
        let fresh = TempDir::new().unwrap();
        load(fresh.path(), left, &shelf, &mut &lines[..], &mut |_, _| {}).unwrap();
        let findings = verified(fresh.path());
        assert!(findings.whole(), "{:?}", findings.faults);
        let store = crate::open(fresh.path());
        assert_eq!(found(&store).await, [other.id()]);
        assert_eq!(store.deleted(None).await.unwrap().is_some(), left);
        assert_eq!(store.erase(script.id(), 0, 1000).await, Ok(true));
        store.close().await;
        let findings = verified(fresh.path());
        assert!(findings.whole(), "{:?}", findings.faults);
    }
}

fn break_at(path: &Path, change: impl FnOnce(&sled::Db)) {
    let db = sled::open(path).unwrap();
    change(&db);
    db.flush().unwrap();
}

#[tokio::test]
async fn b54_a_damaged_session_keeps_nobody_from_finding_the_others() {
    let (directory, script, other) = busy().await;
    let head = [&b"h"[..], &script.id().to_bytes()].concat();
    break_at(directory.path(), |db| {
        db.insert(&head, b"?").unwrap();
    });
    let store = crate::open(directory.path());
    assert_eq!(found(&store).await, [other.id()]);
    store.close().await;
}

/// What a run writes needs neither the session's record nor its rows: with all of them damaged it goes on.
#[tokio::test]
async fn c40_a_commit_that_moves_nothing_reads_nothing_of_what_its_session_is_found_by() {
    let (directory, _, mut cut) = busy().await;
    let record = [&b"s"[..], &cut.id().to_bytes()].concat();
    break_at(directory.path(), |db| {
        db.insert(&record, b"?").unwrap().expect("it is there");
        let rows: Vec<_> = db.scan_prefix(b"f").keys().map(Result::unwrap).collect();
        for row in rows {
            db.insert(row, b"?").unwrap();
        }
    });
    let store = crate::open(directory.path());
    let recover = cut.recover(store.mint().await.unwrap());
    cut.write(&store, recover).await.unwrap();
    let admit = cut.admit(store.mint().await.unwrap(), "go on");
    cut.write(&store, admit).await.unwrap();
    let settle = cut.settle();
    cut.write(&store, settle).await.unwrap();
    // One that moves it does, and is refused.
    let there = cut.go_to(store.mint().await.unwrap(), Some("main"));
    let refused = store.commit(there).await;
    assert!(matches!(refused, Err(CommitError::Store(_))), "{refused:?}");
    store.close().await;
}

#[tokio::test]
async fn b54_a_damaged_entry_of_a_deleted_session_is_erased_like_the_others() {
    let (directory, script, other) = busy().await;
    let entry = [&b"e"[..], &script.id().to_bytes(), &4_u64.to_be_bytes()].concat();
    break_at(directory.path(), |db| {
        db.insert(&entry, b"?").unwrap();
    });
    let store = crate::open(directory.path());
    let token = store.mint().await.unwrap();
    store.delete(script.delete(token)).await.unwrap();
    assert_eq!(store.erase(script.id(), 0, 1000).await, Ok(true));
    assert_eq!(store.deleted(None).await, Ok(None));
    assert_eq!(found(&store).await, [other.id()]);
    store.close().await;
}

#[tokio::test]
async fn b52_what_a_deletion_left_without_a_note_and_a_row_that_leads_nowhere_are_told() {
    let (directory, script, _) = busy().await;
    let store = crate::open(directory.path());
    let token = store.mint().await.unwrap();
    store.delete(script.delete(token)).await.unwrap();
    store.close().await;
    let note = [&b"d"[..], &script.id().to_bytes()].concat();
    let copy = image::take(directory.path());
    break_at(copy.path(), |db| {
        db.remove(&note).unwrap().unwrap();
    });
    let told = verified(copy.path()).faults;
    let of = Some(script.id().to_string());
    let left = told.iter().any(|fault| {
        fault.key.starts_with("entry ") && fault.session == of && fault.problem.contains("no head")
    });
    assert!(left, "{told:?}");
    break_at(directory.path(), |db| {
        let row = db.scan_prefix(b"f").keys().next().unwrap().unwrap();
        let value = db.get(&row).unwrap().unwrap();
        let nowhere = [&row[..row.len() - 16], &script.id().to_bytes()].concat();
        let mut sum = crc32fast::Hasher::new();
        sum.update(&value[..1]);
        sum.update(&nowhere);
        let value = [&value[..1], &sum.finalize().to_be_bytes()].concat();
        db.insert(nowhere, value).unwrap();
    });
    let told = verified(directory.path()).faults;
    let leads = told.iter().any(|fault| {
        fault.key.starts_with("index of acme ")
            && fault
                .problem
                .starts_with("the session that it leads to is missing")
    });
    assert!(leads, "{told:?}");
}
