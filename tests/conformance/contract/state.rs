//! C27, B06: the state is never older than what was seen, and never idle while an invoke is busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::domain::view::Status;

use super::desk::{Ask, Desk, follow_up, is_busy};
use super::hands::{compact, set_model};
use super::run::Run;
use super::watch::settled;
use super::world::{Worlds, quick};

/// Asks for the state in the instant that each settlement arrives.
async fn never_older(desk: Desk, runs: usize) {
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let invoking = tokio::spawn({
        let desk = desk.clone();
        async move {
            for _ in 0..runs {
                desk.run("stop").await;
            }
        }
    });
    let mut last = 0;
    for _ in 0..runs {
        let run = settled(&watch.until_settled().await).remove(0).id;
        let state = desk.state().await;
        assert!(
            state.position >= watch.position,
            "older than an event that was seen"
        );
        let settled_already = state.view.active_run != Some(run);
        assert!(settled_already, "running, after its settlement was seen");
        assert!(state.position.seq >= last, "older than an earlier state");
        last = state.position.seq;
        if state.position == watch.position {
            assert_eq!(state.view.last_run.map(|last| last.run), Some(run));
            assert_eq!(state.view.active_run, None);
        }
    }
    invoking.await.expect("no panic");
}

/// C27 B06, two thousand times.
pub(crate) async fn c27_b06_state_is_never_older_than_an_event_seen(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let lines =
        (0..4).map(|n| tokio::spawn(never_older(Desk::new(&world, &format!("line-{n}")), 500)));
    for line in futures_util::future::join_all(lines).await {
        line.expect("no panic");
    }
}

/// How many states are read in the instant of an event: `SESSIONPLANE_READS`, else 1,000.
fn reads() -> usize {
    let asked = std::env::var("SESSIONPLANE_READS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1000)
}

/// Of everything that a run can do something, and a choice between runs.
async fn busy(desk: &Desk, over: &AtomicBool) {
    let prompt = "say-words 5\ntool t progress 3\nusage in=1\ncompact \"s\"\n\
                  ask q confirm \"Q?\" within 1ms default yes\nwait-answers\nturn";
    for n in 0.. {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let run = desk.invoke(prompt).await;
        desk.try_dispatch(follow_up("stop"), None, None)
            .await
            .expect("an answer");
        run.finish().await;
        let model = ["scripted", "scripted-thinking"][n % 2];
        desk.dispatch(set_model(Some(model)), None).await;
        if n % 8 == 7 {
            desk.dispatch(compact(""), None).await;
            desk.watch_idle().await;
        }
    }
}

/// Reads the state in the instant that each event arrives: all of it is what the events say.
async fn never_behind(desk: Desk, reads: usize) {
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let mut view = watch.snapshot.view.clone();
    let over = Arc::new(AtomicBool::new(false));
    let driving = tokio::spawn({
        let (desk, over) = (desk.clone(), over.clone());
        async move { busy(&desk, &over).await }
    });
    for read in 0..reads {
        view.apply(&watch.event().await.event);
        let min_position = (read % 2 == 0).then_some(watch.position);
        let state = desk.try_state(min_position).await.expect("a state");
        assert!(state.position >= watch.position, "older than what was seen");
        while watch.position < state.position {
            view.apply(&watch.event().await.event);
        }
        assert_eq!(view, state.view, "what the events say up to there");
    }
    over.store(true, Ordering::SeqCst);
    driving.await.expect("no panic");
}

/// C27 B06: with `min_position` and without, in the instant of every kind of event.
pub(crate) async fn c27_b06_reads_in_the_instant_of_an_event_are_never_behind(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let each = reads() / 4;
    let lines =
        (0..4).map(|n| tokio::spawn(never_behind(Desk::new(&world, &format!("read-{n}")), each)));
    for line in futures_util::future::join_all(lines).await {
        line.expect("no panic");
    }
}

/// C27 C7: while somebody keeps the session busy and others ask, no busy answer is followed by an
/// idle state of the same run.
pub(crate) async fn c27_state_is_never_idle_while_an_invoke_is_busy(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "never-idle");
    desk.run("say \"x\"").await;
    let over = Arc::new(AtomicBool::new(false));
    let asking = (0..3).map(|_| {
        let (desk, over) = (desk.clone(), over.clone());
        tokio::spawn(async move {
            while !over.load(Ordering::SeqCst) {
                let mut stream = desk.open("stop").await.expect("an answer");
                let first = Run::next_of(&mut stream)
                    .await
                    .expect("an event")
                    .expect("an answer");
                if is_busy(&first) {
                    let sessionplane_core::contract::InvokeEvent::Failed { details, .. } = first
                    else {
                        unreachable!("busy is a failure");
                    };
                    let busy = details.split([' ', ';']).find_map(|word| word.parse().ok());
                    let view = desk.state().await.view;
                    if view.active_run.is_none() {
                        let run = desk.record(busy.expect("the run in the way")).await;
                        assert!(run.settled.is_some(), "idle, and {run:?} is active");
                    }
                }
            }
        })
    });
    let asking: Vec<_> = asking.collect();
    for _ in 0..300 {
        let stream = desk.open("say-words 5").await.expect("an answer");
        let mut stream = stream;
        while let Some(event) = Run::next_of(&mut stream).await {
            event.expect("no status");
        }
    }
    over.store(true, Ordering::SeqCst);
    for asker in asking {
        asker.await.expect("no panic");
    }
}

