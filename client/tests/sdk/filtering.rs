//! Watches under a filter: what is left out is no loss, and the place to go on from moves all the
//! same.

use std::collections::BTreeSet;

use sessionplane::v1;
use sessionplane_client::contract::EventFilter;
use sessionplane_client::{Watch, WatchItem, WatchOptions};
use tonic::Status;

use super::fake::{Fake, Stage, Step, client_of, soon};
use super::relay::Relay;
use super::wire;

fn turns() -> EventFilter {
    EventFilter {
        types: BTreeSet::from(["turn_started".to_owned()]),
        no_thinking: true,
    }
}

fn steps(messages: impl IntoIterator<Item = v1::EventsResponse>) -> Vec<Step<v1::EventsResponse>> {
    messages.into_iter().map(Step::Send).collect()
}

/// Turns 6 and 40: what lies between was not wanted, and so was what the heartbeat passed.
fn before() -> Vec<Step<v1::EventsResponse>> {
    steps([
        wire::subscribed(false, false),
        wire::snapshot(5, true),
        wire::turn(6),
        wire::turn(40),
        wire::heartbeat(77),
    ])
}

fn after() -> Vec<Step<v1::EventsResponse>> {
    let mut after = steps([
        wire::subscribed(true, false),
        wire::snapshot(90, true),
        wire::turn(99),
    ]);
    after.push(Step::Hang);
    after
}

/// Reads until event 99.
async fn read(watch: &mut Watch) -> Vec<WatchItem> {
    let mut items = Vec::new();
    loop {
        items.push(soon(watch.next()).await.unwrap().unwrap());
        if matches!(items.last(), Some(WatchItem::Event(event)) if event.seq == 99) {
            return items;
        }
    }
}

fn assert_whole(fake: &Fake, items: &[WatchItem]) {
    let seqs: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            WatchItem::Event(event) => Some(event.seq),
            _ => None,
        })
        .collect();
    assert_eq!(seqs, [6, 40, 99]);
    assert!(!items.contains(&WatchItem::Gap), "a jump is no loss");
    let wanted = Some(v1::EventFilter {
        types: vec!["turn_started".to_owned()],
        no_thinking: true,
    });
    fake.look(|stage| {
        assert!(stage.observed.len() > 1);
        for asked in &stage.observed {
            assert_eq!(asked.filter, wanted, "the same every time");
        }
        assert_eq!(stage.observed[1].resume, Some(wire::position(77)));
    });
}

#[tokio::test]
async fn c32_b04_a_filtered_watch_resumes_with_its_filter_from_the_last_heartbeat() {
    for ending in [
        vec![],
        vec![Step::Fail(Status::unavailable("a proxy"))],
        vec![Step::Fail(Status::internal("h2 error"))],
    ] {
        let fake = Fake::start(Stage {
            events: [Ok([before(), ending].concat()), Ok(after())].into(),
            ..Stage::default()
        })
        .await;
        let options = WatchOptions {
            filter: turns(),
            ..WatchOptions::default()
        };
        let mut watch = fake.client().watch(wire::docs(), options);
        let items = read(&mut watch).await;
        assert_whole(&fake, &items);
    }
}

#[tokio::test]
async fn c32_b04_a_filtered_watch_resumes_after_its_connection_was_cut() {
    let fake = Fake::start(Stage {
        events: [Ok([before(), vec![Step::Hang]].concat()), Ok(after())].into(),
        ..Stage::default()
    })
    .await;
    let relay = Relay::to(fake.address).await;
    let options = WatchOptions {
        filter: turns(),
        ..WatchOptions::default()
    };
    let mut watch = client_of(&relay.url()).watch(wire::docs(), options);
    let mut items = Vec::new();
    while !matches!(items.last(), Some(WatchItem::Heartbeat(_))) {
        items.push(soon(watch.next()).await.unwrap().unwrap());
    }
    relay.cut();
    items.extend(read(&mut watch).await);
    assert_whole(&fake, &items);
}

#[tokio::test]
async fn c32_a_snapshot_and_a_skipped_event_move_the_place_under_a_filter() {
    let fake = Fake::start(Stage {
        events: [Ok(after())].into(),
        ..Stage::default()
    })
    .await;
    let options = WatchOptions {
        filter: turns(),
        ..WatchOptions::default()
    };
    let mut watch = fake.client().watch(wire::docs(), options);
    assert_eq!(watch.position(), None);
    let mut places = Vec::new();
    while places.last() != Some(&Some(99)) {
        soon(watch.next()).await.unwrap().unwrap();
        places.push(watch.position().map(|place| place.seq));
    }
    assert_eq!(places, [None, Some(90), Some(99)]);
}
