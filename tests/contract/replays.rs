//! C12, C31, C35: what a replay tells whose reader is slower than the ring. In process, where nothing
//! is read ahead of the caller.

use futures_util::StreamExt as _;
use sessionplane_core::contract::{
    CallOptions, EventFilter, EventItem, EventsRequest, InvokeEvent,
};
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::position::Position;

use crate::house::House;
use crate::suite::desk::{Ask, Desk, within};
use crate::suite::run::{code, said};
use crate::suite::world::ring;

/// Waits until so many entries are told, which no reader is too slow for.
async fn until_entries(desk: &Desk, count: u64) -> Position {
    let told = async {
        loop {
            let state = desk.state().await;
            if state.view.entries >= count {
                return state.position;
            }
            tokio::task::yield_now().await;
        }
    };
    within("entries", told).await
}

/// C35: what an observer resumes with is in the ring and nowhere else, so one that does not read is
/// cut like any other.
#[tokio::test(flavor = "multi_thread")]
async fn c35_an_observer_that_does_not_read_its_replay_is_cut() {
    let house = House::new(ring(64));
    let desk = Desk::new(&house.world(), "resumed");
    desk.run("say \"x\"").await;
    let run = desk.invoke("say-words 100\nwait-steer\nhang").await;
    // The prompt, the answer; the prompt, the words.
    let newest = until_entries(&desk, 4).await;
    let request = EventsRequest {
        session: desk.session.clone(),
        resume: Some(Position {
            seq: newest.seq - 60,
            ..newest
        }),
        filter: EventFilter::default(),
        entries_since: None,
    };
    let options = CallOptions::default();
    let stream = desk.caller().events(request, options).await;
    let mut stream = stream.expect("a stream");
    desk.steer("say-words 200\nwait-steer").await;
    until_entries(&desk, 6).await;
    let first = within("subscribed", stream.next()).await;
    assert!(
        matches!(
            first,
            Some(Ok(EventItem::Subscribed {
                resumed: true,
                gap: false,
                ..
            }))
        ),
        "{first:?}"
    );
    let second = within("the end", stream.next()).await;
    let error = second.expect("a status").expect_err("nothing was kept");
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ObserverTooSlow, Outcome::StreamEnded)
    );
    desk.abort().await;
    desk.settled(run.id).await;
}

/// C12: a joiner that reads late is told what it missed, also after it has joined, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn c12_what_leaves_the_ring_before_a_joiner_reads_is_told_as_skipped() {
    let house = House::new(ring(64));
    let desk = Desk::new(&house.world(), "joined");
    desk.run("say \"x\"").await;
    let ask = || Ask::new("say-words 100\nwait-steer").id("one");
    let run = desk.invoke(ask()).await;
    until_entries(&desk, 4).await;
    let mut joiner = desk.invoke(ask()).await;
    desk.steer("say-words 200\nwait-steer").await;
    let newest = until_entries(&desk, 6).await;
    let mut place = run.position.seq;
    for _ in 0..2 {
        match joiner.next().await {
            Some(Ok(InvokeEvent::Resumed { skipped })) if skipped > 0 => place += skipped,
            other => panic!("not told what it missed: {other:?}"),
        }
    }
    assert!(place + 64 >= newest.seq, "only what is retained follows");
    let last = |event: &InvokeEvent| matches!(event, InvokeEvent::Delta { text, .. } if text.contains("w200"));
    let text = said(&joiner.until(last).await, OutputChannel::Text);
    assert!(text.contains("w198 w199 w200"), "{text}");
    desk.steer("say \"the end\"").await;
    let events = joiner.finish().await;
    assert_eq!(said(&events, OutputChannel::Text), "the end");
    assert_eq!(code(&events), "completed");
}

/// C12: when the run is over before a joiner has read its replay, its end is for who rejoins.
#[tokio::test(flavor = "multi_thread")]
async fn c12_a_joiner_that_reads_after_the_run_left_the_ring_is_cut_and_finds_its_end() {
    let house = House::new(ring(64));
    let desk = Desk::new(&house.world(), "late");
    desk.run("say \"x\"").await;
    let ask = || Ask::new("say-words 100\nwait-steer").id("one");
    let run = desk.invoke(ask()).await;
    until_entries(&desk, 4).await;
    let joiner = desk.invoke(ask()).await;
    desk.steer("say \"the end\"").await;
    desk.settled(run.id).await;
    let next = desk.invoke("say-words 200").await;
    desk.settled(next.id).await;
    let error = joiner.error().await;
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ObserverTooSlow, Outcome::StreamEnded)
    );
    assert_eq!(code(&desk.run(ask()).await), "completed");
}
