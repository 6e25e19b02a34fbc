//! Metadata change by a revision of their own, beside whatever runs.

use sessionplane_core::domain::binding::{BoundAnswer, SessionAnswer};
use sessionplane_core::domain::ids::{SessionName, SessionRef};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::CommitError;

use super::script::{Script, binding_key, said};
use super::{Store, Subject};

async fn led(store: &dyn Store, script: &Script, name: &str) -> bool {
    let name = SessionRef::Name(SessionName::parse(name).unwrap());
    let found = store.resolve(&script.record.tenant, &name).await;
    found.unwrap() == Some(script.id())
}

/// What was decided on metadata that changed since is refused, and changes nothing; what is accepted
/// is told in a series of its own.
pub(crate) async fn c40_a_change_of_metadata_is_compared_and_set(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1).named("fix");
    let missing = store.commit_metadata(script.pause(true)).await;
    assert_eq!(missing, Err(CommitError::NoSuchSession));
    script.create(&*store).await;
    let behind = script.relabel(&[("team", "net")]);
    let mut told = Vec::new();
    for step in 0..3 {
        let change = match step {
            2 => script.rename(Some("done")),
            _ => script.pause(true),
        };
        told.push(change.audit.clone());
        script.set(&*store, change).await.unwrap();
    }
    let refused = store.commit_metadata(behind).await;
    assert_eq!(refused, Err(CommitError::MetadataConflict { revision: 4 }));
    let mut leaps = script.pause(false);
    leaps.metadata.revision += 1;
    let malformed = store.commit_metadata(leaps).await;
    assert!(
        matches!(malformed, Err(CommitError::Malformed(_))),
        "{malformed:?}"
    );
    for _ in 0..2 {
        let store = subject.store();
        let stored = store.session(script.id()).await;
        assert_eq!(stored, Ok(Some(script.stored())));
        let audits = store.metadata_audits(script.id()).await;
        assert_eq!(audits.as_ref(), Ok(&told));
        let of_runs = store.audits(script.id()).await.unwrap();
        assert_eq!(of_runs.len() as u64, script.head.audits);
        subject.reopen().await;
    }
}

/// Neither conflicts with the other, and neither takes back what the other wrote.
pub(crate) async fn c40_changes_of_metadata_and_a_run_never_disturb_each_other(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let mut script = Script::new(1).named("fix").placed("main");
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(&*store, admit).await.unwrap();
    let (mut runs, mut changes) = (script.clone(), script);
    let (runner, changer) = (subject.store(), subject.store());
    let running = tokio::spawn(async move {
        for n in 0..40 {
            let say = runs.say(vec![said(&n.to_string())]);
            runs.write(&*runner, say).await.unwrap();
        }
        runs
    });
    let changing = tokio::spawn(async move {
        for n in 0..40_u8 {
            let name = format!("name-{n}");
            let rename = changes.rename(Some(&name));
            changes.set(&*changer, rename).await.unwrap();
            let pause = changes.pause(n % 2 == 0);
            changes.set(&*changer, pause).await.unwrap();
        }
        changes
    });
    let (mut runs, changes) = (running.await.unwrap(), changing.await.unwrap());
    runs.record = changes.record;
    let stored = store.session(runs.id()).await;
    assert_eq!(stored, Ok(Some(runs.stored())));
    assert_eq!(runs.record.metadata.revision, 81);
    let settle = runs.settle();
    runs.write(&*store, settle).await.unwrap();
    subject.reopen().await;
    let stored = subject.store().session(runs.id()).await;
    assert_eq!(stored, Ok(Some(runs.stored())));
}

