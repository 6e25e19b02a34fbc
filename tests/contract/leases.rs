//! C10, C27, C36, C40, C41, C44: a writer that lost its right, or its mind, writes nothing more,
//! says so, and leaves a session that can be used.

use std::sync::Arc;

use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::input::DiscardCause;
use sessionplane_core::domain::view::Status;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::adapters::memory::CommitStep;

use crate::gate::{accepts_input, admits, only, recovers, settles};
use crate::house::House;
use crate::suite::desk::{Ask, Desk, follow_up, steer};
use crate::suite::run::{Run, code, said};
use crate::suite::watch::{Watch, types};
use crate::suite::world::{World as _, quick};

struct Cut {
    house: Arc<House>,
    desk: Desk,
    run: Run,
    watch: Watch,
}

/// A run that waits, with an observer.
async fn running(prompt: &str) -> Cut {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "lease");
    desk.run("say \"x\"").await;
    let watch = desk.watch().await;
    let run = desk.invoke(Ask::new(prompt).id("one")).await;
    Cut {
        house,
        desk,
        run,
        watch,
    }
}

/// What everybody is told of a run whose server lost it, and that the session goes on.
async fn is_over(cut: Cut) {
    let Cut {
        desk,
        run,
        mut watch,
        ..
    } = cut;
    let id = run.id;
    let error = run.error().await;
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ServingLost, Outcome::StreamEnded)
    );
    let (events, error) = watch.error().await;
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ServingLost, Outcome::StreamEnded)
    );
    assert_eq!(types(&events).last(), Some(&"serving_error"));
    assert!(
        !types(&events).contains(&"run_settled"),
        "nothing is told that was not written"
    );
    // The same id finds the run, settled by its records; nothing starts again.
    let again = desk
        .invoke(Ask::new("wait-steer\nsay \"x\"").id("one"))
        .await;
    assert_eq!((again.id, again.joined), (id, true));
    assert_eq!(code(&again.finish().await), "interrupted");
    let view = desk.state().await.view;
    assert_eq!(view.status(), Status::Idle);
    assert_eq!(view.last_run.map(|last| last.run), Some(id));
    let entries = desk.entries().await;
    let last = entries.last().expect("entries");
    assert!(
        matches!(&last.body, EntryBody::Notice { code, .. } if code == "interrupted"),
        "{last:?}"
    );
    assert_eq!(view.leaf, Some(last.id));
    let watch = desk.watch().await;
    assert_eq!(watch.backfill, entries);
    assert!(
        watch.epoch > events[0].epoch,
        "another incarnation serves it now"
    );
    assert_eq!(code(&desk.run("say \"next\"").await), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn c41_a_revoked_lease_ends_the_run_and_frees_the_session() {
    let cut = running("wait-steer\nsay \"x\"").await;
    let waiting = cut.desk.follow_up("never").await;
    cut.house
        .store()
        .revoke(cut.run.session)
        .await
        .expect("revoked");
    let answer = cut
        .desk
        .try_dispatch(steer("say \"y\""), Some("s"), None)
        .await;
    let error = answer.expect_err("its commit was refused");
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ServingLost, Outcome::Unknown)
    );
    let (desk, run) = (cut.desk.clone(), cut.run.id);
    is_over(cut).await;
    let undelivered = desk.record(run).await.undelivered;
    assert_eq!(undelivered.len(), 1);
    assert_eq!(
        (undelivered[0].id, undelivered[0].cause),
        (waiting, DiscardCause::Interrupted)
    );
    let id = Some("s");
    let again = desk
        .try_dispatch(steer("say \"y\""), id, None)
        .await
        .expect("an answer");
    assert!(
        format!("{again:?}").contains("NoActiveRun"),
        "it bound nothing: {again:?}"
    );
}

/// C10: a settlement that is fenced publishes nothing but `serving_error`.
#[tokio::test(flavor = "multi_thread")]
async fn c10_a_fenced_settlement_publishes_only_that_the_owner_is_lost() {
    let cut = running("wait-steer\nsay \"x\"").await;
    let mut held = cut.house.gate.hold(only(CommitStep::BeforeSync, settles));
    cut.desk.steer("say \"y\"").await;
    held.reached().await;
    cut.house
        .store()
        .revoke(cut.run.session)
        .await
        .expect("revoked");
    held.release();
    is_over(cut).await;
}

/// C36, C44: a bug in the session's task costs the run, never the session.
#[tokio::test(flavor = "multi_thread")]
async fn c44_a_panic_ends_the_run_and_frees_the_session() {
    let cut = running("wait-steer\nsay \"x\"").await;
    let mut held = cut
        .house
        .gate
        .hold(only(CommitStep::BeforeSync, accepts_input));
    let call = tokio::spawn({
        let desk = cut.desk.clone();
        async move { desk.try_dispatch(steer("say \"y\""), Some("s"), None).await }
    });
    held.reached().await;
    held.panic();
    cut.house.gate.open();
    let error = call.await.expect("no panic").expect_err("no answer");
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ServingLost, Outcome::Unknown)
    );
    is_over(cut).await;
}

