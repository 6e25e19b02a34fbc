//! C13, C44: the application is drained and stopped while runs are under way.

use std::sync::Arc;

use futures_util::poll;
use sessionplane_core::contract::{CallOptions, EventFilter, EventsRequest};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::input::DiscardCause;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::ports::repository::Repository as _;
use sessionplane_server::adapters::memory::{CommitStep, MemoryStore};
use sessionplane_server::app::App;
use tokio::sync::mpsc;

use crate::gate::{accepts_input, only, settles};
use crate::house::{House, agents, ports, principal};
use crate::suite::desk::{Ask, Desk, follow_up, within};
use crate::suite::disconnects::{outcome, patient};
use crate::suite::run::code;
use crate::suite::watch::types;
use crate::suite::world::{Pinned, World, quick};

/// C16: a wait for a run does not outlast the server that drives it.
#[tokio::test]
async fn c16_a_stop_ends_the_waits_for_runs_that_go_on() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "waited-for");
    let run = desk.invoke("hang").await;
    let mut waiting = Box::pin(desk.wait_run(run.id, None));
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert!(poll!(&mut waiting).is_pending(), "it has not settled");
    }
    within("the application stops", house.app().stop()).await;
    let error = within("the wait ends", waiting).await.expect_err("a stop");
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ServerDraining, Outcome::Unknown)
    );
}

/// C44: a session that always has something to write does not keep the server from stopping.
#[tokio::test]
async fn c44_a_stop_waits_for_the_commit_in_flight_and_starts_no_other() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "stopped");
    let ask = || Ask::new("hang").id("one");
    let run = desk.invoke(ask()).await;
    let send = |id: &'static str| {
        let desk = desk.clone();
        tokio::spawn(async move { desk.try_dispatch(follow_up("x"), Some(id), None).await })
    };
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, accepts_input));
    let first = send("first");
    held.reached().await;
    let second = send("second");
    let app = house.app();
    let mut stopping = Box::pin(app.stop());
    // Far enough for the second input to wait behind the commit, and for the stop to be known.
    for turn in 0..400 {
        tokio::task::yield_now().await;
        if turn > 200 {
            assert!(poll!(&mut stopping).is_pending(), "a commit is in flight");
        }
    }
    // Nothing lets the next commit pass.
    let _never = house.gate.hold(only(CommitStep::BeforeSync, accepts_input));
    held.release();
    within("the application stops", stopping).await;
    let answer = first.await.expect("no panic").expect("an answer");
    assert!(matches!(answer, DispatchAnswer::Accepted(_)), "it is kept");
    let error = second.await.expect("no panic").expect_err("no answer");
    assert_eq!(error.outcome, Outcome::Unknown, "{error:?}");
    let id = run.id;
    drop(run);
    house.gate.open();
    house.restart().await;
    let undelivered = desk.record(id).await.undelivered;
    let causes: Vec<_> = undelivered.iter().map(|input| input.cause).collect();
    assert_eq!(causes, [DiscardCause::Interrupted], "the first alone");
    assert_eq!(code(&desk.run(ask()).await), "interrupted");
}

/// C13: once the faces are being stopped, a stream that ends was ended by the server, also that of a
/// caller without an id, who cannot come back.
#[tokio::test(flavor = "multi_thread")]
async fn c13_a_stream_that_ends_in_a_drain_cancels_nothing() {
    let house = House::new(patient());
    let desk = Desk::new(&house.world(), "drained");
    let run = desk
        .invoke(Ask::new("wait-steer\nsay \"x\"").cancel())
        .await;
    let id = run.id;
    house.app().drain();
    drop(run);
    // An abort would be decided before this is: its stream was gone first.
    desk.steer("say \"still here\"").await;
    // Who would only begin to watch now may come too late; who waits for a run is told its end.
    let record = within("its end", desk.wait_run(id, None))
        .await
        .expect("a record");
    assert_eq!(outcome(&record), &RunOutcome::Completed);
}

/// Nothing of an application outlives its last handle: it is dropped as a process ends.
#[tokio::test(flavor = "multi_thread")]
async fn c36_an_application_that_is_dropped_leaves_no_task_behind() {
    let store = Arc::new(MemoryStore::new());
    let (ports, _life) = ports(store.clone(), store.clone());
    let app = App::new(ports.clone(), agents(&ports), quick());
    let world: Arc<dyn World> = Arc::new(Pinned(principal(&app, "acme", "owner")));
    drop(app);
    let desk = Desk::new(&world, "dropped");
    let mut run = desk.invoke("say \"x\"\nhang").await;
    // A caller's handle is enough for its runs to go on.
    run.until_text().await;
    let id = run.id;
    let clock = Arc::downgrade(&ports.clock);
    drop((desk, world, ports));
    // Who still reads is told.
    assert_eq!(run.error().await.reason, Reason::ServingLost);
    let freed = async {
        while clock.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    };
    within("everything is freed", freed).await;
    let record = store.run(id).await.expect("a read").expect("a run");
    assert_eq!(record.settled, None, "it was cut as by a crash");
}

