//! C22, C23: model and level: one resolution, overrides that last, mutations between runs.

use futures_util::future::join_all;
use sessionplane_core::domain::command::{Command, DispatchAnswer, RejectionCode};
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::event::{EventBody, OutputChannel};
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::domain::settings::{Resolved, SettingsOverride};
use sessionplane_core::domain::view::Status;

use super::desk::Desk;
use super::hands::{compact, fold, navigate, set_model, set_thinking};
use super::run::{record, said};
use super::watch::types;
use super::world::{Worlds, quick};

const THINKING: &str = "scripted-thinking";
const LEVELS: [&str; 3] = ["low", "medium", "high"];

fn settings(model: &str, level: Option<&str>) -> RunSettings {
    RunSettings {
        model: Some(model.to_owned()),
        thinking_level: level.map(str::to_owned),
    }
}

/// What state, check and run say: they must say the same.
async fn uses(desk: &Desk, model: &str, level: Option<&str>) {
    let Resolved {
        settings: shown,
        available_levels,
    } = desk.view().await.resolved;
    assert_eq!(shown, settings(model, level), "the state");
    let levels: &[&str] = if model == THINKING { &LEVELS } else { &[] };
    assert_eq!(available_levels, levels);
    let chosen = desk.view().await.chosen;
    for wrong in ["highest", "Low", " low"] {
        let code = desk.rejected(set_thinking(Some(wrong))).await;
        assert_eq!(code, RejectionCode::InvalidCommand, "{wrong:?}");
    }
    if levels.is_empty() {
        let code = desk.rejected(set_thinking(Some("low"))).await;
        assert_eq!(code, RejectionCode::InvalidCommand);
    }
    let events = desk.run("settings").await;
    let text = format!("model={model} level={}", level.unwrap_or("none"));
    assert_eq!(said(&events, OutputChannel::Text), text, "the engine");
    let run = record(&events);
    assert_eq!(run.settings, settings(model, level), "the record");
    assert_eq!(desk.record(run.id).await.settings, run.settings);
    let view = desk.view().await;
    assert_eq!(view.chosen, chosen, "a run writes no override");
    assert_eq!(view.resolved.settings, run.settings);
}

pub(crate) async fn c23_one_resolution_feeds_state_check_and_run(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "resolved");
    desk.run("say \"x\"").await;
    assert_eq!(desk.view().await.chosen, SettingsOverride::default());
    uses(&desk, "scripted", None).await;
    desk.dispatch(set_model(Some(THINKING)), None).await;
    uses(&desk, THINKING, Some("medium")).await;
    for level in LEVELS {
        desk.dispatch(set_thinking(Some(level)), None).await;
        uses(&desk, THINKING, Some(level)).await;
    }
    // The level stays chosen under a model that has none, and counts again under one that has it.
    desk.dispatch(set_model(Some("scripted")), None).await;
    uses(&desk, "scripted", None).await;
    desk.dispatch(set_model(Some(THINKING)), None).await;
    uses(&desk, THINKING, Some("high")).await;
    // Both can be given up, each alone.
    desk.dispatch(set_thinking(None), None).await;
    uses(&desk, THINKING, Some("medium")).await;
    desk.dispatch(set_model(None), None).await;
    uses(&desk, "scripted", None).await;
    assert_eq!(desk.view().await.chosen, SettingsOverride::default());
}

pub(crate) async fn c23_what_is_not_allowed_changes_nothing(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "allowed");
    desk.run("say \"x\"").await;
    desk.dispatch(set_model(Some(THINKING)), None).await;
    let (before, position) = (desk.all().await, desk.state().await.position);
    for (command, way_out) in [
        (set_model(Some("gpt-17")), THINKING),
        (set_model(Some("https://provider/key=secret")), THINKING),
        (set_thinking(Some("gpt-17")), "high"),
    ] {
        let rejection = desk.rejection(command).await;
        assert_eq!(rejection.code, RejectionCode::InvalidCommand);
        assert!(!rejection.retryable, "the same will never succeed");
        assert!(rejection.message.contains(way_out), "{}", rejection.message);
    }
    let long = "x".repeat(257);
    for (name, reason) in [("", Reason::InvalidArgument), (&*long, Reason::TooLarge)] {
        for (command, field) in [
            (set_model(Some(name)), "set_model.model"),
            (set_thinking(Some(name)), "set_thinking.level"),
        ] {
            let refused = desk.try_dispatch(command, None, None).await;
            let error = refused.expect_err("a refusal");
            assert_eq!((error.reason, &*error.violations[0].field), (reason, field));
        }
    }
    assert_eq!(desk.all().await, before);
    assert_eq!(desk.state().await.position, position, "nobody is told");
}

