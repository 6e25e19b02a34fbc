//! What a backup costs those who write meanwhile: a commit waits for a page of records at most.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::adapters::sled::tools::{Contents, dump_snapshot};
use sessionplane_server::adapters::sled::{SledStore, StoreOptions};
use tempfile::TempDir;

use crate::script::{Script, said};
use crate::{count, fill};

/// What the slowest commit in a hundred may take longer than without a backup.
const MORE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 250 } else { 25 });
/// Commits that are timed without one.
const ALONE: usize = 1000;

/// Dormant sessions have none.
struct Nothing;

impl Contents for Nothing {
    fn content(&self, _: ArtifactId) -> Result<Option<Vec<u8>>, String> {
        Ok(None)
    }
    fn keep(&self, _: ArtifactId, _: Vec<u8>) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_wait_for_a_page_of_a_backup_and_no_longer() {
    let sessions = count("SESSIONPLANE_DORMANT", 2_000);
    let directory = TempDir::new().unwrap();
    fill::dormant(directory.path(), sessions).await;
    forgotten(&directory.path().join("db"));
    // Smaller than the data, so that pages come from the disk.
    let options = StoreOptions {
        cache_bytes: 16 * 1024 * 1024,
        ..StoreOptions::new(7)
    };
    let store = SledStore::open(directory.path(), &options).unwrap();
    let mut script = Script::new(sessions + 1);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(&store, admit).await.unwrap();
    let mut alone = Vec::new();
    for _ in 0..ALONE {
        alone.push(commit(&store, &mut script).await);
    }
    let snapshot = store.snapshot().await.unwrap();
    let begun = Instant::now();
    let reading = tokio::task::spawn_blocking(move || {
        dump_snapshot(&snapshot, &Nothing, &mut std::io::sink(), &mut |_, _| {})
    });
    let mut beside = Vec::new();
    while !reading.is_finished() {
        beside.push(commit(&store, &mut script).await);
    }
    let dumped = reading.await.unwrap().unwrap();
    let taken = begun.elapsed();
    println!("{} records in {taken:?}", dumped.records);
    let (alone, beside) = (Waits::of(alone), Waits::of(beside));
    println!("commits alone {alone:?}");
    println!("commits beside a backup {beside:?}");
    store.close().await;
    assert!(beside.count > 0, "nobody could write meanwhile");
    assert!(beside.p99 <= alone.p99 + MORE, "{beside:?} after {alone:?}");
}

/// How long commits took.
#[derive(Debug)]
#[allow(dead_code, reason = "it is printed")]
struct Waits {
    count: usize,
    p50: Duration,
    p99: Duration,
    longest: Duration,
}

impl Waits {
    fn of(mut waits: Vec<Duration>) -> Self {
        waits.sort_unstable();
        let at = |part: usize| waits.get(waits.len() * part / 100).copied();
        Self {
            count: waits.len(),
            p50: at(50).unwrap_or_default(),
            p99: at(99).unwrap_or_default(),
            longest: waits.last().copied().unwrap_or_default(),
        }
    }
}

async fn commit(store: &SledStore, script: &mut Script) -> Duration {
    let say = script.say(vec![said("word")]);
    let begun = Instant::now();
    script.write(store, say).await.unwrap();
    begun.elapsed()
}

/// Lets the system forget what it keeps in memory of a file, where it can.
fn forgotten(file: &Path) {
    let name = |word: &str| format!("{word}={}", file.display());
    let _ = Command::new("dd")
        .args([&*name("if"), "iflag=nocache", "count=0", "status=none"])
        .status();
}
