//! C5, C6, C7, C8, C11: what an invoke streams, and what holds once it is accepted.

use futures_util::future::join_all;
use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::event::{EventBody, EventEnvelope, OutputChannel};
use sessionplane_core::domain::ids::RequestId;
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::provenance::{Channel, Trust};
use sessionplane_core::domain::view::Status;

use super::desk::{Ask, Desk, is_busy};
use super::run::{Run, code, record, said};
use super::watch::{settled, started};
use super::world::{Worlds, quick};

pub(crate) async fn c05_there_is_one_terminal_and_nothing_after_it(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "terminals");
    let endings = [
        ("say \"x\"", "completed", false),
        ("say \"x\"\nstop", "completed", false),
        ("fail broken \"on purpose\"", "broken", false),
        (
            "fail busy-provider \"later\" retryable",
            "busy-provider",
            true,
        ),
        ("say \"x\"\ncrash", "engine_gone", true),
        ("say \"x\"\nsay nothing", "bad_scenario", false),
    ];
    for (prompt, word, again) in endings {
        // `finish` asserts that the terminal is the only one, and the last.
        let events = desk.run(prompt).await;
        assert_eq!(code(&events), word, "{prompt}");
        if let Some(InvokeEvent::Failed { retryable, .. }) = events.last() {
            assert_eq!(*retryable, again, "{prompt}");
        }
    }
}

pub(crate) async fn c06_an_observer_at_the_accepted_position_misses_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "accepted");
    desk.run("say \"earlier\"").await;
    let run = desk.invoke("say-words 20\nwait-steer").await;
    let (id, position) = (run.id, run.position);
    desk.reach(Position {
        seq: position.seq + 20,
        ..position
    })
    .await;
    let mut watch = desk.watch_from(Some(position), None).await;
    assert!(watch.resumed && !watch.gap);
    desk.steer("say \"go on\"").await;
    let mut events = std::mem::take(&mut watch.missed);
    events.extend(watch.until_settled().await);
    let first = &events[0];
    assert_eq!(first.seq, position.seq + 1);
    assert_eq!(first.event.body.event_type(), "run_started");
    assert!(events.iter().all(|event| event.event.run == Some(id)));
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    let expected: Vec<u64> = (first.seq..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
}

pub(crate) async fn c07_a_busy_session_answers_in_one_event_unseen(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "busy");
    let run = desk.invoke("say \"x\"\nhang").await;
    let mut watch = desk.watch().await;
    desk.reach(Position {
        seq: run.position.seq + 5,
        ..run.position
    })
    .await;
    let before = desk.state().await;
    let InvokeEvent::Failed { details, .. } = desk.busy(Ask::new("me too").id("later")).await
    else {
        unreachable!("`busy` asserts it");
    };
    assert!(details.contains(&run.id.to_string()), "{details}");
    assert_eq!(desk.state().await, before, "nothing was published");
    assert_eq!(desk.entries().await.len(), 1);
    desk.abort().await;
    let events = watch.until_settled().await;
    assert_eq!(settled(&events)[0].id, run.id);
    assert_eq!(started(&events), []);
    assert_eq!(desk.run(Ask::new("say \"now\"").id("later")).await.len(), 2);
}

pub(crate) async fn c07_of_64_concurrent_invokes_one_is_accepted(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    for existing in [false, true] {
        let desk = Desk::new(&world, if existing { "existing" } else { "fresh" });
        if existing {
            desk.run("say \"x\"").await;
        }
        let calls = (0..64).map(|_| {
            let desk = desk.clone();
            tokio::spawn(async move {
                let mut stream = desk.open("hang").await.expect("an answer");
                let first = Run::next_of(&mut stream).await.expect("an event");
                let first = first.expect("an answer");
                // C27: never idle while an invoke is busy.
                let state = desk.state().await;
                assert_eq!(state.view.status(), Status::Running, "after {first:?}");
                (first, state.view.active_run)
            })
        });
        let answers = join_all(calls).await;
        let answers: Vec<_> = answers
            .into_iter()
            .map(|answer| answer.expect("a call"))
            .collect();
        let busy = answers.iter().filter(|(event, _)| is_busy(event)).count();
        assert_eq!(busy, 63, "exactly one is accepted");
        let run = answers[0].1;
        assert!(answers.iter().all(|(_, active)| *active == run));
        desk.abort().await;
    }
}

