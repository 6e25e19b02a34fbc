//! What changes a session outside of runs: its lease, and where it leaves the leaf.

use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::entry::{Entry, PathMarks};
use sessionplane_core::domain::ids::EntryId;
use sessionplane_core::domain::lease::{Holder, LeaseClause, LeaseToken};
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::ports::repository::CommitError;

use super::reading::read_all;
use super::script::{Script, said};
use super::{Store, Subject};

/// A session with a settled run that said something.
async fn rested(store: &dyn Store, n: u64) -> (Script, Vec<Entry>) {
    let mut script = Script::new(n);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(store, admit).await.unwrap();
    let say = script.say(vec![said("this"), said("and that")]);
    script.write(store, say).await.unwrap();
    let settle = script.settle();
    script.write(store, settle).await.unwrap();
    let entries = read_all(store, &script, 100, usize::MAX).await;
    (script, entries)
}

fn fenced(current: LeaseToken) -> Result<(), CommitError> {
    let current = Some(current);
    Err(CommitError::Fenced { current })
}

/// B50: between its start and its end a compaction has written nothing but its lease. After a kill
/// that lease is all that tells of it; who gives it up changes nothing else.
pub(crate) async fn c22_a_cut_compaction_is_told_and_given_up_and_has_left_nothing(
    subject: &mut dyn Subject,
) {
    let (mut script, entries) = rested(&*subject.store(), 1).await;
    let begin = script.compact(subject.store().mint().await.unwrap());
    script.write(&*subject.store(), begin).await.unwrap();
    assert_eq!(
        subject.store().cut(script.id()).await,
        Ok(None),
        "it is live"
    );
    let late = script.compacted("late");
    subject.reopen().await;
    let store = subject.store();
    let lease = script.lease();
    assert_eq!(lease.holder, Holder::Boundary);
    assert_eq!(store.orphaned().await, Ok(vec![lease]));
    assert_eq!(store.cut(script.id()).await, Ok(Some(lease)));
    assert_eq!(store.commit(late).await, fenced(script.token));
    let token = store.mint().await.unwrap();
    let too_early = store.commit(script.admit(token, "go on")).await;
    assert_eq!(too_early, fenced(script.token), "it is given up first");

    let before = store.session(script.id()).await.unwrap().unwrap().head;
    let give_up = script.give_up(token);
    script.write(&*store, give_up).await.unwrap();
    assert_eq!(store.cut(script.id()).await, Ok(None));
    assert_eq!(store.orphaned().await, Ok(Vec::new()));
    let mut after = store.session(script.id()).await.unwrap().unwrap().head;
    assert_eq!((after.token, after.audits), (token, before.audits + 1));
    (after.token, after.audits) = (before.token, before.audits);
    assert_eq!(after, before);
    assert_eq!(read_all(&*store, &script, 100, usize::MAX).await, entries);
    assert_eq!(store.runs_of(script.id()).await.unwrap().len(), 1);
    let admit = script.admit(store.mint().await.unwrap(), "go on");
    script.write(&*store, admit).await.unwrap();
}

/// Whether a run holds it or a compaction, live or cut: a change between runs is no way around the
/// lease. The holder goes on as if nothing had been tried.
pub(crate) async fn c22_a_change_between_runs_is_fenced_while_the_session_is_held(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    for (n, compacts) in [(1, false), (2, true)] {
        let (mut script, entries) = rested(&*store, n).await;
        let token = store.mint().await.unwrap();
        let take = if compacts {
            script.compact(token)
        } else {
            script.admit(token, "on")
        };
        script.write(&*store, take).await.unwrap();
        let tries = |token| -> Vec<Commit> {
            let mut over = script.navigate(token, &entries[0], SettingsOverride::default());
            over.lease = LeaseClause::Acquire(token);
            vec![
                script.choose(token, "swift"),
                script.navigate(token, &entries[0], SettingsOverride::default()),
                script.compact(token),
                over,
            ]
        };
        for commit in tries(store.mint().await.unwrap()) {
            assert_eq!(store.commit(commit).await, fenced(script.token));
        }
        // A token of before does not write under the holder's name either.
        let mut stale = script.choose(LeaseToken(script.token.0 - 1), "swift");
        stale.lease = LeaseClause::Hold(stale.head.token);
        assert_eq!(store.commit(stale).await, fenced(script.token));
        let stored = store.session(script.id()).await.unwrap().unwrap();
        assert_eq!(stored.head, script.head);
        if compacts {
            let done = script.compacted("in short");
            script.write(&*store, done).await.unwrap();
        } else {
            // Cut, it still has to be settled, by nobody but its recovery.
            store.revoke(script.id()).await.unwrap();
            for commit in tries(store.mint().await.unwrap()) {
                assert_eq!(store.commit(commit).await, fenced(script.token));
            }
            let settle = script.recover(store.mint().await.unwrap());
            script.write(&*store, settle).await.unwrap();
        }
        let choose = script.choose(store.mint().await.unwrap(), "swift");
        script.write(&*store, choose).await.unwrap();
        assert_eq!(store.holder(script.id()).await, Ok(None));
        assert_eq!(store.orphaned().await, Ok(Vec::new()));
    }
}