/// The old name is free, and the new one taken, from one step to the next.
pub(crate) async fn c45_a_rename_frees_the_old_name_in_the_same_step(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut first = Script::new(1).named("fix");
    let mut second = Script::new(2).named("docs");
    first.create(&*store).await;
    second.create(&*store).await;
    let taken = first.rename(Some("docs"));
    let refused = store.commit_metadata(taken).await;
    assert_eq!(refused, Err(CommitError::AlreadyExists));
    assert!(led(&*store, &first, "fix").await && led(&*store, &second, "docs").await);
    let same = first.rename(Some("fix"));
    first.set(&*store, same).await.unwrap();
    let away = first.rename(Some("done"));
    first.set(&*store, away).await.unwrap();
    assert!(led(&*store, &first, "done").await && !led(&*store, &first, "fix").await);
    let over = second.rename(Some("fix"));
    second.set(&*store, over).await.unwrap();
    let nameless = first.rename(None);
    first.set(&*store, nameless).await.unwrap();
    let mut third = Script::new(3).named("docs");
    third.create(&*store).await;
    subject.reopen().await;
    let store = subject.store();
    assert!(led(&*store, &second, "fix").await && led(&*store, &third, "docs").await);
    assert!(!led(&*store, &first, "done").await);
}

/// Many want the name of a session that gives it away: one gets it.
pub(crate) async fn one_of_many_takes_a_name_by_renaming(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut calls = Vec::new();
    for n in 0..16 {
        let mut script = Script::new(n);
        script.create(&*store).await;
        let store = subject.store();
        calls.push(tokio::spawn(async move {
            let rename = script.rename(Some("fix"));
            (store.commit_metadata(rename).await, script)
        }));
    }
    let mut winners = Vec::new();
    for call in calls {
        match call.await.unwrap() {
            (Ok(()), script) => winners.push(script),
            (refused, _) => assert_eq!(refused, Err(CommitError::AlreadyExists)),
        }
    }
    assert_eq!(winners.len(), 1);
    assert!(led(&*store, &winners[0], "fix").await);
}

/// A request id is bound with the change or not at all.
pub(crate) async fn a_change_of_metadata_is_bound_like_a_commit(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1);
    script.create(&*store).await;
    let key = binding_key("acme", "one");
    let mut pause = script.pause(true);
    pause.bindings = script.bound(key.clone());
    script.set(&*store, pause).await.unwrap();
    let mut again = script.pause(false);
    again.bindings = script.bound(key.clone());
    let refused = store.commit_metadata(again).await;
    assert_eq!(refused, Err(CommitError::AlreadyBound));
    let stored = store.session(script.id()).await;
    assert_eq!(stored, Ok(Some(script.stored())));
    let mut behind = script.pause(false);
    behind.expected -= 1;
    behind.metadata.revision -= 1;
    behind.audit.ordinal -= 1;
    let other = binding_key("acme", "two");
    behind.bindings = script.bound(other.clone());
    let refused = store.commit_metadata(behind).await;
    assert_eq!(refused, Err(CommitError::MetadataConflict { revision: 2 }));
    subject.reopen().await;
    let store = subject.store();
    assert!(store.binding(&key).await.unwrap().is_some());
    assert_eq!(store.binding(&other).await, Ok(None));
}

/// Whoever repeats a change is told what it decided, also after later ones; that goes when the binding
/// does.
pub(crate) async fn c03_what_a_change_decided_is_kept_as_long_as_its_binding(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let mut script = Script::new(1);
    script.create(&*store).await;
    let mut decided = Vec::new();
    for paused in [true, false] {
        let mut commit = script.pause(paused);
        let key = binding_key("acme", if paused { "pause" } else { "resume" });
        let answer = SessionAnswer {
            metadata: Some(commit.metadata.clone()),
            placed: None,
        };
        commit.bindings = script.decided(key.clone(), &answer);
        script.set(&*store, commit).await.unwrap();
        decided.push((key, BoundAnswer::Session(Some(Box::new(answer)))));
    }
    subject.reopen().await;
    let store = subject.store();
    for (key, answer) in &decided {
        let bound = store.binding(key).await.unwrap().expect("bound");
        assert_eq!(bound.answer, *answer);
    }
    let late = Timestamp::from_millis(u64::MAX);
    assert_eq!(store.sweep_bindings(late, 9).await, Ok(2));
    for (key, _) in &decided {
        assert_eq!(store.binding(key).await, Ok(None));
    }
    subject.is_whole().await;
}
