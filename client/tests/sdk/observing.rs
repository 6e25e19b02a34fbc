//! Watches across every way in which a stream can end.

use std::sync::Arc;
use std::time::Duration;

use sessionplane::v1;
use sessionplane_client::contract::{CallOptions, SessionControl as _};
use sessionplane_client::domain::error::{CallError, Reason};
use sessionplane_client::domain::event::EventBody;
use sessionplane_client::{Backoff, Watch, WatchItem, WatchOptions};
use tokio::sync::Notify;
use tonic::{Code, Status};

use super::fake::{Fake, Stage, Step, client_of, soon};
use super::relay::Relay;
use super::wire;

type Steps = Vec<Step<v1::EventsResponse>>;

/// Backfill, snapshot, and events 6 and 7, of which 7 stores entry 3.
fn opening() -> Steps {
    [
        wire::subscribed(false, false),
        wire::entries(vec![wire::user_entry(1, "hi"), wire::user_entry(2, "ho")]),
        wire::snapshot(5, true),
        wire::turn(6),
        wire::appended(7, wire::user_entry(3, "more")),
    ]
    .map(Step::Send)
    .into()
}

/// The server sends event 7 once more, then goes on.
fn resumption() -> Steps {
    let again = [
        wire::subscribed(true, false),
        wire::appended(7, wire::user_entry(3, "more")),
        wire::turn(8),
        wire::snapshot(8, true),
        wire::turn(9),
    ];
    again
        .map(Step::Send)
        .into_iter()
        .chain([Step::Hang])
        .collect()
}

async fn next(watch: &mut Watch) -> WatchItem {
    soon(watch.next()).await.unwrap().unwrap()
}

/// Reads until event 9; all numbers of events and entries that were told.
async fn numbers(watch: &mut Watch) -> (Vec<u64>, Vec<u64>) {
    let (mut events, mut entries) = (Vec::new(), Vec::new());
    while events.last() != Some(&9) {
        match next(watch).await {
            WatchItem::Event(event) => {
                events.push(event.seq);
                if let EventBody::EntryAppended { entry } = event.event.body {
                    entries.push(entry.id.seq);
                }
            }
            WatchItem::Entries { entries: page, .. } => {
                entries.extend(page.iter().map(|entry| entry.id.seq));
            }
            _ => {}
        }
    }
    (events, entries)
}

fn assert_resumed(fake: &Fake) {
    fake.look(|stage| {
        let resumed = stage.observed.last().unwrap();
        assert_eq!(resumed.resume, Some(wire::position(7)));
        assert_eq!(resumed.entries_since, wire::entry_id(3));
    });
}

async fn resumes_after(ending: Vec<Step<v1::EventsResponse>>) {
    let fake = Fake::start(Stage {
        events: [Ok([opening(), ending].concat()), Ok(resumption())].into(),
        ..Stage::default()
    })
    .await;
    let mut watch = fake.client().watch(wire::docs(), WatchOptions::default());
    let (events, entries) = numbers(&mut watch).await;
    assert_eq!((events, entries), (vec![6, 7, 8, 9], vec![1, 2, 3]));
    assert_resumed(&fake);
}

#[tokio::test]
async fn c32_b05_a_watch_resumes_after_unavailable() {
    resumes_after(vec![Step::Fail(Status::unavailable("a proxy"))]).await;
    let draining = wire::ours(Code::Unavailable, "SERVER_DRAINING", "stream_ended");
    resumes_after(vec![Step::Fail(draining)]).await;
}

#[tokio::test]
async fn c32_b05_a_watch_resumes_after_a_clean_end() {
    resumes_after(vec![]).await;
}

#[tokio::test]
async fn c32_a_watch_resumes_after_an_error_of_the_transport() {
    resumes_after(vec![Step::Fail(Status::internal("h2 error"))]).await;
    resumes_after(vec![Step::Fail(Status::cancelled("reset"))]).await;
}

