//! A damaged directory: a named error or the truth, never a panic, never silence about a loss.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_core::ports::repository::{EntryRange, ReadError, Repository as _};
use sessionplane_server::adapters::sled::tools::{DumpError, Inspection, load};
use sessionplane_server::adapters::sled::{OpenError, SledStore, StoreOptions};
use tempfile::TempDir;

use crate::exports::{Shelf, records};
use crate::image;
use crate::suite::reading::read_all;
use crate::suite::script::{Script, binding_key, said};

/// A directory with one session that was cut while it ran, and its entries.
async fn cut() -> (TempDir, Script, Vec<Entry>) {
    let directory = TempDir::new().unwrap();
    let store = crate::open(directory.path());
    let mut script = Script::new(1).named("fix");
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(&store, admit).await.unwrap();
    for n in 0..15 {
        let say = script.say(vec![said(&"v".repeat(n * 300))]);
        script.write(&store, say).await.unwrap();
    }
    // Opened once more, so that a part of the log lies behind a snapshot.
    store.close().await;
    let store = crate::open(directory.path());
    let again = script.recover(store.mint().await.unwrap());
    script.write(&store, again).await.unwrap();
    let mut admit = script.admit(store.mint().await.unwrap(), "go on");
    script.bind(&mut admit, binding_key("acme", "call"));
    script.write(&store, admit).await.unwrap();
    let steer = script.steer("and this");
    script.write(&store, steer).await.unwrap();
    // More than one segment of the log, so that there is a middle.
    for n in 0..400 {
        let say = script.say(vec![said(&"w".repeat(n % 13 * 300))]);
        script.write(&store, say).await.unwrap();
    }
    let entries = read_all(&store, &script, 100, usize::MAX).await;
    store.close().await;
    (directory, script, entries)
}

/// Opens what may be damaged and reads all of it.
async fn inspect(path: &Path, script: &Script, entries: &[Entry]) -> Result<(), OpenError> {
    let store = SledStore::open(path, &StoreOptions::new(7))?;
    let whole = EntryRange {
        after: 0,
        up_to: u64::MAX,
        max_entries: usize::MAX,
        max_bytes: usize::MAX,
    };
    // What opens without an error has everything that was acknowledged, or says of what it lacks
    // that it is damaged.
    if let Ok(read) = store.entries(script.id(), whole).await {
        assert_eq!(read.len(), entries.len(), "silence about a loss");
        assert!(read == entries, "something else was read");
    }
    // So of every other kind of record; a panic would fail the test.
    whole_or_named(store.session(script.id()).await, |stored| {
        stored.is_some_and(|stored| stored.head == script.head && stored.record == script.record)
    });
    whole_or_named(store.run(script.run_id()).await, |run| run == script.run);
    whole_or_named(store.runs_of(script.id()).await, |runs| runs.len() == 2);
    whole_or_named(store.audits(script.id()).await, |audits| {
        audits.len() as u64 == script.head.audits
    });
    whole_or_named(store.inputs(script.run_id()).await, |inputs| {
        inputs.len() == 1
    });
    let address = SessionRef::Name("fix".parse().unwrap());
    let found = store.resolve(&script.record.tenant, &address).await;
    whole_or_named(found, |found| found == Some(script.id()));
    let binding = store.binding(&binding_key("acme", "call")).await;
    whole_or_named(binding, |binding| binding.is_some());
    whole_or_named(store.cut(script.id()).await, |cut| {
        cut.is_some_and(|cut| cut == script.lease())
    });
    store.close().await;
    Ok(())
}

fn whole_or_named<T>(read: Result<T, ReadError>, whole: impl FnOnce(T) -> bool) {
    if let Ok(read) = read {
        assert!(whole(read), "silence about a loss");
    }
}

fn is_named(result: &Result<(), OpenError>) -> bool {
    matches!(
        result,
        Ok(()) | Err(OpenError::Damaged { .. } | OpenError::Io { .. } | OpenError::Lost { .. })
    )
}

