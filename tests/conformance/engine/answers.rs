//! An engine answers prompts, in order and without loss.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::ports::engine::{
    EngineEvent, MAX_REPORT_TEXT_BYTES, Revalidation, StopReason,
};

use super::Subject;
use super::bench::{Bench, Opened, conversation, session, stop_of};

pub(crate) async fn describes_itself(subject: Subject) {
    let bench = Bench::new(subject);
    let description = bench.engine.describe();
    assert_eq!(description.capabilities, bench.subject.capabilities);
    assert!(!description.name.is_empty() && !description.version.is_empty());
}

pub(crate) async fn answers_and_rests(subject: Subject) {
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    for _ in 0..3 {
        if opened
            .try_prompt(bench.subject.prompts.plain)
            .await
            .is_err()
        {
            assert!(!bench.subject.promises.lives, "the engine is gone");
            return;
        }
        let events = opened.read_to_stop().await;
        let after = opened.read_at_rest().await;
        if bench.subject.promises.orderly {
            let stopped = EngineEvent::Stopped {
                prompt: opened.prompts,
                reason: StopReason::Completed,
            };
            assert_eq!(events.last(), Some(&stopped), "{events:?}");
            assert!(!text_of(&events).is_empty(), "it answered nothing");
            assert_eq!(after, [], "at rest it says nothing");
        } else {
            let stopped = events.last().and_then(stop_of).is_some();
            assert!(stopped || !bench.subject.promises.lives, "it did not stop");
        }
    }
}

/// Every read of the suite asserts that no event is larger than the port allows; here one would be.
pub(crate) async fn cuts_what_is_too_long(subject: Subject) {
    let Some(prompt) = subject.prompts.too_long else {
        return;
    };
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    opened.prompt(prompt).await;
    let events = opened.read_to_stop().await;
    let output = |event: &EngineEvent| match event {
        EngineEvent::ToolFinished { output, .. } => Some(output.len()),
        _ => None,
    };
    let kept = events.iter().find_map(output).expect("a tool's output");
    assert!(kept > MAX_REPORT_TEXT_BYTES / 2, "its end is kept: {kept}");
}

pub(crate) async fn ids_are_unique_and_events_in_order(subject: Subject) {
    let bench = Bench::new(subject);
    if !bench.subject.promises.orderly {
        return;
    }
    let mut opened = bench.open().await;
    let prompts = &bench.subject.prompts;
    let mut events = Vec::new();
    opened
        .prompt(prompts.long_tool.unwrap_or(prompts.plain))
        .await;
    events.extend(opened.read_to_stop().await);
    // A further prompt of the same run: ids are unique within the run, not within the prompt.
    opened
        .prompt(prompts.long_text.unwrap_or(prompts.plain))
        .await;
    events.extend(opened.read_to_stop().await);
    let mut order = Order::default();
    for event in &events {
        order.check(event);
    }
    assert!(!order.messages.is_empty());
}

/// What was named so far, and what is open.
#[derive(Default)]
struct Order {
    messages: BTreeSet<String>,
    calls: BTreeSet<String>,
    open: BTreeSet<String>,
    in_turn: bool,
    compacting: bool,
}

impl Order {
    fn check(&mut self, event: &EngineEvent) {
        match event {
            EngineEvent::TurnStarted => {
                assert!(!self.in_turn, "a turn within a turn");
                self.in_turn = true;
            }
            EngineEvent::TurnFinished => {
                assert!(self.in_turn, "a turn ends that did not start");
                self.in_turn = false;
            }
            EngineEvent::MessageStarted { message } => {
                assert!(self.messages.insert(message.clone()), "{message} again");
                self.open.insert(message.clone());
            }
            EngineEvent::ToolStarted { call, .. } => {
                assert!(self.calls.insert(call.clone()), "{call} again");
                self.open.insert(call.clone());
            }
            EngineEvent::MessageDelta { message: id, .. }
            | EngineEvent::ToolProgress { call: id, .. } => {
                assert!(self.open.contains(id), "{id} is not open: {event:?}");
            }
            EngineEvent::MessageFinished { message: id, .. }
            | EngineEvent::ToolFinished { call: id, .. } => {
                assert!(self.open.remove(id), "{id} is not open: {event:?}");
            }
            EngineEvent::CompactionStarted => {
                assert!(!self.compacting, "a compaction within a compaction");
                self.compacting = true;
            }
            EngineEvent::CompactionFinished(_) => {
                assert!(self.compacting, "a compaction ends that did not start");
                self.compacting = false;
            }
            _ => {}
        }
    }
}