pub(crate) async fn c23_overrides_survive_a_restart(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "lasting");
    desk.run("say \"x\"").await;
    desk.dispatch(set_model(Some(THINKING)), None).await;
    desk.dispatch(set_thinking(Some("low")), None).await;
    let before = desk.all().await;
    world.restart().await;
    assert_eq!(desk.all().await, before);
    uses(&desk, THINKING, Some("low")).await;
    desk.dispatch(set_model(None), None).await;
    world.restart().await;
    let chosen = desk.view().await.chosen;
    assert_eq!(chosen.model, None, "null again");
    assert_eq!(chosen.thinking_level.as_deref(), Some("low"));
    uses(&desk, "scripted", None).await;
}

/// C22: what a run or a compaction is in the way of may be tried again as it is; what is wrong by
/// itself is told as wrong.
pub(crate) async fn c22_boundary_verbs_are_busy_while_something_holds_the_session(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "held");
    desk.run("say \"x\"").await;
    let first = desk.entries().await[0].id;
    let all = || {
        [
            set_model(Some(THINKING)),
            set_model(None),
            set_thinking(None),
            navigate(first),
            compact(""),
        ]
    };
    let run = desk.invoke("hang").await;
    let before = desk.all().await;
    for command in all() {
        desk.in_the_way(command).await;
    }
    let wrong = desk.rejected(set_model(Some("gpt-17"))).await;
    assert_eq!(wrong, RejectionCode::InvalidCommand, "payload first");
    assert_eq!(desk.all().await, before);
    desk.abort().await;
    run.finish().await;

    desk.dispatch(compact("hang"), None).await;
    let before = desk.entries().await;
    for command in all() {
        desk.in_the_way(command).await;
    }
    assert_eq!(desk.entries().await, before);
    desk.abort().await;
    desk.watch_idle().await;
    for command in all() {
        desk.dispatch(command, None).await;
    }
}

pub(crate) async fn c22_boundary_verbs_create_no_session(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let other = Desk::new(&world, "other");
    other.run("say \"x\"").await;
    let entry = other.entries().await[0].id;
    let desk = Desk::new(&world, "nobody");
    for command in [
        set_model(Some(THINKING)),
        set_thinking(None),
        navigate(entry),
        compact(""),
    ] {
        let refused = desk.try_dispatch(command, None, None).await;
        assert_eq!(refused, Err(CallError::no_such_session()));
    }
    let state = desk.try_state(None).await;
    assert_eq!(state, Err(CallError::no_such_session()));
}

/// C3 C22: a repeat changes nothing back, and the same id with another payload is refused.
pub(crate) async fn c22_c03_b22_a_repeat_applies_once(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "once");
    desk.run("say \"x\"").await;
    let first = desk.entries().await[0].id;
    let commands = [
        (set_model(Some(THINKING)), set_model(None)),
        (set_thinking(Some("high")), set_thinking(Some("low"))),
        (navigate(first), set_model(None)),
    ];
    for (n, (command, _)) in commands.iter().enumerate() {
        desk.dispatch(command.clone(), Some(&format!("c{n}"))).await;
    }
    desk.dispatch(set_model(None), Some("back")).await;
    for _ in 0..2 {
        let before = desk.all().await;
        for (n, (command, other)) in commands.iter().enumerate() {
            let id = format!("c{n}");
            let again = desk.dispatch(command.clone(), Some(&id)).await;
            assert_eq!((again.run, again.input), (None, None));
            let reused = desk.try_dispatch(other.clone(), Some(&id), None).await;
            let reason = reused.expect_err("another payload").reason;
            assert_eq!(reason, Reason::RequestIdReused);
        }
        assert_eq!(desk.all().await, before);
        // Also while it would be busy: the answer is there already.
        let run = desk.invoke("hang").await;
        desk.dispatch(set_model(Some(THINKING)), Some("c0")).await;
        desk.abort().await;
        run.finish().await;
        desk.dispatch(navigate(first), None).await;
        world.restart().await;
    }
}

