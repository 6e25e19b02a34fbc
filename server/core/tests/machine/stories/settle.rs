//! The end of a run: decided once, written once, told once, and only then true.

use std::time::Duration;

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::input::InputFate;
use sessionplane_core::domain::lifecycle::{Answer, Effect};
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::session::LastRun;
use sessionplane_core::domain::view::Status;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::story::Story;

#[test]
fn c10_state_stays_running_until_the_settlement_is_durable_and_flips_with_run_settled() {
    let mut story = Story::working();
    story.stops();
    assert!(story.news().events().is_empty(), "decided, not durable");
    assert_eq!(story.shell.view().status(), Status::Running);
    story.land();
    assert_eq!(story.news().event_types(), ["run_settled"]);
    assert_eq!(story.shell.view().status(), Status::Idle);
    story.ends();
}

#[test]
fn c10_the_window_spans_everything_that_joined() {
    let mut story = Story::working();
    story.follow_up();
    story.land();
    story.stops();
    story.shows(1);
    story.land();
    assert_eq!(story.outcome(), None, "the follow-up is at work");
    story.stops();
    story.land();
    assert_eq!(story.outcome(), Some(&RunOutcome::Completed));
    let settled = |body: &&EventBody| matches!(body, EventBody::RunSettled { .. });
    assert_eq!(
        story
            .news()
            .events()
            .iter()
            .filter(|body| settled(body))
            .count(),
        1
    );
    story.ends();
}

#[test]
fn c10_one_commit_holds_the_settlement_the_fates_the_release_and_the_audit() {
    let mut story = Story::working();
    story.follow_up();
    story.land();
    let audits = story.shell.store.audits.len();
    story.gone();
    story.land();
    let rows = &story.shell.store;
    assert_eq!(rows.holder, None, "the lease is free");
    assert!(matches!(story.fate(1), InputFate::Discarded(_)));
    assert_eq!(rows.audits.len(), audits + 1);
    let head = &rows.session.as_ref().expect("it exists").head;
    assert_eq!(head.last_run, LastRun::of(story.stored_run()));
    story.ends();
}

#[test]
fn c10_no_later_run_starts_before_the_settlement_is_told() {
    let mut story = Story::working();
    story.stops();
    let next = story.invoke(true, OnDisconnect::Detach);
    story.shell.settle_disk();
    assert_eq!(
        story.news().event_types(),
        ["run_settled", "run_started", "entry_appended"]
    );
    assert!(matches!(story.answer(next), Some(Answer::Admitted { .. })));
}

#[test]
fn c05_nothing_of_a_run_follows_its_settlement() {
    let mut story = Story::working();
    story.starts_message("m", "one");
    // All of this waits behind one commit, and is judged in one round.
    story.follow_up();
    story.gone();
    // It goes on talking: to nobody.
    story.starts_message("n", "two");
    story.gone();
    story.stops();
    story.shell.settle_disk();
    story.starts_message("o", "three");
    let news = story.news();
    assert_eq!(news.event_types().last(), Some(&"run_settled"));
    assert_eq!(
        news.event_types()
            .iter()
            .filter(|it| **it == "run_settled")
            .count(),
        1
    );
    story.ends();
}

#[test]
fn c36_exactly_one_run_settled_for_a_run_started_however_it_ends() {
    let end: [fn(&mut Story); 4] = [
        Story::stops,
        Story::gone,
        |story| {
            story.stops_with(StopReason::Aborted);
        },
        |story| {
            story.abort();
            story.passes(Duration::from_secs(5));
        },
    ];
    for end in end {
        let mut story = Story::new();
        story.invoke(false, OnDisconnect::Detach);
        story.land();
        story.open();
        // Both ends are judged in one round, behind this commit.
        story.follow_up();
        end(&mut story);
        story.gone();
        end(&mut story);
        story.shell.settle_disk();
        let news = story.news();
        let types = news.event_types();
        let count = |name| types.iter().filter(|it| **it == name).count();
        assert_eq!((count("run_started"), count("run_settled")), (1, 1));
        story.ends();
    }
}

#[test]
fn c10_a_stop_that_nobody_asked_for_is_a_failure_not_an_abort() {
    let mut story = Story::working();
    story.stops_with(StopReason::Aborted);
    story.land();
    assert_eq!(
        story.outcome().and_then(|outcome| outcome.code()),
        Some("engine_failed")
    );
    story.ends();
}

#[test]
fn c39_what_tells_of_a_durable_fact_is_published_only_after_its_sync() {
    let mut story = Story::working();
    story.starts_message("m", "hello");
    story.finishes_message("m", Some(3));
    let types = story.news().event_types();
    assert!(!types.contains(&"entry_appended"), "{types:?}");
    assert!(
        types.contains(&"message_finished"),
        "ephemeral progress does not wait"
    );
    story.land();
    assert_eq!(story.news().event_types(), ["entry_appended"]);
    story.starts_tool("c");
    story.news();
    story.finishes_tool("c");
    assert_eq!(story.news().event_types(), ["tool_finished"]);
    story.land();
    assert_eq!(story.news().event_types(), ["entry_appended"]);
}

#[test]
fn c39_live_progress_goes_on_while_a_commit_is_in_flight_but_keeps_its_order() {
    let mut story = Story::working();
    story.steer();
    assert!(story.shell.in_flight());
    story.starts_message("m", "one");
    assert_eq!(
        story.news().event_types(),
        ["message_started", "message_delta"]
    );
    story.finishes_message("m", None);
    story.starts_message("n", "two");
    assert!(
        story.news().0.is_empty(),
        "what follows a report that waits, waits too"
    );
    story.land();
    let news = story.news();
    let types = news.event_types();
    let place = |name| types.iter().position(|it| *it == name).expect("it is told");
    assert!(
        place("message_finished") < place("message_started"),
        "{types:?}"
    );
}

#[test]
fn c08_thinking_is_never_folded_into_text() {
    use sessionplane_core::domain::event::OutputChannel;
    let mut story = Story::working();
    story.starts_message("m", "answer");
    story.says(EngineEvent::MessageDelta {
        message: "m".to_owned(),
        channel: OutputChannel::Thinking,
        text: "hmm".to_owned(),
    });
    story.finishes_message("m", None);
    story.land();
    let last = story.shell.store.entries.last().expect("there are entries");
    let EntryBody::Assistant { text, thinking, .. } = &last.body else {
        panic!("{last:?}");
    };
    assert_eq!(
        (text.text.as_str(), thinking.text.as_str()),
        ("answer", "hmm")
    );
}

#[test]
fn c30_a_long_delta_is_cut_into_events_that_fit() {
    use sessionplane_core::domain::limits::MAX_EVENT_TEXT_BYTES;
    let mut story = Story::working();
    let long = "é".repeat(MAX_EVENT_TEXT_BYTES);
    story.starts_message("m", &long);
    let news = story.news();
    let mut joined = String::new();
    for body in news.events() {
        if let EventBody::MessageDelta { text, .. } = body {
            assert!(text.len() <= MAX_EVENT_TEXT_BYTES);
            joined.push_str(text);
        }
    }
    assert_eq!(joined, long, "nothing is lost on the way");
}

#[test]
fn c05_the_engine_is_given_up_only_after_the_settlement_is_durable() {
    let mut story = Story::working();
    story.stops();
    assert!(
        !story
            .news()
            .has(|effect| matches!(effect, Effect::DropEngine(_)))
    );
    story.land();
    assert!(
        story
            .news()
            .has(|effect| matches!(effect, Effect::DropEngine(_)))
    );
    story.ends();
}
