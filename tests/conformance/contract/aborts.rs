//! C21, B12, B14: an abort at every moment stops the run, is told as an abort, and frees the
//! session.

use std::time::Duration;

use sessionplane_core::contract::CallOptions;
use sessionplane_core::domain::command::{Command, RejectionCode};
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::InputId;
use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::domain::limits::Limits;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::view::Status;
use sessionplane_server::app::config::AppConfig;

use super::desk::{Ask, Desk, follow_up};
use super::run::{code, record};
use super::watch::{Watch, settled};
use super::world::{Worlds, quick};

/// A grace that no test waits for: whoever stops, stops because the engine was told.
fn patient() -> AppConfig {
    let limits = Limits {
        abort_grace: Duration::from_secs(600),
        ..quick().limits
    };
    AppConfig { limits, ..quick() }
}

/// After an abort: one settlement, told as an abort everywhere, and the session goes on.
async fn ends(desk: &Desk, run: super::run::Run, mut watch: Watch) -> Vec<EventEnvelope> {
    let id = run.id;
    let accepted = desk.abort().await;
    assert_eq!((accepted.run, accepted.input), (Some(id), None));
    let events = watch.until_settled().await;
    let settled = settled(&events);
    assert_eq!(settled[0].id, id);
    let outcome = settled[0]
        .settled
        .as_ref()
        .map(|settled| settled.outcome.clone());
    assert_eq!(outcome, Some(RunOutcome::Aborted));
    assert_eq!(code(&run.finish().await), "aborted");
    let view = desk.state().await.view;
    assert_eq!((view.status(), view.pending.len()), (Status::Idle, 0));
    assert_eq!(
        view.last_run.map(|last| (last.run, last.outcome)),
        Some((id, RunOutcome::Aborted))
    );
    assert_eq!(
        desk.rejected(Command::Abort).await,
        RejectionCode::NoActiveRun
    );
    assert_eq!(code(&desk.run("say \"next\"").await), "completed");
    events
}

/// Aborts a run once an event of a type was seen.
async fn at(worlds: &dyn Worlds, prompt: &str, moment: &str) -> Vec<EventEnvelope> {
    let world = worlds.make(patient()).await;
    let desk = Desk::new(&world, "moment");
    let run = desk.invoke(prompt).await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let seen = watch
        .missed
        .iter()
        .any(|event| event.event.body.event_type() == moment);
    if !seen {
        watch.until_type(moment).await;
    }
    ends(&desk, run, watch).await
}

pub(crate) async fn c21_b14_abort_before_the_first_token(worlds: &dyn Worlds) {
    at(worlds, "wait 1m\nsay \"late\"", "run_started").await;
    at(worlds, "wait 1m\nsay \"late\"", "turn_started").await;
}

pub(crate) async fn c21_b14_abort_in_the_middle_of_text(worlds: &dyn Worlds) {
    let events = at(worlds, "say-words 1000 every 5ms", "message_delta").await;
    let kept = super::watch::appended(&events)
        .into_iter()
        .any(|entry| matches!(entry.body, EntryBody::Assistant { partial: true, .. }));
    assert!(kept, "what was said is kept, as what it is");
}

pub(crate) async fn c21_b14_abort_in_the_middle_of_a_tool(worlds: &dyn Worlds) {
    at(worlds, "tool build progress 1000 every 1s", "tool_started").await;
}

pub(crate) async fn c21_b14_abort_in_a_retry_delay(worlds: &dyn Worlds) {
    at(
        worlds,
        "retry 1 of 3 after 10m \"limited\"",
        "retry_scheduled",
    )
    .await;
}

pub(crate) async fn c21_b14_abort_while_hanging(worlds: &dyn Worlds) {
    at(worlds, "say \"x\"\nmessage\nhang", "message_finished").await;
}