pub(crate) async fn c23_a_choice_is_told_and_kept_on_the_path(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "told");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    let leaf = desk.view().await.leaf;
    desk.dispatch(set_model(Some(THINKING)), None).await;
    let events = watch.until_type("state_changed").await;
    assert_eq!(types(&events), ["entry_appended", "state_changed"]);
    let chosen = SettingsOverride {
        model: Some(THINKING.to_owned()),
        thinking_level: None,
    };
    let entries = desk.entries().await;
    let last = entries.last().expect("entries");
    assert_eq!((last.parent, last.run), (leaf, None), "outside of a run");
    let kept = EntryBody::Settings {
        chosen: chosen.clone(),
    };
    assert_eq!(last.body, kept);
    let EventBody::StateChanged {
        leaf,
        chosen: told,
        resolved,
        renamed: None,
    } = &events[1].event.body
    else {
        panic!("{events:?}");
    };
    assert_eq!((*leaf, told), (Some(last.id), &chosen));
    let view = desk.view().await;
    assert_eq!((&view.resolved, &view.chosen), (resolved, &chosen));
    assert_eq!(fold(watch.snapshot.view.clone(), &events), view);
    // What is chosen already is accepted, and nothing happens.
    let position = desk.state().await.position;
    desk.dispatch(set_model(Some(THINKING)), None).await;
    desk.dispatch(set_thinking(None), None).await;
    assert_eq!(desk.state().await.position, position);
    assert_eq!(desk.entries().await, entries);
}

/// C22: a session that nothing serves is woken by a choice, and goes back to rest.
pub(crate) async fn c22_a_dormant_session_takes_a_choice(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "dormant");
    desk.run("say \"x\"").await;
    for (n, command) in [
        set_model(Some(THINKING)),
        set_thinking(Some("low")),
        navigate(desk.entries().await[0].id),
        compact(""),
    ]
    .into_iter()
    .enumerate()
    {
        world.restart().await;
        desk.dispatch(command, Some(&format!("c{n}"))).await;
        desk.watch_idle().await;
    }
    assert_eq!(desk.view().await.status(), Status::Idle);
    let kinds: Vec<_> = desk.entries().await;
    let kinds: Vec<_> = kinds.iter().map(|entry| entry.body.kind()).collect();
    assert_eq!(
        kinds,
        ["user", "assistant", "settings", "settings", "compaction"]
    );
}

/// C22: of mutations that race each is applied or busy, and what is told last is what holds.
pub(crate) async fn c22_racing_choices_are_applied_one_after_another(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "race");
    desk.run("say \"x\"").await;
    desk.dispatch(set_model(Some(THINKING)), None).await;
    let before = desk.entries().await.len();
    let mut watch = desk.watch().await;
    let racing = (0..48).map(|n| {
        let desk = desk.clone();
        tokio::spawn(async move {
            let command: Command = set_thinking(Some(LEVELS[n % 3]));
            desk.try_dispatch(command, Some(&format!("race-{n}")), None)
                .await
        })
    });
    for answer in join_all(racing).await {
        match answer.expect("no panic").expect("an answer") {
            DispatchAnswer::Accepted(_) => {}
            DispatchAnswer::Rejected(rejection) => {
                assert_eq!(rejection.code, RejectionCode::SessionBusy);
            }
        }
    }
    let state = desk.state().await;
    let mut events = Vec::new();
    while watch.position < state.position {
        events.push(watch.event().await);
    }
    assert_eq!(fold(watch.snapshot.view.clone(), &events), state.view);
    let changed = types(&events);
    let changed = changed.iter().filter(|it| **it == "state_changed").count();
    assert_eq!(
        desk.entries().await.len(),
        before + changed,
        "one entry each"
    );
    let level = state.view.chosen.thinking_level.expect("a level");
    uses(&desk, THINKING, Some(&level)).await;
}
