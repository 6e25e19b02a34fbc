//! C1, C2, C17, C18, C26: what is an answer, what is a refusal, and what either means.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::contract::{CallOptions, CapabilityTarget, InvokeEvent};
use sessionplane_core::domain::command::{
    Command, CommandKind, DispatchAnswer, Rejection, RejectionCode,
};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::event::{EventBody, QueueChange};
use sessionplane_core::domain::ids::{AgentName, InputId};
use sessionplane_core::domain::limits::MAX_TEXT_BYTES;
use sessionplane_core::domain::position::Position;
use sessionplane_server::app::config::AppConfig;

use super::desk::{Ask, Desk, follow_up, steer};
use super::run::{Run, code};
use super::world::{World, Worlds, quick};

fn refused<T>(answer: Result<T, CallError>) -> CallError {
    let error = answer.err().expect("a refusal");
    assert_eq!(error.outcome, Outcome::Refused, "{error:?}");
    error
}

/// The field that a refusal names, and its text, which must name the limit or the way out.
fn violation(error: &CallError, reason: Reason) -> (String, String) {
    assert_eq!(error.reason, reason, "{error:?}");
    let [violation] = &error.violations[..] else {
        panic!("not one violation: {error:?}");
    };
    (violation.field.clone(), violation.description.clone())
}

pub(crate) async fn c01_busy_failed_aborted_and_rejected_are_answers(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "answers");
    assert_eq!(
        code(&desk.run("fail broken \"on purpose\"").await),
        "broken"
    );
    assert_eq!(desk.rejected(steer("x")).await, RejectionCode::NoActiveRun);
    let run = desk.invoke("hang").await;
    desk.busy("me too").await;
    desk.abort().await;
    assert_eq!(code(&run.finish().await), "aborted");
}

pub(crate) async fn c01_refusals_name_the_field_the_limit_and_the_way_out(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "refusals");
    let error = refused(desk.open("").await);
    let (field, _) = violation(&error, Reason::InvalidArgument);
    assert_eq!(field, "prompt.text");
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    let error = refused(desk.open(&*long).await);
    let (field, text) = violation(&error, Reason::TooLarge);
    assert_eq!(field, "prompt.text");
    assert!(text.contains(&MAX_TEXT_BYTES.to_string()), "{text}");

    let run = desk.invoke("hang").await;
    for (command, name) in [
        (steer(&long), "steer.text"),
        (follow_up(&long), "follow_up.text"),
    ] {
        let error = refused(desk.try_dispatch(command, None, None).await);
        let (field, text) = violation(&error, Reason::TooLarge);
        assert_eq!(field, name);
        assert!(text.contains(&MAX_TEXT_BYTES.to_string()), "{text}");
    }
    let error = refused(desk.page(None, 100_000).await);
    let (field, text) = violation(&error, Reason::InvalidArgument);
    assert_eq!(field, "page_size");
    assert!(text.contains("1000"), "{text}");
    let later = Position {
        seq: run.position.seq + 1_000_000,
        ..run.position
    };
    let error = refused(desk.try_state(Some(later)).await);
    assert_eq!(error.reason, Reason::PositionNotReached);
    assert!(error.retry_after.is_some(), "{error:?}");
}

pub(crate) async fn c01_b38_a_text_of_exactly_the_limit_is_taken(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "limit");
    let prompt = format!("stop\n{}", "#".repeat(MAX_TEXT_BYTES - 5));
    assert_eq!(prompt.len(), MAX_TEXT_BYTES);
    assert_eq!(code(&desk.run(&*prompt).await), "completed");
    let entries = desk.entries().await;
    assert!(
        entries[0].weight() > MAX_TEXT_BYTES,
        "the prompt is kept whole"
    );
}

pub(crate) async fn c02_what_is_refused_did_nothing_and_its_id_is_free(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "nothing");
    refused(desk.open(Ask::new("").id("one")).await);
    refused(desk.open(Ask::new("x").id("one").must_exist()).await);
    refused(desk.open(Ask::new("x").id("one").agent("nobody")).await);
    let error = refused(desk.try_state(None).await);
    assert_eq!(
        error.reason,
        Reason::NoSuchSession,
        "no session was created"
    );
    let run = desk.invoke(Ask::new("hang").id("one")).await;
    assert!(!run.joined);
    refused(desk.try_dispatch(steer(""), Some("two"), None).await);
    assert_eq!(desk.state().await.view.pending.len(), 0);
    desk.dispatch(follow_up("stop"), Some("two")).await;
    assert_eq!(desk.state().await.view.pending.len(), 1);
}

pub(crate) async fn c17_accepted_never_means_that_the_run_succeeded(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "admitted");
    let run = desk.invoke("wait-steer\nfail broken \"on purpose\"").await;
    let accepted = desk.dispatch(steer("say \"seen\""), None).await;
    assert_eq!(accepted.run, Some(run.id));
    assert!(accepted.input.is_some());
    assert_eq!(code(&run.finish().await), "broken");
}

