//! Changes between runs: settings that follow the path, and a leaf that moves.

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::command::{Command, CommandKind, RejectionCode};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{ActiveRun, Answer};

use super::story::Story;
use super::words::entry;
use crate::driver::facts;

fn model(story: &Story) -> Option<String> {
    story.shell.view().resolved.settings.model.clone()
}

fn level(story: &Story) -> Option<String> {
    story.shell.view().resolved.settings.thinking_level.clone()
}

#[test]
fn c23_state_check_and_run_use_one_resolution() {
    let mut story = Story::rested();
    assert_eq!(model(&story).as_deref(), Some("swift"));
    let early = story.sets_thinking(Some("high"));
    assert_eq!(story.rejection(early), Some(RejectionCode::InvalidCommand));
    let chosen = story.sets_model(Some("deep"));
    story.land();
    assert!(story.is_accepted(chosen));
    let levels = &story.shell.view().resolved.available_levels;
    assert_eq!(levels, &["low", "high"]);
    let thinking = story.sets_thinking(Some("high"));
    story.land();
    assert!(story.is_accepted(thinking));
    story.invoke(false, OnDisconnect::Detach);
    story.land();
    let used = &story.stored_run().settings;
    assert_eq!(
        (used.model.clone(), used.thinking_level.clone()),
        (model(&story), level(&story))
    );
    assert_eq!(used.thinking_level.as_deref(), Some("high"));
    story.open();
    story.stops();
    story.ends();
}

#[test]
fn c23_a_model_outside_of_the_agents_list_is_refused_and_null_goes_back_to_the_default() {
    let mut story = Story::rested();
    let before = story.shell.store.clone();
    let wrong = story.sets_model(Some("https://provider/gpt"));
    assert_eq!(story.rejection(wrong), Some(RejectionCode::InvalidCommand));
    assert_eq!(story.shell.store, before);
    story.sets_model(Some("deep"));
    story.land();
    assert_eq!(model(&story).as_deref(), Some("deep"));
    story.sets_model(None);
    story.land();
    assert_eq!(model(&story).as_deref(), Some("swift"));
    assert_eq!(story.shell.view().chosen.model, None);
    story.ends();
}

#[test]
fn c23_an_override_survives_a_restart() {
    let mut story = Story::rested();
    story.sets_model(Some("deep"));
    story.land();
    story.shell.crash(false);
    assert_eq!(model(&story).as_deref(), Some("deep"));
    story.ends();
}

#[test]
fn c24_settings_follow_the_active_path() {
    let mut story = Story::rested();
    let before = story.shell.session().head().entries;
    story.sets_model(Some("deep"));
    story.land();
    let chosen = story.shell.session().head().entries;
    let back = story.navigates(before);
    story.land();
    assert!(story.is_accepted(back));
    assert_eq!(
        model(&story).as_deref(),
        Some("swift"),
        "the choice is on the other branch"
    );
    story.navigates(chosen);
    story.land();
    assert_eq!(model(&story).as_deref(), Some("deep"));
    story.ends();
}

#[test]
fn c24_a_run_after_a_navigation_goes_on_from_there() {
    let mut story = Story::rested();
    story.navigates(1);
    story.land();
    assert_eq!(story.shell.view().leaf, Some(entry(1)));
    story.invoke(false, OnDisconnect::Detach);
    story.land();
    let prompt = story.stored_run().first_entry;
    let stored = story
        .shell
        .store
        .entries
        .iter()
        .find(|entry| entry.id == prompt);
    assert_eq!(stored.and_then(|entry| entry.parent), Some(entry(1)));
    assert_eq!(
        story.shell.session().run().and_then(ActiveRun::base),
        Some(entry(1))
    );
    story.open();
    story.stops();
    story.ends();
}

#[test]
fn c24_to_where_it_is_a_navigation_writes_nothing() {
    let mut story = Story::rested();
    let (entries, head) = (
        story.shell.store.entries.clone(),
        story.shell.session().head().clone(),
    );
    story.news();
    let reply = story.navigates(head.entries);
    story.shell.settle_disk();
    assert!(story.is_accepted(reply));
    assert_eq!(story.shell.store.entries, entries);
    assert_eq!(story.shell.session().head().leaf, head.leaf);
    assert!(story.news().events().is_empty());
    story.ends();
}

#[test]
fn c24_without_a_request_id_what_changes_nothing_leaves_nothing_at_all() {
    let mut story = Story::rested();
    let before = story.shell.store.clone();
    let here = before.session.as_ref().and_then(|it| it.head.leaf);
    let here = here.expect("the session has a leaf");
    for command in [
        Command::Navigate { entry: here },
        Command::SetModel { model: None },
        Command::SetThinking { level: None },
    ] {
        let reply = story.changes_unkeyed(command);
        assert!(story.is_accepted(reply), "{:?}", story.answer(reply));
        assert!(!story.shell.in_flight());
        assert_eq!(story.shell.store, before);
    }
    story.ends();
}

