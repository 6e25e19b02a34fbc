//! What a start that was cut by a crash or a full disk leaves: the next start takes it, with
//! everything that was acknowledged.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use sessionplane_core::domain::entry::Entry;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::adapters::sled::{OpenError, SledStore, StoreOptions};
use tempfile::TempDir;

use crate::image;
use crate::suite::reading::read_all;
use crate::suite::script::{Script, said};

/// A directory of several openings, with enough written that its log has come round.
async fn churned() -> (TempDir, Script, Vec<Entry>) {
    let directory = TempDir::new().unwrap();
    let mut script = Script::new(1).named("fix");
    let mut entries = Vec::new();
    for opening in 0..4 {
        let store = crate::open(directory.path());
        if opening > 0 {
            let cut = script.recover(store.mint().await.unwrap());
            script.write(&store, cut).await.unwrap();
        }
        let admit = script.admit(store.mint().await.unwrap(), "go on");
        script.write(&store, admit).await.unwrap();
        for n in 0..60 {
            let say = script.say(vec![said(&"v".repeat(n * 200))]);
            script.write(&store, say).await.unwrap();
        }
        entries = read_all(&store, &script, 100, usize::MAX).await;
        store.close().await;
    }
    // One opening more, which makes a snapshot of all of it.
    crate::open(directory.path()).close().await;
    (directory, script, entries)
}

fn snapshots(path: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(path).unwrap().map(|file| file.unwrap());
    let snapshots = files.filter(|file| file.file_name().to_str().unwrap().starts_with("snap."));
    snapshots.map(|file| file.path()).collect()
}

fn snapshot(path: &Path) -> PathBuf {
    let [snapshot] = &snapshots(path)[..] else {
        panic!("{:?}", snapshots(path));
    };
    snapshot.clone()
}

async fn has_everything(path: &Path, script: &Script, entries: &[Entry]) {
    for _ in 0..2 {
        let store = crate::open(path);
        let read = read_all(&store, script, 100, usize::MAX).await;
        assert!(read == entries, "{} of {}", read.len(), entries.len());
        store.close().await;
    }
}

#[tokio::test]
async fn b54_a_snapshot_in_the_making_does_not_keep_the_store_from_opening() {
    let (directory, script, entries) = churned().await;
    let whole = fs::read(snapshot(directory.path())).unwrap();
    for length in [0, 1, 13, whole.len() / 2, whole.len() - 4, whole.len()] {
        // The newest of all by its name, then one of an older time.
        for name in ["snap.7000000000000010", "snap.0000000000000010"] {
            let copy = image::take(directory.path());
            let stray = copy.path().join(format!("{name}.generating"));
            fs::write(&stray, &whole[..length]).unwrap();
            has_everything(copy.path(), &script, &entries).await;
            assert!(!stray.exists(), "{length} bytes of {name} are still there");
        }
    }
}

#[tokio::test]
async fn b54_a_damaged_snapshot_is_set_aside_and_the_log_alone_has_everything() {
    let (directory, script, entries) = churned().await;
    let newest = snapshot(directory.path());
    let whole = fs::read(&newest).unwrap();
    let flipped: Vec<u8> = whole.iter().map(|byte| byte ^ 0x10).collect();
    let cut = &whole[..whole.len() / 2];
    for damaged in [&[][..], &whole[..5], &[0; 12], &[0; 64], cut, &flipped] {
        let copy = image::take(directory.path());
        let name = newest.file_name().unwrap();
        fs::write(copy.path().join(name), damaged).unwrap();
        has_everything(copy.path(), &script, &entries).await;
        let aside = format!("aside.{}", name.to_str().unwrap());
        assert_eq!(fs::read(copy.path().join(aside)).unwrap(), damaged);
    }
}

#[tokio::test]
async fn b54_the_log_alone_has_everything_after_its_segments_were_used_again() {
    let (directory, script, entries) = churned().await;
    let newest = snapshot(directory.path());
    let place = newest.file_name().unwrap().to_str().unwrap();
    let written = u64::from_str_radix(place.strip_prefix("snap.").unwrap(), 16).unwrap();
    let length = fs::metadata(directory.path().join("db")).unwrap().len();
    assert!(
        written > length,
        "no segment was used again: {written} bytes in {length}"
    );
    fs::remove_file(newest).unwrap();
    has_everything(directory.path(), &script, &entries).await;
}

#[tokio::test]
async fn b34_a_snapshot_that_another_process_is_making_is_never_touched() {
    let directory = TempDir::new().unwrap();
    crate::open(directory.path()).close().await;
    let other = File::open(directory.path().join("lock")).unwrap();
    other.lock().unwrap();
    let making = directory.path().join("snap.7000000000000010.generating");
    fs::write(&making, "half").unwrap();
    let refused = SledStore::open(directory.path(), &StoreOptions::new(7)).err();
    let path = directory.path().to_owned();
    assert_eq!(refused, Some(OpenError::InUse { path }));
    assert_eq!(fs::read(&making).unwrap(), b"half");
    drop(other);
    crate::open(directory.path()).close().await;
    assert!(!making.exists());
}

#[tokio::test]
async fn b54_settings_that_the_first_start_left_cut_are_written_anew() {
    let settled = TempDir::new().unwrap();
    crate::open(settled.path()).close().await;
    let settings = fs::read(settled.path().join("conf")).unwrap();
    for length in 0..settings.len() {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("conf"), &settings[..length]).unwrap();
        crate::open(directory.path()).close().await;
        let written = fs::read(directory.path().join("conf")).unwrap();
        assert_eq!(written, settings);
    }
}

#[tokio::test]
async fn b54_a_log_that_ends_before_its_snapshot_is_refused_with_the_way_out() {
    let (directory, _, _) = churned().await;
    let database = File::options()
        .write(true)
        .open(directory.path().join("db"))
        .unwrap();
    database.set_len(0).unwrap();
    let refused = SledStore::open(directory.path(), &StoreOptions::new(7)).err();
    let Some(error @ OpenError::Damaged { .. }) = refused else {
        panic!("{refused:?}");
    };
    let said = error.to_string();
    assert!(said.contains("restore a copy"), "{said}");
    assert!(!snapshots(directory.path()).is_empty(), "whole, and gone");
}
