//! C9, C10, C16: how a run ends, and what its record says.

use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::event::{EventBody, OutputChannel, QueueChange};
use sessionplane_core::domain::input::DiscardCause;
use sessionplane_core::domain::run::{Failure, RunOutcome};
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::domain::view::Status;

use super::desk::{Ask, Desk};
use super::run::{code, record, said};
use super::watch::{appended, settled};
use super::world::{Worlds, quick};

pub(crate) async fn c09_an_abort_is_an_outcome_that_nothing_replays(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "aborted");
    let ask = || Ask::new("say \"x\"\nhang").id("one");
    let run = desk.invoke(ask()).await;
    let id = run.id;
    desk.abort().await;
    let events = run.finish().await;
    let Some(InvokeEvent::Failed {
        code,
        retryable: false,
        run: Some(run),
        ..
    }) = events.last()
    else {
        panic!("{events:?}");
    };
    assert_eq!(code, "aborted");
    assert!(run.abort_requested);
    for _ in 0..2 {
        let again = desk.invoke(ask()).await;
        assert_eq!((again.id, again.joined), (id, true));
        assert_eq!(again.finish().await.last(), events.last());
        world.restart().await;
    }
    let last = desk.state().await.view.last_run.expect("a last run");
    assert_eq!((last.run, last.outcome), (id, RunOutcome::Aborted));
}

pub(crate) async fn c10_the_window_spans_what_joined(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "window");
    let run = desk.invoke("say \"first \"\nwait-steer").await;
    for text in ["say \"second \"", "say \"third \""] {
        desk.follow_up(text).await;
    }
    desk.steer("say \"steered \"").await;
    let events = run.finish().await;
    let text = said(&events, OutputChannel::Text);
    assert_eq!(text, "first steered second third ");
    assert_eq!(code(&events), "completed");
}

/// C10 C20: what the engine does not show by its own end is lost, and holds nothing open.
pub(crate) async fn c10_an_unshown_input_does_not_hold_the_window_open(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "unshown");
    let mut run = desk.invoke("say \"x\"\nwait 2s\nstop").await;
    let mut watch = desk.watch().await;
    run.until_text().await;
    let input = desk.steer("say \"never\"").await;
    let handed = QueueChange::Handed(input);
    let is_handed = |body: &EventBody| matches!(body, EventBody::QueueChanged { change, .. } if *change == handed);
    watch.until(is_handed).await;
    let events = run.finish().await;
    assert_eq!(code(&events), "completed");
    let record = record(&events);
    let [lost] = &record.undelivered[..] else {
        panic!("{record:?}");
    };
    assert_eq!((lost.id, lost.cause), (input, DiscardCause::Lost));
    assert_eq!(desk.entries().await.len(), 2, "it is no entry");
}

/// C10 C27 B06: after the terminal the state has flipped, and the next invoke is accepted.
pub(crate) async fn c10_b06_the_terminal_comes_after_the_state_flipped(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desks: Vec<Desk> = (0..4)
        .map(|n| Desk::new(&world, &format!("flip-{n}")))
        .collect();
    let lines = desks.into_iter().map(|desk| {
        tokio::spawn(async move {
            for number in 0..100 {
                let prompt = if number % 2 == 0 {
                    "say \"x\""
                } else {
                    "fail broken \"x\""
                };
                let run = desk.invoke(prompt).await;
                let id = run.id;
                run.finish().await;
                let view = desk.state().await.view;
                assert_eq!(view.status(), Status::Idle);
                assert_eq!(view.last_run.map(|last| last.run), Some(id));
            }
        })
    });
    for line in futures_util::future::join_all(lines).await {
        line.expect("no panic");
    }
}

/// C10 C36: no later run publishes anything before the settlement of the earlier one.
pub(crate) async fn c10_no_later_run_publishes_before_the_settlement(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "after-each-other");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let invokers = (0..4).map(|_| {
        let desk = desk.clone();
        tokio::spawn(async move {
            let mut accepted = 0;
            while accepted < 10 {
                let mut stream = desk.open("say \"x\"").await.expect("an answer");
                while let Some(Ok(event)) = super::run::Run::next_of(&mut stream).await {
                    accepted += usize::from(matches!(event, InvokeEvent::Accepted { .. }));
                }
            }
        })
    });
    let invokers: Vec<_> = invokers.collect();
    for _ in 0..40 {
        let events = watch.until_settled().await;
        let run = settled(&events)[0].id;
        assert_eq!(events[0].event.body.event_type(), "run_started");
        assert!(
            events.iter().all(|event| event.event.run == Some(run)),
            "{events:?}"
        );
    }
    for invoker in invokers {
        invoker.await.expect("no panic");
    }
}

