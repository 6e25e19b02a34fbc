//! C19: when a steer and a follow-up reach the model, and how their way is told.

use sessionplane_core::domain::command::{DispatchAnswer, RejectionCode};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::{EventBody, EventEnvelope, QueueChange};
use sessionplane_core::domain::ids::{InputId, RequestId};
use sessionplane_core::domain::input::InputKind;
use sessionplane_core::domain::limits::{MAX_PENDING_BYTES, MAX_TEXT_BYTES};
use sessionplane_core::domain::provenance::Channel;

use super::desk::{Ask, Desk, follow_up, steer};
use super::hands::{compact, navigate, set_model, set_thinking};
use super::watch::types;
use super::world::{Worlds, quick};

/// Kind and text of each entry.
fn story(entries: &[Entry]) -> Vec<(&'static str, String)> {
    let told = |entry: &Entry| {
        let text = match &entry.body {
            EntryBody::User { text, .. } => text.to_string(),
            EntryBody::Assistant { text, .. } => text.text.clone(),
            EntryBody::Tool { name, .. } => name.clone(),
            EntryBody::Notice { code, .. } => code.clone(),
            EntryBody::Compaction { summary, .. } => summary.text.clone(),
            EntryBody::Settings { .. } => String::new(),
        };
        (entry.body.kind(), text)
    };
    entries.iter().map(told).collect()
}

fn delivered(events: &[EventEnvelope]) -> Vec<InputId> {
    let input = |event: &EventEnvelope| match event.event.body {
        EventBody::InputDelivered { input, .. } => Some(input),
        _ => None,
    };
    events.iter().filter_map(input).collect()
}

pub(crate) async fn c19_a_steer_reaches_the_model_after_the_tool(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "after-tools");
    let prompt =
        "say \"I look.\"\ntool look progress 20 every 50ms output \"x\"\nsay \"You said: \"\necho";
    let mut run = desk.invoke(prompt).await;
    run.until(|event| {
        matches!(
            event,
            sessionplane_core::contract::InvokeEvent::ToolStarted { .. }
        )
    })
    .await;
    let text = "say \"Right. \"";
    let input = desk.steer(text).await;
    run.finish().await;
    let entries = desk.entries().await;
    let expected = [
        ("user", prompt.to_owned()),
        ("assistant", "I look.".to_owned()),
        ("tool", "look".to_owned()),
        ("user", text.to_owned()),
        ("assistant", format!("Right. You said: {text}")),
    ];
    assert_eq!(story(&entries), expected);
    let EntryBody::User {
        input: Some(id),
        origin,
        ..
    } = &entries[3].body
    else {
        panic!("{entries:?}");
    };
    assert_eq!((*id, origin.channel), (input, Channel::Steer));
    for pair in entries.windows(2) {
        assert_eq!(
            pair[1].parent,
            Some(pair[0].id),
            "each goes on from the one before"
        );
    }
}

pub(crate) async fn c19_steers_go_one_at_a_time_and_first_come_first_served(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "fifo");
    let run = desk
        .invoke("tool t progress 10 every 50ms\nwait-steer\nwait-steer\nwait-steer\nwait-steer")
        .await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let mut inputs = Vec::new();
    for number in 0..5 {
        inputs.push(desk.steer(&format!("say \"{number}\"")).await);
    }
    let mut events = std::mem::take(&mut watch.missed);
    events.extend(watch.until_settled().await);
    assert_eq!(delivered(&events), inputs);
    // The engine is handed the next as soon as it has shown one; that the one is shown is told
    // when it is durable. So at most the next is told before.
    let mut handed = Vec::new();
    for event in &events {
        match &event.event.body {
            EventBody::QueueChanged {
                change: QueueChange::Handed(id),
                ..
            } => {
                handed.push(*id);
                assert!(handed.len() <= 2, "handed over before one was shown");
            }
            EventBody::InputDelivered { input, .. } => {
                assert_eq!(handed.remove(0), *input, "shown without being handed");
            }
            _ => {}
        }
    }
    run.finish().await;
}

pub(crate) async fn c19_follow_ups_come_at_the_end_in_order(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "follow-ups");
    let run = desk.invoke("wait-steer\nsay \"answer\"").await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let (first, second) = (
        desk.follow_up("say \"one\"").await,
        desk.follow_up("say \"two\"").await,
    );
    let steered = desk.steer("say \"steered \"").await;
    let mut events = std::mem::take(&mut watch.missed);
    events.extend(watch.until_settled().await);
    assert_eq!(delivered(&events), [steered, first, second]);
    let texts: Vec<String> = story(&desk.entries().await)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let expected = [
        "wait-steer\nsay \"answer\"",
        "say \"steered \"",
        "steered answer",
        "say \"one\"",
        "one",
        "say \"two\"",
        "two",
    ];
    assert_eq!(texts, expected);
    run.finish().await;
}

