//! A commit is applied whole or not at all, and alone: neighbours neither help nor harm it.

use sessionplane_core::domain::ids::{EntryId, RunId};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::{CommitError, EntryRange};

use super::script::{Script, binding_key, said};
use super::{Store, Subject};

/// All of a session's entries.
const ALL: EntryRange = EntryRange {
    after: 0,
    up_to: u64::MAX,
    max_entries: usize::MAX,
    max_bytes: usize::MAX,
};

/// Every record of a commit is there.
pub(crate) async fn a_commit_is_visible_after_its_answer_and_whole(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1).named("fix").keyed("K-1");
    let token = store.mint().await.unwrap();
    let mut admit = script.admit(token, "go");
    script.bind(&mut admit, binding_key("acme", "r1"));
    script.write(&*store, admit.clone()).await.unwrap();
    let id = script.run_id();

    let stored = store.session(script.id()).await.unwrap().unwrap();
    assert_eq!(stored.record, script.record);
    assert_eq!(stored.head, admit.head);
    let entries = store.entries(script.id(), ALL).await.unwrap();
    assert_eq!(entries, admit.entries);
    let run = store.run(id).await.unwrap();
    assert_eq!(run.as_ref(), admit.runs.first());
    let bound = store.binding(&binding_key("acme", "r1")).await.unwrap();
    assert_eq!(bound.as_ref(), admit.bindings.first());
    assert_eq!(store.audits(script.id()).await.unwrap(), admit.audits);
    assert_eq!(store.runs_of(script.id()).await.unwrap(), [id]);
    assert_eq!(store.holder(script.id()).await.unwrap(), Some(token));

    let steer = script.steer("left");
    script.write(&*store, steer.clone()).await.unwrap();
    let input = store.input(steer.inputs[0].id).await.unwrap();
    assert_eq!(input.as_ref(), steer.inputs.first());
    assert_eq!(store.inputs(id).await.unwrap(), steer.inputs);

    let settle = script.settle();
    script.write(&*store, settle.clone()).await.unwrap();
    let run = store.run(id).await.unwrap();
    assert_eq!(run.as_ref(), settle.runs.first());
    let stored = store.session(script.id()).await.unwrap().unwrap();
    assert_eq!(stored.head, settle.head);
    assert_eq!(store.holder(script.id()).await.unwrap(), None);
}

/// Commits add their records in pairs; whatever is read meanwhile comes in pairs.
pub(crate) async fn a_reader_never_sees_half_a_commit(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1);
    let mut admit = script.admit(store.mint().await.unwrap(), "go");
    admit.head.entries += 1;
    let mut second = admit.entries[0].clone();
    second.id.seq = 2;
    second.parent = Some(admit.entries[0].id);
    admit.head.leaf = Some(second.id);
    admit.entries.push(second);
    script.write(&*store, admit).await.unwrap();
    let (session, run) = (script.id(), script.run_id());
    let (done, mut writing) = tokio::sync::watch::channel(false);
    let writer = tokio::spawn({
        let store = subject.store();
        async move {
            for _ in 0..100 {
                let mut commit = script.say(vec![said("one"), said("two")]);
                for _ in 0..2 {
                    let mut steer = script.steer("left");
                    script.inputs += 1;
                    commit.inputs.append(&mut steer.inputs);
                }
                script.write(&*store, commit).await.unwrap();
            }
            done.send_replace(true);
        }
    });
    let mut newest = 0;
    while !*writing.borrow_and_update() {
        let inputs = store.inputs(run).await.unwrap();
        assert_eq!(inputs.len() % 2, 0, "half a commit");
        let entries = store.entries(session, ALL).await.unwrap().len();
        assert_eq!(entries % 2, 0, "half a commit");
        let head = store.session(session).await.unwrap().unwrap().head;
        let seen = usize::try_from(head.entries).unwrap();
        assert!(seen >= entries && entries >= newest, "time went back");
        newest = entries;
    }
    writer.await.unwrap();
}

/// Nothing of a refused commit can be read, whatever it was refused for.
pub(crate) async fn a_refused_commit_leaves_nothing(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut first = Script::new(1).named("fix");
    let token = store.mint().await.unwrap();
    let admit = first.admit(token, "go");
    first.write(&*store, admit).await.unwrap();

    let script = Script::new(2).named("fix").keyed("K-2");
    let token = store.mint().await.unwrap();
    let mut admit = script.admit(token, "go");
    script.bind(&mut admit, binding_key("acme", "r2"));
    let refused = store.commit(admit.clone()).await;
    assert_eq!(refused, Err(CommitError::AlreadyExists));
    assert_eq!(store.session(script.id()).await, Ok(None));
    assert_eq!(store.entries(script.id(), ALL).await, Ok(Vec::new()));
    assert_eq!(store.run(admit.runs[0].id).await, Ok(None));
    assert_eq!(store.binding(&binding_key("acme", "r2")).await, Ok(None));
    assert_eq!(store.audits(script.id()).await, Ok(Vec::new()));
    assert_eq!(store.holder(script.id()).await, Ok(None));
    assert!(resolve_key(&*store, "K-2").await.is_none());
}