/// C27 C31: between the loss and the settlement by the records nobody is told that the session is
/// idle, and whoever subscribes in between is told of the loss as well.
#[tokio::test(flavor = "multi_thread")]
async fn c27_a_lost_session_is_not_idle_before_its_run_is_settled() {
    let cut = running("wait-steer\nsay \"x\"").await;
    let mut held = cut.house.gate.hold(only(CommitStep::BeforeSync, recovers));
    cut.house
        .store()
        .revoke(cut.run.session)
        .await
        .expect("revoked");
    let answer = cut.desk.try_dispatch(Command::Abort, None, None).await;
    assert_eq!(answer.expect_err("lost").outcome, Outcome::Unknown);
    held.reached().await;
    let state = cut.desk.state().await;
    assert_eq!(state.view.active_run, Some(cut.run.id));
    let mut between = cut.desk.watch().await;
    held.release();
    let (_, error) = between.error().await;
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ServingLost, Outcome::StreamEnded)
    );
    is_over(cut).await;
}

/// C5 C6: a caller that has not yet read its admission when the session is lost is told so. The
/// session's next incarnation numbers its events anew, and none of them is the caller's.
#[tokio::test(flavor = "multi_thread")]
async fn c06_an_admission_read_after_the_session_was_lost_is_told_the_loss() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "late");
    desk.run("say \"x\"").await;
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, admits));
    let mut call = Box::pin(desk.invoke("hang"));
    tokio::select! {
        biased;
        () = held.reached() => {}
        run = &mut call => panic!("{} before its commit", run.id),
    }
    let mut watch = desk.watch().await;
    held.release();
    let started = watch.until_type("run_started").await;
    let epoch = started[0].epoch;
    let session = watch.snapshot.view.session.id;
    house.store().revoke(session).await.expect("revoked");
    let answer = desk.try_dispatch(follow_up("x"), None, None).await;
    assert_eq!(answer.expect_err("lost").outcome, Outcome::Unknown);
    let (_, error) = watch.error().await;
    assert_eq!(error.reason, Reason::ServingLost);
    // Another incarnation serves the session by the time the caller reads its answer.
    assert!(desk.state().await.position.epoch > epoch);
    let run = call.await;
    assert_eq!(run.position.epoch, epoch);
    let error = run.error().await;
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ServingLost, Outcome::StreamEnded)
    );
}

/// C43: a session has one engine at a time, also where the last one takes a moment to go: after an
/// abort that it did not hear, and after its session was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c43_no_engine_of_a_session_is_opened_beside_another() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "alone");
    let go = || Ask::new("x").agent("lingering");
    let mut run = desk.invoke(go()).await;
    let session = run.session;
    for turn in 0..4 {
        let text = said(&run.until_text().await, OutputChannel::Text);
        assert_eq!(text, "1 of us", "after {turn} others");
        if turn % 2 == 0 {
            desk.abort().await;
            assert_eq!(code(&run.finish().await), "aborted");
        } else {
            house.store().revoke(session).await.expect("revoked");
            let answer = desk.try_dispatch(follow_up("x"), None, None).await;
            assert_eq!(answer.expect_err("lost").outcome, Outcome::Unknown);
            assert_eq!(run.error().await.reason, Reason::ServingLost);
        }
        run = desk.invoke(go()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c41_tokens_grow_by_run_and_by_start() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "tokens");
    let mut last = None;
    for _ in 0..3 {
        for _ in 0..2 {
            let run = desk.invoke("hang").await;
            let holder = house.store().holder(run.session).await.expect("a read");
            assert!(
                holder.is_some() && holder > last,
                "{holder:?} after {last:?}"
            );
            last = holder;
            desk.abort().await;
            run.finish().await;
            let free = house
                .store()
                .holder(desk.state().await.view.session.id)
                .await;
            assert_eq!(free, Ok(None), "a settled run holds nothing");
        }
        let run = desk.invoke("hang").await;
        house.restart().await;
        assert_eq!(house.store().holder(run.session).await, Ok(None));
    }
}

/// C41: nothing of an earlier start is written once a later one has the store.
#[tokio::test(flavor = "multi_thread")]
async fn c41_a_commit_of_an_earlier_start_is_not_written() {
    let cut = running("wait-steer\nsay \"x\"").await;
    let mut held = cut
        .house
        .gate
        .hold(only(CommitStep::BeforeSync, accepts_input));
    let call = tokio::spawn({
        let desk = cut.desk.clone();
        async move { desk.try_dispatch(follow_up("x"), Some("f"), None).await }
    });
    held.reached().await;
    cut.house.restart().await;
    held.release();
    call.abort();
    assert_eq!(cut.desk.record(cut.run.id).await.undelivered, []);
    let again = cut
        .desk
        .try_dispatch(follow_up("x"), Some("f"), None)
        .await
        .expect("an answer");
    assert!(format!("{again:?}").contains("NoActiveRun"), "{again:?}");
}
