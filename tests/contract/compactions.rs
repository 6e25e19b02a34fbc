//! C22, C27, C39, C41: a compaction while its commits are written, and one whose lease is lost.

use std::sync::Arc;

use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::view::Status;
use sessionplane_core::ports::lease_store::LeaseStore as _;
use sessionplane_server::adapters::memory::CommitStep;

use crate::gate::{admits, only, settles};
use crate::house::House;
use crate::suite::desk::Desk;
use crate::suite::hands::compact;
use crate::suite::run::code;
use crate::suite::watch::types;
use crate::suite::world::quick;

async fn desk() -> (Arc<House>, Desk) {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "compacted");
    desk.run("say \"x\"").await;
    (house, desk)
}

/// C39: until its admission is durable nobody is told of it, neither as accepted nor as busy.
#[tokio::test(flavor = "multi_thread")]
async fn c22_c39_a_compaction_is_told_once_its_admission_is_durable() {
    let (house, desk) = desk().await;
    let position = desk.state().await.position;
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, admits));
    let asking = tokio::spawn({
        let desk = desk.clone();
        async move { desk.try_dispatch(compact("hang"), None, None).await }
    });
    held.reached().await;
    let invoking = tokio::spawn({
        let desk = desk.clone();
        async move { desk.busy("me too").await }
    });
    let state = desk.state().await;
    assert_eq!(
        (state.view.status(), state.position),
        (Status::Idle, position)
    );
    assert!(!asking.is_finished() && !invoking.is_finished());
    held.release();
    let accepted = asking.await.expect("no panic");
    assert!(
        matches!(accepted, Ok(DispatchAnswer::Accepted(_))),
        "{accepted:?}"
    );
    invoking.await.expect("it was busy");
    assert_eq!(desk.view().await.status(), Status::Compacting);
}

/// C39: until its end is durable it is not over, and its summary is not there.
#[tokio::test(flavor = "multi_thread")]
async fn c22_c39_a_compaction_is_over_once_its_end_is_durable() {
    let (house, desk) = desk().await;
    let before = desk.entries().await;
    let mut watch = desk.watch().await;
    let mut held = house.gate.hold(only(CommitStep::BeforeSync, settles));
    desk.dispatch(compact(""), None).await;
    held.reached().await;
    assert_eq!(desk.view().await.status(), Status::Compacting);
    assert_eq!(desk.entries().await, before);
    held.release();
    let events = watch.until_type("compaction_finished").await;
    let order = [
        "compaction_started",
        "entry_appended",
        "compaction_finished",
    ];
    assert_eq!(types(&events), order);
    assert_eq!(desk.watch_idle().await.entries, before.len() as u64 + 1);
}

/// C41: whoever lost the lease writes no summary; the session goes on as it was.
#[tokio::test(flavor = "multi_thread")]
async fn c41_a_revoked_lease_ends_a_compaction_and_frees_the_session() {
    let (house, desk) = desk().await;
    let before = desk.all().await;
    let session = before.view.session.id;
    let mut watch = desk.watch().await;
    desk.dispatch(compact("hang"), None).await;
    house.store().revoke(session).await.expect("revoked");
    let answer = desk.try_dispatch(Command::Abort, None, None).await;
    let error = answer.expect_err("its commit was refused");
    let told = (error.reason, error.outcome);
    assert_eq!(told, (Reason::ServingLost, Outcome::Unknown));
    let (events, error) = watch.error().await;
    assert_eq!(error.reason, Reason::ServingLost);
    assert_eq!(types(&events), ["compaction_started", "serving_error"]);
    assert_eq!(desk.all().await, before);
    assert_eq!(code(&desk.run("say \"next\"").await), "completed");
    desk.dispatch(compact(""), None).await;
    desk.watch_idle().await;
}