pub(crate) async fn c17_rejected_means_that_nothing_was_queued(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "rejected");
    let earlier = desk.invoke("say \"x\"").await;
    let earlier_run = earlier.id;
    earlier.finish().await;
    let run = desk.invoke("wait-steer\nsay \"the end\"").await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    let mut events = std::mem::take(&mut watch.missed);
    for command in [steer("say \"never\""), follow_up("say \"never\"")] {
        let answer = desk
            .try_dispatch(command, Some("r"), Some(earlier_run))
            .await;
        let Ok(DispatchAnswer::Rejected(Rejection {
            code, retryable, ..
        })) = answer
        else {
            panic!("{answer:?}");
        };
        assert_eq!((code, retryable), (RejectionCode::NoActiveRun, false));
    }
    // What is accepted after it, under the same id, is the only thing that ever waits.
    let accepted = desk.dispatch(steer("say \"seen\""), Some("r")).await;
    let input = accepted.input.expect("an input").id;
    events.extend(watch.until_settled().await);
    let queued: Vec<InputId> = events
        .iter()
        .filter_map(|event| match &event.event.body {
            EventBody::QueueChanged {
                change: QueueChange::Added(input),
                ..
            } => Some(input.id),
            _ => None,
        })
        .collect();
    assert_eq!(queued, [input]);
    assert_eq!(desk.record(run.id).await.undelivered, []);
    let entries = desk.entries().await;
    let texts = format!("{entries:?}");
    assert!(
        texts.contains("seen") && !texts.contains("never"),
        "{texts}"
    );
    run.finish().await;
}

pub(crate) async fn c18_each_code_is_told_where_it_belongs(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let mute = Desk::new(&world, "mute");
    let run = mute.invoke(Ask::new("hang").agent("no-steering")).await;
    let unsupported = RejectionCode::UnsupportedCapability;
    assert_eq!(mute.rejected(steer("x")).await, unsupported);
    assert_eq!(mute.rejected(follow_up("x")).await, unsupported);
    mute.abort().await;
    run.finish().await;

    let desk = Desk::new(&world, "idle");
    desk.run("say \"x\"").await;
    for command in [steer("x"), follow_up("x"), Command::Abort] {
        assert_eq!(desk.rejected(command).await, RejectionCode::NoActiveRun);
    }
    let deaf = Desk::new(&world, "deaf");
    let mut run = deaf.invoke(Ask::new("x").agent("deaf")).await;
    run.until_text().await;
    deaf.abort().await;
    // Until its grace is over the run is ending, and takes nothing more.
    let ending = deaf.rejected(follow_up("x")).await;
    assert_eq!(ending, RejectionCode::RunCommandFailed);
    assert_eq!(code(&run.finish().await), "aborted");
}

async fn report(
    world: &Arc<dyn World>,
    target: CapabilityTarget,
) -> sessionplane_core::contract::CapabilityReport {
    let report = world
        .caller()
        .get_capabilities(target, CallOptions::default())
        .await;
    report.unwrap_or_else(|error| panic!("{error:?}"))
}

pub(crate) async fn c26_what_the_capabilities_lack_is_refused_first(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let agent = |name: &str| CapabilityTarget::Agent(AgentName::parse(name).expect("an agent"));
    let scripted = report(&world, agent("scripted")).await;
    assert_eq!(scripted.commands, CommandKind::ALL);
    assert!(
        scripted
            .capabilities
            .steering
            .is_some_and(|s| s.after_tools && !s.preempts_text)
    );
    let mute = report(&world, agent("no-steering")).await;
    assert_eq!(mute.commands, [CommandKind::Abort]);
    assert_eq!(mute.binding_retention, quick().binding_retention);

    let desk = Desk::new(&world, "mute");
    desk.run(Ask::new("say \"x\"").agent("no-steering")).await;
    let session = report(&world, CapabilityTarget::Session(desk.session.clone())).await;
    assert_eq!(session, mute);
    // Idle, with an empty and with a well-formed text: what is told is the capability.
    for command in [steer(""), follow_up(""), steer("x"), follow_up("x")] {
        let code = desk.rejected(command).await;
        assert_eq!(code, RejectionCode::UnsupportedCapability);
    }
    assert_eq!(
        desk.rejected(Command::Abort).await,
        RejectionCode::NoActiveRun
    );
    let unknown = world.caller();
    let error = unknown
        .get_capabilities(agent("nobody"), CallOptions::default())
        .await
        .expect_err("no such agent");
    assert_eq!(error.reason, Reason::NoSuchAgent);
    assert!(error.message.contains("scripted"), "{}", error.message);
}

pub(crate) async fn c05_a_missing_agent_fails_the_run_not_the_call(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "absent");
    let events = desk.run(Ask::new("x").agent("absent")).await;
    let Some(InvokeEvent::Failed {
        code,
        retryable: true,
        details,
        run: Some(_),
    }) = events.last()
    else {
        panic!("{events:?}");
    };
    assert_eq!(code, "engine_unavailable");
    assert!(details.contains("there is no such program"), "{details}");
}

/// C2: a session's task that leaves because it is idle loses no call that comes in that moment.
pub(crate) async fn c02_a_session_that_falls_asleep_loses_no_call(worlds: &dyn Worlds) {
    let config = AppConfig {
        idle_ttl: Duration::ZERO,
        ..quick()
    };
    let world = worlds.make(config).await;
    let lines = (0..4).map(|line| {
        let desk = Desk::new(&world, &format!("asleep-{}", line / 2));
        tokio::spawn(async move {
            for _ in 0..500 {
                let mut stream = desk.open("stop").await.expect("an answer");
                while let Some(event) = Run::next_of(&mut stream).await {
                    event.expect("no status");
                }
                let answer = desk.try_dispatch(steer("x"), None, None).await;
                answer.expect("an answer");
            }
        })
    });
    for line in futures_util::future::join_all(lines).await {
        line.expect("no panic");
    }
}
