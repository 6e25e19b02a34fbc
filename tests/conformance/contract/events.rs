//! C30, C31, C33, C34, C37: numbers, order and completeness of what observers see.

use std::time::Duration;

use sessionplane_core::contract::EventItem;
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::limits::MAX_EVENT_TEXT_BYTES;
use sessionplane_core::domain::position::Position;
use sessionplane_server::app::config::AppConfig;

use super::desk::{Ask, Desk};
use super::watch::{appended, settled, types};
use super::world::{Worlds, quick};

pub(crate) async fn c30_numbers_grow_by_one_and_are_the_same_for_all(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "numbers");
    desk.run("say \"x\"").await;
    let mut watches = Vec::new();
    for _ in 0..4 {
        watches.push(desk.watch().await);
    }
    let prompt =
        "say-words 200\ntool t progress 5\nthink \"hm\"\nretry 1 of 2 after 1ms \"x\"\nsay \"y\"";
    desk.run(prompt).await;
    let mut seen: Vec<Vec<EventEnvelope>> = Vec::new();
    for watch in &mut watches {
        // `Watch::next` asserts that numbers grow by one.
        seen.push(watch.until_settled().await);
    }
    assert!(seen[0].len() > 200);
    for other in &seen[1..] {
        assert_eq!(
            other, &seen[0],
            "order and content are the same for every observer"
        );
    }
}

pub(crate) async fn c30_b41_large_and_odd_output_is_told_in_bounded_events(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "large");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let prompt = "odd\nmessage\nbig 200KiB\ntool-big 2MiB";
    desk.run(prompt).await;
    let mut tails = 0;
    for event in watch.until_settled().await {
        let text = match &event.event.body {
            EventBody::MessageDelta { text, .. } => text.len(),
            EventBody::ToolFinished { output, .. } => {
                assert_eq!(output.text.len() as u64 + output.omitted_bytes, 2 << 20);
                tails += 1;
                output.text.len()
            }
            _ => continue,
        };
        assert!(text <= MAX_EVENT_TEXT_BYTES, "{text}");
    }
    assert_eq!(tails, 1);
}

pub(crate) async fn c30_progress_is_conflated_and_ends_with_the_newest(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "progress");
    let run = desk
        .invoke("tool t progress 200 every 5ms\nsay \"x\"")
        .await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let mut events = std::mem::take(&mut watch.missed);
    events.extend(watch.until_settled().await);
    let took = settled(&events)[0]
        .settled
        .as_ref()
        .expect("settled")
        .at
        .since(settled(&events)[0].started_at);
    let progress = types(&events)
        .iter()
        .filter(|kind| **kind == "tool_progress")
        .count();
    let allowed = took.as_millis() / 100 + 2;
    assert!(
        progress > 1 && progress as u128 <= allowed,
        "{progress} in {took:?}"
    );
    run.finish().await;
}

pub(crate) async fn c31_a_stream_begins_with_entries_and_a_snapshot(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "beginning");
    desk.run("say \"x\"\nmessage\nsay \"y\"").await;
    let entries = desk.entries().await;
    // `Watch::open` asserts the order: subscribed, entries, snapshot.
    let watch = desk.watch().await;
    assert!(!watch.resumed && !watch.gap && !watch.full_backfill);
    assert_eq!(watch.backfill, entries);
    assert_eq!(
        watch.snapshot.view.leaf,
        entries.last().map(|entry| entry.id)
    );
    assert_eq!(watch.snapshot, desk.state().await);
    let watch = desk.watch_from(None, Some(entries[0].id.to_string())).await;
    assert_eq!(watch.backfill, entries[1..]);
    let watch = desk.watch_from(None, Some(entries[2].id.to_string())).await;
    assert_eq!((watch.backfill.len(), watch.full_backfill), (0, false));
    let watch = desk.watch_from(None, Some("nonsense".to_owned())).await;
    assert_eq!((watch.backfill, watch.full_backfill), (entries, true));
}