/// Of two changes that were decided on one head one is written.
pub(crate) async fn c22_what_changes_between_runs_never_creates_a_session(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let nobody = Script::new(9);
    let token = store.mint().await.unwrap();
    for commit in [nobody.choose(token, "swift"), nobody.compact(token)] {
        let refused = store.commit(commit).await;
        assert_eq!(refused, Err(CommitError::NoSuchSession));
    }
    assert_eq!(store.session(nobody.id()).await, Ok(None));
    assert_eq!(store.orphaned().await, Ok(Vec::new()));

    let (mut script, _) = rested(&*store, 1).await;
    let (one, other) = (store.mint().await.unwrap(), store.mint().await.unwrap());
    let (first, second) = (script.choose(one, "swift"), script.choose(other, "deep"));
    script.write(&*store, first).await.unwrap();
    let late = store.commit(second).await;
    assert!(
        matches!(late, Err(CommitError::Conflict { .. })),
        "{late:?}"
    );
}

/// The leaf goes back and forth; entries stay, and each remembers what held where it was written.
pub(crate) async fn c23_c24_settings_follow_the_leaf_wherever_it_moves(subject: &mut dyn Subject) {
    let store = subject.store();
    let (mut script, mut entries) = rested(&*store, 1).await;
    let choose = script.choose(store.mint().await.unwrap(), "swift");
    entries.extend(choose.entries.clone());
    script.write(&*store, choose).await.unwrap();
    let chosen = script.head.chosen.clone();
    let settings = Some(entries[entries.len() - 1].id.seq);
    assert_eq!(script.head.path.settings, settings);

    // Back to the prompt, where nothing had been chosen yet.
    let back = script.navigate(
        store.mint().await.unwrap(),
        &entries[0],
        SettingsOverride::default(),
    );
    script.write(&*store, back).await.unwrap();
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    let head = store.session(script.id()).await.unwrap().unwrap().head;
    assert_eq!(head.leaf, Some(entries[0].id));
    let unchosen = (PathMarks::default(), SettingsOverride::default());
    assert_eq!((head.path, head.chosen), unchosen);
    assert_eq!(head.entries, entries.len() as u64, "nothing is forgotten");

    // What is said now branches off there.
    let admit = script.admit(store.mint().await.unwrap(), "instead");
    assert_eq!(admit.entries[0].parent, Some(entries[0].id));
    entries.extend(admit.entries.clone());
    script.write(&*store, admit).await.unwrap();
    let settle = script.settle();
    entries.extend(settle.entries.clone());
    script.write(&*store, settle).await.unwrap();
    assert_eq!(script.head.path, PathMarks::default());

    // And forth to the other branch, where the choice still holds.
    let there = entries[4].clone();
    assert_eq!(there.path.settings, settings);
    let forth = script.navigate(store.mint().await.unwrap(), &there, chosen.clone());
    script.write(&*store, forth).await.unwrap();
    let head = store.session(script.id()).await.unwrap().unwrap().head;
    assert_eq!((head.leaf, head.chosen), (Some(there.id), chosen));
    assert_eq!(head.path, there.path);
    assert_eq!(read_all(&*store, &script, 3, usize::MAX).await, entries);
    refuses_what_is_not_there(&*store, &script, &there).await;
}

/// A leaf or a mark that names no entry of the session is a bug of its writer.
async fn refuses_what_is_not_there(store: &dyn Store, script: &Script, there: &Entry) {
    let token = store.mint().await.unwrap();
    let session = script.id();
    let beyond = script.head.entries + 1;
    let mut wrong = Vec::new();
    for seq in [0, beyond] {
        let mut to = there.clone();
        to.id = EntryId { session, seq };
        wrong.push(to);
    }
    let mut marked = there.clone();
    marked.path.compaction = Some(there.id.seq + 1);
    wrong.push(marked);
    let mut foreign = there.clone();
    foreign.id.session = Script::new(2).id();
    wrong.push(foreign);
    for to in wrong {
        let commit = script.navigate(token, &to, SettingsOverride::default());
        let refused = store.commit(commit).await;
        assert!(
            matches!(refused, Err(CommitError::Malformed(_))),
            "{refused:?}"
        );
    }
}
