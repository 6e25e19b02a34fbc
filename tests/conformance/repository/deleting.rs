//! A session ends: from one step to the next nobody finds it, and what it held goes in steps after
//! that, whatever happens in between.

use std::sync::Arc;

use sessionplane_core::domain::binding::{BoundAnswer, SessionAnswer};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::ids::{SessionId, SessionRef};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::{CommitError, DeletedSession, EntryRange, SessionQuery};

use super::script::{Script, binding_key, said};
use super::{Store, Subject};

/// A session of two runs with a bit of everything, and long texts.
async fn full(store: &dyn Store, n: u64) -> Script {
    let mut script = Script::new(n)
        .named(&format!("fix-{n}"))
        .keyed(&format!("K-{n}"))
        .labelled(&[("team", "net")])
        .placed("main");
    for _ in 0..2 {
        let admit = script.admit(store.mint().await.unwrap(), "go");
        script.write(store, admit).await.unwrap();
        for n in 0..3 {
            let steer = script.steer(&"s".repeat(n * 3000));
            script.write(store, steer).await.unwrap();
            let ask = script.ask(&"a".repeat(n * 3000));
            script.write(store, ask).await.unwrap();
            let say = script.say(vec![said(&"w".repeat(n * 5000))]);
            script.write(store, say).await.unwrap();
        }
        let settle = script.settle();
        script.write(store, settle).await.unwrap();
    }
    let pause = script.pause(true);
    script.set(store, pause).await.unwrap();
    script
}

async fn refused(store: &dyn Store, script: &Script) -> CommitError {
    let token = store.mint().await.unwrap();
    let refused = store.delete(script.delete(token)).await;
    assert!(store.session(script.id()).await.unwrap().is_some());
    assert_eq!(store.deleted(None).await, Ok(None));
    refused.expect_err("it was deleted")
}

async fn delete(store: &dyn Store, script: &Script) {
    let token = store.mint().await.unwrap();
    store.delete(script.delete(token)).await.unwrap();
}

/// A lease, a cut run, a former token, another head or other metadata stand in the way.
pub(crate) async fn a_deletion_is_refused_while_anything_holds_the_session(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let mut script = Script::new(1).named("fix");
    let token = store.mint().await.unwrap();
    let missing = store.delete(script.delete(token)).await;
    assert_eq!(missing, Err(CommitError::NoSuchSession));
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(&*store, admit).await.unwrap();
    let held = refused(&*store, &script).await;
    let current = Some(script.token);
    assert_eq!(held, CommitError::Fenced { current });
    subject.reopen().await;
    let store = subject.store();
    let cut = refused(&*store, &script).await;
    assert_eq!(cut, CommitError::Fenced { current });
    let recover = script.recover(store.mint().await.unwrap());
    script.write(&*store, recover).await.unwrap();
    let former = store.delete(script.delete(script.token)).await;
    assert!(
        matches!(former, Err(CommitError::Fenced { .. })),
        "{former:?}"
    );

    let mut behind = script.clone();
    behind.head.audits -= 1;
    let (entries, audits) = (script.head.entries, script.head.audits);
    let moved_on = CommitError::Conflict { entries, audits };
    assert_eq!(refused(&*store, &behind).await, moved_on);
    let before = script.clone();
    let rename = script.rename(Some("docs"));
    script.set(&*store, rename).await.unwrap();
    let changed = CommitError::MetadataConflict { revision: 2 };
    assert_eq!(refused(&*store, &before).await, changed);
    delete(&*store, &script).await;
    assert_eq!(store.session(script.id()).await, Ok(None));
}

/// What branches off a session reads its past there; once nothing does, it can go.
pub(crate) async fn a_session_is_not_deleted_before_those_that_branch_off_it(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let mut parent = Script::new(1);
    parent.create(&*store).await;
    let mut child = Script::new(2).child_of(parent.id());
    child.create(&*store).await;
    let has = CommitError::HasChildren { child: child.id() };
    assert_eq!(refused(&*store, &parent).await, has);
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(refused(&*store, &parent).await, has);
    delete(&*store, &child).await;
    delete(&*store, &parent).await;
    let late = Script::new(3).child_of(parent.id());
    let token = store.mint().await.unwrap();
    let orphan = store.commit(late.admit(token, "go")).await;
    assert_eq!(orphan, Err(CommitError::NoParent));
}