pub(crate) async fn c27_state_is_running_from_the_acceptance_on(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "running");
    for _ in 0..100 {
        let run = desk.invoke("hang").await;
        let state = desk.state().await;
        assert_eq!(state.view.active_run, Some(run.id));
        assert_eq!(state.view.status(), Status::Running);
        assert!(state.position.seq > run.position.seq);
        desk.abort().await;
        run.finish().await;
    }
}

pub(crate) async fn c27_min_position_is_waited_for_or_refused(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "min-position");
    let run = desk.invoke("wait-steer\nsay-words 50\nhang").await;
    let later = Position {
        seq: run.position.seq + 40,
        ..run.position
    };
    let error = desk.try_state(Some(later)).await.expect_err("not reached");
    assert_eq!(error.reason, Reason::PositionNotReached);
    assert!(error.retry_after.is_some());
    let waiting = tokio::spawn({
        let desk = desk.clone();
        async move { desk.reach(later).await }
    });
    desk.steer("say \"go\"").await;
    let state = waiting.await.expect("no panic");
    assert!(state.position >= later);
    let foreign = Position {
        epoch: later.epoch + (1 << 40),
        seq: 1,
    };
    let error = desk
        .try_state(Some(foreign))
        .await
        .expect_err("an epoch to come");
    assert_eq!(error.reason, Reason::PositionNotReached);
    world.restart().await;
    // What an older incarnation told is in what the new one started from.
    let state = desk
        .try_state(Some(later))
        .await
        .expect("reached by recovery");
    assert!(state.position.epoch > later.epoch, "epochs grow");
    assert_eq!(state.view.status(), Status::Idle);
}

pub(crate) async fn c27_usage_and_last_run_are_told(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "usage");
    desk.run("usage in=1 out=2 cost=0.25\nusage in=10").await;
    desk.run("usage in=100 cached=7\nfail broken \"x\"").await;
    let usage = Usage {
        input_tokens: Some(111),
        output_tokens: Some(2),
        cached_tokens: Some(7),
        cost_usd: Some(0.25),
    };
    for _ in 0..2 {
        let view = desk.state().await.view;
        assert_eq!(view.usage, usage);
        let last = view.last_run.expect("a last run");
        assert_eq!(last.outcome.code(), Some("broken"));
        assert!(
            matches!(last.outcome, RunOutcome::Failed(_)),
            "a failed run leaves an idle session"
        );
        assert_eq!(view.active_run, None);
        assert_eq!(view.leaf, desk.entries().await.last().map(|entry| entry.id));
        world.restart().await;
    }
}

/// C27: a fold of the events onto the snapshot is the state.
pub(crate) async fn c27_the_snapshot_and_the_events_fold_to_the_state(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "fold");
    desk.run("usage in=1").await;
    let mut watch = desk.watch().await;
    let mut view = watch.snapshot.view.clone();
    let run = desk
        .invoke(Ask::new(
            "wait-steer\nusage in=5 out=6\ntool t progress 3\nhang",
        ))
        .await;
    desk.follow_up("one").await;
    desk.follow_up("two").await;
    desk.steer("say \"x\"").await;
    desk.reach(Position {
        seq: run.position.seq + 20,
        ..run.position
    })
    .await;
    for aborted in [false, true] {
        if aborted {
            desk.abort().await;
            run_over(&desk).await;
        }
        let state = desk.state().await;
        while watch.position < state.position {
            view.apply(&watch.event().await.event);
        }
        assert_eq!(view, state.view);
    }
    drop(run);
}

async fn run_over(desk: &Desk) {
    let active = desk.state().await.view.active_run;
    if let Some(run) = active {
        desk.settled(run).await;
    }
}