pub(crate) async fn c31_long_conversations_are_backfilled_in_pages(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "long");
    desk.run(&*"say \"x\"\nmessage\n".repeat(700)).await;
    let watch = desk.watch().await;
    assert_eq!(watch.backfill, desk.entries().await);
    assert_eq!(watch.backfill.len(), 701);
    // `Watch::open` asserts that the first page alone is told to start from the beginning.
    let anew = desk.watch_from(None, Some("nonsense".to_owned())).await;
    assert_eq!(
        (anew.backfill, anew.full_backfill),
        (watch.backfill.clone(), true)
    );
}

pub(crate) async fn c31_subscribe_then_invoke_misses_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    for round in 0..50 {
        let desk = Desk::new(&world, "subscribe");
        if round == 0 {
            desk.run("say \"x\"").await;
        }
        let mut watch = desk.watch().await;
        let position = watch.position;
        let run = desk.invoke("say-words 3").await;
        let events = watch.until_settled().await;
        assert_eq!(events[0].seq, position.seq + 1);
        assert_eq!(events[0].event.body.event_type(), "run_started");
        assert_eq!(events[0].event.run, Some(run.id));
        run.finish().await;
    }
}

pub(crate) async fn c31_one_call_reconnects_after_a_restart(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "reconnect");
    let run = desk
        .invoke("say \"a\"\nmessage\nwait-steer\nsay \"b\"\nmessage\nhang")
        .await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let mut events = std::mem::take(&mut watch.missed);
    if appended(&events).len() < 2 {
        events.extend(
            watch
                .until(
                    |body| matches!(body, EventBody::EntryAppended { entry } if entry.id.seq == 2),
                )
                .await,
        );
    }
    let known: Vec<Entry> = appended(&events);
    let (position, since) = (
        watch.position,
        known.last().map(|entry| entry.id.to_string()),
    );
    desk.steer("say \"s\"").await;
    watch
        .until(|body| matches!(body, EventBody::EntryAppended { entry } if entry.id.seq == 4))
        .await;
    drop(watch);
    world.restart().await;
    let again = desk.watch_from(Some(position), since).await;
    assert!(
        again.gap && !again.resumed,
        "live events were lost, and that is told"
    );
    let mut union: Vec<u64> = known.iter().map(|entry| entry.id.seq).collect();
    union.extend(again.backfill.iter().map(|entry| entry.id.seq));
    let all: Vec<u64> = desk
        .entries()
        .await
        .iter()
        .map(|entry| entry.id.seq)
        .collect();
    assert_eq!(union, all, "entries were not");
    assert!(again.epoch > position.epoch);
}

/// C31: subscriptions at random moments of a growing conversation: backfill and events together
/// are complete and have nothing twice.
pub(crate) async fn c31_appends_that_race_with_subscriptions_are_told_once(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "racing");
    desk.run("say \"x\"").await;
    let run = desk
        .invoke(&*format!(
            "wait-steer\n{}",
            "say \"x\"\nmessage\n".repeat(400)
        ))
        .await;
    let observers = (0..64).map(|observer| {
        let desk = desk.clone();
        tokio::spawn(async move {
            for _ in 0..observer * 4 {
                tokio::task::yield_now().await;
            }
            let mut watch = desk.watch().await;
            let mut numbers: Vec<u64> = watch.backfill.iter().map(|entry| entry.id.seq).collect();
            if watch.snapshot.view.active_run.is_some() {
                let events = watch.until_settled().await;
                numbers.extend(appended(&events).iter().map(|entry| entry.id.seq));
            }
            numbers
        })
    });
    let observers: Vec<_> = observers.collect();
    desk.steer("say \"go\"").await;
    run.finish().await;
    let all: Vec<u64> = (1..=desk.entries().await.len() as u64).collect();
    assert_eq!(all.len(), 2 + 1 + 1 + 400);
    for observer in observers {
        assert_eq!(observer.await.expect("no panic"), all);
    }
}

