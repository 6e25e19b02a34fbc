//! C20, C27, C36, C44: a run that was cut and cannot be settled yet: its session is refused, never
//! shown idle and never given another run, and is served again once the run is settled.

use std::sync::Arc;

use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::view::Status;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::app::recovery::recover;

use crate::house::House;
use crate::suite::desk::{Ask, Desk, within};
use crate::suite::run::{Run, code};
use crate::suite::world::quick;

/// A session with a run that waits, and an input that waits with it.
async fn running() -> (Arc<House>, Desk, Run) {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "cut");
    let run = desk.invoke(Ask::new("hang").id("one")).await;
    desk.follow_up("never").await;
    (house, desk, run)
}

fn is(error: &CallError, reason: Reason, outcome: Outcome) {
    assert_eq!((error.reason, error.outcome), (reason, outcome), "{error}");
}

/// The old run ended as a cut run ends, its input with it, and the next one runs.
async fn goes_on(house: &House, desk: &Desk, cut: &Run) {
    let next = async {
        loop {
            match desk.open("say \"next\"").await {
                Ok(stream) => return Run::accepted(stream).await,
                // Refused until the settlement is written.
                Err(error) => assert_eq!(error.outcome, Outcome::Refused, "{error}"),
            }
            tokio::task::yield_now().await;
        }
    };
    let next = within("a session that is served again", next).await;
    let record = desk.record(cut.id).await;
    let settled = record.settled.expect("it was settled before the next one");
    assert_eq!(settled.outcome.code(), Some("interrupted"));
    let inputs = house.store().inputs(cut.id).expect("inputs");
    let fates: Vec<_> = inputs.iter().map(|input| input.fate).collect();
    assert_eq!(fates, [InputFate::Discarded(DiscardCause::Interrupted)]);
    assert_eq!(code(&next.finish().await), "completed");
    assert_eq!(desk.state().await.view.status(), Status::Idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn c36_c44_a_lost_session_is_refused_until_its_run_is_settled() {
    let (house, desk, run) = running().await;
    let mut watch = desk.watch().await;
    house.refusal.set(true);
    house.store().revoke(run.session).await.expect("revoked");
    let lost = desk.try_dispatch(Command::Abort, None, None).await;
    is(
        &lost.expect_err("its commit was refused"),
        Reason::ServingLost,
        Outcome::Unknown,
    );
    let (_, told) = watch.error().await;
    is(&told, Reason::ServingLost, Outcome::StreamEnded);
    // It is tried again and again, and in between every call is answered.
    for attempts in [1, 3] {
        house.refusal.reached(attempts).await;
        let refused = desk.open("say \"too early\"").await.err();
        let refused = refused.expect("its run is not settled");
        is(&refused, Reason::ServingLost, Outcome::Refused);
        assert!(refused.retry_after.is_some());
        let refused = desk.try_dispatch(Command::Abort, None, None).await;
        let refused = refused.expect_err("nobody drives it");
        is(&refused, Reason::ServingLost, Outcome::Refused);
        assert_eq!(desk.state().await.view.active_run, Some(run.id));
        let (_, told) = desk.watch().await.error().await;
        is(&told, Reason::ServingLost, Outcome::StreamEnded);
    }
    house.refusal.set(false);
    goes_on(&house, &desk, &run).await;
}

/// C2: a store that does not confirm is told as that, whoever it is who reads, calls or waits.
#[tokio::test(flavor = "multi_thread")]
async fn c02_c44_a_store_that_fails_is_told_as_such_on_every_path() {
    let (house, desk, run) = running().await;
    let mut watch = desk.watch().await;
    let waiting = {
        let (desk, id) = (desk.clone(), run.id);
        tokio::spawn(async move { desk.wait_run(id, None).await })
    };
    house.refusal.fill();
    let lost = desk.try_dispatch(Command::Abort, None, None).await;
    let lost = lost.expect_err("nothing was confirmed");
    is(&lost, Reason::StoreFailed, Outcome::Unknown);
    let (_, told) = watch.error().await;
    is(&told, Reason::StoreFailed, Outcome::StreamEnded);
    is(
        &run.error().await,
        Reason::StoreFailed,
        Outcome::StreamEnded,
    );
    let refused = desk.open("say \"next\"").await.err();
    let refused = refused.expect("its run is not settled");
    is(&refused, Reason::StoreFailed, Outcome::Refused);
    waiting.abort();
}

/// C16 C36: whoever waits for a run when it is lost hears its end as soon as it can be settled.
#[tokio::test(flavor = "multi_thread")]
async fn c16_c36_a_wait_goes_on_until_a_lost_run_is_settled_late() {
    let (house, desk, run) = running().await;
    let waiting = {
        let (desk, id) = (desk.clone(), run.id);
        tokio::spawn(async move { desk.wait_run(id, None).await })
    };
    house.refusal.set(true);
    house.store().revoke(run.session).await.expect("revoked");
    let lost = desk.try_dispatch(Command::Abort, None, None).await;
    lost.expect_err("its commit was refused");
    house.refusal.reached(2).await;
    house.refusal.set(false);
    match within("its end", waiting).await.expect("no panic") {
        Ok(record) => assert_eq!(settled_as(&record), Some("interrupted")),
        Err(error) => is(&error, Reason::ServingLost, Outcome::Unknown),
    }
    goes_on(&house, &desk, &run).await;
}

fn settled_as(record: &RunRecord) -> Option<&str> {
    record.settled.as_ref().and_then(|end| end.outcome.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn c36_c44_a_cut_run_that_no_start_settled_is_settled_before_its_session_is_used() {
    for first in ["state", "dispatch", "invoke"] {
        let (house, desk, run) = running().await;
        house.reopen();
        match first {
            "state" => {
                let view = desk.state().await.view;
                assert_eq!(view.last_run.map(|last| last.run), Some(run.id));
            }
            "dispatch" => {
                desk.rejected(Command::Abort).await;
                assert!(desk.record(run.id).await.settled.is_some());
            }
            _ => {}
        }
        goes_on(&house, &desk, &run).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c36_c44_a_session_whose_cut_run_cannot_be_settled_is_refused_by_name() {
    let (house, desk, run) = running().await;
    house.refusal.set(true);
    house.reopen();
    let errors = [
        desk.wait_run(run.id, None).await.err(),
        desk.try_state(None).await.err(),
        desk.open("say \"x\"").await.err(),
        desk.try_dispatch(Command::Abort, None, None).await.err(),
    ];
    for error in errors {
        let error = error.expect("its run is not settled");
        is(&error, Reason::StoreFailed, Outcome::Refused);
        assert!(error.message.contains(&run.session.to_string()), "{error}");
    }
    house.refusal.set(false);
    goes_on(&house, &desk, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c44_b54_a_damaged_running_session_is_refused_by_name_and_the_others_are_served() {
    let (house, damaged, cut) = running().await;
    let whole = Desk::new(&house.world(), "whole");
    let other = whole.invoke("hang").await;
    house.refusal.damage(cut.id);
    recover(&house.reopen()).await.expect("a start");
    let record = whole.record(other.id).await;
    let outcome = record.settled.expect("the start settled it").outcome;
    assert_eq!(outcome.code(), Some("interrupted"));
    assert_eq!(code(&whole.run("say \"next\"").await), "completed");
    for error in [
        damaged.try_state(None).await.err(),
        damaged.open("say \"x\"").await.err(),
        damaged.try_dispatch(Command::Abort, None, None).await.err(),
    ] {
        let error = error.expect("it is damaged");
        is(&error, Reason::StoreFailed, Outcome::Refused);
        assert!(error.message.contains(&cut.session.to_string()), "{error}");
    }
}