async fn resolve_key(
    store: &dyn Store,
    key: &str,
) -> Option<sessionplane_core::domain::ids::SessionId> {
    use sessionplane_core::domain::ids::{ExternalKey, SessionRef};
    let key = SessionRef::ExternalKey(ExternalKey::parse(key).unwrap());
    store.resolve(&"acme".parse().unwrap(), &key).await.unwrap()
}

/// 64 writers at once, every third one fenced: exactly those are refused.
pub(crate) async fn refusals_never_disturb_their_neighbours(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut scripts: Vec<Script> = (0..64).map(Script::new).collect();
    for script in &mut scripts {
        let token = store.mint().await.unwrap();
        let admit = script.admit(token, "go");
        script.write(&*store, admit).await.unwrap();
    }
    let writers: Vec<_> = scripts
        .into_iter()
        .enumerate()
        .map(|(n, mut script)| {
            let store = subject.store();
            let fenced = n % 3 == 0;
            if fenced {
                script.token = LeaseToken(script.token.0 - 1);
            }
            tokio::spawn(async move {
                let mut written = Vec::new();
                for word in ["a", "b", "c"] {
                    let say = script.say(vec![said(word)]);
                    written.push(script.write(&*store, say).await);
                }
                (script, fenced, written)
            })
        })
        .collect();
    for writer in writers {
        let (script, fenced, written) = writer.await.unwrap();
        for result in written {
            let refused = matches!(result, Err(CommitError::Fenced { current: Some(_) }));
            assert_eq!((refused, result.is_err()), (fenced, fenced), "{result:?}");
        }
        let stored = store.session(script.id()).await.unwrap().unwrap();
        assert_eq!(stored.head, script.head);
        assert_eq!(stored.head.entries, if fenced { 1 } else { 4 });
    }
}

/// The head that a commit was decided on is compared in the same step.
pub(crate) async fn a_commit_decided_on_an_old_head_is_refused(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1);
    let token = store.mint().await.unwrap();
    let admit = script.admit(token, "go");
    script.write(&*store, admit).await.unwrap();
    let (one, other) = (script.say(vec![said("one")]), script.steer("other"));
    script.write(&*store, one).await.unwrap();
    let moved_on = CommitError::Conflict {
        entries: 2,
        audits: 2,
    };
    assert_eq!(store.commit(other).await, Err(moved_on));
    assert_eq!(store.inputs(script.run_id()).await, Ok(Vec::new()));

    let unknown = Script::new(9);
    let mut nobody = unknown.admit(store.mint().await.unwrap(), "go");
    nobody.create = None;
    assert_eq!(store.commit(nobody).await, Err(CommitError::NoSuchSession));
}

/// A commit that contradicts itself is a bug of its writer and changes nothing.
pub(crate) async fn a_malformed_commit_is_refused(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1);
    let token = store.mint().await.unwrap();
    let admit = script.admit(token, "go");
    script.write(&*store, admit).await.unwrap();
    let good = script.say(vec![said("one")]);
    let mut bad = Vec::new();
    let mut break_it = |what: &str, change: &dyn Fn(&mut _)| {
        let mut commit = good.clone();
        change(&mut commit);
        bad.push((what.to_owned(), commit));
    };
    break_it("a gap in the entries", &|c| c.entries[0].id.seq = 3);
    break_it("an entry of another session", &|c| {
        c.entries[0].id.session = Script::new(2).id();
    });
    break_it("a parent that is not there", &|c| {
        c.entries[0].parent = Some(c.entries[0].id);
    });
    break_it("a head that does not count", &|c| c.head.entries += 1);
    break_it("a head under another token", &|c| c.head.token.0 += 1);
    break_it("a leaf that is not there", &|c| {
        c.head.leaf = Some(EntryId {
            session: c.session,
            seq: 9,
        });
    });
    break_it("a gap in the audit records", &|c| c.audits[0].ordinal = 7);
    break_it("an outcome that nothing knows", &|c| {
        c.audits[0].outcome = "lucky";
    });
    break_it("a created session under a held lease", &|c| {
        c.create = Some(Script::new(1).record);
    });
    break_it("a run of another session", &|c| {
        let mut other = Script::new(2).admit(LeaseToken(1), "go");
        c.runs.push(other.runs.remove(0));
    });
    let mut steer = script.steer("left");
    steer.inputs[0].id.run = RunId::mint(Timestamp::from_millis(1), 1);
    bad.push(("an input of another run".to_owned(), steer));
    for (what, commit) in bad {
        let refused = store.commit(commit).await;
        assert!(
            matches!(refused, Err(CommitError::Malformed(_))),
            "{what}: {refused:?}"
        );
    }
    script
        .write(&*store, good)
        .await
        .expect("nothing was changed");
}