/// What an event projects to, written down once more and by hand.
fn projected(event: &EventEnvelope) -> Option<InvokeEvent> {
    Some(match event.event.body.clone() {
        EventBody::MessageDelta {
            message,
            channel,
            text,
        } => InvokeEvent::Delta {
            message,
            channel,
            text: text.to_string(),
        },
        EventBody::ToolStarted {
            call,
            name,
            input_json,
        } => InvokeEvent::ToolStarted {
            call,
            name,
            input_json,
        },
        EventBody::ToolFinished {
            call,
            failed,
            output,
            artifact,
        } => InvokeEvent::ToolEnded {
            call,
            failed,
            output,
            artifact,
        },
        EventBody::RetryScheduled {
            attempt,
            max_attempts,
            delay,
            reason,
        } => InvokeEvent::Retrying {
            attempt,
            max_attempts,
            delay,
            reason,
        },
        EventBody::RunSettled { run } => InvokeEvent::Completed { run },
        _ => return None,
    })
}

const EVERYTHING: &str = "think \"hm\"\nsay-words 5\ntool look {\"a\":1} progress 3 output \"found\"\n\
    tool fix fail\nretry 1 of 2 after 1ms \"slow\"\nthink \"ah\"\nsay \"done\"\nusage in=3 out=4\nsay \"bye\"";

pub(crate) async fn c08_the_stream_is_a_projection_of_the_events(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "projection");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let events = desk.run(EVERYTHING).await;
    let seen = watch.until_settled().await;
    let expected: Vec<InvokeEvent> = seen.iter().filter_map(projected).collect();
    assert_eq!(events, expected);
    let kinds = |wanted: fn(&InvokeEvent) -> bool| events.iter().filter(|e| wanted(e)).count();
    assert_eq!(
        kinds(|e| matches!(e, InvokeEvent::ToolEnded { failed: true, .. })),
        1
    );
    assert_eq!(kinds(|e| matches!(e, InvokeEvent::ToolStarted { .. })), 2);
    assert_eq!(kinds(|e| matches!(e, InvokeEvent::Retrying { .. })), 1);
}

pub(crate) async fn c08_thinking_is_never_folded_into_text(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "thinking");
    let events = desk
        .run("think \"secret \"\nsay \"open \"\nthink \"hidden\"\nsay \"plain\"")
        .await;
    assert_eq!(said(&events, OutputChannel::Text), "open plain");
    assert_eq!(said(&events, OutputChannel::Thinking), "secret hidden");
    let entries = desk.entries().await;
    let EntryBody::Assistant {
        text,
        thinking,
        partial,
        ..
    } = &entries[1].body
    else {
        panic!("{entries:?}");
    };
    assert_eq!(
        (&*text.text, &*thinking.text, *partial),
        ("open plain", "secret hidden", false)
    );
}

pub(crate) async fn c11_after_accepted_the_prompt_is_durable(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    for crash in [false, true] {
        let desk = Desk::new(&world, if crash { "crash" } else { "no-crash" });
        let run = desk
            .invoke(Ask::new("hang").id(format!("prompt-{crash}")))
            .await;
        if crash {
            world.restart().await;
        }
        let entries = desk.entries().await;
        let EntryBody::User {
            text,
            omitted_bytes: 0,
            origin,
            input: None,
            data: None,
        } = &entries[0].body
        else {
            panic!("{entries:?}");
        };
        assert_eq!(&**text, "hang");
        assert_eq!(
            (origin.principal.as_str(), origin.channel),
            ("owner", Channel::Invoke)
        );
        assert!(
            origin.trust <= Trust::Relayed,
            "nobody said that it was typed"
        );
        assert_eq!(
            origin.request_id.as_ref().map(RequestId::as_str),
            Some(&*format!("prompt-{crash}"))
        );
        let stored = desk.record(run.id).await;
        assert_eq!(
            (stored.session, stored.first_entry),
            (run.session, entries[0].id)
        );
        assert_eq!(
            stored.final_entry.is_some(),
            stored.settled.is_some(),
            "only a settled run has a last entry"
        );
        assert_eq!(
            stored.origin, *origin,
            "the same origin in entry and record"
        );
    }
}

pub(crate) async fn c11_concurrent_calls_with_one_id_join_one_run(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "single-flight");
    // On a session that exists: there a second admission would not stumble over the name.
    desk.run("say-words 1").await;
    let calls = (0..32).map(|_| {
        let desk: Desk = desk.clone();
        tokio::spawn(async move {
            let run = desk.invoke(Ask::new("say-words 10").id("once")).await;
            let (id, joined) = (run.id, run.joined);
            (id, joined, record(&run.finish().await))
        })
    });
    let answers = join_all(calls).await;
    let answers: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.expect("a call"))
        .collect();
    assert_eq!(answers.iter().filter(|(_, joined, _)| !joined).count(), 1);
    assert!(
        answers
            .iter()
            .all(|(id, _, record)| *id == answers[0].0 && *record == answers[0].2)
    );
    assert_eq!(desk.entries().await.len(), 4, "one more prompt and answer");
}
