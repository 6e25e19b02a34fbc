//! C20, C21, C27, B14, B20: a compaction within a run is the run's own matter.

use sessionplane_core::domain::compaction::{CompactionOutcome, CompactionTrigger};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::InputId;
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer};
use sessionplane_core::domain::view::Status;

use super::compaction::summaries;
use super::desk::Desk;
use super::fates::{agree, told};
use super::hands::{compact, respond};
use super::run::code;
use super::watch::{Watch, settled, types};
use super::world::{Worlds, quick};
/// C20 B20: inputs that are sent at each step of a compaction within a run end exactly once.
pub(crate) async fn c20_b20_inputs_at_each_step_of_a_compaction_end_once(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "steps");
    desk.run("say \"first\"").await;
    for ends in ["kept 2", "fail limit \"x\""] {
        // What comes before and after the compaction waits until the inputs of its step are there.
        let gate = |name| format!("ask {name} confirm \"Go on?\"\nwait-answers");
        let (first, last) = (gate("first"), gate("last"));
        let prompt = format!("{first}\ncompact \"s\" after 60ms {ends}\n{last}\nturn\nsay \"end\"");
        let run = desk.invoke(&prompt[..]).await;
        let mut watch = desk.watch_from(Some(run.position), None).await;
        let mut events = std::mem::take(&mut watch.missed);
        let mut accepted: Vec<InputId> = Vec::new();
        for step in ["turn_started", "compaction_started", "compaction_finished"] {
            if !types(&events).contains(&step) {
                events.extend(watch.until_type(step).await);
            }
            accepted.push(desk.follow_up("say \"f\"").await);
            accepted.push(desk.steer("say \"s\"").await);
            if step != "compaction_started" {
                go_on(&desk, &mut watch, &mut events).await;
            }
        }
        if settled(&events).is_empty() {
            events.extend(watch.until_settled().await);
        }
        assert_eq!(code(&run.finish().await), "completed");
        let fates = told(&events);
        assert_eq!(fates.len(), accepted.len(), "each ended");
        let of_run: Vec<Entry> = desk.entries().await;
        let id = settled(&events)[0].id;
        let of_run: Vec<Entry> = of_run
            .into_iter()
            .filter(|entry| entry.run == Some(id))
            .collect();
        agree(&accepted, &fates, &settled(&events), &of_run);
    }
}
/// Answers the question that the run waits on.
async fn go_on(desk: &Desk, watch: &mut Watch, events: &mut Vec<EventEnvelope>) {
    loop {
        let open = |it: &Interaction| it.resolution.is_none();
        if let Some(question) = desk.questions().await.into_iter().find(open) {
            let yes = InteractionAnswer::Confirmed(true);
            desk.dispatch(respond(question.id, yes), None).await;
            return;
        }
        events.extend(watch.until_type("interaction_requested").await);
    }
}
/// C27: a compaction within a run is the run's own matter: the state says `running`.
pub(crate) async fn c27_a_compaction_within_a_run_reports_running(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "overflow");
    desk.run("say \"first\"").await;
    let run = desk
        .invoke("compact \"in short\" after 200ms\nsay \"on\"\nrecall")
        .await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let mut events = std::mem::take(&mut watch.missed);
    if !types(&events).contains(&"compaction_started") {
        events.extend(watch.until_type("compaction_started").await);
    }
    let state = desk.state().await;
    assert_eq!(state.view.status(), Status::Running);
    assert_eq!(state.view.active_run, Some(run.id));
    desk.in_the_way(compact("")).await;
    desk.busy("me too").await;
    events.extend(watch.until_settled().await);
    let of_run = events.iter().all(|event| event.event.run == Some(run.id));
    assert!(of_run, "{events:?}");
    let overflow = CompactionTrigger::Overflow;
    let started = EventBody::CompactionStarted { trigger: overflow };
    assert!(events.iter().any(|event| event.event.body == started));
    let entries = desk.entries().await;
    assert_eq!(summaries(&entries), ["in short"]);
    let summary = entries
        .iter()
        .find(|entry| matches!(entry.body, EntryBody::Compaction { .. }))
        .expect("a summary");
    assert_eq!(summary.run, Some(run.id));
    let finished = events.iter().find_map(|event| match &event.event.body {
        EventBody::CompactionFinished { outcome } => Some(outcome.clone()),
        _ => None,
    });
    assert_eq!(finished, Some(CompactionOutcome::Completed(summary.id)));
    let said = super::run::said(
        &run.finish().await,
        sessionplane_core::domain::event::OutputChannel::Text,
    );
    assert!(
        said.contains("in short") && !said.contains("first"),
        "{said}"
    );
}
/// C21 B14: an abort in the middle of a run's compaction is an abort of the run.
pub(crate) async fn c21_b14_abort_in_a_compaction_within_a_run(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "overflow-aborted");
    desk.run("say \"first\"").await;
    let run = desk.invoke("compact \"never\" after 1m").await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let mut events = std::mem::take(&mut watch.missed);
    if !types(&events).contains(&"compaction_started") {
        events.extend(watch.until_type("compaction_started").await);
    }
    desk.abort().await;
    events.extend(watch.until_settled().await);
    let order = types(&events);
    let at = |wanted: &str| order.iter().position(|it| *it == wanted);
    assert!(at("compaction_finished") < at("run_settled"), "{order:?}");
    let outcomes: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.event.body {
            EventBody::CompactionFinished { outcome } => Some(outcome.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [CompactionOutcome::Aborted]);
    assert_eq!(code(&run.finish().await), "aborted");
    assert_eq!(summaries(&desk.entries().await), [""; 0]);
    let told = desk.recall().await;
    assert!(told.contains("first"), "{told}");
}