#[tokio::test]
async fn b54_a_changed_byte_in_the_database_is_told_or_harmless() {
    let (directory, script, entries) = cut().await;
    let length = fs::read(directory.path().join("db"))
        .unwrap()
        .iter()
        .rposition(|byte| *byte != 0)
        .unwrap();
    let mut refused = 0;
    for n in 0..48 {
        let copy = image::take(directory.path());
        let file = copy.path().join("db");
        let mut bytes = fs::read(&file).unwrap();
        bytes[length * n / 48] ^= 0x55;
        fs::write(&file, bytes).unwrap();
        let result = inspect(copy.path(), &script, &entries).await;
        assert!(is_named(&result), "{result:?}");
        refused += usize::from(result.is_err());
    }
    assert!(refused > 0, "no damage was noticed");
}

#[tokio::test]
async fn b54_a_cut_database_is_told_or_harmless() {
    let (directory, script, entries) = cut().await;
    let length = fs::metadata(directory.path().join("db")).unwrap().len();
    for n in 0..16 {
        let copy = image::take(directory.path());
        let file = fs::File::options()
            .write(true)
            .open(copy.path().join("db"))
            .unwrap();
        file.set_len(length * n / 16 + 7 * n).unwrap();
        let result = inspect(copy.path(), &script, &entries).await;
        assert!(is_named(&result), "{result:?}");
    }
}

#[tokio::test]
async fn b54_a_step_back_behind_what_was_acknowledged_is_told() {
    let (directory, script, entries) = cut().await;
    let earlier = image::take(directory.path());
    let store = crate::open(directory.path());
    let mut on = script.clone();
    let recover = on.recover(store.mint().await.unwrap());
    on.write(&store, recover).await.unwrap();
    store.close().await;
    let newest = directory.path().join("acknowledged");
    fs::copy(&newest, earlier.path().join("acknowledged")).unwrap();
    let Err(error @ OpenError::Lost { .. }) = inspect(earlier.path(), &script, &entries).await
    else {
        panic!("the loss was not told");
    };
    assert!(error.to_string().contains("acknowledged"), "{error}");
    // A server that is started again and again changes nothing any more.
    let files = || {
        let read = |name| fs::read(earlier.path().join(name)).unwrap();
        ["db", "conf", "acknowledged"].map(read)
    };
    let left = files();
    // Whoever opened the database again would make its settings anew.
    let (conf, aside) = (earlier.path().join("conf"), earlier.path().join("aside"));
    fs::rename(&conf, &aside).unwrap();
    let again = inspect(earlier.path(), &script, &entries).await;
    assert_eq!(again, Err(error));
    assert!(!conf.exists(), "the database was opened again");
    fs::rename(&aside, &conf).unwrap();
    assert!(files() == left, "the damaged files were written to");
    // A note that is damaged itself is no reason to give up, nor to forget the loss.
    fs::write(earlier.path().join("lost"), [0xff, 0xfe, b'7']).unwrap();
    let again = inspect(earlier.path(), &script, &entries).await;
    assert!(matches!(again, Err(OpenError::Lost { .. })), "{again:?}");
    // The way out that the message names.
    fs::remove_file(earlier.path().join("acknowledged")).unwrap();
    inspect(earlier.path(), &script, &entries).await.unwrap();
    assert!(!earlier.path().join("lost").exists());
}

/// Without the witness a lost end would look like none: `verify` says so, a start goes on.
#[tokio::test]
async fn b54_a_witness_that_is_gone_or_says_nothing_is_a_fault() {
    let (directory, script, entries) = cut().await;
    assert!(crate::verify::verified(directory.path()).whole());
    for said in [None, Some(vec![]), Some(vec![0; 28]), Some(vec![7; 5])] {
        let copy = image::take(directory.path());
        let witness = copy.path().join("acknowledged");
        match &said {
            None => fs::remove_file(&witness).unwrap(),
            Some(bytes) => fs::write(&witness, bytes).unwrap(),
        }
        for _ in 0..2 {
            let findings = crate::verify::verified(copy.path());
            assert_eq!(findings.fault_count, 1, "{said:?}: {:?}", findings.faults);
            assert_eq!(findings.faults[0].key, "file acknowledged");
        }
        inspect(copy.path(), &script, &entries).await.unwrap();
        assert!(crate::verify::verified(copy.path()).whole(), "{said:?}");
    }
    // A first start that was cut before it noted anything has acknowledged nothing.
    let fresh = TempDir::new().unwrap();
    crate::open(fresh.path()).close().await;
    fs::write(fresh.path().join("acknowledged"), []).unwrap();
    assert!(crate::verify::verified(fresh.path()).whole());
}

