//! How the durable store writes: rounds, syncs, what readers see meanwhile, and what a failing disk
//! does.

use std::sync::Arc;

use sessionplane_core::domain::ids::{EntryId, InputId, SessionName, SessionRef};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::limits::MAX_TEXT_BYTES;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_core::ports::repository::{CommitError, ReadError, Repository as _};
use sessionplane_server::adapters::sled::{
    OpenError, RoundProbe, RoundStep, SledStore, StoreOptions,
};
use tempfile::TempDir;

use crate::image;
use crate::stop::{DEADLINE, Stop, begun};
use crate::suite::reading::read_all;
use crate::suite::script::{Script, binding_key, said};

const STEPS: [RoundStep; 5] = [
    RoundStep::BeforeApply,
    RoundStep::AfterApply,
    RoundStep::BeforeSync,
    RoundStep::AfterSync,
    RoundStep::BeforeAck,
];

fn open(directory: &TempDir, probe: Arc<dyn RoundProbe>) -> SledStore {
    let options = StoreOptions {
        probe: Some(probe),
        ..StoreOptions::new(7)
    };
    SledStore::open(directory.path(), &options).unwrap()
}

async fn admit(store: &SledStore, script: &mut Script) {
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(store, admit).await.unwrap();
}

/// A store that is held just before it answers a round, so that what is begun now shares the next.
async fn held(store: &SledStore, stop: &Stop, n: u64) -> impl Future<Output = ()> {
    let script = Script::new(n);
    let admit = script.admit(store.mint().await.unwrap(), "hold");
    stop.arm(RoundStep::BeforeAck);
    let call = begun(store.commit(admit)).await;
    stop.reached().await;
    async move { call.await.unwrap() }
}

#[tokio::test]
async fn c39_commits_that_wait_share_one_round_and_one_sync() {
    let (directory, stop) = (TempDir::new().unwrap(), Stop::new());
    let store = open(&directory, stop.clone());
    let first = held(&store, &stop, 1000).await;
    let mut waiting = Vec::new();
    for n in 0..64 {
        let admit = Script::new(n).admit(store.mint().await.unwrap(), "go");
        waiting.push(begun(store.commit(admit)).await);
    }
    let before = store.counters();
    stop.release();
    first.await;
    for call in waiting {
        call.await.unwrap();
    }
    let after = store.counters();
    assert_eq!(after.rounds - before.rounds, 1);
    assert_eq!(after.syncs - before.syncs, 1);
    assert_eq!(after.commits, 65);
}

#[tokio::test]
async fn c39_every_round_is_synced_once() {
    let (directory, stop) = (TempDir::new().unwrap(), Stop::new());
    let store = open(&directory, stop);
    let opening = store.counters().syncs;
    assert_eq!(opening, 1, "the boot counter");
    let mut script = Script::new(1);
    admit(&store, &mut script).await;
    for n in 2..20 {
        let say = script.say(vec![said("word")]);
        script.write(&store, say).await.unwrap();
        let counters = store.counters();
        assert_eq!((counters.rounds, counters.syncs), (n, n + opening));
    }
    let refused = store.commit(script.admit(LeaseToken(1), "again")).await;
    assert!(refused.is_err());
    let counters = store.counters();
    assert_eq!(
        (counters.rounds, counters.refused),
        (19, 1),
        "nothing to sync"
    );
}

