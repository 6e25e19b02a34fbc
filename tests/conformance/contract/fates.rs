//! C20, B16, B18: every accepted input ends exactly once, and events, record and entries agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::{InputId, RunId};
use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::domain::run::RunRecord;
use tokio::sync::oneshot;

use super::desk::{Ask, Desk, follow_up, steer};
use super::watch::settled;
use super::world::{World, Worlds, quick};

/// What the events say has become of inputs. Saying it twice is a fault.
pub(crate) fn told(events: &[EventEnvelope]) -> BTreeMap<InputId, InputFate> {
    let mut fates = BTreeMap::new();
    for event in events {
        let (input, fate) = match event.event.body {
            EventBody::InputDelivered { input, entry } => (input, InputFate::Delivered(entry)),
            EventBody::InputDiscarded { input, cause } => (input, InputFate::Discarded(cause)),
            _ => continue,
        };
        let twice = fates.insert(input, fate);
        assert_eq!(twice, None, "{input} ended twice");
    }
    fates
}

/// Compares events, run records and entries: each input of `accepted` ended once, the same way in
/// all three, and nothing else did.
pub(crate) fn agree(
    accepted: &[InputId],
    events: &BTreeMap<InputId, InputFate>,
    records: &[RunRecord],
    entries: &[Entry],
) {
    let mut by_records = BTreeMap::new();
    for undelivered in records.iter().flat_map(|run| &run.undelivered) {
        let fate = InputFate::Discarded(undelivered.cause);
        assert_eq!(by_records.insert(undelivered.id, fate), None);
    }
    for entry in entries {
        if let EntryBody::User {
            input: Some(id), ..
        } = entry.body
        {
            let fate = InputFate::Delivered(entry.id);
            assert_eq!(by_records.insert(id, fate), None, "{id} twice");
            assert_eq!(
                entry.run,
                Some(id.run),
                "it belongs to the run that it joined"
            );
        }
    }
    assert_eq!(&by_records, events);
    let mut accepted = accepted.to_vec();
    accepted.sort();
    assert_eq!(events.keys().copied().collect::<Vec<_>>(), accepted);
}

pub(crate) async fn c20_a_failed_run_ends_its_inputs_as_failed(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "failed");
    let run = desk
        .invoke("wait-steer\nsay \"x\"\nfail broken \"x\"")
        .await;
    let mut watch = desk.watch().await;
    let waiting = desk.follow_up("never").await;
    let shown = desk.steer("say \"y\"").await;
    let events = watch.until_settled().await;
    let fates = told(&events);
    assert_eq!(fates[&waiting], InputFate::Discarded(DiscardCause::Failed));
    assert!(matches!(fates[&shown], InputFate::Delivered(_)));
    agree(
        &[waiting, shown],
        &fates,
        &settled(&events),
        &desk.entries().await,
    );
    run.finish().await;
}

/// C20 B18: the agent's process goes away while something is queued.
pub(crate) async fn c20_b18_an_agent_that_dies_leaves_a_trace_of_each_input(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "dies");
    let run = desk.invoke("wait-steer\nwait 1s\ncrash").await;
    let mut watch = desk.watch().await;
    let waiting = desk.follow_up("never").await;
    let shown = desk.steer("say \"y\"").await;
    let mut events = watch.until_type("input_delivered").await;
    let handed = desk.steer("never shown").await;
    events.extend(watch.until_settled().await);
    let fates = told(&events);
    assert_eq!(fates[&waiting], InputFate::Discarded(DiscardCause::Failed));
    assert_eq!(fates[&handed], InputFate::Discarded(DiscardCause::Lost));
    agree(
        &[waiting, shown, handed],
        &fates,
        &settled(&events),
        &desk.entries().await,
    );
    assert_eq!(super::run::code(&run.finish().await), "engine_gone");
}

pub(crate) async fn c20_a_crash_ends_inputs_as_interrupted(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "crash");
    let run = desk.invoke("hang").await;
    let inputs = [
        desk.follow_up("a").await,
        desk.steer("b").await,
        desk.steer("c").await,
    ];
    let id = run.id;
    world.restart().await;
    let record = desk.record(id).await;
    assert_eq!(
        record
            .undelivered
            .iter()
            .map(|input| input.id)
            .collect::<Vec<_>>(),
        inputs
    );
    assert!(
        record
            .undelivered
            .iter()
            .all(|input| input.cause == DiscardCause::Interrupted)
    );
    let texts: Vec<_> = record
        .undelivered
        .iter()
        .map(|input| input.text.as_deref())
        .collect();
    assert_eq!(
        texts,
        [Some("a"), Some("b"), Some("c")],
        "what was said is not lost"
    );
    assert_eq!(desk.state().await.view.pending.len(), 0);
    assert_eq!(
        desk.entries()
            .await
            .iter()
            .filter(|e| e.body.kind() == "user")
            .count(),
        1
    );
}

