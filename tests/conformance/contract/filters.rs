//! C31, C32, C33, B04 under filters: what an observer does not want is left out of the live and of
//! the resumed part alike, and leaves no hole in what it wants.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::contract::{EventFilter, EventItem};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::event::{EventBody, EventEnvelope, OutputChannel};
use sessionplane_core::domain::position::Position;
use sessionplane_server::app::config::AppConfig;

use super::desk::Desk;
use super::watch::{Watch, appended};
use super::world::{World, Worlds, quick, ring};

/// Says something of every kind that a filter may leave out.
const MIXED: &str = "think \"hm\"\nsay \"a\"\nmessage\ntool t progress 2 output \"o\"\nthink \"so\"\n\
                     say \"b\"\nretry 1 of 2 after 1ms \"x\"\nsay \"c\"";

fn only(types: &[&str]) -> EventFilter {
    EventFilter {
        types: types.iter().map(|name| (*name).to_owned()).collect(),
        no_thinking: false,
    }
}

/// What people who follow a conversation want: its entries and its runs.
fn conversation() -> EventFilter {
    only(&["run_started", "entry_appended", "run_settled"])
}

fn wanted(filter: &EventFilter, events: &[EventEnvelope]) -> Vec<EventEnvelope> {
    let admitted = |event: &&EventEnvelope| filter.admits(&event.event.body);
    events.iter().filter(admitted).cloned().collect()
}

fn thinks(event: &EventEnvelope) -> bool {
    matches!(
        event.event.body,
        EventBody::MessageDelta {
            channel: OutputChannel::Thinking,
            ..
        }
    )
}

pub(crate) async fn c32_a_filter_leaves_out_what_is_not_wanted_and_nothing_else(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "wanted");
    desk.run("say \"x\"").await;
    let filters = [
        conversation(),
        only(&["run_settled", "message_delta"]),
        only(&["run_settled", "weather_changed"]),
        EventFilter {
            no_thinking: true,
            ..EventFilter::default()
        },
        EventFilter {
            no_thinking: true,
            ..only(&["run_settled", "message_delta"])
        },
    ];
    let mut whole = desk.watch().await;
    let mut watches = Vec::new();
    for filter in filters.clone() {
        watches.push(desk.watch_for(filter, None, None).await);
    }
    let start = whole.position;
    desk.run(MIXED).await;
    let all = whole.until_settled().await;
    assert!(all.iter().any(thinks));
    for (filter, watch) in filters.iter().zip(&mut watches) {
        let expected = wanted(filter, &all);
        assert!(expected.len() < all.len() && !expected.is_empty());
        // The same envelopes, with the numbers that they have for everybody.
        assert_eq!(watch.until_settled().await, expected, "{filter:?}");
        // Who resumes with the same filter is given the same.
        let again = desk.watch_for(filter.clone(), Some(start), None).await;
        assert!(again.resumed && !again.gap, "{filter:?}");
        assert_eq!(again.missed, expected, "{filter:?}");
        assert_eq!(again.position, whole.position, "the state is the newest");
    }
}

/// C32 B04: cut after every event, under a filter; the union is what an unbroken stream was told.
pub(crate) async fn c32_b04_a_resumed_stream_carries_the_same_kinds_of_events(worlds: &dyn Worlds) {
    let config = AppConfig {
        heartbeat: Duration::from_millis(1),
        ..quick()
    };
    let world = worlds.make(config).await;
    let desk = Desk::new(&world, "kinds");
    desk.run("say \"x\"").await;
    let filter = EventFilter {
        no_thinking: true,
        ..only(&[
            "message_delta",
            "tool_started",
            "tool_finished",
            "run_settled",
        ])
    };
    let mut unbroken = desk.watch_for(filter.clone(), None, None).await;
    let mut position = unbroken.position;
    let prompt = "think \"hm\"\nsay \"a\"\ntool t\nwait 1ms\n".repeat(60);
    let run = desk.invoke(&*prompt).await;
    let mut union: Vec<EventEnvelope> = Vec::new();
    let mut streams = 0;
    while !union
        .last()
        .is_some_and(|event| matches!(event.event.body, EventBody::RunSettled { .. }))
    {
        let mut watch = desk.watch_for(filter.clone(), Some(position), None).await;
        assert!(watch.resumed && !watch.gap, "a jump is no loss");
        streams += 1;
        let missed = std::mem::take(&mut watch.missed);
        if missed.is_empty() {
            // An event or, every other time, as far as a heartbeat says that it was considered.
            match watch.item().await.expect("an item").expect("no status") {
                EventItem::Event(event) => {
                    position = place(&event);
                    union.push(event);
                }
                EventItem::Heartbeat(considered) => position = considered,
                other => panic!("{other:?}"),
            }
        } else {
            position = watch.position;
            union.extend(missed);
        }
    }
    assert!(streams > 10, "{streams} streams");
    assert_eq!(union, unbroken.until_settled().await);
    run.finish().await;
}

