//! C26: an agent says what it can do, and what it does not say is refused before all else.

use std::collections::BTreeSet;
use std::sync::Arc;

use sessionplane_core::contract::{
    CallOptions, CapabilityReport, CapabilityTarget, CommandTarget, OfferedCommand,
};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::command::{Command, CommandKind, DispatchAnswer, RejectionCode};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::{AgentName, EntryId, InteractionId, RunId, SessionId};
use sessionplane_core::domain::interaction::{InteractionAnswer, InteractionKind};

use super::desk::{Ask, Desk, follow_up, named, steer};
use super::hands::{compact, navigate, respond, set_model, set_thinking};
use super::run::said;
use super::world::{World, Worlds, quick};

fn agent(name: &str) -> CapabilityTarget {
    CapabilityTarget::Agent(AgentName::parse(name).expect("an agent"))
}

async fn report(
    world: &Arc<dyn World>,
    target: CapabilityTarget,
) -> Result<CapabilityReport, CallError> {
    let caller = world.caller();
    caller
        .get_capabilities(target, CallOptions::default())
        .await
}

async fn offered(
    world: &Arc<dyn World>,
    target: CapabilityTarget,
) -> Result<Vec<OfferedCommand>, CallError> {
    let caller = world.caller();
    caller.list_commands(target, CallOptions::default()).await
}

/// Of each kind a command whose payload makes sense nowhere, and one that may.
fn commands(kind: CommandKind) -> Vec<Command> {
    let long = "x".repeat(2 * 1024 * 1024 - 4096);
    let session = SessionId::from_bytes([9; 16]);
    let never = InteractionId {
        run: RunId::from_bytes([9; 16]),
        ordinal: 1,
    };
    let yes = InteractionAnswer::Confirmed(true);
    let text = InteractionAnswer::Text(long.clone());
    match kind {
        CommandKind::Steer => vec![steer(""), steer(&long), steer("x")],
        CommandKind::FollowUp => vec![follow_up(""), follow_up(&long), follow_up("x")],
        CommandKind::Abort => vec![Command::Abort],
        CommandKind::Compact => vec![compact(&long), compact("")],
        CommandKind::SetModel => vec![set_model(Some("")), set_model(Some(&long)), set_model(None)],
        CommandKind::SetThinking => vec![
            set_thinking(Some("")),
            set_thinking(Some(&long)),
            set_thinking(None),
        ],
        CommandKind::Navigate => vec![navigate(EntryId { session, seq: 1 })],
        CommandKind::Respond => vec![respond(never, text), respond(never, yes)],
    }
}

fn is_unsupported(answer: &Result<DispatchAnswer, CallError>) -> bool {
    matches!(answer, Ok(DispatchAnswer::Rejected(no)) if no.code == RejectionCode::UnsupportedCapability && !no.retryable)
}

/// What an agent says, and what its session does: the same.
async fn honest(world: &Arc<dyn World>, name: &'static str) {
    let told = report(world, agent(name)).await.expect("a report");
    let kinds = CommandKind::ALL.into_iter();
    let able: Vec<_> = kinds
        .filter(|kind| told.capabilities.allows(*kind))
        .collect();
    assert_eq!(told.commands, able, "{name}");
    let desk = Desk::new(world, &format!("of-{name}"));
    let run = desk.invoke(Ask::new("say \"x\"").agent(name)).await;
    desk.abort_if_active().await;
    desk.wait_run(run.id, None).await.expect("it ends");
    drop(run);
    let session = || CapabilityTarget::Session(desk.session.clone());
    assert_eq!(report(world, session()).await, Ok(told.clone()), "{name}");
    let before = desk.all().await;
    for kind in CommandKind::ALL {
        for command in commands(kind) {
            let answer = desk.try_dispatch(command, None, None).await;
            let refused = is_unsupported(&answer);
            let told = (name, kind, &answer);
            assert_eq!(refused, !able.contains(&kind), "{told:?}");
        }
    }
    let after = desk.all().await;
    if !able.contains(&CommandKind::Compact) {
        assert_eq!(after, before, "{name}: what was refused did something");
    }
    let offers = offered(world, session()).await.expect("names");
    assert_eq!(offered(world, agent(name)).await, Ok(offers.clone()));
    let ours: Vec<_> = offers
        .iter()
        .filter_map(|offer| match offer.target {
            CommandTarget::Dispatch(kind) => {
                assert_eq!(offer.name, kind.as_str());
                Some(kind)
            }
            CommandTarget::Prompt => None,
        })
        .collect();
    assert_eq!(ours, able, "{name}");
    assert!(offers.iter().all(|offer| !offer.description.is_empty()));
}

pub(crate) async fn c26_every_agent_is_honest_about_every_command(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    for name in [
        "scripted",
        "no-steering",
        "approvals-only",
        "demo",
        "deaf",
        "absent",
        "hostile-0",
        "hostile-1",
        "hostile-2",
        "hostile-3",
    ] {
        honest(&world, name).await;
    }
}