#[tokio::test]
async fn one_callers_refusal_never_disturbs_another_in_the_same_round() {
    let (directory, stop) = (TempDir::new().unwrap(), Stop::new());
    let store = open(&directory, stop.clone());
    let mut writers: Vec<Script> = (0..32).map(Script::new).collect();
    for script in &mut writers {
        admit(&store, script).await;
    }
    let first = held(&store, &stop, 1000).await;
    let mut waiting = Vec::new();
    for (n, script) in writers.iter().enumerate() {
        let mut commit = script.say(vec![said("word")]);
        if n % 3 == 0 {
            commit.expected_audits += 1;
            commit.head.audits += 1;
            commit.audits[0].ordinal += 1;
        }
        waiting.push(begun(store.commit(commit)).await);
        // A second commit of the same session builds on the first one, unsynced as it is.
        let mut after = script.clone();
        after.accepted(&script.say(vec![said("word")]));
        waiting.push(begun(store.commit(after.settle())).await);
        // And of those that want one name, the first one gets it.
        let named = Script::new(2000 + n as u64).named("wanted");
        let admit = named.admit(store.mint().await.unwrap(), "go");
        waiting.push(begun(store.commit(admit)).await);
    }
    let rounds = store.counters().rounds;
    stop.release();
    first.await;
    let mut results = Vec::new();
    for call in waiting {
        results.push(call.await);
    }
    assert_eq!(store.counters().rounds, rounds + 1);
    for (n, results) in results.chunks(3).enumerate() {
        let conflict = |result: &_| matches!(result, Err(CommitError::Conflict { .. }));
        let fate = (conflict(&results[0]), conflict(&results[1]));
        assert_eq!(fate, (n % 3 == 0, n % 3 == 0), "{results:?}");
        let named = if n == 0 {
            Ok(())
        } else {
            Err(CommitError::AlreadyExists)
        };
        assert_eq!(results[2], named);
        let stored = store.session(writers[n].id()).await.unwrap().unwrap();
        assert_eq!(stored.head.entries, if n % 3 == 0 { 1 } else { 3 });
    }
}

/// Everything that can be read of two sessions, one request and one name, as text.
async fn everything(store: &SledStore, known: &Script, unborn: &Script) -> String {
    let mut seen = String::new();
    let mut see = |what: String| seen.push_str(&(what + "\n"));
    for script in [known, unborn] {
        let id = script.id();
        let stored = store.session(id).await.unwrap();
        see(format!("{stored:?}"));
        let reads = read_all(store, script, 100, usize::MAX).await;
        see(format!("{reads:?}"));
        see(format!("{:?}", store.audits(id).await.unwrap()));
        see(format!("{:?}", store.holder(id).await.unwrap()));
        for run in store.runs_of(id).await.unwrap() {
            see(format!("{:?}", store.run(run).await.unwrap()));
            see(format!("{:?}", store.inputs(run).await.unwrap()));
            let first = InputId { run, ordinal: 1 };
            see(format!("{:?}", store.input(first).await.unwrap()));
            see(format!("{:?}", store.interactions(run).await.unwrap()));
        }
        see(format!("{:?}", store.runs(id, None, 9).await.unwrap()));
        for seq in 1..9 {
            let entry = store.entry(EntryId { session: id, seq }).await;
            see(format!("{:?}", entry.unwrap()));
        }
        for address in [
            SessionRef::Id(id),
            SessionRef::Name(SessionName::parse(&format!("s{}", script.now)).unwrap()),
            SessionRef::ExternalKey(script.record.external_key.clone().unwrap()),
        ] {
            let found = store.resolve(&script.record.tenant, &address).await;
            see(format!("{found:?}"));
        }
    }
    for word in ["old", "new"] {
        let bound = store.binding(&binding_key("acme", word)).await.unwrap();
        see(format!("{bound:?}"));
    }
    seen
}

/// A session with a settled run that has an old binding, and an active run with long inputs and
/// questions.
async fn busy(store: &SledStore) -> Script {
    let mut known = Script::new(1).named("s1").keyed("k1");
    let mut commit = known.admit(store.mint().await.unwrap(), "one");
    known.bind(&mut commit, binding_key("acme", "old"));
    known.write(store, commit).await.unwrap();
    let settle = known.settle();
    known.write(store, settle).await.unwrap();
    let long = "x".repeat(20_000);
    let commit = known.admit(store.mint().await.unwrap(), &long);
    known.write(store, commit).await.unwrap();
    for text in [&long[..], "short"] {
        let steer = known.steer(text);
        known.write(store, steer).await.unwrap();
        let ask = known.ask(text);
        known.write(store, ask).await.unwrap();
    }
    known
}