#[test]
fn c24_an_entry_that_was_never_published_is_no_place_to_go() {
    let mut story = Story::rested();
    let reply = story.navigates(99);
    assert_eq!(story.rejection(reply), Some(RejectionCode::InvalidCommand));
    let token = Some(LeaseToken(story.shell.mint()));
    let (entry, other) = (entry(1), story.shell.store.target(entry(2)));
    let crossed = story.dispatch_with(CommandKind::Navigate, |facts| {
        facts.command = Command::Navigate { entry };
        facts.token = token;
        facts.target = other;
    });
    assert_eq!(
        story.rejection(crossed),
        Some(RejectionCode::InvalidCommand),
        "what is known is of another entry"
    );
    story.ends();
}

#[test]
fn c22_a_change_meets_an_active_run_as_busy_and_may_come_again() {
    let mut story = Story::working();
    let reply = story.sets_model(Some("deep"));
    let Some(Answer::Dispatched(answer)) = story.answer(reply) else {
        panic!("not judged: {:?}", story.answer(reply));
    };
    let text = format!("{answer:?}");
    assert_eq!(story.rejection(reply), Some(RejectionCode::SessionBusy));
    assert!(text.contains("retryable: true"), "{text}");
    story.stops();
    story.shell.settle_disk();
    let again = story.sets_model(Some("deep"));
    story.land();
    assert!(story.is_accepted(again));
    story.ends();
}

#[test]
fn c19_a_change_that_is_meant_for_one_run_is_for_none_whether_that_runs_or_not() {
    let mut story = Story::rested();
    let rested = story.shell.store.clone();
    let meant_for = [story.run(), facts::run_id(99)];
    let commands = || {
        [
            Command::Compact { instructions: None },
            Command::SetModel {
                model: Some("deep".to_owned()),
            },
            Command::SetThinking { level: None },
            Command::Navigate { entry: entry(1) },
        ]
    };
    for run in meant_for {
        for command in commands() {
            let reply = story.changes_for(command, run);
            assert_eq!(story.rejection(reply), Some(RejectionCode::NoActiveRun));
        }
    }
    assert!(!story.shell.in_flight());
    assert_eq!(story.shell.store, rested);
    story.invoke(false, OnDisconnect::Detach);
    story.land();
    story.open();
    for run in meant_for.into_iter().chain([story.run()]) {
        for command in commands() {
            let reply = story.changes_for(command, run);
            assert_eq!(story.rejection(reply), Some(RejectionCode::NoActiveRun));
        }
    }
    let wrong = Command::Navigate { entry: entry(99) };
    let reply = story.changes_for(wrong, story.run());
    assert_eq!(
        story.rejection(reply),
        Some(RejectionCode::InvalidCommand),
        "a payload that is wrong is told first"
    );
    story.stops();
    story.ends();
}

#[test]
fn c22_changes_that_wait_for_one_commit_are_written_in_their_order() {
    let mut story = Story::rested();
    let first = story.sets_model(Some("deep"));
    let second = story.sets_thinking(Some("low"));
    let third = story.navigates(1);
    let run = story.invoke(false, OnDisconnect::Detach);
    story.shell.settle_disk();
    for reply in [first, second, third] {
        assert!(story.is_accepted(reply), "{:?}", story.answer(reply));
    }
    assert!(matches!(story.answer(run), Some(Answer::Admitted { .. })));
    assert_eq!(story.stored_run().settings.model.as_deref(), Some("swift"));
    story.open();
    story.stops();
    story.ends();
}

#[test]
fn c26_a_command_the_agent_lacks_is_unsupported_before_anything_else() {
    let mut story = Story::working();
    story.stops();
    story.shell.settle_disk();
    let entry = entry(99);
    let commands = [
        Command::Compact { instructions: None },
        Command::SetModel {
            model: Some("nonsense".to_owned()),
        },
        Command::SetThinking {
            level: Some("nonsense".to_owned()),
        },
        Command::Navigate { entry },
    ];
    for command in commands {
        let kind = command.kind();
        let reply = story.dispatch_with(kind, |facts| {
            facts.command = command;
            facts.agent = std::sync::Arc::default();
        });
        assert_eq!(
            story.rejection(reply),
            Some(RejectionCode::UnsupportedCapability),
            "{kind:?}"
        );
    }
    story.ends();
}

#[test]
fn c22_a_change_never_creates_a_session() {
    let mut story = Story::new();
    for reply in [
        story.sets_model(Some("deep")),
        story.sets_thinking(None),
        story.compacts(),
    ] {
        let Some(Answer::Refused(error)) = story.answer(reply) else {
            panic!("{:?}", story.answer(reply));
        };
        assert_eq!(error.reason, Reason::NoSuchSession);
    }
    assert!(!story.shell.in_flight());
    assert_eq!(story.shell.store.session, None);
    story.ends();
}
