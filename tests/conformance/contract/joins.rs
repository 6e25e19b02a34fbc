//! C12: the same request id finds the run that it started, and never starts another.

use futures_util::future::join_all;
use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::position::Position;

use super::desk::{Ask, Desk};
use super::run::{code, record, said};
use super::world::{Worlds, quick, ring};

pub(crate) async fn c12_a_repeat_joins_the_live_run_from_its_start(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "live");
    desk.run("say \"earlier\"").await;
    let ask = || Ask::new("say-words 30\nwait-steer").id("one");
    let first = desk.invoke(ask()).await;
    let id = first.id;
    desk.reach(Position {
        seq: first.position.seq + 33,
        ..first.position
    })
    .await;
    let joiner = desk.invoke(ask()).await;
    assert_eq!(
        (joiner.id, joiner.joined, joiner.position),
        (id, true, first.position)
    );
    desk.steer("say \"the end\"").await;
    let (whole, told) = (first.finish().await, joiner.finish().await);
    assert_eq!(whole, told, "both streams tell the same");
    assert!(said(&told, OutputChannel::Text).starts_with("w1 w2 "));
    assert!(said(&told, OutputChannel::Text).ends_with("w30 the end"));
}

pub(crate) async fn c12_after_the_settlement_a_repeat_gets_the_recorded_terminal(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "settled");
    for (at, prompt) in ["say \"an answer\"", "fail broken \"why\" retryable", "hang"]
        .into_iter()
        .enumerate()
    {
        let ask = || Ask::new(prompt).id(format!("run-{at}"));
        let run = desk.invoke(ask()).await;
        let id = run.id;
        if prompt == "hang" {
            desk.abort().await;
        }
        let events = run.finish().await;
        for restarted in [false, true] {
            if restarted {
                world.restart().await;
            }
            let again = desk.invoke(ask()).await;
            assert_eq!((again.id, again.joined), (id, true));
            let told = again.finish().await;
            assert_eq!(told.last(), events.last(), "the first terminal");
            assert_eq!(told.len(), 1);
            let run = record(&told);
            // C9, C16: the record names the entries that hold the answer.
            let entries = desk.entries().await;
            let of_run = entries.iter().filter(|entry| entry.run == Some(id));
            let ids: Vec<_> = of_run.map(|entry| entry.id).collect();
            assert_eq!(ids.first(), Some(&run.first_entry));
            assert_eq!(ids.last().copied(), run.final_entry);
        }
    }
    assert_eq!(
        desk.entries()
            .await
            .iter()
            .filter(|e| e.body.kind() == "user")
            .count(),
        3
    );
}

pub(crate) async fn c12_b22_a_repeat_after_a_restart_starts_no_second_run(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "restart");
    let ask = || Ask::new("say \"x\"\nhang").id("one");
    let run = desk.invoke(ask()).await;
    let id = run.id;
    world.restart().await;
    for _ in 0..3 {
        let again = desk.invoke(ask()).await;
        assert_eq!((again.id, again.joined), (id, true));
        assert_eq!(code(&again.finish().await), "interrupted");
    }
    assert_eq!(
        desk.entries()
            .await
            .iter()
            .filter(|e| e.body.kind() == "user")
            .count(),
        1
    );
}

pub(crate) async fn c12_32_concurrent_calls_with_one_id_give_one_run(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    for round in 0..10 {
        let desk = Desk::new(&world, &format!("race-{round}"));
        let calls = (0..32).map(|caller| {
            let desk = desk.clone();
            tokio::spawn(async move {
                // Some ask at once, some when the run may be over.
                for _ in 0..caller {
                    tokio::task::yield_now().await;
                }
                let ask = Ask::new("say-words 3").id(format!("round-{round}"));
                let run = desk.invoke(ask).await;
                let id = run.id;
                let events = run.finish().await;
                assert_eq!(code(&events), "completed");
                id
            })
        });
        let ids: Vec<_> = join_all(calls)
            .await
            .into_iter()
            .map(|id| id.expect("a call"))
            .collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(desk.entries().await.len(), 2, "one prompt and one answer");
    }
}

pub(crate) async fn c12_a_joiner_is_told_how_much_it_missed(worlds: &dyn Worlds) {
    let world = worlds.make(ring(64)).await;
    let desk = Desk::new(&world, "missed");
    let ask = || Ask::new("say-words 500\nwait-steer").id("one");
    let run = desk.invoke(ask()).await;
    desk.reach(Position {
        seq: run.position.seq + 507,
        ..run.position
    })
    .await;
    let mut joiner = desk.invoke(ask()).await;
    let Some(Ok(InvokeEvent::Resumed { skipped })) = joiner.next().await else {
        panic!("a joiner of a run that is no longer retained is told so");
    };
    // A joiner that reads in time is given all that was retained when it joined.
    let reached = desk.state().await.position.seq;
    assert_eq!(joiner.position.seq, run.position.seq + skipped);
    assert_eq!(reached - joiner.position.seq, 64, "what is retained");
    desk.steer("say \"the end\"").await;
    let text = said(&joiner.finish().await, OutputChannel::Text);
    assert!(text.ends_with("w499 w500 the end"), "{text}");
}