/// C33: a heartbeat has no number and never tells of more than what was sent before it.
pub(crate) async fn c33_a_heartbeat_carries_the_position_that_was_sent(worlds: &dyn Worlds) {
    let config = AppConfig {
        heartbeat: Duration::from_micros(10),
        ..quick()
    };
    let world = worlds.make(config).await;
    let desk = Desk::new(&world, "heartbeats");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let told = watch.heartbeat_interval;
    assert_eq!(told, Some(Duration::from_micros(10)), "as configured");
    let mut sent = watch.position;
    let run = desk.invoke("say-words 3000 every 1us\nsay \"x\"").await;
    let mut heartbeats = 0;
    loop {
        match watch.item().await.expect("an item").expect("no status") {
            EventItem::Heartbeat(position) => {
                assert_eq!(position, sent, "who resumes from it would miss an event");
                heartbeats += 1;
            }
            EventItem::Event(event) => {
                assert_eq!(event.seq, sent.seq + 1);
                sent.seq = event.seq;
                if matches!(event.event.body, EventBody::RunSettled { .. }) {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(heartbeats > 0);
    let Some(Ok(EventItem::Heartbeat(position))) = watch.item().await else {
        panic!("a quiet stream has heartbeats");
    };
    assert_eq!(position, sent);
    run.finish().await;
}

/// C34: whoever sees an entry told can list it.
pub(crate) async fn c34_an_entry_is_told_once_it_can_be_listed(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "listed");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let run = desk.invoke(&*"say \"x\"\ntool t\n".repeat(100)).await;
    let mut last = desk.entries().await.first().expect("entries").id;
    loop {
        let event = watch.event().await;
        match event.event.body {
            EventBody::EntryAppended { entry } => {
                assert!(entry.id.seq > last.seq, "in entry order");
                last = entry.id;
                let before = format!("{}-{}", last.session, last.seq - 1);
                let page = desk.page(Some(before), 1).await.expect("a page");
                assert_eq!(page.entries, [*entry]);
            }
            EventBody::RunSettled { .. } => break,
            _ => {}
        }
    }
    run.finish().await;
}

pub(crate) async fn c37_a_run_is_told_in_this_order(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "vocabulary");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let run = desk
        .invoke(Ask::new(
            "think \"hm\"\nsay \"x\"\nusage in=1\nwait-steer\nretry 1 of 2 after 1ms \"x\"",
        ))
        .await;
    let mut events = watch.until_type("turn_finished").await;
    desk.steer("tool t progress 1 output \"y\"").await;
    events.extend(watch.until_settled().await);
    run.finish().await;
    // Live events overtake what waits for the disk, so each of the two keeps its own order.
    let durable = |kind: &&str| {
        matches!(
            *kind,
            "run_started" | "run_settled" | "entry_appended" | "input_delivered" | "queue_changed"
        )
    };
    let kinds = types(&events);
    let told: Vec<&str> = kinds.iter().copied().filter(|kind| durable(kind)).collect();
    let expected = [
        "run_started",
        "entry_appended",
        "entry_appended",
        "queue_changed",
        "queue_changed",
        "entry_appended",
        "input_delivered",
        "queue_changed",
        "entry_appended",
        "run_settled",
    ];
    assert_eq!(told, expected);
    let live: Vec<&str> = kinds
        .iter()
        .copied()
        .filter(|kind| !durable(kind))
        .collect();
    let expected = [
        "turn_started",
        "message_started",
        "message_delta",
        "message_delta",
        "message_finished",
        "usage_updated",
        "turn_finished",
        "turn_started",
        "tool_started",
        "tool_progress",
        "tool_finished",
        "retry_scheduled",
        "turn_finished",
    ];
    assert_eq!(live, expected);
    assert_eq!(kinds.first(), Some(&"run_started"));
    assert_eq!(kinds.last(), Some(&"run_settled"));
    let all_of_run = events
        .iter()
        .all(|event| event.event.run == settled(&events).first().map(|run| run.id));
    assert!(all_of_run);
}

/// C30: a dormant session's stream starts at its own beginning, and epochs grow.
pub(crate) async fn c30_an_epoch_names_the_serving_incarnation(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "epochs");
    desk.run("say \"x\"").await;
    let mut last = Position::default();
    for _ in 0..4 {
        let watch = desk.watch().await;
        assert!(watch.epoch > last.epoch);
        last = watch.position;
        assert_eq!(desk.state().await.position.epoch, watch.epoch);
        world.restart().await;
    }
}
