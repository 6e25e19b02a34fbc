//! A snapshot is of one round, whatever is written while it is read, and is in nobody's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::adapters::sled::tools::{DumpError, Inspection, dump_snapshot, load};
use tempfile::TempDir;

use crate::exports::Shelf;
use crate::suite::reading::read_all;
use crate::suite::script::{Script, said};

/// Commits to its sessions, one after the other, until it is told to stop. Texts of all lengths, so
/// that pieces come, and runs that settle, so that records are replaced and deleted.
async fn churn(
    store: Arc<sessionplane_server::adapters::sled::SledStore>,
    mut scripts: Vec<Script>,
    stop: Arc<AtomicBool>,
) -> Vec<Script> {
    let mut n = 0;
    while !stop.load(Ordering::SeqCst) {
        for script in &mut scripts {
            let commit = match (n % 7, script.run.is_some()) {
                (_, false) => script.admit(store.mint().await.unwrap(), "go on"),
                (0, true) => script.settle(),
                (1, true) => script.steer(&"s".repeat(n % 11 * 1000)),
                _ => script.say(vec![said(&"v".repeat(n % 13 * 800))]),
            };
            script.write(store.as_ref(), commit).await.unwrap();
            if n % 7 == 0 {
                script.run = None;
            }
        }
        n += 1;
    }
    scripts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c39_a_snapshot_that_is_read_under_load_is_a_whole_store_of_its_round() {
    let directory = TempDir::new().unwrap();
    let store = Arc::new(crate::open(directory.path()));
    let mut scripts = Vec::new();
    for n in 0..8 {
        let mut script = Script::new(n).named(&format!("s{n}"));
        let admit = script.admit(store.mint().await.unwrap(), "go");
        script.write(store.as_ref(), admit).await.unwrap();
        for n in 0..30 {
            let say = script.say(vec![said(&"w".repeat(n * 300))]);
            script.write(store.as_ref(), say).await.unwrap();
        }
        scripts.push(script);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let work = tokio::spawn(churn(store.clone(), scripts, stop.clone()));
    for n in 0..6 {
        let snapshot = store.snapshot().await.unwrap();
        assert!(store.snapshot().await.is_err(), "there is one at a time");
        let before = store.counters().commits;
        let dumped = tokio::task::spawn_blocking(move || {
            let mut lines = Vec::new();
            // Slowly, so that much is written meanwhile.
            let mut slowly = |_, _| std::thread::yield_now();
            dump_snapshot(&snapshot, &Shelf::default(), &mut lines, &mut slowly).map(|_| lines)
        });
        // The sum of what was read is the one that its round had: it is of that round and no other.
        let lines = dumped.await.unwrap().unwrap();
        let after = store.counters().commits;
        let fresh = TempDir::new().unwrap();
        load(
            fresh.path(),
            true,
            &Shelf::default(),
            &mut &lines[..],
            &mut |_, _| {},
        )
        .unwrap();
        let findings = Inspection::open(fresh.path())
            .unwrap()
            .verify(None, &mut |_, _| {});
        assert!(findings.whole(), "{n}: {:?}", findings.faults);
        assert!(after > before, "nobody wrote meanwhile");
    }
    stop.store(true, Ordering::SeqCst);
    for script in work.await.unwrap() {
        let entries = read_all(store.as_ref(), &script, 100, usize::MAX).await;
        assert_eq!(entries.len() as u64, script.head.entries);
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_ends_with_its_store_and_keeps_it_open_no_longer_than_a_page() {
    let directory = TempDir::new().unwrap();
    let store = crate::open(directory.path());
    let snapshot = store.snapshot().await.unwrap();
    store.close().await;
    let shelf = Shelf::default();
    let told = dump_snapshot(&snapshot, &shelf, &mut Vec::new(), &mut |_, _| {});
    assert!(matches!(told, Err(DumpError::Read(_))), "{told:?}");
    drop(snapshot);
    crate::open(directory.path()).close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_a_snapshot_that_stands_still_holds_no_commit_up() {
    let directory = TempDir::new().unwrap();
    let store = crate::open(directory.path());
    let mut script = Script::new(1);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(&store, admit).await.unwrap();
    for _ in 0..200 {
        let say = script.say(vec![said("before")]);
        script.write(&store, say).await.unwrap();
    }
    let snapshot = store.snapshot().await.unwrap();
    let (go_on, stands) = std::sync::mpsc::sync_channel(1);
    let (reached, at_page) = tokio::sync::oneshot::channel();
    let reading = tokio::task::spawn_blocking(move || {
        let mut reached = Some(reached);
        let mut lines = Vec::new();
        let mut stand = |_, _| {
            if let Some(reached) = reached.take() {
                reached.send(()).unwrap();
                stands.recv().unwrap();
            }
        };
        dump_snapshot(&snapshot, &Shelf::default(), &mut lines, &mut stand).map(|_| lines)
    });
    at_page.await.unwrap();
    // All of these are acknowledged while it stands in the middle.
    for _ in 0..200 {
        let say = script.say(vec![said("afterwards")]);
        script.write(&store, say).await.unwrap();
    }
    go_on.send(()).unwrap();
    let lines = reading.await.unwrap().unwrap();
    let fresh = TempDir::new().unwrap();
    load(
        fresh.path(),
        true,
        &Shelf::default(),
        &mut &lines[..],
        &mut |_, _| {},
    )
    .unwrap();
    let findings = Inspection::open(fresh.path())
        .unwrap()
        .verify(None, &mut |_, _| {});
    assert!(findings.whole(), "{:?}", findings.faults);
    assert_eq!(findings.entries, 201, "what came after it is in it");
    store.close().await;
}
