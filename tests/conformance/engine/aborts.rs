//! C21, B14: an abort is heard at every moment and leads to a stop, or to the engine's end.

use std::time::Duration;

use sessionplane_core::domain::ids::InputId;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::Subject;
use super::bench::{Bench, Opened, stop_of, within};

/// Aborts and reads to the stop or the end, which must come in the time that was promised.
/// Returns what was read; `None` when the engine did not stop, as it said it might not.
async fn abort(bench: &Bench, opened: &mut Opened) -> Option<Vec<EngineEvent>> {
    opened.abort().await;
    let Some(limit) = bench.subject.promises.stops_within else {
        let limit = Duration::from_secs(10);
        return tokio::time::timeout(limit, opened.read_to_stop())
            .await
            .ok();
    };
    let read = within(limit, "stop after an abort", opened.read_to_stop()).await;
    if bench.subject.promises.orderly {
        let stop = read.last().and_then(stop_of);
        assert_eq!(stop, Some(&StopReason::Aborted), "{read:?}");
        assert_eq!(opened.read_at_rest().await, [], "at rest it says nothing");
        answers(bench, opened).await;
    }
    Some(read)
}

/// The engine is at rest: it takes another prompt.
async fn answers(bench: &Bench, opened: &mut Opened) {
    opened.prompt(bench.subject.prompts.plain).await;
    let read = opened.read_to_stop().await;
    let stop = read.last().and_then(stop_of);
    assert_eq!(
        stop,
        Some(&StopReason::Completed),
        "after an abort: {read:?}"
    );
}

/// Prompts, reads to the moment, and aborts.
async fn at(subject: Subject, prompt: Option<&str>, moment: impl Fn(&EngineEvent) -> bool) {
    let Some(prompt) = prompt else { return };
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    opened.prompt(prompt).await;
    let before = opened.read_to(&moment).await;
    let last = before.last();
    if bench.subject.promises.orderly {
        assert!(last.is_some_and(&moment), "the moment never came: {last:?}");
    }
    if last.and_then(stop_of).is_none() {
        abort(&bench, &mut opened).await;
    }
}

pub(crate) async fn before_the_first_output(subject: Subject) {
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    let prompts = &bench.subject.prompts;
    opened
        .prompt(prompts.long_text.unwrap_or(prompts.plain))
        .await;
    abort(&bench, &mut opened).await;
}

pub(crate) async fn in_the_middle_of_text(subject: Subject) {
    let prompt = subject.prompts.long_text;
    let moment = |event: &EngineEvent| matches!(event, EngineEvent::MessageDelta { .. });
    at(subject, prompt, moment).await;
}

pub(crate) async fn in_the_middle_of_a_tool(subject: Subject) {
    let prompt = subject.prompts.long_tool;
    let moment = |event: &EngineEvent| matches!(event, EngineEvent::ToolStarted { .. });
    at(subject, prompt, moment).await;
}

pub(crate) async fn in_a_retry_delay(subject: Subject) {
    let prompt = subject.prompts.retry;
    let moment = |event: &EngineEvent| matches!(event, EngineEvent::RetryScheduled { .. });
    at(subject, prompt, moment).await;
}

/// Its question is closed with its run: it stops, and neither waits for an answer nor takes one.
pub(crate) async fn c21_while_a_question_is_open(subject: Subject) {
    let prompt = subject.prompts.asks;
    let moment = |event: &EngineEvent| matches!(event, EngineEvent::Asked { .. });
    at(subject, prompt, moment).await;
}

pub(crate) async fn while_hanging(subject: Subject) {
    let Some(prompt) = subject.prompts.hang else {
        return;
    };
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    opened.prompt(prompt).await;
    for event in opened.read_at_rest().await {
        assert_eq!(stop_of(&event), None, "it does not hang");
    }
    abort(&bench, &mut opened).await;
}

/// What was told of the inputs that were handed over.
fn told(events: &[EngineEvent]) -> Vec<&EngineEvent> {
    let told = |event: &&EngineEvent| {
        matches!(
            event,
            EngineEvent::InputShown { .. } | EngineEvent::InputTakenBack { .. }
        )
    };
    events.iter().filter(told).collect()
}

/// C20: what was handed over and is not shown is given back, once.
pub(crate) async fn with_a_steer_handed_over(subject: Subject) {
    let Some(prompt) = subject.prompts.long_text else {
        return;
    };
    if subject.capabilities.steering.is_none() {
        return;
    }
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    opened.prompt(prompt).await;
    let delta = |event: &EngineEvent| matches!(event, EngineEvent::MessageDelta { .. });
    let before = opened.read_to(delta).await;
    assert!(before.last().is_some_and(delta));
    let input: InputId = opened.input(1);
    opened.steer(bench.subject.prompts.steer, input).await;
    let events = abort(&bench, &mut opened).await.expect("it stops");
    assert_eq!(told(&events), [&EngineEvent::InputTakenBack { input }]);
}

/// C19, C20: so is one whose boundary has come, when the abort is there before it is shown.
pub(crate) async fn at_a_boundary_that_waits_for_a_steer(subject: Subject) {
    let Some(prompt) = subject.prompts.awaits_steer else {
        return;
    };
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    opened.prompt(prompt).await;
    opened.read_at_rest().await;
    let input = opened.input(1);
    opened.steer(bench.subject.prompts.steer, input).await;
    let events = abort(&bench, &mut opened).await.expect("it stops");
    assert_eq!(told(&events), [&EngineEvent::InputTakenBack { input }]);
}

/// C20: a follow-up that is aborted before it is shown is given back, or shown; once.
pub(crate) async fn with_a_follow_up_that_is_not_shown_yet(subject: Subject) {
    let bench = Bench::new(subject);
    if !bench.subject.capabilities.follow_up || !bench.subject.promises.orderly {
        return;
    }
    let mut opened = bench.open().await;
    opened.prompt(bench.subject.prompts.plain).await;
    opened.read_to_stop().await;
    let input = opened.input(1);
    opened.follow_up(bench.subject.prompts.plain, input).await;
    let events = abort(&bench, &mut opened).await.expect("it stops");
    // One that is late to stop may show it on its way; none may be silent about it.
    let one = told(&events);
    let ours = [
        EngineEvent::InputTakenBack { input },
        EngineEvent::InputShown { input },
    ];
    assert!(one.len() == 1 && ours.contains(one[0]), "{one:?}");
}

/// An engine whose output nobody reads still hears an abort. One that has more to say than anybody
/// keeps for it cannot have come to its own end before.
pub(crate) async fn while_nobody_reads(subject: Subject) {
    let overflows = subject.prompts.overflows;
    let Some(prompt) = overflows.or(subject.prompts.long_text) else {
        return;
    };
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    opened.prompt(prompt).await;
    bench.settle().await;
    opened.abort().await;
    bench.settle().await;
    if bench.subject.promises.orderly {
        let read = opened.read_to_stop().await;
        let stop = read.last().and_then(stop_of);
        assert!(stop.is_some(), "{:?}", read.last());
        let aborted = stop == Some(&StopReason::Aborted);
        assert!(aborted || overflows.is_none(), "it heard nothing: {stop:?}");
        answers(&bench, &mut opened).await;
    }
}

/// An abort may cross with the engine's own end: it stops nothing then, and nothing later.
pub(crate) async fn at_rest(subject: Subject) {
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    opened.abort().await;
    if bench.subject.promises.orderly {
        answers(&bench, &mut opened).await;
        opened.abort().await;
        answers(&bench, &mut opened).await;
    }
}