#[tokio::test]
async fn c35_a_watch_that_was_too_slow_resumes() {
    let slow = wire::ours(Code::Aborted, "OBSERVER_TOO_SLOW", "stream_ended");
    resumes_after(vec![Step::Fail(slow)]).await;
}

#[tokio::test]
async fn c32_a_watch_resumes_after_its_connection_was_cut() {
    let fake = Fake::start(Stage {
        events: [Ok([opening(), vec![Step::Hang]].concat()), Ok(resumption())].into(),
        ..Stage::default()
    })
    .await;
    let relay = Relay::to(fake.address).await;
    let mut watch = client_of(&relay.url()).watch(wire::docs(), WatchOptions::default());
    while !matches!(next(&mut watch).await, WatchItem::Event(event) if event.seq == 7) {}
    relay.cut();
    assert!(matches!(
        next(&mut watch).await,
        WatchItem::Reconnecting { attempt: 1, .. }
    ));
    assert_eq!(
        next(&mut watch).await,
        WatchItem::Reconnected { resumed: true }
    );
    let (events, entries) = numbers(&mut watch).await;
    assert_eq!((events, entries), (vec![8, 9], vec![]));
    assert_resumed(&fake);
}

#[tokio::test]
async fn c63_b05_a_watch_goes_on_elsewhere_after_goaway() {
    let drained = Arc::new(Notify::new());
    let ending = vec![
        Step::Wait(drained.clone()),
        Step::Fail(wire::ours(
            Code::Unavailable,
            "SERVER_DRAINING",
            "stream_ended",
        )),
    ];
    let old = Fake::start(Stage {
        events: [Ok([opening(), ending].concat())].into(),
        ..Stage::default()
    })
    .await;
    let new = Fake::start(Stage {
        events: [Ok(resumption())].into(),
        ..Stage::default()
    })
    .await;
    let relay = Relay::to(old.address).await;
    let mut watch = client_of(&relay.url()).watch(wire::docs(), WatchOptions::default());
    while !matches!(next(&mut watch).await, WatchItem::Event(event) if event.seq == 7) {}
    relay.retarget(new.address);
    old.go_away();
    drained.notify_one();
    let (events, entries) = numbers(&mut watch).await;
    assert_eq!((events, entries), (vec![8, 9], vec![]));
    assert_resumed(&new);
}

#[tokio::test]
async fn c31_a_gap_is_an_item_and_the_entries_close_it() {
    let anew = [
        wire::subscribed(false, true),
        wire::entries(vec![wire::user_entry(4, "meanwhile")]),
        wire::snapshot(8, true),
        wire::turn(9),
    ];
    let anew = anew.map(Step::Send).into_iter().chain([Step::Hang]);
    let fake = Fake::start(Stage {
        events: [Ok(opening()), Ok(anew.collect())].into(),
        ..Stage::default()
    })
    .await;
    let mut watch = fake.client().watch(wire::docs(), WatchOptions::default());
    while !matches!(next(&mut watch).await, WatchItem::Reconnecting { .. }) {}
    assert_eq!(
        next(&mut watch).await,
        WatchItem::Reconnected { resumed: false }
    );
    assert_eq!(next(&mut watch).await, WatchItem::Gap);
    let (events, entries) = numbers(&mut watch).await;
    assert_eq!((events, entries), (vec![9], vec![4]));
}

#[tokio::test]
async fn c33_a_silent_stream_is_taken_up_again() {
    let fake = Fake::start(Stage {
        events: [Ok([opening(), vec![Step::Hang]].concat()), Ok(resumption())].into(),
        ..Stage::default()
    })
    .await;
    let options = WatchOptions {
        silence: Some(Duration::from_millis(200)),
        ..WatchOptions::default()
    };
    let mut watch = fake.client().watch(wire::docs(), options);
    let (events, _) = numbers(&mut watch).await;
    assert_eq!(events, [6, 7, 8, 9]);
}

