//! Runs, entries and questions, read by themselves.

use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::ids::{EntryId, InteractionId, RunId};
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::time::Timestamp;

use super::script::{Script, said};
use super::{Store, Subject};

/// The same admission under another run's id.
fn renamed(mut commit: Commit, run: RunId) -> Commit {
    commit.holder = run.into();
    commit.runs[0].id = run;
    commit.entries[0].run = Some(run);
    commit.audits[0].run = Some(run);
    commit
}

/// A session that ran at these times, a run each, with these random parts of their ids. All but the
/// last run are settled.
async fn ran(store: &dyn Store, n: u64, times: &[(u64, u128)]) -> Script {
    let mut script = Script::new(n);
    for (at, chance) in times {
        if script.run.is_some() {
            let settle = script.settle();
            script.write(store, settle).await.unwrap();
        }
        script.now = *at;
        let id = RunId::mint(Timestamp::from_millis(*at), *chance);
        let admit = script.admit(store.mint().await.unwrap(), "go");
        script.write(store, renamed(admit, id)).await.unwrap();
    }
    script
}

/// Newest is who was admitted last: ids that sort otherwise, of a clock that went back or of one
/// millisecond, change nothing.
pub(crate) async fn c16_runs_are_listed_newest_first_whatever_the_clock_did(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let times = [
        (9_000, 5),
        (9_000, 4),
        (9_000, 9),
        (2_000, 1),
        (1_000, 7),
        (9_001, 2),
    ];
    let admitted: Vec<RunId> = times
        .iter()
        .map(|(at, chance)| RunId::mint(Timestamp::from_millis(*at), *chance))
        .collect();
    let script = ran(&*store, 1, &times).await;
    // Another session's runs are none of this one's.
    ran(&*store, 2, &[(5_000, 77), (5_000, 76)]).await;
    for _ in 0..2 {
        let store = subject.store();
        let listed = store.runs(script.id(), None, 50).await.unwrap();
        let ids: Vec<RunId> = listed.iter().rev().map(|run| run.id).collect();
        assert_eq!(ids, admitted);
        let (newest, rest) = listed.split_first().unwrap();
        assert_eq!(newest.settled, None);
        assert!(
            rest.iter().all(|run| run.settled.is_some()),
            "as they are now"
        );
        for run in listed {
            assert_eq!(store.run(run.id).await, Ok(Some(run)));
        }
        assert_eq!(store.runs_of(script.id()).await.unwrap(), admitted);
        drop(store);
        subject.reopen().await;
    }
}

/// Pages of any size make up the same whole; a run that is not the session's has none before it.
pub(crate) async fn c16_a_page_of_runs_goes_on_where_the_one_before_ended(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    // Back and forth, so that order by id would be another one.
    let times: Vec<(u64, u128)> = (0..13)
        .map(|n| (1_000 + (n * 7) % 13, u128::from(n)))
        .collect();
    let script = ran(&*store, 1, &times).await;
    let other = ran(&*store, 2, &[(1_003, 99)]).await;
    let all = store.runs(script.id(), None, usize::MAX).await.unwrap();
    assert_eq!(all.len(), times.len());
    for size in 1..=all.len() + 1 {
        let mut paged: Vec<RunRecord> = Vec::new();
        loop {
            let before = paged.last().map(|run| run.id);
            let page = store.runs(script.id(), before, size).await.unwrap();
            assert!(page.len() <= size);
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, all, "{size} a page");
    }
    assert_eq!(store.runs(script.id(), None, 0).await, Ok(Vec::new()));
    let unknown = RunId::mint(Timestamp::from_millis(9), 9);
    for before in [other.run_id(), unknown] {
        let page = store.runs(script.id(), Some(before), 9).await;
        assert_eq!(page, Ok(Vec::new()));
    }
}

/// Any of them, and no other session's, and none that was not written.
pub(crate) async fn one_entry_is_read_alone(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1);
    let admit = script.admit(store.mint().await.unwrap(), "go");
    let mut entries = admit.entries.clone();
    script.write(&*store, admit).await.unwrap();
    let long = "w".repeat(9_000);
    for text in ["short", &long] {
        let say = script.say(vec![said(text), said(text)]);
        entries.extend(say.entries.clone());
        script.write(&*store, say).await.unwrap();
    }
    let stale = script.say(vec![said("never")]);
    store.revoke(script.id()).await.unwrap();
    store.commit(stale.clone()).await.unwrap_err();
    for entry in &entries {
        assert_eq!(store.entry(entry.id).await, Ok(Some(entry.clone())));
    }
    let session = script.id();
    for seq in [0, stale.entries[0].id.seq, u64::MAX] {
        assert_eq!(
            store.entry(EntryId { session, seq }).await,
            Ok(None),
            "{seq}"
        );
    }
    let elsewhere = EntryId {
        session: Script::new(2).id(),
        seq: 1,
    };
    assert_eq!(store.entry(elsewhere).await, Ok(None));
}

/// A run's questions in the order in which they were asked, each as it was written last.
pub(crate) async fn c25_interactions_are_kept_and_overwritten(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut script = Script::new(1);
    let mut other = Script::new(2);
    for script in [&mut script, &mut other] {
        let admit = script.admit(store.mint().await.unwrap(), "go");
        script.write(&*store, admit).await.unwrap();
    }
    let theirs = other.ask("not mine");
    other.write(&*store, theirs).await.unwrap();
    let long = "d".repeat(9_000);
    for title in ["one", &long, "three"] {
        let ask = script.ask(title);
        script.write(&*store, ask).await.unwrap();
    }
    let mut known: Vec<Interaction> = script.asked.clone();
    let asked = |store: std::sync::Arc<dyn Store>, run| async move {
        store.interactions(run).await.unwrap()
    };
    assert_eq!(asked(subject.store(), script.run_id()).await, known);
    // The long one becomes longer by its answer, a short one is answered twice.
    for place in [1, 2, 2] {
        while usize::try_from(script.now).unwrap() % 3 != place {
            script.now += 1;
        }
        let answer = script.answer(&long);
        known[place] = answer.interactions[0].clone();
        script.write(&*store, answer).await.unwrap();
        assert_eq!(asked(subject.store(), script.run_id()).await, known);
    }
    let run = script.run_id();
    let mut foreign = script.say(Vec::new());
    foreign.interactions.extend(other.asked.clone());
    let mut uncounted = script.ask("no number");
    uncounted.interactions[0].id = InteractionId { run, ordinal: 0 };
    for malformed in [foreign, uncounted] {
        store.commit(malformed).await.unwrap_err();
    }
    let settle = script.settle();
    script.write(&*store, settle).await.unwrap();
    drop(store);
    subject.reopen().await;
    assert_eq!(asked(subject.store(), run).await, known);
}
