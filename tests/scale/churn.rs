//! Many small updates over data that does not grow: the next opening is as fast as it was.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_core::ports::repository::Repository as _;
use sessionplane_server::adapters::sled::SledStore;
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::script::Script;
use crate::{count, engine, fill};

/// Sessions whose records are written again and again.
const SESSIONS: u64 = 512;
/// What the next opening may take, however much was written: docs/store.md.
const BOUND: Duration = Duration::from_secs(5);
/// What the database may take, in bytes, for a few hundred small records.
const ROOM: u64 = 512 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b56_many_small_updates_over_constant_data_do_not_slow_the_next_open() {
    let updates = count("SESSIONPLANE_UPDATES", 20_000);
    let directory = TempDir::new().unwrap();
    let store = fill::open(directory.path());
    let mut scripts = Vec::new();
    for number in 0..SESSIONS {
        let mut script = Script::new(number);
        let admit = script.admit(store.mint().await.unwrap(), "go");
        script.write(store.as_ref(), admit).await.unwrap();
        let steer = script.steer("and this");
        script.write(store.as_ref(), steer).await.unwrap();
        scripts.push(Arc::new(Mutex::new(script)));
    }
    store.close().await;
    drop(store);
    let before = engine::open(directory.path());
    let store = fill::open(directory.path());
    for script in &scripts {
        let mut script = script.lock().await;
        let recover = script.recover(store.mint().await.unwrap());
        script.write(store.as_ref(), recover).await.unwrap();
        let admit = script.admit(store.mint().await.unwrap(), "go on");
        script.write(store.as_ref(), admit).await.unwrap();
    }
    let begun = Instant::now();
    let (scripts, churned) = (Arc::new(scripts), store.clone());
    fill::spread(updates, move |number| {
        let place = usize::try_from(number % SESSIONS).unwrap();
        let (store, script) = (churned.clone(), scripts[place].clone());
        async move { update(&store, &mut *script.lock().await).await }
    })
    .await;
    println!("{updates} updates in {:?}", begun.elapsed());
    store.close().await;
    drop(store);
    let room = std::fs::metadata(directory.path().join("db"))
        .unwrap()
        .len();
    let begun = Instant::now();
    let store = fill::open(directory.path());
    let after = begun.elapsed();
    store.close().await;
    println!(
        "opened before in {:?}, after in {after:?}; {room} bytes",
        before.time
    );
    assert!(after <= BOUND, "{after:?}");
    assert!(room <= ROOM, "{room} bytes for {SESSIONS} sessions");
}

/// Writes a run's record and its session's head anew; nothing is added.
async fn update(store: &SledStore, script: &mut Script) {
    let mut commit = script.say(Vec::new());
    commit.audits.clear();
    commit.head.audits = commit.expected_audits;
    commit.runs.extend(script.run.clone());
    store.commit(commit.clone()).await.unwrap();
    script.accepted(&commit);
}