pub(crate) async fn whole_texts_are_the_deltas(subject: Subject) {
    let bench = Bench::new(subject);
    if !bench.subject.promises.orderly {
        return;
    }
    let mut opened = bench.open().await;
    opened.prompt(bench.subject.prompts.plain).await;
    let events = opened.read_to_stop().await;
    let mut deltas: BTreeMap<&str, String> = BTreeMap::new();
    let mut compared = 0;
    for event in &events {
        match event {
            EngineEvent::MessageDelta {
                message,
                channel: OutputChannel::Text,
                text,
            } => deltas.entry(message).or_default().push_str(text),
            EngineEvent::MessageFinished { message, text, .. } => {
                let said = deltas.remove(message.as_str()).unwrap_or_default();
                if let Some(whole) = text {
                    assert_eq!(*whole, said, "message {message}");
                    compared += 1;
                }
            }
            _ => {}
        }
    }
    assert!(compared > 0, "no whole text was told");
}

/// All answer text of some events.
pub(crate) fn text_of(events: &[EngineEvent]) -> String {
    let text = |event: &EngineEvent| match event {
        EngineEvent::MessageDelta {
            channel: OutputChannel::Text,
            text,
            ..
        } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

pub(crate) async fn a_slow_reader_loses_nothing(subject: Subject) {
    let bench = Bench::new(subject);
    let prompts = &bench.subject.prompts;
    let prompt = prompts.long_text.unwrap_or(prompts.plain);
    let mut fast = bench.open().await;
    fast.prompt(prompt).await;
    let mut expected = fast.read_to_stop().await;
    let mut slow = bench.open().await;
    slow.prompt(prompt).await;
    // Nobody reads for longer than the whole answer takes; then a piece now and then.
    bench.settle().await;
    let mut read = Vec::new();
    while let Some(event) = slow.next().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let last = stop_of(&event).is_some();
        read.push(event);
        if last {
            break;
        }
    }
    // What a tool says on its way depends on the time; what was said in the end does not.
    let lasting = |event: &EngineEvent| !matches!(event, EngineEvent::ToolProgress { .. });
    expected.retain(lasting);
    read.retain(lasting);
    // As text: a number that is none is not equal to itself.
    assert_eq!(format!("{read:?}"), format!("{expected:?}"));
}

pub(crate) async fn sessions_do_not_mix(subject: Subject) {
    let bench = Bench::new(subject);
    let mut one = bench.open().await;
    let mut other = bench.reopen(session(2), Vec::new()).await;
    one.prompt(bench.subject.prompts.plain).await;
    let quiet = other.read_at_rest().await;
    assert_eq!(quiet, [], "it answers a prompt of another session");
    let answered = !one.read_to_stop().await.is_empty();
    assert!(answered || !bench.subject.promises.lives);
}

pub(crate) async fn reopens_with_a_transcript(subject: Subject) {
    let bench = Bench::new(subject);
    let fresh = bench.open().await;
    assert_eq!(
        fresh.revalidation,
        Revalidation::Current,
        "nothing to rebuild"
    );
    drop(fresh);
    let id = session(3);
    let mut again: Opened = bench.reopen(id, conversation(id, 10)).await;
    again.prompt(bench.subject.prompts.plain).await;
    let events = again.read_to_stop().await;
    if bench.subject.promises.orderly {
        let stop = events.last().and_then(stop_of);
        assert_eq!(stop, Some(&StopReason::Completed), "{events:?}");
    }
}