/// Neither by id, name or key nor by any term; its name and its key are free.
pub(crate) async fn nothing_finds_a_deleted_session(subject: &mut dyn Subject) {
    let store = subject.store();
    let script = full(&*store, 1).await;
    let terms = script.record.terms(script.head.place.as_ref());
    assert_eq!(terms.len(), 5);
    delete(&*store, &script).await;
    for opening in 0..2 {
        let store = subject.store();
        assert_eq!(store.session(script.id()).await, Ok(None));
        let name = script.record.metadata.name.clone().unwrap();
        let key = script.record.external_key.clone().unwrap();
        for by in [
            SessionRef::Id(script.id()),
            SessionRef::Name(name),
            SessionRef::ExternalKey(key),
        ] {
            let found = store.resolve(&script.record.tenant, &by).await;
            assert_eq!(found, Ok(None), "{by}");
        }
        let prefix = StoredTerm::NamePrefix("fix".to_owned());
        for term in terms.iter().cloned().chain([prefix]) {
            let query = SessionQuery {
                tenant: script.record.tenant.clone(),
                term,
                after: None,
                descending: false,
                max: 9,
            };
            assert_eq!(store.find(query).await, Ok(Vec::new()));
        }
        let token = store.mint().await.unwrap();
        let late = store.commit(script.choose(token, "large")).await;
        assert_eq!(late, Err(CommitError::NoSuchSession));
        let late = store.commit_metadata(script.pause(false)).await;
        assert_eq!(late, Err(CommitError::NoSuchSession));
        let late = store.delete(script.delete(token)).await;
        assert_eq!(late, Err(CommitError::NoSuchSession));
        if opening == 0 {
            subject.reopen().await;
        }
    }
    let store = subject.store();
    let mut next = Script::new(2).named("fix-1").keyed("K-1");
    next.create(&*store).await;
}