/// Invokes short runs of all endings until it is told to stop. Returns its runs.
async fn keep_running(desk: Desk, seed: u64, mut stop: oneshot::Receiver<()>) -> Vec<RunId> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut runs = Vec::new();
    let endings = [
        "",
        "",
        "turn\nsay \"x\"",
        "stop",
        "fail broken \"x\"",
        "crash",
    ];
    while stop.try_recv().is_err() {
        let (wait, ending) = (
            chance.random_range(0..12),
            endings[chance.random_range(0..6)],
        );
        let run = desk
            .invoke(Ask::new(format!(
                "say \"x\"\nwait {wait}ms\ntool t\n{ending}"
            )))
            .await;
        runs.push(run.id);
        run.finish().await;
    }
    runs
}

/// Sends inputs, accepted or not, to whatever runs; now and then an abort. Returns the accepted.
async fn keep_sending(desk: Desk, seed: u64, mut left: usize) -> Vec<InputId> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut accepted = Vec::new();
    while left > 0 {
        let command = match chance.random_range(0..20) {
            0 => Command::Abort,
            1..9 => follow_up("say \"f\""),
            _ => steer("say \"s\""),
        };
        let answer = desk
            .try_dispatch(command, None, None)
            .await
            .expect("an answer");
        if let DispatchAnswer::Accepted(acceptance) = answer
            && let Some(input) = acceptance.input
        {
            assert_eq!(Some(input.id.run), acceptance.run);
            accepted.push(input.id);
            left -= 1;
        }
        if chance.random_bool(0.5) {
            tokio::time::sleep(std::time::Duration::from_millis(chance.random_range(0..4))).await;
        }
    }
    accepted
}

async fn settling_session(world: Arc<dyn World>, seed: u64) {
    let desk = Desk::new(&world, &format!("settling-{seed}"));
    let first = desk.run("say \"first\"").await;
    let mut watch = desk.watch().await;
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(keep_running(desk.clone(), seed, stopped));
    let sending = tokio::spawn(keep_sending(desk.clone(), seed + 1000, 50));
    let accepted = sending.await.expect("no panic");
    stop.send(()).expect("it runs");
    let runs = running.await.expect("no panic");
    let mut events = Vec::new();
    while settled(&events).last().map(|run| run.id) != runs.last().copied() {
        events.extend(watch.until_settled().await);
    }
    let records = settled(&events);
    assert_eq!(
        records.iter().map(|run| run.id).collect::<Vec<_>>(),
        runs,
        "each settles once"
    );
    let entries = desk.entries().await;
    agree(&accepted, &told(&events), &records, &entries);
    let fates = told(&events);
    let delivered = fates
        .values()
        .filter(|fate| matches!(fate, InputFate::Delivered(_)))
        .count();
    assert!(
        delivered > 0 && delivered < fates.len(),
        "both fates occurred: {delivered}"
    );
    drop(first);
}

/// C20 B16: 200 accepted inputs to runs that settle at random moments, over four sessions.
pub(crate) async fn c20_b16_200_inputs_to_runs_that_settle_at_random(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let sessions = (0..4).map(|seed| tokio::spawn(settling_session(world.clone(), seed)));
    for session in futures_util::future::join_all(sessions).await {
        session.expect("no panic");
    }
}

/// C20: an input is the run's that it joined; a repeat of its id never sends it again.
pub(crate) async fn c20_what_was_discarded_is_never_sent_again(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "never-again");
    let run = desk.invoke("hang").await;
    let accepted = desk.dispatch(follow_up("say \"again\""), Some("one")).await;
    desk.abort().await;
    run.finish().await;
    let next = desk.invoke("wait-steer").await;
    let again = desk.dispatch(follow_up("say \"again\""), Some("one")).await;
    assert_eq!(again.run, accepted.run, "the run of then");
    assert_eq!(
        again.input.and_then(|input| input.discarded()),
        Some(DiscardCause::Aborted)
    );
    assert_eq!(desk.state().await.view.pending.len(), 0);
    desk.steer("say \"go\"").await;
    next.finish().await;
    let texts = desk.entries().await.into_iter().filter(
        |entry| matches!(&entry.body, EntryBody::User { text, .. } if text.contains("again")),
    );
    assert_eq!(texts.count(), 0);
}
