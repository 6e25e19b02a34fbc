//! C22: a compaction gives a summary, or leaves everything as it was.

use std::time::Duration;

use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::Subject;
use super::answers::text_of;
use super::bench::{Bench, Opened, conversation, session, stop_of, within};

/// Opens a session that knows a conversation.
async fn open(bench: &Bench) -> Opened {
    let id = session(6);
    bench.reopen(id, conversation(id, 5)).await
}

/// What it knows of the conversation, in its own words.
async fn recall(bench: &Bench, opened: &mut Opened) -> String {
    let prompt = bench.subject.prompts.recalls.expect("say how it recalls");
    opened.prompt(prompt).await;
    let events = opened.read_to_stop().await;
    let stop = events.last().and_then(stop_of);
    assert_eq!(stop, Some(&StopReason::Completed), "{events:?}");
    text_of(&events)
}

/// It knows what one knows that was never asked to compact. A session has one connection at a time.
async fn knows_everything(bench: &Bench, mut opened: Opened) {
    assert_eq!(opened.read_at_rest().await, [], "at rest it says nothing");
    let knows = recall(bench, &mut opened).await;
    drop(opened);
    let never = recall(bench, &mut open(bench).await).await;
    assert_eq!(knows, never);
}

/// One that cannot says so, and one that can gives a summary. Either is at rest then.
pub(crate) async fn c22_a_compaction_yields_a_summary(subject: Subject) {
    let bench = Bench::new(subject);
    let mut opened = open(&bench).await;
    for instructions in [None, Some("the plans above all")] {
        opened.compact(instructions).await;
        let result = opened.read_to_compacted().await.expect("it lives");
        let can = bench.subject.capabilities.manual_compaction;
        assert_eq!(result.is_ok(), can, "{result:?}");
        if let Ok(compacted) = result {
            assert!(!compacted.summary.is_empty());
            let kept = compacted.first_kept;
            assert!(kept.is_none_or(|id| id.session == session(6) && id.seq <= 5));
        }
        assert_eq!(opened.read_at_rest().await, [], "at rest it says nothing");
    }
    opened.prompt(bench.subject.prompts.plain).await;
    let events = opened.read_answering().await;
    if bench.subject.promises.orderly {
        let stop = events.last().and_then(stop_of);
        assert_eq!(stop, Some(&StopReason::Completed), "{events:?}");
    }
}

pub(crate) async fn c22_a_failed_compaction_loses_nothing(subject: Subject) {
    let Some(instructions) = subject.prompts.compaction_fails else {
        return;
    };
    let bench = Bench::new(subject);
    let mut opened = open(&bench).await;
    opened.compact(Some(instructions)).await;
    let result = opened.read_to_compacted().await.expect("it lives");
    assert!(result.is_err(), "{result:?}");
    knows_everything(&bench, opened).await;
}

pub(crate) async fn c22_a_crashed_compaction_loses_nothing(subject: Subject) {
    let Some(instructions) = subject.prompts.compaction_crashes else {
        return;
    };
    let bench = Bench::new(subject);
    let mut opened = open(&bench).await;
    opened.compact(Some(instructions)).await;
    assert_eq!(opened.read_to_compacted().await, None, "it is gone");
    let again = open(&bench).await;
    knows_everything(&bench, again).await;
}

pub(crate) async fn c21_c22_an_aborted_compaction_loses_nothing(subject: Subject) {
    let Some(instructions) = subject.prompts.compaction_hangs else {
        return;
    };
    let bench = Bench::new(subject);
    let mut opened = open(&bench).await;
    opened.compact(Some(instructions)).await;
    let ended = |event: &EngineEvent| matches!(event, EngineEvent::CompactionFinished(_));
    let before = opened.read_at_rest().await;
    assert!(!before.iter().any(ended), "it does not hang");
    opened.abort().await;
    let limit = bench.subject.promises.stops_within;
    let limit = limit.unwrap_or(Duration::from_secs(1));
    let ending = within(limit, "an aborted compaction", opened.read_to_compacted());
    let result = ending.await.expect("it lives");
    assert!(result.is_err(), "{result:?}");
    knows_everything(&bench, opened).await;
}

/// The summary and the abort are on their way at once: whatever ended it, it ended once.
pub(crate) async fn c21_an_abort_that_crosses_with_a_summary_stops_nothing_later(subject: Subject) {
    let bench = Bench::new(subject);
    let mut opened = open(&bench).await;
    opened.compact(None).await;
    opened.abort().await;
    let _either = opened.read_to_compacted().await.expect("it lives");
    opened.abort().await;
    assert_eq!(opened.read_at_rest().await, [], "it ended twice");
    if bench.subject.promises.orderly {
        opened.prompt(bench.subject.prompts.plain).await;
        let events = opened.read_answering().await;
        let stop = events.last().and_then(stop_of);
        assert_eq!(stop, Some(&StopReason::Completed), "{events:?}");
    }
}