/// A follow-up never enters the engine's own queue: while the engine works, none is handed over.
pub(crate) async fn c19_what_waits_is_visible_in_state_and_events(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "visible");
    let run = desk.invoke("hang").await;
    let mut watch = desk.watch().await;
    let long = format!("say \"{}\"", "\u{e9}".repeat(1000));
    let first = desk.follow_up(&long).await;
    let second = desk.dispatch(follow_up("say \"b\""), Some("two")).await;
    let second = second.input.expect("queued").id;
    for (input, depth) in [(first, 1), (second, 2)] {
        let events = watch.until_type("queue_changed").await;
        let EventBody::QueueChanged {
            change: QueueChange::Added(pending),
            depth: told,
        } = &events.last().expect("an event").event.body
        else {
            panic!("{events:?}");
        };
        assert_eq!((pending.id, *told), (input, depth));
    }
    let pending = desk.state().await.view.pending;
    let waiting: Vec<_> = pending.values().collect();
    assert_eq!(waiting.len(), 2);
    assert!(
        waiting
            .iter()
            .all(|input| !input.handed && input.kind == InputKind::FollowUp)
    );
    assert_eq!(waiting[0].bytes, long.len() as u64);
    assert!(long.starts_with(&waiting[0].preview) && waiting[0].preview.len() <= 256);
    assert_eq!(
        waiting[1].origin.request_id.as_ref().map(RequestId::as_str),
        Some("two")
    );
    desk.abort().await;
    let events = watch.until_settled().await;
    let depths: Vec<u32> = events
        .iter()
        .filter_map(|event| match &event.event.body {
            EventBody::QueueChanged { depth, .. } => Some(*depth),
            _ => None,
        })
        .collect();
    assert_eq!(depths, [1, 0]);
    run.finish().await;
}

pub(crate) async fn c19_accepted_delivered_and_completed_are_three_moments(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "moments");
    let run = desk.invoke("wait-steer\nwait-steer").await;
    let mut watch = desk.watch().await;
    let input = desk.steer("say \"a\"").await;
    let events = watch.until_type("input_delivered").await;
    let EventBody::InputDelivered { input: told, entry } = events.last().expect("one").event.body
    else {
        unreachable!("`until_type` ends with it");
    };
    assert_eq!(told, input);
    assert!(
        types(&events).contains(&"entry_appended"),
        "the entry is told first"
    );
    let entries = desk.entries().await;
    let shown = entries
        .iter()
        .find(|e| e.id == entry)
        .expect("it is durable");
    assert!(matches!(&shown.body, EntryBody::User { input: Some(id), .. } if *id == input));
    assert_eq!(
        desk.state().await.view.active_run,
        Some(run.id),
        "not completed yet"
    );
    desk.steer("say \"b\"").await;
    watch.until_settled().await;
    run.finish().await;
}

pub(crate) async fn c19_an_expected_run_guards_against_a_later_one(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "guard");
    let earlier = desk.invoke("say \"x\"").await;
    let earlier_id = earlier.id;
    earlier.finish().await;
    let first = desk.entries().await[0].id;
    // Those that act between runs are for none, whether it runs or not.
    let between = || {
        [
            set_model(None),
            set_thinking(None),
            navigate(first),
            compact(""),
        ]
    };
    for command in between() {
        let answer = desk.try_dispatch(command, None, Some(earlier_id)).await;
        assert!(is_of_no_run(&answer), "{answer:?}");
    }
    assert_ne!(desk.view().await.leaf, Some(first), "nothing was moved");
    let run = desk.invoke("wait-steer").await;
    for command in between() {
        let answer = desk.try_dispatch(command, None, Some(run.id)).await;
        assert!(is_of_no_run(&answer), "{answer:?}");
    }
    let within = [
        steer("say \"y\""),
        follow_up("say \"y\""),
        sessionplane_core::domain::command::Command::Abort,
    ];
    for command in within.into_iter().chain(between()) {
        let answer = desk.try_dispatch(command, None, Some(earlier_id)).await;
        let Ok(DispatchAnswer::Rejected(rejection)) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(rejection.code, RejectionCode::NoActiveRun);
        assert!(
            rejection.message.contains(&earlier_id.to_string()),
            "{}",
            rejection.message
        );
    }
    let answer = desk
        .try_dispatch(steer("say \"y\""), None, Some(run.id))
        .await;
    assert!(
        matches!(answer, Ok(DispatchAnswer::Accepted(_))),
        "{answer:?}"
    );
    assert_eq!(super::run::code(&run.finish().await), "completed");
}

fn is_of_no_run(answer: &Result<DispatchAnswer, CallError>) -> bool {
    let code = RejectionCode::NoActiveRun;
    matches!(answer, Ok(DispatchAnswer::Rejected(no)) if no.code == code && !no.retryable)
}

pub(crate) async fn c19_a_full_queue_refuses_and_names_the_limit(worlds: &dyn Worlds) {
    let mut config = quick();
    config.limits.max_pending_inputs = 3;
    let world = worlds.make(config).await;
    let desk = Desk::new(&world, "full");
    let run = desk.invoke(Ask::new("hang")).await;
    for _ in 0..3 {
        desk.follow_up("x").await;
    }
    let error = desk
        .try_dispatch(follow_up("x"), Some("id"), None)
        .await
        .expect_err("refused");
    assert_eq!(
        error.reason,
        sessionplane_core::domain::error::Reason::LimitReached
    );
    assert!(
        error.message.contains('3') && error.message.contains("max_pending_inputs"),
        "{}",
        error.message
    );
    desk.abort().await;
    run.finish().await;
}

pub(crate) async fn c19_c60_a_queue_is_bounded_in_bytes_too(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "heavy");
    let run = desk.invoke(Ask::new("hang")).await;
    let text = "x".repeat(MAX_TEXT_BYTES);
    for _ in 0..MAX_PENDING_BYTES / MAX_TEXT_BYTES {
        desk.follow_up(&text).await;
    }
    let refused = desk.try_dispatch(follow_up("x"), Some("id"), None).await;
    let error = refused.expect_err("it is full");
    assert_eq!(
        (error.reason, error.outcome),
        (
            sessionplane_core::domain::error::Reason::LimitReached,
            sessionplane_core::domain::error::Outcome::Refused
        )
    );
    assert!(error.message.contains("bytes"), "{}", error.message);
    desk.abort().await;
    run.finish().await;
    let next = desk.invoke(Ask::new("hang")).await;
    desk.follow_up(&text).await;
    desk.abort().await;
    next.finish().await;
}