/// Callers that are told the same are told in the order in which they asked, so that the same
/// history always runs the same.
#[tokio::test]
async fn callers_of_a_lost_session_hear_it_in_the_order_in_which_they_asked() {
    const CALLERS: usize = 16;
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "lost");
    desk.invoke("hang").await;
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, accepts_input));
    let (heard, mut order) = mpsc::channel(CALLERS);
    for caller in 0..CALLERS {
        let (desk, heard) = (desk.clone(), heard.clone());
        tokio::spawn(async move {
            let answer = desk.try_dispatch(follow_up("x"), None, None).await;
            assert_eq!(answer.expect_err("lost").outcome, Outcome::Unknown);
            heard.send(caller).await.expect("a listener");
        });
    }
    held.reached().await;
    // Far enough for the others to wait behind the commit.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    held.fail("the disk is gone");
    for caller in 0..CALLERS {
        let next = within("the next answer", order.recv()).await;
        assert_eq!(next, Some(caller));
    }
}

/// C63: who watches a session that does nothing is sent away at once; who watches a run is told its
/// end first.
#[tokio::test(flavor = "multi_thread")]
async fn c63_a_drain_sends_the_idle_sessions_watchers_away_and_keeps_those_of_runs() {
    let house = House::new(patient());
    let (idle, busy) = (
        Desk::new(&house.world(), "idle"),
        Desk::new(&house.world(), "busy"),
    );
    idle.run("say \"x\"").await;
    let run = busy.invoke("wait-steer\nsay \"x\"").await;
    let (mut watches_idle, mut watches_busy) = (idle.watch().await, busy.watch().await);
    let app = house.app();
    app.drain();
    let mut rest = Box::pin(app.at_rest());
    let gone = watches_idle.error().await.1;
    let told = (Reason::ServerDraining, Outcome::StreamEnded);
    assert_eq!((gone.reason, gone.outcome), told);
    assert!(poll!(&mut rest).is_pending(), "a run is active");
    // Who comes to it now is served, and who comes to the other is not.
    let mut late = busy.watch().await;
    let request = EventsRequest {
        session: idle.session.clone(),
        resume: None,
        entries_since: None,
        filter: EventFilter::default(),
    };
    let refused = idle.caller().events(request, CallOptions::default()).await;
    let refused = refused.err().expect("nothing to be watched");
    let not_taken = (Reason::ServerDraining, Outcome::Refused);
    assert_eq!((refused.reason, refused.outcome), not_taken);

    busy.steer("say \"still here\"").await;
    for watch in [&mut watches_busy, &mut late] {
        let (events, gone) = watch.error().await;
        assert_eq!(types(&events).last(), Some(&"run_settled"), "{events:?}");
        assert_eq!((gone.reason, gone.outcome), told);
    }
    within("nothing is at work", rest).await;
    let record = busy.record(run.id).await;
    assert_eq!(outcome(&record), &RunOutcome::Completed);
}

/// C63: nothing new begins in a drain, and what was there before it is answered.
#[tokio::test(flavor = "multi_thread")]
async fn c63_a_drain_begins_no_run_and_no_compaction_and_answers_what_began_before() {
    let house = House::new(patient());
    let desk = Desk::new(&house.world(), "drained");
    let ask = || Ask::new("say \"x\"").id("one");
    let before = desk.run(ask()).await;
    house.app().drain();
    let not_taken = |error: CallError| {
        let told = (error.reason, error.outcome);
        assert_eq!(told, (Reason::ServerDraining, Outcome::Refused), "{error}");
    };
    not_taken(desk.open(Ask::new("say \"y\"")).await.err().expect("a run"));
    let unborn = Desk::new(&house.world(), "unborn");
    not_taken(
        unborn
            .open(Ask::new("say \"y\""))
            .await
            .err()
            .expect("a run"),
    );
    let compact = Command::Compact { instructions: None };
    not_taken(
        desk.try_dispatch(compact, None, None)
            .await
            .expect_err("one"),
    );
    assert_eq!(desk.run(ask()).await.last(), before.last(), "joined");
    within("nothing is at work", house.app().at_rest()).await;
}

/// C63: what a stop cuts is settled before the process is gone, not by the next one.
#[tokio::test(flavor = "multi_thread")]
async fn c63_what_a_stop_cuts_is_interrupted_before_the_end() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "cut");
    let run = desk.invoke("hang").await;
    let idle = Desk::new(&house.world(), "done");
    idle.run("say \"x\"").await;
    let (app, store) = (house.app(), house.store());
    within("the application stops", app.stop()).await;
    assert_eq!(app.interrupt().await.expect("the store"), 1);
    let record = store.run(run.id).await.expect("read").expect("a record");
    assert_eq!(outcome(&record).code(), Some("interrupted"));
    assert_eq!(app.interrupt().await.expect("the store"), 0, "once");
}

/// C63: a run that has settled while the stop waited for it is none that the stop has cut.
#[tokio::test(flavor = "multi_thread")]
async fn c63_a_run_that_settles_as_the_server_stops_is_not_told_as_cut() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "last-word");
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, settles));
    let run = desk.invoke("say \"x\"").await;
    held.reached().await;
    let app = house.app();
    let mut stopping = Box::pin(app.stop());
    for _ in 0..200 {
        tokio::task::yield_now().await;
        assert!(poll!(&mut stopping).is_pending(), "a commit is in flight");
    }
    held.release();
    within("the application stops", stopping).await;
    assert_eq!(app.interrupt().await.expect("the store"), 0);
    let record = house.store().run(run.id).await.expect("read");
    assert_eq!(outcome(&record.expect("a record")), &RunOutcome::Completed);
}