pub(crate) async fn c21_abort_ends_what_was_queued(worlds: &dyn Worlds) {
    let world = worlds.make(patient()).await;
    let desk = Desk::new(&world, "queued");
    let run = desk.invoke("hang").await;
    let watch = desk.watch().await;
    let mut inputs = Vec::new();
    for number in 0..3 {
        inputs.push(desk.follow_up(&format!("f{number}")).await);
        inputs.push(desk.steer(&format!("s{number}")).await);
    }
    let id = run.id;
    let events = ends(&desk, run, watch).await;
    let mut ended: Vec<InputId> = events
        .iter()
        .filter_map(|event| match event.event.body {
            EventBody::InputDiscarded { input, cause } => {
                // The one steer that the engine holds is taken back first.
                assert_eq!(cause, DiscardCause::Aborted);
                Some(input)
            }
            _ => None,
        })
        .collect();
    ended.sort();
    assert_eq!(ended, inputs);
    let undelivered = desk.record(id).await.undelivered;
    assert_eq!(undelivered.len(), inputs.len());
    assert!(
        undelivered
            .iter()
            .all(|input| input.cause == DiscardCause::Aborted)
    );
}

pub(crate) async fn c21_abort_on_an_idle_session_finds_no_run(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "idle");
    desk.run("say \"x\"").await;
    for _ in 0..3 {
        assert_eq!(
            desk.rejected(Command::Abort).await,
            RejectionCode::NoActiveRun
        );
        world.restart().await;
    }
}

pub(crate) async fn c21_an_agent_that_hears_nothing_is_dropped_at_the_deadline(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "deaf");
    let mut run = desk.invoke(Ask::new("x").agent("deaf")).await;
    run.until_text().await;
    let queued = desk.dispatch(follow_up("x"), Some("f")).await;
    desk.abort().await;
    // A second abort finds what it wants under way.
    assert_eq!(desk.abort().await.run, Some(run.id));
    let again = desk.dispatch(follow_up("x"), Some("f")).await;
    assert_eq!(
        again.input.map(|input| input.id),
        queued.input.map(|input| input.id)
    );
    assert_eq!(
        again.input.map(|input| input.fate),
        Some(InputFate::Discarded(DiscardCause::Aborted))
    );
    let events = run.finish().await;
    assert_eq!(code(&events), "aborted");
    let record = record(&events);
    let took = record
        .settled
        .as_ref()
        .expect("settled")
        .at
        .since(record.started_at);
    assert!(took >= quick().limits.abort_grace, "{took:?}");
    // What was said before the cut is kept, marked as partial.
    let entries = desk.entries().await;
    let half = entries.iter().any(|entry| matches!(&entry.body, EntryBody::Assistant { text, partial: true, .. } if text.text == "half a sen"));
    assert!(half, "{entries:?}");
}

/// C21 B12: somebody else looks first, and then aborts.
pub(crate) async fn c21_b12_an_abort_by_somebody_who_came_later(worlds: &dyn Worlds) {
    let world = worlds.make(patient()).await;
    let desk = Desk::new(&world, "later");
    let run = desk.invoke("say \"x\"\nhang").await;
    let other = Desk::at(
        &world,
        sessionplane_core::domain::ids::SessionRef::Id(run.session),
    );
    let watch = other.watch().await;
    assert_eq!(other.state().await.view.active_run, Some(run.id));
    other.entries().await;
    other
        .caller()
        .get_run(run.id, CallOptions::default())
        .await
        .expect("the run");
    let events = ends(&other, run, watch).await;
    let starts = super::watch::started(&events);
    assert_eq!(starts, [], "no second run");
}

/// C21: aborts that race with the run's own end settle it once, one way or the other.
pub(crate) async fn c21_an_abort_that_races_with_the_end_settles_once(worlds: &dyn Worlds) {
    let world = worlds.make(patient()).await;
    let desk = Desk::new(&world, "race");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    for round in 0..100 {
        let run = desk.invoke("say-words 3\ntool t").await;
        let id = run.id;
        for _ in 0..round % 10 {
            tokio::task::yield_now().await;
        }
        let answer = desk
            .try_dispatch(Command::Abort, None, Some(id))
            .await
            .expect("an answer");
        let accepted = matches!(
            answer,
            sessionplane_core::domain::command::DispatchAnswer::Accepted(_)
        );
        let told = code(&run.finish().await);
        assert_eq!(told == "aborted", accepted, "{told} after {answer:?}");
        let events = watch.until_settled().await;
        assert_eq!(settled(&events).len(), 1);
        assert_eq!(settled(&events)[0].id, id);
    }
}
