//! C32, C35, B01, B08: what an observer that was away, or too slow, is given.

use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::event::EventEnvelope;
use sessionplane_core::domain::position::Position;

use super::desk::Desk;
use super::watch::{Watch, appended};
use super::world::{Worlds, pieces, quick, ring};

/// More than any buffer on the way holds.
const PIECES: usize = 1000;

/// C32 B01: the stream is cut again and again; the union has every event once.
pub(crate) async fn c32_b01_a_resumed_stream_has_every_event_once(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "resumed");
    desk.run("say \"x\"").await;
    let mut whole = desk.watch().await;
    let first = whole.position;
    let run = desk.invoke("say-words 500 every 1us").await;
    let mut pieces: Vec<EventEnvelope> = Vec::new();
    let mut position = first;
    loop {
        let mut watch: Watch = desk.watch_from(Some(position), None).await;
        assert!(watch.resumed && !watch.gap, "it is retained");
        assert_eq!(watch.epoch, first.epoch);
        pieces.append(&mut watch.missed);
        let settled = watch.snapshot.view.active_run.is_none();
        if settled
            && pieces
                .last()
                .is_some_and(|event| event.event.body.event_type() == "run_settled")
        {
            break;
        }
        if !settled {
            pieces.push(watch.event().await);
        }
        position = Position {
            seq: pieces.last().map_or(first.seq, |event| event.seq),
            ..first
        };
    }
    assert_eq!(pieces, whole.until_settled().await);
    run.finish().await;
}

pub(crate) async fn c32_a_place_that_is_gone_is_told_as_a_gap(worlds: &dyn Worlds) {
    let world = worlds.make(ring(64)).await;
    let desk = Desk::new(&world, "gap");
    desk.run("say \"x\"").await;
    let before = desk.state().await.position;
    let known = desk.entries().await;
    let run = desk.invoke("say-words 200\nmessage\nwait-steer").await;
    let end = Position {
        seq: run.position.seq + 207,
        ..run.position
    };
    let reached = desk.reach(end).await.position;
    let since = known.last().map(|entry| entry.id.to_string());
    // Lapped, foreign, and never reached: all of them are told, and entries are backfilled.
    let places = [
        before,
        Position {
            seq: reached.seq - 65,
            ..reached
        },
        Position {
            seq: reached.seq + 1,
            ..reached
        },
        Position {
            epoch: reached.epoch + 77,
            ..reached
        },
        Position {
            epoch: reached.epoch - 1,
            ..reached
        },
        Position { epoch: 0, seq: 0 },
    ];
    for place in places {
        let watch = desk.watch_from(Some(place), since.clone()).await;
        assert!(watch.gap && !watch.resumed, "{place:?}");
        assert_eq!(watch.missed, []);
        assert_eq!(watch.backfill.len(), 2, "prompt and message");
        assert_eq!(watch.position, reached);
    }
    for place in [
        reached,
        Position {
            seq: reached.seq - 64,
            ..reached
        },
    ] {
        let watch = desk.watch_from(Some(place), since.clone()).await;
        assert!(watch.resumed && !watch.gap, "{place:?}");
        assert_eq!(watch.missed.len() as u64, reached.seq - place.seq);
        assert_eq!(watch.backfill, [], "who resumes has the entries by events");
    }
    desk.steer("say \"x\"").await;
    desk.settled(run.id).await;
}

/// C35 B08: one observer stands still; it is cut with a reason, and nobody else notices.
pub(crate) async fn c35_b08_a_stalled_observer_is_cut_and_nobody_else(worlds: &dyn Worlds) {
    let world = worlds.make(ring(200)).await;
    let desk = Desk::new(&world, "stalled");
    desk.run("say \"x\"").await;
    let mut stalled = desk.watch().await;
    let start = stalled.position;
    let mut reading = desk.watch().await;
    let reader = tokio::spawn(async move { reading.until_settled().await });
    let run = desk.invoke(&*format!("{}wait-steer", pieces(PIECES))).await;
    desk.reach(Position {
        seq: start.seq + PIECES as u64,
        ..start
    })
    .await;
    let (seen, error) = stalled.error().await;
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ObserverTooSlow, Outcome::StreamEnded)
    );
    assert!(seen.len() < PIECES);
    // What it did see is without a hole, and it can go on from there with entries.
    let known = seen.last().map_or(start, |event| Position {
        seq: event.seq,
        ..start
    });
    let again = desk.watch_from(Some(known), None).await;
    assert!(again.gap || again.resumed);
    desk.steer("say \"the end\"").await;
    let events = reader.await.expect("no panic");
    assert_eq!(events[0].seq, start.seq + 1);
    assert!(events.len() > PIECES, "the others got all");
    assert_eq!(appended(&events).len() + 2, desk.entries().await.len());
    desk.settled(run.id).await;
}

/// C35: an invoke stream that is not read is an observer like any other.
pub(crate) async fn c35_an_unread_invoke_stream_is_cut_and_can_rejoin(worlds: &dyn Worlds) {
    let world = worlds.make(ring(64)).await;
    let desk = Desk::new(&world, "unread");
    let ask = || super::desk::Ask::new(format!("{}wait-steer", pieces(PIECES))).id("one");
    let run = desk.invoke(ask()).await;
    desk.reach(Position {
        seq: run.position.seq + PIECES as u64 + 3,
        ..run.position
    })
    .await;
    let id = run.id;
    let error = run.error().await;
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::ObserverTooSlow, Outcome::StreamEnded)
    );
    let again = desk.invoke(ask()).await;
    assert_eq!((again.id, again.joined), (id, true));
    desk.steer("say \"the end\"").await;
    assert_eq!(super::run::code(&again.finish().await), "completed");
}