/// C32: thousands of events that nobody wants stand between an observer and what it wants.
pub(crate) async fn c32_what_is_wanted_is_found_behind_thousands_that_are_not(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "behind");
    desk.run("say \"x\"").await;
    let start = desk.state().await.position;
    let mut live = desk.watch_for(only(&["run_settled"]), None, None).await;
    desk.run("say-words 5000").await;
    let told = live.until_settled().await;
    let again = desk
        .watch_for(only(&["run_settled"]), Some(start), None)
        .await;
    assert_eq!((told.len(), again.resumed), (1, true));
    assert_eq!(again.missed, told);
    assert_eq!(again.position, desk.state().await.position);
}

fn place(event: &EventEnvelope) -> Position {
    Position {
        epoch: event.epoch,
        seq: event.seq,
    }
}

/// C33: what a filter passes over is no sign of life: a busy session's observer that wants nothing
/// of it still hears, and is told how far it came.
pub(crate) async fn c33_an_observer_that_wants_nothing_of_a_busy_session_hears_how_far_it_came(
    worlds: &dyn Worlds,
) {
    let config = AppConfig {
        heartbeat: Duration::from_millis(20),
        ..quick()
    };
    let world = worlds.make(config).await;
    let desk = Desk::new(&world, "nothing");
    desk.run("say \"x\"").await;
    let mut whole = desk.watch().await;
    let start = whole.position;
    let mut watch = desk.watch_for(only(&["weather_changed"]), None, None).await;
    // Never quiet for as long as a heartbeat takes to come.
    let run = desk.invoke("say-words 100000 every 2ms").await;
    let mut last = watch.position;
    let mut further = 0;
    // Where the machine is too busy for a word, a heartbeat may come between two of them.
    for _ in 0..500 {
        if further == 5 {
            break;
        }
        match watch.item().await.expect("an item").expect("no status") {
            EventItem::Heartbeat(position) => {
                assert!(position >= last, "it goes back");
                further += u32::from(position > last);
                last = position;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(further, 5, "events were considered meanwhile");
    desk.abort().await;
    let all = whole.until_settled().await;
    run.finish().await;
    assert!(last.seq > start.seq + 5);
    // Nothing that was not considered is behind the place: who goes on from it with other wishes
    // is given each event after it once.
    let rest = desk.watch_from(Some(last), None).await;
    let after = |event: &&EventEnvelope| event.seq > last.seq;
    let expected: Vec<EventEnvelope> = all.iter().filter(after).cloned().collect();
    assert_eq!(rest.missed, expected);
}

/// An observer whose stream is lost again and again: what it has seen, and where it goes on.
struct Broken {
    desk: Desk,
    filter: EventFilter,
    position: Position,
    entries: Vec<Entry>,
    /// The events of the present incarnation.
    events: Vec<EventEnvelope>,
}

impl Broken {
    async fn begin(desk: &Desk, filter: EventFilter) -> Self {
        let watch = desk.watch_for(filter.clone(), None, None).await;
        Self {
            desk: desk.clone(),
            filter,
            position: watch.position,
            entries: watch.backfill,
            events: Vec::new(),
        }
    }

    /// Subscribes from where it was: the one call of the reconnect.
    async fn back(&mut self) -> Watch {
        let since = self.entries.last().map(|entry| entry.id.to_string());
        let filter = self.filter.clone();
        let mut watch = self
            .desk
            .watch_for(filter, Some(self.position), since)
            .await;
        assert_ne!(watch.resumed, watch.gap);
        assert!(!watch.full_backfill);
        if watch.gap {
            self.events.clear();
        }
        self.entries.append(&mut watch.backfill);
        let missed = std::mem::take(&mut watch.missed);
        self.take(missed);
        self.position = watch.position;
        watch
    }

    fn take(&mut self, events: Vec<EventEnvelope>) {
        self.entries.extend(appended(&events));
        if let Some(last) = events.last() {
            self.position = place(last);
        }
        self.events.extend(events);
    }
}

/// Makes the session's channel leave the memory of its server: others need the place.
pub(crate) async fn evict(desk: &Desk, world: &Arc<dyn World>) {
    let before = desk.state().await.position.epoch;
    for other in 0..1000 {
        let other = Desk::new(world, &format!("other-{other}"));
        other.run("say \"x\"").await;
        if desk.state().await.position.epoch != before {
            return;
        }
    }
    panic!("it stayed in memory");
}

/// C31 C32: eviction, filter and restart together. One observer keeps losing its stream; each time
/// the union of what it saw is what an unbroken one with the same filter saw.
pub(crate) async fn c31_c32_a_filtered_observer_comes_back_after_eviction_and_restart(
    worlds: &dyn Worlds,
) {
    let config = AppConfig {
        idle_channels: 1,
        ..ring(256)
    };
    let world = worlds.make(config).await;
    let desk = Desk::new(&world, "returning");
    desk.run("say \"x\"").await;
    let mut unbroken = desk.watch_for(conversation(), None, None).await;
    let mut broken = Broken::begin(&desk, conversation()).await;
    let mut told: Vec<EventEnvelope> = Vec::new();

    // Away for a moment: what it missed is retained.
    desk.run(MIXED).await;
    told.extend(unbroken.until_settled().await);
    assert!(broken.back().await.resumed);
    assert_eq!(broken.events, told);
    assert_eq!(broken.entries, desk.entries().await);

    // Away for so long that its place has left the ring: a gap, and entries instead of events.
    let from = broken.entries.len();
    let prompt = format!("say-words 600 every 1ms\nmessage\n{MIXED}");
    let (_, missed) = tokio::join!(desk.run(&*prompt), unbroken.until_settled());
    let watch = broken.back().await;
    assert!(watch.gap);
    assert_eq!(broken.entries[from..], appended(&missed));
    assert_eq!(
        watch.epoch,
        place(&told[0]).epoch,
        "the session stayed in memory"
    );
    drop(watch);

    // Away while its session was taken out of memory, and another run was driven since.
    drop(unbroken);
    evict(&desk, &world).await;
    let from = broken.entries.len();
    let mut unbroken = desk.watch_for(conversation(), None, None).await;
    desk.run(MIXED).await;
    let missed = unbroken.until_settled().await;
    let watch = broken.back().await;
    assert!(watch.gap && watch.epoch > place(&told[0]).epoch);
    assert_eq!(broken.entries[from..], appended(&missed));
    drop(watch);

    // Away while its server was killed in the middle of a run and started anew.
    let run = desk
        .invoke("say \"a\"\nmessage\nsay \"b\"\nmessage\nhang")
        .await;
    let second = |body: &EventBody| matches!(body, EventBody::EntryAppended { entry } if entry.id.seq % 2 == 1);
    unbroken.until(second).await;
    drop(run);
    world.restart().await;
    let from = broken.entries.len();
    let mut unbroken = desk.watch_for(conversation(), None, None).await;
    let mut watch = broken.back().await;
    assert!(watch.gap);
    assert_eq!(
        broken.entries, unbroken.backfill,
        "also what was settled for the dead"
    );
    assert!(broken.entries.len() > from);

    // From there on both are told the same again.
    desk.run(MIXED).await;
    let events = watch.until_settled().await;
    assert_eq!(events, unbroken.until_settled().await);
    broken.take(events);
    assert_eq!(broken.entries, desk.entries().await);
    let numbers: BTreeSet<u64> = broken.entries.iter().map(|entry| entry.id.seq).collect();
    assert_eq!(numbers.len(), broken.entries.len(), "each entry once");
}
