//! C13: what becomes of a run whose callers are gone.

use std::time::Duration;

use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::limits::Limits;
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::run::{RunOutcome, RunRecord};
use sessionplane_server::app::config::AppConfig;

use super::desk::{Ask, Desk};
use super::run::{Run, code};
use super::world::{Worlds, pieces, quick, ring};

/// More than any buffer on the way holds.
const PIECES: usize = 1000;

/// Delays that no test waits for: what happens, happens without them.
pub(crate) fn patient() -> AppConfig {
    let never = Duration::from_secs(600);
    AppConfig {
        limits: Limits {
            cancel_grace: never,
            rejoin_grace: never,
            ..quick().limits
        },
        ..quick()
    }
}

pub(crate) fn outcome(run: &RunRecord) -> &RunOutcome {
    &run.settled.as_ref().expect("it has settled").outcome
}

/// Talks long enough that a grace of [`quick`] would have ended it, and then completes.
const OUTLIVES_A_GRACE: &str = "say-words 30 every 50ms";

pub(crate) async fn c13_b15_a_caller_that_vanishes_in_a_tool_wedges_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "in-a-tool");
    let mut run = desk
        .invoke(
            Ask::new("tool t progress 600 every 100ms")
                .cancel()
                .id("one"),
        )
        .await;
    run.until(|event| {
        matches!(
            event,
            sessionplane_core::contract::InvokeEvent::ToolStarted { .. }
        )
    })
    .await;
    let id = run.id;
    drop(run);
    assert_eq!(outcome(&desk.settled(id).await), &RunOutcome::Aborted);
    assert_eq!(code(&desk.run("say \"next\"").await), "completed");
}

pub(crate) async fn c13_cancel_with_an_id_waits_for_a_rejoin(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "rejoin");
    let ask = || Ask::new(OUTLIVES_A_GRACE).cancel().id("one");
    let mut run = desk.invoke(ask()).await;
    run.until_text().await;
    let id = run.id;
    drop(run);
    let again = desk.invoke(ask()).await;
    assert_eq!((again.id, again.joined), (id, true));
    assert_eq!(code(&again.finish().await), "completed");
}

pub(crate) async fn c13_cancel_with_an_id_is_aborted_after_its_grace(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "grace");
    let ask = || Ask::new("hang").cancel().id("one");
    let run = desk.invoke(ask()).await;
    let id = run.id;
    drop(run);
    let record = desk.settled(id).await;
    assert_eq!(outcome(&record), &RunOutcome::Aborted);
    let took = record.settled.expect("settled").at.since(record.started_at);
    assert!(took >= quick().limits.cancel_grace, "{took:?}");
    let again = desk.invoke(ask()).await;
    assert_eq!(again.id, id);
    assert_eq!(code(&again.finish().await), "aborted");
}

pub(crate) async fn c13_detach_outlives_its_callers(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "detached");
    for id in [None, Some("one")] {
        let ask = Ask {
            id: id.map(str::to_owned),
            ..Ask::new(OUTLIVES_A_GRACE)
        };
        let run = desk.invoke(ask).await;
        let id = run.id;
        drop(run);
        assert_eq!(outcome(&desk.settled(id).await), &RunOutcome::Completed);
    }
}

pub(crate) async fn c13_a_detach_join_makes_the_run_detached(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "made-detached");
    let ask = Ask::new(OUTLIVES_A_GRACE).id("one");
    let run = desk.invoke(ask.clone().cancel()).await;
    let id = run.id;
    let joiner = desk.invoke(ask).await;
    assert!(joiner.joined);
    drop(joiner);
    drop(run);
    assert_eq!(outcome(&desk.settled(id).await), &RunOutcome::Completed);
}

pub(crate) async fn c13_only_the_last_stream_counts(worlds: &dyn Worlds) {
    let world = worlds.make(patient()).await;
    let desk = Desk::new(&world, "last");
    let ask = || {
        Ask::new("say-words 10 every 20ms\nwait-steer")
            .cancel()
            .id("one")
    };
    let run = desk.invoke(ask()).await;
    let joiner = desk.invoke(ask()).await;
    drop(run);
    // A stream that ended with its terminal is no caller that left.
    desk.steer("say \"still here\"").await;
    assert_eq!(code(&joiner.finish().await), "completed");
    let run = desk.invoke(Ask::new("say \"x\"").cancel()).await;
    let record = super::run::record(&run.finish().await);
    assert_eq!(outcome(&record), &RunOutcome::Completed);
}

pub(crate) async fn c13_a_joiner_that_does_not_detach_changes_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "joiner");
    let ask = Ask::new("hang").id("one");
    let run = desk.invoke(ask.clone().cancel()).await;
    let joiner = desk.invoke(ask.clone().cancel()).await;
    let id = run.id;
    drop((run, joiner));
    assert_eq!(outcome(&desk.settled(id).await), &RunOutcome::Aborted);

    let ask = Ask::new(OUTLIVES_A_GRACE).id("two");
    let run = desk.invoke(ask.clone()).await;
    let joiner = desk.invoke(ask.cancel()).await;
    let id = run.id;
    drop((run, joiner));
    assert_eq!(outcome(&desk.settled(id).await), &RunOutcome::Completed);
}

/// A run whose stream is not read until it is too late.
async fn lapped(desk: &Desk, ask: Ask) -> Run {
    let run = desk.invoke(ask).await;
    let reached = Position {
        seq: run.position.seq + PIECES as u64 + 3,
        ..run.position
    };
    desk.reach(reached).await;
    run
}

/// C13 C35: the server ended the stream, so the caller did not leave.
pub(crate) async fn c13_a_stream_that_the_server_ended_is_no_cancellation(worlds: &dyn Worlds) {
    let limits = Limits {
        cancel_grace: Duration::ZERO,
        ..patient().limits
    };
    let config = AppConfig { limits, ..ring(64) };
    let world = worlds.make(config).await;
    let desk = Desk::new(&world, "too-slow");
    let ask = || {
        Ask::new(format!("{}wait-steer", pieces(PIECES)))
            .cancel()
            .id("one")
    };
    let run = lapped(&desk, ask()).await;
    let id = run.id;
    let error = run.error().await;
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ObserverTooSlow, Outcome::StreamEnded)
    );
    desk.steer("say \"x\"").await;
    assert_eq!(outcome(&desk.settled(id).await), &RunOutcome::Completed);
}

pub(crate) async fn c13_without_a_rejoin_the_ended_stream_s_run_is_aborted(worlds: &dyn Worlds) {
    let world = worlds.make(ring(64)).await;
    let desk = Desk::new(&world, "too-slow");
    let run = lapped(&desk, Ask::new(format!("{}hang", pieces(PIECES))).cancel()).await;
    let id = run.id;
    let error = run.error().await;
    assert_eq!(error.reason, Reason::ObserverTooSlow);
    let record = desk.settled(id).await;
    assert_eq!(outcome(&record), &RunOutcome::Aborted);
}
