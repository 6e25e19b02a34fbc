//! C13, C44: the application is drained and stopped while runs are under way.

use futures_util::poll;
use sessionplane_core::domain::command::DispatchAnswer;
use sessionplane_core::domain::error::Outcome;
use sessionplane_core::domain::input::DiscardCause;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_server::adapters::memory::CommitStep;

use crate::gate::{accepts_input, only};
use crate::house::House;
use crate::suite::desk::{Ask, Desk, follow_up, within};
use crate::suite::disconnects::{outcome, patient};
use crate::suite::run::code;
use crate::suite::world::{World as _, quick};

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
    assert_eq!(outcome(&desk.settled(id).await), &RunOutcome::Completed);
}
