//! What a new opening finds after a crash.

use sessionplane_core::domain::lease::LeaseClause;
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::CommitError;

use super::reading::read_all;
use super::script::{Script, binding_key, said};
use super::{Store, Subject};

async fn admit(store: &dyn Store, script: &mut Script) {
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(store, admit).await.unwrap();
}

/// Only sessions that were running are listed, with the run that has to be settled.
pub(crate) async fn c44_an_unreleased_lease_is_orphaned_after_a_crash(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut scripts: Vec<Script> = (0..20).map(Script::new).collect();
    for script in &mut scripts {
        admit(&*store, script).await;
    }
    let (settled, cut) = scripts.split_at_mut(15);
    for script in settled {
        let settle = script.settle();
        script.write(&*store, settle).await.unwrap();
    }
    store.revoke(cut[0].id()).await.unwrap();
    assert_eq!(store.orphaned().await, Ok(vec![cut[0].lease()]));
    drop(store);
    subject.reopen().await;
    let expected: Vec<HeldLease> = cut.iter().map(Script::lease).collect();
    assert_eq!(subject.store().orphaned().await, Ok(expected));
}

/// The first recovery of a session wins; the second one is too late, and then runs start again.
pub(crate) async fn c44_recovery_settles_once(subject: &mut dyn Subject) {
    let mut script = Script::new(1);
    admit(&*subject.store(), &mut script).await;
    subject.reopen().await;
    let store = subject.store();
    let run = script.run_id();
    let (first, second) = (store.mint().await.unwrap(), store.mint().await.unwrap());
    let (settle, late) = (script.recover(first), script.recover(second));
    script.write(&*store, settle).await.unwrap();
    let moved_on = CommitError::Conflict {
        entries: 2,
        audits: 2,
    };
    assert_eq!(store.commit(late).await, Err(moved_on));
    assert_eq!(store.orphaned().await, Ok(Vec::new()));
    assert_eq!(store.holder(script.id()).await, Ok(None));
    let record = store.run(run).await.unwrap().unwrap();
    assert!(record.settled.is_some());
    admit(&*store, &mut script).await;
    subject.reopen().await;
    let orphaned = subject.store().orphaned().await;
    assert_eq!(orphaned, Ok(vec![script.lease()]));
}

/// Who wrote before the crash cannot write after it.
pub(crate) async fn c41_all_leases_are_void_at_open(subject: &mut dyn Subject) {
    let mut script = Script::new(1);
    admit(&*subject.store(), &mut script).await;
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.holder(script.id()).await, Ok(None));
    for commit in [script.say(vec![said("I am back")]), script.settle()] {
        let refused = store.commit(commit).await;
        let current = Some(script.token);
        assert_eq!(refused, Err(CommitError::Fenced { current }));
    }
}

/// Every token is above all former ones, in this opening and the next.
pub(crate) async fn c41_tokens_grow_across_openings(subject: &mut dyn Subject) {
    let mut last = subject.store().mint().await.unwrap();
    for _ in 0..3 {
        let mut minted = Vec::new();
        let minters: Vec<_> = (0..50)
            .map(|_| {
                let store = subject.store();
                tokio::spawn(async move { store.mint().await.unwrap() })
            })
            .collect();
        for minter in minters {
            minted.push(minter.await.unwrap());
        }
        minted.sort();
        assert!(minted.windows(2).all(|pair| pair[0] < pair[1]), "one twice");
        assert!(minted[0] > last);
        last = minted[49];
        subject.reopen().await;
        let token = subject.store().mint().await.unwrap();
        assert!(token > last);
        last = token;
    }
}

/// No acknowledged write is missing, none is doubled.
pub(crate) async fn c39_everything_acknowledged_is_there_after_a_crash(subject: &mut dyn Subject) {
    let mut scripts: Vec<Script> = (0..8)
        .map(|n| {
            Script::new(n)
                .named(&format!("s{n}"))
                .keyed(&format!("k{n}"))
        })
        .collect();
    for round in 0..3 {
        let mut writers = Vec::new();
        for (n, mut script) in scripts.drain(..).enumerate() {
            let store = subject.store();
            writers.push(tokio::spawn(async move {
                let token = store.mint().await.unwrap();
                let mut commit = match &script.run {
                    Some(_) => script.recover(token),
                    None => script.admit(token, "go"),
                };
                let word = format!("r{n}-{round}");
                script.bind(&mut commit, binding_key("acme", &word));
                script.write(&*store, commit).await.unwrap();
                if script.run.is_some() {
                    for _ in 0..5 {
                        let say = script.say(vec![said("on"), said("and on")]);
                        script.write(&*store, say).await.unwrap();
                    }
                }
                script
            }));
        }
        for writer in writers {
            scripts.push(writer.await.unwrap());
        }
        subject.reopen().await;
        let store = subject.store();
        for (n, script) in scripts.iter().enumerate() {
            let stored = store.session(script.id()).await.unwrap().unwrap();
            assert_eq!(stored.head, script.head);
            let entries = read_all(&*store, script, 4, usize::MAX).await;
            assert_eq!(entries.len() as u64, script.head.entries);
            for earlier in 0..=round {
                let key = binding_key("acme", &format!("r{n}-{earlier}"));
                assert!(store.binding(&key).await.unwrap().is_some());
            }
            let audits = store.audits(script.id()).await.unwrap();
            assert_eq!(audits.len() as u64, script.head.audits);
        }
    }
}

/// The state machine joins a run's first and last commit into one that takes and leaves nothing.
pub(crate) async fn a_run_admitted_and_settled_at_once_leaves_no_lease(subject: &mut dyn Subject) {
    let store = subject.store();
    let script = Script::new(1);
    let token = store.mint().await.unwrap();
    let mut both = script.admit(token, "go");
    both.lease = LeaseClause::Recover(token);
    store.commit(both).await.unwrap();
    assert_eq!(store.holder(script.id()).await, Ok(None));
    assert_eq!(store.orphaned().await, Ok(Vec::new()));
    drop(store);
    subject.reopen().await;
    assert_eq!(subject.store().orphaned().await, Ok(Vec::new()));
}