#[tokio::test]
async fn c39_nothing_of_a_round_shows_before_it_is_synced() {
    for step in STEPS {
        let (directory, stop) = (TempDir::new().unwrap(), Stop::new());
        let store = open(&directory, stop.clone());
        let mut known = busy(&store).await;
        let unborn = Script::new(2).named("s2").keyed("k2");
        let first = held(&store, &stop, 1000).await;
        let before = everything(&store, &known, &unborn).await;

        // One round with every kind of record: added, overwritten by longer and by shorter ones,
        // and deleted.
        let mut rewrite = known.steer("shortened");
        rewrite.inputs[0].id.ordinal = 1;
        let mut grow = known.steer(&"y".repeat(50_000));
        grow.inputs[0].id.ordinal = 2;
        rewrite.inputs.append(&mut grow.inputs);
        rewrite
            .interactions
            .extend(known.answer("yes").interactions);
        rewrite.interactions.extend(known.ask("new").interactions);
        let mut create = unborn.admit(store.mint().await.unwrap(), &"z".repeat(9_000));
        unborn.bind(&mut create, binding_key("acme", "new"));
        let one = begun(store.commit(rewrite.clone())).await;
        known.accepted(&rewrite);
        let settle = known.settle();
        let two = begun(store.commit(settle)).await;
        let three = begun(store.commit(create)).await;
        let sweep = begun(store.sweep_bindings(Timestamp::from_millis(10_002), 9)).await;
        stop.arm(step);
        stop.release();
        first.await;
        stop.reached().await;

        let during = everything(&store, &known, &unborn).await;
        let shown = during != before;
        // Once it is synced it may be shown, and before the answer it is.
        let durable = step == RoundStep::BeforeAck;
        assert_eq!(shown, durable, "{step:?}");
        stop.release();
        one.await.unwrap();
        two.await.unwrap();
        three.await.unwrap();
        assert_eq!(sweep.await, Ok(1));
        let after = everything(&store, &known, &unborn).await;
        assert_ne!(after, before);
        if durable {
            assert_eq!(after, during);
        }
    }
}

#[tokio::test]
async fn b54_a_kill_at_any_step_loses_nothing_acknowledged_and_tears_nothing() {
    let (directory, stop) = (TempDir::new().unwrap(), Stop::new());
    let store = open(&directory, stop.clone());
    let mut script = busy(&store).await;
    for step in STEPS {
        let (acknowledged, text) = (script.head.clone(), "w".repeat(9_000));
        let say = script.say(vec![said("short"), said(&text)]);
        stop.arm(step);
        let call = begun(store.commit(say.clone())).await;
        stop.reached().await;
        let killed = image::take(directory.path());
        stop.release();
        call.await.unwrap();
        script.accepted(&say);

        let found = SledStore::open(killed.path(), &StoreOptions::new(8)).unwrap();
        let head = found.session(script.id()).await.unwrap().unwrap().head;
        match step {
            RoundStep::BeforeApply => assert_eq!(head, acknowledged),
            RoundStep::AfterApply => assert!(head == acknowledged || head == say.head),
            _ => assert_eq!(head, say.head),
        }
        let mut reader = script.clone();
        reader.head = head.clone();
        let entries = read_all(&found, &reader, 100, usize::MAX).await;
        assert_eq!(entries.len() as u64, head.entries);
        let audits = found.audits(script.id()).await.unwrap();
        assert_eq!(audits.len() as u64, head.audits);
        let orphaned = found.orphaned().await.unwrap();
        assert_eq!(orphaned.len(), 1);
        assert_eq!((found.boots(), found.store_id()), (2, 7));
    }
}

/// Fails, or panics, at a step of the second round.
struct Broken {
    step: RoundStep,
    panics: bool,
    passed: std::sync::atomic::AtomicU32,
}

impl RoundProbe for Broken {
    fn at(&self, step: RoundStep) -> Result<(), String> {
        use std::sync::atomic::Ordering;
        if step != self.step || self.passed.fetch_add(1, Ordering::Relaxed) < 1 {
            return Ok(());
        }
        assert!(!self.panics, "the disk engine gives up");
        Err("the disk is gone".to_owned())
    }
}