/// C26: also where a run is active, and where its capability would make it busy or wrong.
pub(crate) async fn c26_a_running_session_refuses_the_same(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "running");
    let run = desk.invoke(Ask::new("hang").agent("no-steering")).await;
    for kind in CommandKind::ALL {
        for command in commands(kind) {
            if command == Command::Abort {
                continue;
            }
            let answer = desk.try_dispatch(command, None, None).await;
            assert!(is_unsupported(&answer), "{kind:?}: {answer:?}");
        }
    }
    desk.abort().await;
    run.finish().await;
}

pub(crate) async fn c26_the_report_says_what_there_is(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let scripted = report(&world, agent("scripted")).await.expect("a report");
    let can = &scripted.capabilities;
    assert_eq!(can.interactions, BTreeSet::from(InteractionKind::ALL));
    assert!(can.manual_compaction && can.model_selection && can.thinking && can.navigate);
    assert!(can.tool_progress && can.usage && can.follow_up);
    assert_eq!(can.sandbox, SandboxLevel::Confined);
    let models: Vec<_> = scripted
        .models
        .models
        .iter()
        .map(|model| {
            let level = model.default_level.as_deref();
            (&*model.spec, model.thinking_levels.len(), level)
        })
        .collect();
    let thinking = ("scripted-thinking", 3, Some("medium"));
    assert_eq!(models, [("scripted", 0, None), thinking]);
    assert_eq!(scripted.models.default.model.as_deref(), Some("scripted"));
    // Every model it names can be chosen, and what is used unless one is.
    let desk = Desk::new(&world, "models");
    desk.run("say \"x\"").await;
    assert_eq!(desk.view().await.resolved.settings, scripted.models.default);
    for model in &scripted.models.models {
        desk.dispatch(set_model(Some(&model.spec)), None).await;
        let resolved = desk.view().await.resolved;
        assert_eq!(resolved.available_levels, model.thinking_levels);
        assert_eq!(resolved.settings.thinking_level, model.default_level);
    }
    let mute = report(&world, agent("no-steering"))
        .await
        .expect("a report");
    assert_eq!(mute.commands, [CommandKind::Abort]);
    assert_eq!(mute.capabilities.interactions, BTreeSet::new());
    let hostile = report(&world, agent("hostile-1")).await.expect("a report");
    assert_eq!(hostile.capabilities.steering, None);
    let unknown = |target| report(&world, target);
    let error = unknown(agent("nobody")).await.expect_err("no such agent");
    assert_eq!(error.reason, Reason::NoSuchAgent);
    let error = unknown(CapabilityTarget::Session(named("nobody"))).await;
    assert_eq!(error, Err(CallError::no_such_session()));
}

/// C26: a kind of question that was not claimed is never asked, and the engine does not wait.
pub(crate) async fn c26_c25_a_kind_that_is_not_claimed_is_never_asked(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "kinds");
    let prompt = "ask c confirm \"C?\"\nask i input \"I?\"\nwait-answers\n\
                  ask a approval \"A?\" within 50ms default allow\nwait-answers";
    let events = desk.run(Ask::new(prompt).agent("approvals-only")).await;
    let heard = said(&events, OutputChannel::Text);
    assert_eq!(heard, "c: nobodyi: nobodya: allow");
    let view = desk.view().await;
    let asked: Vec<_> = view.interactions.values().collect();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].question.kind(), InteractionKind::Approval);
}

pub(crate) async fn c26_what_a_composer_may_offer_is_listed(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let scripted = offered(&world, agent("scripted")).await.expect("names");
    let names: Vec<_> = scripted.iter().map(|offer| &*offer.name).collect();
    let verbs = CommandKind::ALL.map(CommandKind::as_str);
    assert_eq!(names[..8], verbs);
    let prompts: Vec<_> = scripted
        .iter()
        .filter(|offer| offer.target == CommandTarget::Prompt)
        .collect();
    let [recall] = &prompts[..] else {
        panic!("{prompts:?}");
    };
    // What is offered as text works as text.
    let desk = Desk::new(&world, "offered");
    let events = desk.run(&*format!("/{}", recall.name)).await;
    let told = said(&events, OutputChannel::Text);
    assert!(told.starts_with("opened at"), "{told}");
    let error = offered(&world, agent("nobody")).await.expect_err("unknown");
    assert_eq!(error.reason, Reason::NoSuchAgent);
    let hidden = offered(&world, CapabilityTarget::Session(named("nobody"))).await;
    assert_eq!(hidden, Err(CallError::no_such_session()));
    let stranger = world.stranger().expect("another tenant");
    let target = CapabilityTarget::Session(desk.session.clone());
    let hidden = stranger.list_commands(target, CallOptions::default()).await;
    assert_eq!(hidden, Err(CallError::no_such_session()));
}
