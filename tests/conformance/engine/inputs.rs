//! Steers and follow-ups are shown once, in order, or given back.

use sessionplane_core::domain::ids::InputId;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::Subject;
use super::bench::{Bench, shown, stop_of};

fn is_shown(event: &EngineEvent, id: InputId) -> bool {
    matches!(event, EngineEvent::InputShown { input } if *input == id)
}

/// C19: at most one steer is handed over at a time, and the next after the engine has shown it.
pub(crate) async fn steers_are_shown_once_and_in_order(subject: Subject) {
    let bench = Bench::new(subject);
    let Some(steerable) = bench.subject.prompts.steerable else {
        assert_eq!(
            bench.subject.capabilities.steering, None,
            "say how to steer it"
        );
        return;
    };
    let mut opened = bench.open().await;
    let inputs = [1, 2, 3].map(|ordinal| opened.input(ordinal));
    opened.prompt(steerable).await;
    let mut events = Vec::new();
    for input in inputs {
        opened.steer(bench.subject.prompts.steer, input).await;
        events.extend(opened.read_to(|event| is_shown(event, input)).await);
        let last = events.last().expect("an event");
        assert!(is_shown(last, input), "{input} was not shown: {last:?}");
    }
    events.extend(opened.read_to_stop().await);
    assert_eq!(shown(&events), inputs);
    let stop = events.last().and_then(stop_of);
    assert_eq!(stop, Some(&StopReason::Completed));
}

/// A steer may cross with the engine's own end. It is then shown or given back, at most once, and
/// the engine takes the next prompt.
pub(crate) async fn a_late_steer_wedges_nothing(subject: Subject) {
    let bench = Bench::new(subject);
    if bench.subject.capabilities.steering.is_none() {
        return;
    }
    let mut opened = bench.open().await;
    opened.prompt(bench.subject.prompts.plain).await;
    opened.read_to_stop().await;
    let late = opened.input(1);
    opened.steer(bench.subject.prompts.steer, late).await;
    let mut events = opened.read_at_rest().await;
    opened.prompt(bench.subject.prompts.plain).await;
    events.extend(opened.read_to_stop().await);
    let told = |event: &&EngineEvent| {
        matches!(event,
            EngineEvent::InputShown { input } | EngineEvent::InputTakenBack { input }
            if *input == late)
    };
    assert_eq!(events.iter().filter(told).count(), 1, "{events:?}");
    let stop = events.last().and_then(stop_of);
    assert_eq!(stop, Some(&StopReason::Completed));
}

pub(crate) async fn a_follow_up_is_shown_first(subject: Subject) {
    let bench = Bench::new(subject);
    if !bench.subject.capabilities.follow_up || !bench.subject.promises.lives {
        return;
    }
    let mut opened = bench.open().await;
    opened.prompt(bench.subject.prompts.plain).await;
    opened.read_to_stop().await;
    let mut at_rest = opened.read_at_rest().await;
    let inputs = [1, 2].map(|ordinal| opened.input(ordinal));
    let mut events = Vec::new();
    for input in inputs {
        opened.follow_up(bench.subject.prompts.plain, input).await;
        let answer = opened.read_to_stop().await;
        assert!(answer.last().and_then(stop_of).is_some(), "it did not stop");
        if bench.subject.promises.orderly {
            assert!(is_shown(&answer[0], input), "first came {:?}", answer[0]);
        }
        events.extend(answer);
        at_rest.extend(opened.read_at_rest().await);
    }
    if bench.subject.promises.orderly {
        assert_eq!(shown(&events), inputs);
        assert_eq!(at_rest, []);
    }
    events.extend(at_rest);
    if !bench.subject.promises.shows_follow_ups {
        // The point of such an engine: it ends without having shown what it was given.
        assert!(!inputs.iter().any(|input| shown(&events).contains(input)));
    }
}