#[tokio::test]
async fn a_round_that_fails_is_the_end_of_the_store() {
    for (step, panics) in STEPS
        .into_iter()
        .flat_map(|step| [(step, false), (step, true)])
    {
        let directory = TempDir::new().unwrap();
        let broken = Broken {
            step,
            panics,
            passed: 0.into(),
        };
        let store = open(&directory, Arc::new(broken));
        let mut fatal = store.fatal();
        let mut script = Script::new(1);
        admit(&store, &mut script).await;
        let say = script.say(vec![said("never known")]);
        let unknown = store.commit(say).await;
        assert!(matches!(unknown, Err(CommitError::Store(_))), "{unknown:?}");
        let told = tokio::time::timeout(DEADLINE, fatal.wait_for(Option::is_some)).await;
        assert!(told.expect("the failure was not told").is_ok());

        let other = Script::new(2).admit(store.mint().await.unwrap(), "go");
        let refused = store.commit(other).await;
        assert!(matches!(refused, Err(CommitError::Store(_))), "{refused:?}");
        let refused = store.sweep_bindings(Timestamp::from_millis(1), 1).await;
        assert!(matches!(refused, Err(ReadError::Store(_))));
        assert!(store.orphaned().await.is_err() && store.revoke(script.id()).await.is_err());
        let head = store.session(script.id()).await.unwrap().unwrap().head;
        let synced = step == RoundStep::BeforeAck;
        assert_eq!(head == script.head, !synced, "{step:?}");
        store.close().await;

        let found = SledStore::open(directory.path(), &StoreOptions::new(7)).unwrap();
        let head = found.session(script.id()).await.unwrap().unwrap().head;
        script.head = head;
        let entries = read_all(&found, &script, 100, usize::MAX).await;
        assert_eq!(entries.len() as u64, script.head.entries);
    }
}

#[tokio::test]
async fn long_values_never_leave_the_one_file_that_is_synced() {
    let directory = TempDir::new().unwrap();
    let store = crate::open(directory.path());
    let mut script = Script::new(1);
    let long = "p".repeat(MAX_TEXT_BYTES);
    let commit = script.admit(store.mint().await.unwrap(), &long);
    script.write(&store, commit).await.unwrap();
    for round in 0..8 {
        let say = script.say(vec![said(&long)]);
        script.write(&store, say).await.unwrap();
        // Just too long for one value, just short enough, over and over: the fullest pages.
        for length in 3800..3860 {
            let steer = script.steer(&"q".repeat(length + 4 * round));
            script.write(&store, steer).await.unwrap();
        }
        for ordinal in 1..60 {
            let mut steer = script.steer(&"r".repeat(3900));
            steer.inputs[0].id.ordinal = ordinal;
            script.write(&store, steer).await.unwrap();
        }
    }
    let blobs: Vec<_> = std::fs::read_dir(directory.path().join("blobs"))
        .unwrap()
        .collect();
    assert!(blobs.is_empty(), "{blobs:?}");
}

#[tokio::test]
async fn more_callers_than_the_queue_holds_wait_and_are_all_served() {
    let directory = TempDir::new().unwrap();
    let options = StoreOptions {
        queue: 1,
        reads: 1,
        ..StoreOptions::new(7)
    };
    let store = Arc::new(SledStore::open(directory.path(), &options).unwrap());
    let callers: Vec<_> = (0..64)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut script = Script::new(n);
                admit(&store, &mut script).await;
                store.session(script.id()).await.unwrap().unwrap()
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(store.counters().commits, 64);
}

#[tokio::test]
async fn b34_a_directory_that_is_in_use_is_refused_by_name() {
    let directory = TempDir::new().unwrap();
    let store = crate::open(directory.path());
    let refused = SledStore::open(directory.path(), &StoreOptions::new(7)).err();
    let path = directory.path().to_owned();
    assert_eq!(refused, Some(OpenError::InUse { path: path.clone() }));
    let mut script = Script::new(1);
    admit(&store, &mut script).await;

    store.close().await;
    store.close().await;
    let closed = store.commit(script.say(Vec::new())).await;
    assert!(matches!(closed, Err(CommitError::Store(_))), "{closed:?}");
    let closed = store.session(script.id()).await;
    assert!(matches!(closed, Err(ReadError::Store(_))), "{closed:?}");
    let again = crate::open(&path);
    assert!(again.session(script.id()).await.unwrap().is_some());
    drop(again);
    crate::open(&path);
}