#[tokio::test]
async fn a_watch_that_may_be_silent_for_ever_does_not_panic() {
    let fake = Fake::start(Stage {
        events: [Ok([opening(), vec![Step::Hang]].concat())].into(),
        ..Stage::default()
    })
    .await;
    let options = WatchOptions {
        silence: Some(Duration::MAX),
        open_deadline: Duration::MAX,
        ..WatchOptions::default()
    };
    let mut watch = fake.client().watch(wire::docs(), options);
    while !matches!(next(&mut watch).await, WatchItem::Event(event) if event.seq == 7) {}
}

#[tokio::test]
async fn b08_watches_that_nobody_reads_do_not_starve_other_calls() {
    const WATCHES: usize = 24;
    let flood = || {
        let text = "x".repeat(256 * 1024);
        let pages = (1..=64).map(|seq| wire::entries(vec![wire::user_entry(seq, &text)]));
        let flood = [wire::subscribed(false, false)].into_iter().chain(pages);
        Ok(flood.map(Step::Send).chain([Step::Hang]).collect())
    };
    let answers = |_| {
        Ok(v1::GetStateResponse {
            state: Some(wire::state(true)),
        })
    };
    let fake = Fake::start(Stage {
        events: (0..WATCHES).map(|_| flood()).collect(),
        states: (0..500).map(answers).collect(),
        ..Stage::default()
    })
    .await;
    let client = fake.client();
    let mut unread = Vec::new();
    for _ in 0..WATCHES {
        let mut watch = client.watch(wire::docs(), WatchOptions::default());
        let first = next(&mut watch).await;
        assert!(matches!(first, WatchItem::Subscribed { .. }), "{first:?}");
        unread.push(watch);
    }
    // Each answer is a chance for the server to send what nobody reads.
    for _ in 0..500 {
        let state = client.get_state(wire::docs(), None, CallOptions::default());
        soon(state).await.unwrap();
    }
}

/// The error that ends a watch after its first connection.
async fn final_error(ending: Status) -> (CallError, usize) {
    let fake = Fake::start(Stage {
        events: [
            Ok([opening(), vec![Step::Fail(ending)]].concat()),
            Ok(resumption()),
        ]
        .into(),
        ..Stage::default()
    })
    .await;
    let mut watch = fake.client().watch(wire::docs(), WatchOptions::default());
    loop {
        match soon(watch.next()).await {
            Some(Ok(WatchItem::Reconnecting { error, .. })) => panic!("resumed after {error:?}"),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                assert!(soon(watch.next()).await.is_none());
                return (error, fake.look(|stage| stage.observed.len()));
            }
            None => panic!("ended in silence"),
        }
    }
}

#[tokio::test]
async fn c32_b05_a_watch_stops_where_another_attempt_would_not_help() {
    for (code, reason) in [
        (Code::NotFound, Reason::NoSuchSession),
        (Code::PermissionDenied, Reason::PermissionDenied),
        (Code::Unauthenticated, Reason::Unauthenticated),
        (Code::InvalidArgument, Reason::InvalidArgument),
        (Code::Internal, Reason::Internal),
    ] {
        let ending = wire::ours(code, reason.as_str(), "stream_ended");
        let (error, calls) = final_error(ending).await;
        assert_eq!((error.reason, calls), (reason, 1));
    }
}

#[tokio::test]
async fn a_watch_gives_up_after_its_attempts() {
    let fake = Fake::start(Stage {
        events: [Ok(opening())].into(),
        ..Stage::default()
    })
    .await;
    let options = WatchOptions {
        reconnect: Backoff {
            attempts: 3,
            first: Duration::from_millis(1),
            longest: Duration::from_millis(2),
        },
        ..WatchOptions::default()
    };
    let mut watch = fake.client().watch(wire::docs(), options);
    let mut reconnects = 0;
    let error = loop {
        match soon(watch.next()).await.unwrap() {
            Ok(WatchItem::Reconnecting { .. }) => reconnects += 1,
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!((reconnects, error.reason), (2, Reason::Transport));
}
