//! One writer a session, proved by a token that only grows.

use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::lease::{LeaseClause, LeaseToken};
use sessionplane_core::ports::repository::CommitError;

use super::script::{Script, binding_key, said};
use super::{Store, Subject};

async fn running(store: &dyn Store, n: u64) -> Script {
    let mut script = Script::new(n);
    let token = store.mint().await.unwrap();
    let admit = script.admit(token, "go");
    script.write(store, admit).await.unwrap();
    script
}

fn fenced(current: Option<LeaseToken>) -> Result<(), CommitError> {
    Err(CommitError::Fenced { current })
}

async fn unchanged(store: &dyn Store, session: SessionId, before: &Script) {
    let stored = store.session(session).await.unwrap().unwrap();
    assert_eq!(stored.head, before.head);
}

/// From the revocation on nothing is written under the old token, and a newer writer is not harmed.
pub(crate) async fn c41_a_writer_that_lost_its_lease_cannot_write(subject: &mut dyn Subject) {
    let store = subject.store();
    let asleep = running(&*store, 1).await;
    store.revoke(asleep.id()).await.unwrap();
    assert_eq!(store.holder(asleep.id()).await, Ok(None));
    for commit in [
        asleep.say(vec![said("late")]),
        asleep.steer("late"),
        asleep.settle(),
    ] {
        assert_eq!(store.commit(commit).await, fenced(Some(asleep.token)));
    }
    unchanged(&*store, asleep.id(), &asleep).await;

    let mut newer = asleep.clone();
    let settle = newer.recover(store.mint().await.unwrap());
    newer.write(&*store, settle).await.unwrap();
    let token = store.mint().await.unwrap();
    let admit = newer.admit(token, "again");
    newer.write(&*store, admit).await.unwrap();
    for commit in [asleep.say(vec![said("later")]), asleep.settle()] {
        assert_eq!(store.commit(commit).await, fenced(Some(token)));
    }
    let say = newer.say(vec![said("mine")]);
    newer.write(&*store, say).await.unwrap();
    unchanged(&*store, newer.id(), &newer).await;
}

/// C20 C36 C44: a run that was cut is settled before the next one starts. Until then its lease record,
/// which alone leads to it, gives way to no other run, not even to one that starts and settles in
/// one commit.
pub(crate) async fn c44_a_cut_run_is_not_forgotten_for_the_next_one(subject: &mut dyn Subject) {
    for crash in [false, true] {
        let mut cut = running(&*subject.store(), u64::from(crash)).await;
        if crash {
            subject.reopen().await;
        } else {
            subject.store().revoke(cut.id()).await.unwrap();
        }
        let store = subject.store();
        let token = store.mint().await.unwrap();
        let next = cut.admit(token, "next");
        let mut at_once = next.clone();
        at_once.lease = LeaseClause::Recover(token);
        for commit in [next, at_once] {
            assert_eq!(store.commit(commit).await, fenced(Some(cut.token)));
        }
        assert_eq!(store.cut(cut.id()).await, Ok(Some(cut.lease())));
        unchanged(&*store, cut.id(), &cut).await;

        let settle = cut.recover(token);
        cut.write(&*store, settle).await.unwrap();
        assert_eq!(store.cut(cut.id()).await, Ok(None));
        let next = cut.admit(store.mint().await.unwrap(), "next");
        cut.write(&*store, next).await.unwrap();
        assert_eq!(store.cut(cut.id()).await, Ok(None), "it is held");
    }
}

/// Whatever kind of record a commit holds, without the token it is refused.
pub(crate) async fn c40_every_record_is_written_only_under_the_token(subject: &mut dyn Subject) {
    let store = subject.store();
    let script = running(&*store, 1).await;
    let bare = script.say(Vec::new());
    let mut run_only = bare.clone();
    run_only.runs.extend(script.run.clone());
    let mut leaf_only = bare.clone();
    leaf_only.head.leaf = None;
    let mut bound = bare.clone();
    script.bind(&mut bound, binding_key("acme", "r9"));
    let kinds: [Commit; 6] = [
        script.say(vec![said("an entry")]),
        script.steer("an input"),
        run_only,
        leaf_only,
        bound,
        bare,
    ];
    let stale = LeaseToken(script.token.0 - 1);
    let future = LeaseToken(script.token.0 + 1);
    for commit in kinds {
        for token in [stale, future] {
            for lease in [
                LeaseClause::Hold(token),
                LeaseClause::Release(token),
                LeaseClause::Acquire(token),
                LeaseClause::Recover(token),
            ] {
                let mut commit = commit.clone();
                commit.lease = lease;
                commit.head.token = token;
                let refused = store.commit(commit).await;
                assert_eq!(refused, fenced(Some(script.token)), "{lease:?}");
            }
        }
    }
    unchanged(&*store, script.id(), &script).await;
    assert_eq!(store.binding(&binding_key("acme", "r9")).await, Ok(None));
}

/// A second writer neither takes nor recovers what is held, and the first one goes on.
pub(crate) async fn a_held_session_is_not_taken_by_another(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut holder = running(&*store, 1).await;
    let token = store.mint().await.unwrap();
    let refused = store.commit(holder.admit(token, "me too")).await;
    assert_eq!(refused, fenced(Some(holder.token)));
    let recovered = store.commit(holder.recover(token)).await;
    assert_eq!(recovered, fenced(Some(holder.token)));
    let settle = holder.settle();
    holder.write(&*store, settle).await.unwrap();
    let admit = holder.admit(token, "now");
    holder.write(&*store, admit).await.unwrap();
}

/// Tokens of a session only grow.
pub(crate) async fn c41_b34_b36_b52_a_former_token_never_takes_a_session_again(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let early = store.mint().await.unwrap();
    let mut script = running(&*store, 1).await;
    let settle = script.settle();
    script.write(&*store, settle).await.unwrap();
    for token in [early, script.token] {
        let refused = store.commit(script.admit(token, "again")).await;
        assert_eq!(refused, fenced(Some(script.token)));
    }
    let token = store.mint().await.unwrap();
    let admit = script.admit(token, "again");
    script.write(&*store, admit).await.unwrap();
}

/// Of many that take an idle session at the same time, one gets it.
pub(crate) async fn one_of_many_takes_a_session(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = running(&*store, 1).await;
    let settle = script.settle();
    script.write(&*store, settle).await.unwrap();
    let mut takers = Vec::new();
    for _ in 0..32 {
        let store = subject.store();
        let token = store.mint().await.unwrap();
        let admit = script.admit(token, "mine");
        takers.push(tokio::spawn(
            async move { (token, store.commit(admit).await) },
        ));
    }
    let mut winner = None;
    for taker in takers {
        match taker.await.unwrap() {
            (token, Ok(())) => assert_eq!(winner.replace(token), None, "two took it"),
            (_, Err(CommitError::Fenced { .. })) => {}
            (_, Err(other)) => panic!("{other}"),
        }
    }
    assert!(winner.is_some());
    assert_eq!(store.holder(script.id()).await.unwrap(), winner);
}

/// Who holds a session is known from the commit that takes it to the one that gives it up.
pub(crate) async fn b34_the_holder_is_known_while_it_holds(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = running(&*store, 1).await;
    let other = running(&*store, 2).await;
    assert_eq!(store.holder(script.id()).await, Ok(Some(script.token)));
    let settle = script.settle();
    script.write(&*store, settle).await.unwrap();
    assert_eq!(store.holder(script.id()).await, Ok(None));
    assert_eq!(store.holder(other.id()).await, Ok(Some(other.token)));
    assert_eq!(store.orphaned().await, Ok(Vec::new()));
}