fn everything() -> EntryRange {
    EntryRange {
        after: 0,
        up_to: u64::MAX,
        max_entries: 100,
        max_bytes: usize::MAX,
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

/// What is left of a deleted session is read like any session's.
async fn still_there(store: &dyn Store, session: SessionId, entries: &[Entry]) {
    let left = entries.len() as u64;
    let deleted = DeletedSession {
        session,
        entries: left,
    };
    assert_eq!(store.deleted(None).await, Ok(Some(deleted)));
    let still = store.entries(session, everything()).await;
    assert_eq!(still.as_deref(), Ok(entries));
    let last = entries.last().unwrap();
    assert_eq!(store.entry(last.id).await, Ok(Some(last.clone())));
}

/// Entries go from the newest on, then what is left; the trail stays, and so does a neighbour.
pub(crate) async fn a_deleted_session_is_erased_in_steps_over_openings(subject: &mut dyn Subject) {
    let store = subject.store();
    let (script, other) = (full(&*store, 1).await, full(&*store, 2).await);
    let (session, all) = (script.id(), script.head.entries);
    let entries = store.entries(session, everything()).await.unwrap();
    let runs = store.runs_of(session).await.unwrap();
    let trail = store.audits(session).await.unwrap();
    let changes = store.metadata_audits(session).await.unwrap();
    let token = store.mint().await.unwrap();
    let deletion = script.delete(token);
    store.delete(deletion.clone()).await.unwrap();
    // One by one down to the first, by either bound; that one goes with the runs.
    for left in (1..all).rev() {
        let store = subject.store();
        still_there(&*store, session, &entries[..=index(left)]).await;
        let (keep, max) = if left % 2 == 0 { (left, 9) } else { (1, 1) };
        assert_eq!(store.erase(session, keep, max).await, Ok(false));
        subject.reopen().await;
    }
    still_there(&*subject.store(), session, &entries[..1]).await;
    for step in 0.. {
        assert!(step < 100, "it comes to no end");
        let store = subject.store();
        if store.erase(session, 0, 2).await.unwrap() {
            break;
        }
        subject.reopen().await;
    }
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.deleted(None).await, Ok(None));
    assert_eq!(store.erase(session, 0, 9).await, Ok(true));
    assert_eq!(store.entries(session, everything()).await, Ok(Vec::new()));
    assert_eq!(store.entry(entries[0].id).await, Ok(None));
    assert_eq!(store.runs_of(session).await, Ok(Vec::new()));
    for run in runs {
        assert_eq!(store.run(run).await, Ok(None));
        assert_eq!(store.inputs(run).await, Ok(Vec::new()));
        assert_eq!(store.interactions(run).await, Ok(Vec::new()));
    }
    let trail: Vec<_> = trail.into_iter().chain([deletion.audit]).collect();
    assert_eq!(store.audits(session).await, Ok(trail));
    assert_eq!(store.metadata_audits(session).await, Ok(changes));
    let stored = store.session(other.id()).await;
    assert_eq!(stored, Ok(Some(other.stored())));
    let whole = store.entries(other.id(), everything()).await.unwrap();
    assert_eq!(whole.len() as u64, other.head.entries);
    assert_eq!(store.runs_of(other.id()).await.unwrap().len(), 2);
}

/// A request that made a session is told of it although the session is gone; nothing but its age
/// keeps that.
pub(crate) async fn what_binds_requests_to_a_deleted_session_goes_by_its_age(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let mut script = Script::new(1);
    let mut admit = script.admit(store.mint().await.unwrap(), "go");
    let (made, ended) = (binding_key("acme", "made"), binding_key("acme", "ended"));
    script.bind(&mut admit, made.clone());
    script.write(&*store, admit).await.unwrap();
    let settle = script.settle();
    script.write(&*store, settle).await.unwrap();
    let token = store.mint().await.unwrap();
    let mut deletion = script.delete(token);
    deletion.bindings = script.bound(made.clone());
    let refused = store.delete(deletion.clone()).await;
    assert_eq!(refused, Err(CommitError::AlreadyBound));
    deletion.bindings = script.bound(ended.clone());
    store.delete(deletion).await.unwrap();
    assert_eq!(store.erase(script.id(), 0, 100).await, Ok(true));
    subject.reopen().await;
    let store = subject.store();
    for key in [&made, &ended] {
        let binding = store.binding(key).await.unwrap();
        assert_eq!(binding.map(|it| it.session), Some(script.id()));
    }
    let early = Timestamp::from_millis(1);
    assert_eq!(store.sweep_bindings(early, 9).await, Ok(0));
    let late = Timestamp::from_millis(u64::MAX);
    assert_eq!(store.sweep_bindings(late, 9).await, Ok(2));
    assert_eq!(store.binding(&made).await, Ok(None));
}

/// What calls were answered about a session are its names and labels: nobody is to find them when it is
/// gone, from the deletion on, and the calls stay bound.
pub(crate) async fn c61_what_changes_decided_is_erased_with_their_session(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let mut script = Script::new(1);
    script.create(&*store).await;
    for n in 0..3 {
        let mut commit = script.pause(n % 2 == 0);
        let answer = SessionAnswer {
            metadata: Some(commit.metadata.clone()),
            placed: None,
        };
        commit.bindings = script.decided(binding_key("acme", &format!("pause-{n}")), &answer);
        script.set(&*store, commit).await.unwrap();
    }
    let deletion = script.delete(store.mint().await.unwrap());
    store.delete(deletion).await.unwrap();
    let unanswered = |store: Arc<dyn Store>| async move {
        for n in 0..3 {
            let key = binding_key("acme", &format!("pause-{n}"));
            let bound = store.binding(&key).await.unwrap().expect("bound");
            assert_eq!(bound.answer, BoundAnswer::Session(None));
        }
    };
    unanswered(store.clone()).await;
    subject.is_whole().await;
    let mut steps = 0;
    while !subject.store().erase(script.id(), 0, 1).await.unwrap() {
        steps += 1;
        assert!(steps < 99, "it comes to an end");
    }
    unanswered(subject.store()).await;
    // What is left of the deleted session is found.
    subject.is_whole().await;
    let late = Timestamp::from_millis(u64::MAX);
    assert_eq!(subject.store().sweep_bindings(late, 9).await, Ok(3));
    subject.is_whole().await;
}