/// What has no end or no writer is not read.
#[tokio::test]
async fn b54_what_is_no_file_is_refused_by_its_name() {
    let (directory, script, entries) = cut().await;
    for name in [
        "snap.00000000000000AA",
        "acknowledged",
        "conf",
        "db",
        "lost",
    ] {
        let copy = image::take(directory.path());
        let place = copy.path().join(name);
        let _ = fs::remove_file(&place);
        std::os::unix::fs::symlink("/dev/zero", &place).unwrap();
        let refused = inspect(copy.path(), &script, &entries).await;
        let Err(error @ OpenError::Io { .. }) = refused else {
            panic!("{name}: {refused:?}");
        };
        assert!(error.to_string().contains("is no regular file"), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[tokio::test]
async fn b54_a_note_of_another_store_is_told_as_that_and_not_as_a_loss() {
    let (directory, script, entries) = cut().await;
    let other = TempDir::new().unwrap();
    let store = SledStore::open(other.path(), &StoreOptions::new(8)).unwrap();
    let mut busy = Script::new(5);
    let admit = busy.admit(store.mint().await.unwrap(), "go");
    busy.write(&store, admit).await.unwrap();
    for _ in 0..1000 {
        let say = busy.say(vec![said("more rounds than the other store has")]);
        busy.write(&store, say).await.unwrap();
    }
    store.close().await;
    let note = directory.path().join("acknowledged");
    fs::copy(other.path().join("acknowledged"), &note).unwrap();
    let refused = inspect(directory.path(), &script, &entries).await;
    let Err(error @ OpenError::Damaged { .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(error.to_string().contains("another store"), "{error}");
    assert!(!directory.path().join("lost").exists());
}

#[tokio::test]
async fn b54_damaged_settings_are_told_with_the_directory() {
    let (directory, script, entries) = cut().await;
    let conf = fs::read(directory.path().join("conf")).unwrap();
    let flipped: Vec<u8> = conf.iter().map(|byte| byte ^ 0x80).collect();
    for damaged in [
        &flipped[..],
        &conf[..conf.len() / 2],
        b"segment_size: many\n1234",
    ] {
        let copy = image::take(directory.path());
        fs::write(copy.path().join("conf"), damaged).unwrap();
        let refused = inspect(copy.path(), &script, &entries).await;
        let Err(error @ OpenError::Damaged { .. }) = refused else {
            panic!("{refused:?}");
        };
        let path = copy.path().to_str().unwrap();
        assert!(error.to_string().contains(path), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_store_is_refused() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "text").unwrap();
    let refused = SledStore::open(&file, &StoreOptions::new(7)).err();
    assert!(matches!(refused, Some(OpenError::Io { .. })), "{refused:?}");

    fs::write(directory.path().join("db"), vec![0x42; 1 << 20]).unwrap();
    let opened = SledStore::open(directory.path(), &StoreOptions::new(7));
    let result = opened.map(drop);
    assert!(is_named(&result), "{result:?}");
}

/// Places of a damage in each file.
fn places() -> usize {
    let setting = std::env::var("SESSIONPLANE_DAMAGES");
    setting.map_or(5, |text| {
        text.parse().expect("SESSIONPLANE_DAMAGES is a number")
    })
}

/// What is exported of a directory that verifies as whole; none of one that does not, or that is
/// refused by name.
fn whole_export(path: &Path) -> Option<Vec<u8>> {
    let store = match Inspection::open(path) {
        Ok(store) => store,
        Err(error) => {
            assert!(is_named(&Err(error.clone())), "{error}");
            return None;
        }
    };
    let findings = store.verify(None, &mut |_, _| {});
    if !findings.whole() {
        return None;
    }
    let mut lines = Vec::new();
    store
        .export(None, &Shelf::default(), &mut lines, &mut |_, _| {})
        .unwrap();
    Some(lines)
}

/// Whether something is exported of what is whole in a damaged directory. Where the sum fits, it is what
/// was there, and whole.
fn takes_out_the_truth(path: &Path, before: &[u8]) -> bool {
    let store = match Inspection::open_damaged(path) {
        Ok(store) => store,
        Err(error) => {
            assert!(is_named(&Err(error.clone())), "{error}");
            return false;
        }
    };
    let shelf = Shelf::default();
    let judged = store.judge(Some(&shelf), &mut |_, _| {});
    let mut lines = Vec::new();
    match store.export_whole(&judged, &shelf, &mut lines, &mut |_, _| {}) {
        Ok(_) => {}
        Err(DumpError::Unread | DumpError::Read(_)) => return false,
        Err(other) => panic!("{other}"),
    }
    let known: BTreeSet<&[u8]> = records(before).into_iter().collect();
    let same = records(&lines).iter().all(|line| known.contains(line));
    assert!(same || !judged.sum_fits, "something else was taken out");
    let fresh = TempDir::new().unwrap();
    load(fresh.path(), false, &shelf, &mut &lines[..], &mut |_, _| {}).unwrap();
    let findings = Inspection::open(fresh.path())
        .unwrap()
        .verify(Some(&shelf), &mut |_, _| {});
    // Where the sum does not fit, the engine may find by its key what it leaves out in their order.
    let told = findings.whole() || !judged.sum_fits;
    assert!(told, "{:?}", findings.faults);
    true
}

/// A flipped bit and a lost end, at many places of every file that a store consists of: a start
/// refuses by name or reads the truth, and what `verify` calls whole is what was there before.
#[tokio::test]
async fn b54_no_flipped_bit_and_no_lost_end_of_any_file_is_taken_for_the_truth() {
    let (directory, script, entries) = cut().await;
    let before = whole_export(image::take(directory.path()).path()).unwrap();
    let files: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    for expected in ["db", "conf", "acknowledged", "lock", "snap."] {
        assert!(
            files.iter().any(|name| name.starts_with(expected)),
            "{files:?}"
        );
    }
    let (mut told, mut tried, mut taken) = (0, 0, 0);
    for name in &files {
        let bytes = fs::read(directory.path().join(name)).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
        for n in 0..places() {
            // Never twice the same place, and not only the first bit.
            let at = (used * n / places()).min(bytes.len());
            let mut flipped = bytes.clone();
            if let Some(byte) = flipped.get_mut(at) {
                *byte ^= 1 << (n % 8);
            }
            for damaged in [&flipped[..], &bytes[..at]] {
                let copy = image::take(directory.path());
                fs::write(copy.path().join(name), damaged).unwrap();
                let result = inspect(copy.path(), &script, &entries).await;
                assert!(is_named(&result), "{name} at {at}: {result:?}");
                let copy = image::take(directory.path());
                fs::write(copy.path().join(name), damaged).unwrap();
                let after = whole_export(copy.path());
                assert!(
                    after.is_none_or(|after| after == before),
                    "{name} at {at}: what is whole is something else"
                );
                let copy = image::take(directory.path());
                fs::write(copy.path().join(name), damaged).unwrap();
                taken += usize::from(takes_out_the_truth(copy.path(), &before));
                told += usize::from(result.is_err());
                tried += 1;
            }
        }
    }
    println!("{told} of {tried} starts were refused, {taken} exports of what is whole were not");
    assert!(told > 0, "no damage was noticed");
    assert!(taken > 0 && taken < tried, "{taken} of {tried} exports");
}