pub(crate) async fn c16_a_run_record_tells_everything(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "record");
    let run = desk
        .invoke(Ask::new("usage in=3 out=4\nsay \"x\"\nwait-steer\nusage in=5 cost=0.5").id("key"))
        .await;
    let id = run.id;
    let active = desk.record(id).await;
    assert_eq!(
        (active.settled.is_none(), active.session),
        (true, run.session)
    );
    desk.steer("say \"y\"").await;
    let mut told = record(&run.finish().await);
    let stored = desk.record(id).await;
    assert_eq!(stored, told, "the terminal's record is the durable one");
    world.restart().await;
    assert_eq!(desk.record(id).await, told);
    let entries = desk.entries().await;
    assert_eq!(
        (told.first_entry, told.final_entry),
        (entries[0].id, entries.last().map(|entry| entry.id))
    );
    assert_eq!(told.agent.as_str(), "scripted");
    assert_eq!(
        told.request_id.take().map(|id| id.to_string()),
        Some("key".to_owned())
    );
    assert_eq!(told.origin.principal.as_str(), "owner");
    assert_eq!(told.settings.model.as_deref(), Some("scripted"));
    assert_eq!(
        told.usage,
        Usage {
            input_tokens: Some(8),
            output_tokens: Some(4),
            cached_tokens: None,
            cost_usd: Some(0.5)
        }
    );
    let settled = told.settled.expect("settled");
    assert!(settled.at >= told.started_at);
    assert_eq!(settled.outcome, RunOutcome::Completed);
}

pub(crate) async fn c16_a_failure_is_kept_as_the_engine_told_it(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "failure");
    let events = desk
        .run("say \"half\"\nfail overloaded \"The provider gave up.\" retryable")
        .await;
    let expected = RunOutcome::Failed(Failure {
        code: "overloaded".to_owned(),
        details: "The provider gave up.".to_owned(),
        retryable: true,
    });
    let run = record(&events);
    assert_eq!(
        run.settled.map(|settled| settled.outcome),
        Some(expected.clone())
    );
    let last = desk.state().await.view.last_run.expect("a last run");
    assert_eq!(last.outcome, expected);
}

/// C7, C9, C36: what our codes mean must be believable, whatever an agent says.
pub(crate) async fn c07_c09_c36_an_agent_cannot_claim_our_codes(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "forged");
    for ours in [
        "session_busy",
        "aborted",
        "interrupted",
        "engine_gone",
        "engine_unavailable",
    ] {
        let prompt = format!("fail {ours} \"forged\" retryable");
        let events = desk.run(prompt.as_str()).await;
        assert_eq!(super::run::code(&events), "engine_failed", "{ours}");
        let last = desk.state().await.view.last_run.expect("a last run");
        assert_eq!(last.outcome.code(), Some("engine_failed"), "{ours}");
    }
}

/// C10: fates, entries and the settlement are one commit: they are told before `run_settled`.
pub(crate) async fn c10_everything_of_the_run_is_told_before_its_settlement(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "before");
    let run = desk.invoke("say \"x\"\nhang").await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let inputs: Vec<_> = [desk.follow_up("a").await, desk.follow_up("b").await].into();
    desk.abort().await;
    let mut events = std::mem::take(&mut watch.missed);
    events.extend(watch.until_settled().await);
    let discarded: Vec<_> = events
        .iter()
        .filter_map(|event| match event.event.body {
            EventBody::InputDiscarded { input, .. } => Some(input),
            _ => None,
        })
        .collect();
    assert_eq!(discarded, inputs);
    assert_eq!(appended(&events).len(), desk.entries().await.len());
    let record = settled(&events).remove(0);
    assert_eq!(record.undelivered.len(), 2);
}
