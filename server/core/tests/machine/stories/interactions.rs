//! A run asks: one answer, once, and nobody waits for nothing.

use std::time::Duration;

use sessionplane_core::domain::command::RejectionCode;
use sessionplane_core::domain::interaction::{
    Choice, InteractionAnswer, Question, ResolutionCause, Shape,
};
use sessionplane_core::domain::limits::{MAX_ASK_BYTES, MAX_LABEL_BYTES};
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::engine::{EngineCommand, EngineEvent, StopReason};

use super::story::Story;
use super::words::confirm;

const YES: InteractionAnswer = InteractionAnswer::Confirmed(true);
/// In milliseconds.
const HOUR: u64 = 60 * 60 * 1000;
const NO: InteractionAnswer = InteractionAnswer::Confirmed(false);

/// What the engine was told of its questions.
fn told(story: &mut Story) -> Vec<(String, Option<InteractionAnswer>)> {
    let news = story.news();
    let answer = |command: &&EngineCommand| match command {
        EngineCommand::Answer { ask, answer } => Some((ask.clone(), answer.clone())),
        _ => None,
    };
    news.told().iter().filter_map(answer).collect()
}

fn cause(story: &Story, ordinal: u32) -> Option<ResolutionCause> {
    let resolution = story.stored_question(ordinal).resolution.as_ref();
    resolution.map(|resolution| resolution.cause)
}

#[test]
fn c25_a_question_is_shown_once_it_is_durable_and_answered_once() {
    let mut story = Story::working();
    story.asks("q", confirm(None), None);
    assert!(
        !story
            .news()
            .event_types()
            .contains(&"interaction_requested")
    );
    story.land();
    assert_eq!(story.shell.view().open_interactions().count(), 1);
    let first = story.answers(1, YES);
    let second = story.answers(1, NO);
    assert_eq!(
        told(&mut story),
        [],
        "the engine hears nothing before it is durable"
    );
    story.shell.settle_disk();
    assert_eq!(told(&mut story), [("q".to_owned(), Some(YES))]);
    assert!(story.is_accepted(first));
    assert_eq!(
        story.rejection(second),
        Some(RejectionCode::NoSuchInteraction)
    );
    assert_eq!(cause(&story, 1), Some(ResolutionCause::Answered));
    assert_eq!(story.shell.view().open_interactions().count(), 0);
    story.stops();
    story.ends();
}

#[test]
fn c25_an_answer_of_the_wrong_shape_leaves_the_question_open() {
    let choice = |id: &str| Choice {
        id: id.to_owned(),
        label: id.to_owned(),
    };
    let question = Question {
        shape: Shape::Approval(vec![choice("allow"), choice("deny")]),
        ..confirm(None)
    };
    let mut story = Story::working();
    story.asks("q", question, None);
    story.land();
    let yes = story.answers(1, YES);
    let unknown = story.answers(1, InteractionAnswer::Choice("maybe".to_owned()));
    assert_eq!(story.rejection(yes), Some(RejectionCode::InvalidCommand));
    assert_eq!(
        story.rejection(unknown),
        Some(RejectionCode::InvalidCommand)
    );
    let right = story.answers(1, InteractionAnswer::Choice("deny".to_owned()));
    story.land();
    assert!(story.is_accepted(right));
    story.stops();
    story.ends();
}

#[test]
fn c25_several_questions_wait_and_each_gets_its_own_answer() {
    let mut story = Story::working();
    story.asks("a", confirm(None), None);
    story.asks("b", confirm(None), None);
    story.shell.settle_disk();
    story.answers(2, NO);
    story.answers(1, YES);
    story.shell.settle_disk();
    assert_eq!(
        told(&mut story),
        [("b".to_owned(), Some(NO)), ("a".to_owned(), Some(YES))]
    );
    story.stops();
    story.ends();
}

#[test]
fn c25_at_its_deadline_the_engine_is_told_the_default_or_that_nobody_answered() {
    for (default, heard) in [(Some(false), Some(NO)), (None, None)] {
        let mut story = Story::working();
        story.asks("q", confirm(default), Some(Duration::from_secs(60)));
        story.land();
        story.passes(Duration::from_secs(59));
        assert_eq!(told(&mut story), []);
        story.passes(Duration::from_secs(2));
        story.shell.settle_disk();
        assert_eq!(told(&mut story), [("q".to_owned(), heard)]);
        assert_eq!(cause(&story, 1), Some(ResolutionCause::Expired));
        let late = story.answers(1, YES);
        assert_eq!(
            story.rejection(late),
            Some(RejectionCode::NoSuchInteraction)
        );
        story.stops();
        story.ends();
    }
}

#[test]
fn c21_an_abort_closes_what_is_open_before_the_engine_is_told_to_stop() {
    let mut story = Story::working();
    story.asks("q", confirm(None), None);
    story.land();
    story.news();
    story.abort();
    let late = story.answers(1, YES);
    assert_eq!(story.news().aborts(), 1);
    story.shell.settle_disk();
    assert_eq!(cause(&story, 1), Some(ResolutionCause::Aborted));
    assert_eq!(
        story.rejection(late),
        Some(RejectionCode::NoSuchInteraction)
    );
    story.says(EngineEvent::Stopped {
        prompt: 1,
        reason: StopReason::Aborted,
    });
    story.shell.settle_disk();
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    story.ends();
}

#[test]
fn c25_a_question_ends_with_its_run_and_with_its_withdrawal() {
    let mut story = Story::working();
    story.asks("a", confirm(None), None);
    story.asks("b", confirm(None), None);
    story.shell.settle_disk();
    story.says(EngineEvent::AskWithdrawn {
        ask: "a".to_owned(),
    });
    story.land();
    assert_eq!(cause(&story, 1), Some(ResolutionCause::EngineGone));
    assert_eq!(cause(&story, 2), None);
    story.gone();
    story.shell.settle_disk();
    assert_eq!(cause(&story, 2), Some(ResolutionCause::EngineGone));
    assert_eq!(
        told(&mut story),
        [],
        "an engine that is gone is told nothing"
    );
    story.ends();
}

#[test]
fn c25_b31_a_crash_resolves_an_open_question_and_it_stays_listed() {
    let mut story = Story::working();
    story.asks("q", confirm(None), None);
    story.land();
    story.shell.crash(false);
    assert_eq!(cause(&story, 1), Some(ResolutionCause::EngineGone));
    let view = story.shell.view();
    assert_eq!(view.interactions.len(), 1, "a later reader still finds it");
    assert_eq!(view.open_interactions().count(), 0);
    story.ends();
}

#[test]
fn c25_b33_who_folds_the_stream_ends_with_nothing_open() {
    let mut story = Story::working();
    for number in 1..=50 {
        story.asks(&format!("q{number}"), confirm(None), None);
        story.land();
        story.answers(number, YES);
        story.land();
    }
    let view = story.shell.view();
    assert_eq!(view.open_interactions().count(), 0);
    assert!(view.interactions.len() <= 32, "the newest are listed");
    story.stops();
    story.ends();
}

#[test]
fn c25_a_queued_text_never_answers_a_question() {
    let mut story = Story::working();
    story.asks("q", confirm(None), None);
    story.land();
    story.steer();
    story.follow_up();
    story.shell.settle_disk();
    assert_eq!(told(&mut story), []);
    assert_eq!(cause(&story, 1), None);
    story.abort();
    story.passes(Duration::from_secs(10));
    story.ends();
}

#[test]
fn c26_an_engine_that_asks_what_it_did_not_claim_is_told_that_nobody_answers() {
    let mut story = Story::new();
    story.invoke_with(
        false,
        sessionplane_core::contract::OnDisconnect::Detach,
        |facts| {
            let mut agent = (*facts.agent).clone();
            agent.capabilities.interactions.clear();
            facts.agent = agent.into();
        },
    );
    story.land();
    story.open();
    story.asks("q", confirm(Some(true)), None);
    assert_eq!(told(&mut story), [("q".to_owned(), None)]);
    let answer = story.answers(1, YES);
    assert_eq!(
        story.rejection(answer),
        Some(RejectionCode::UnsupportedCapability)
    );
    story.stops();
    story.ends();
}

#[test]
fn c61_a_secret_answer_reaches_the_engine_and_no_record() {
    let mut story = Story::working();
    let secret = Question {
        shape: Shape::Input { secret: true },
        ..confirm(None)
    };
    story.asks("q", secret, None);
    story.land();
    let answer = InteractionAnswer::Text("hunter2".to_owned());
    story.answers(1, answer.clone());
    story.land();
    let news = story.news();
    assert!(!format!("{:?}", news.events()).contains("hunter2"));
    let resolution = story
        .stored_question(1)
        .resolution
        .clone()
        .expect("answered");
    assert_eq!(resolution.answer, None);
    assert!(news.told().contains(&&EngineCommand::Answer {
        ask: "q".to_owned(),
        answer: Some(answer),
    }));
    story.stops();
    story.ends();
}

#[test]
fn c25_c21_an_answer_whose_run_was_aborted_before_it_was_durable_is_not_told() {
    let mut story = Story::working();
    story.asks("q", confirm(None), None);
    story.land();
    let answer = story.answers(1, YES);
    story.abort();
    let news = story.news();
    assert_eq!(news.aborts(), 1);
    story.shell.settle_disk();
    assert!(story.is_accepted(answer));
    assert_eq!(told(&mut story), [], "it might do what was allowed");
    assert_eq!(cause(&story, 1), Some(ResolutionCause::Answered));
    story.stops_with(StopReason::Aborted);
    story.ends();
}

#[test]
fn c21_an_engine_that_asks_after_an_abort_is_told_nothing_more() {
    let mut story = Story::working();
    story.abort();
    story.land();
    story.asks("q", confirm(None), None);
    story.shell.settle_disk();
    assert_eq!(told(&mut story), []);
    assert!(story.shell.store.interactions.is_empty());
    story.stops_with(StopReason::Aborted);
    story.ends();
}

#[test]
fn c25_a_question_repeated_before_its_answer_was_told_is_not_another() {
    let mut story = Story::working();
    story.asks("q", confirm(None), None);
    story.land();
    story.steer();
    story.answers(1, YES);
    story.asks("q", confirm(None), None);
    story.shell.settle_disk();
    assert_eq!(story.shell.store.interactions.len(), 1);
    assert_eq!(told(&mut story), [("q".to_owned(), Some(YES))]);
    story.asks("q", confirm(None), None);
    story.shell.settle_disk();
    assert_eq!(cause(&story, 2), None, "now it may ask again");
    story.stops();
    story.ends();
}

#[test]
fn c25_a_question_ends_when_its_engine_comes_to_rest() {
    let mut story = Story::working();
    story.follow_up();
    story.land();
    story.asks("q", confirm(None), None);
    story.asks("r", confirm(None), None);
    story.shell.settle_disk();
    story.steer();
    let answer = story.answers(2, YES);
    story.stops();
    story.shell.settle_disk();
    assert_eq!(cause(&story, 1), Some(ResolutionCause::EngineGone));
    let late = story.answers(1, YES);
    assert_eq!(
        story.rejection(late),
        Some(RejectionCode::NoSuchInteraction)
    );
    assert!(story.is_accepted(answer));
    assert_eq!(told(&mut story), [], "at rest it waits for no answer");
    let run = story.shell.session().run();
    assert!(run.is_some(), "the run goes on with what waits");
    story.gone();
    story.ends();
}

#[test]
fn c25_an_answer_that_crosses_the_withdrawal_is_not_told() {
    let mut story = Story::working();
    story.asks("q", confirm(None), None);
    story.land();
    story.steer();
    let answer = story.answers(1, YES);
    story.says(EngineEvent::AskWithdrawn {
        ask: "q".to_owned(),
    });
    story.shell.settle_disk();
    assert!(story.is_accepted(answer));
    assert_eq!(told(&mut story), []);
    story.stops();
    story.ends();
}

#[test]
fn c25_who_folds_events_and_who_reads_the_rows_list_the_same_questions() {
    let mut story = Story::working();
    story.asks("old", confirm(None), None);
    story.land();
    for number in 2..=40 {
        story.passes(Duration::from_millis(1));
        story.asks(&format!("q{number}"), confirm(None), None);
        story.land();
        story.answers(number, YES);
        story.land();
    }
    story.passes(Duration::from_millis(1));
    story.stops();
    story.shell.settle_disk();
    let listed = &story.shell.view().interactions;
    assert!(listed.contains_key(&story.question(1)), "it ended last");
    assert_eq!(listed.len(), 32);
    // The invariants compare it with what a later reader gets.
    story.ends();
}

/// C25: an engine knows its question by the name that it gave it, and by no other.
#[test]
fn c25_a_question_whose_name_is_too_long_is_refused_under_that_name() {
    let mut story = Story::working();
    let longest = "q".repeat(MAX_LABEL_BYTES);
    let too_long = [format!("{longest}1"), format!("{longest}2")];
    for ask in &too_long {
        story.asks(ask, confirm(Some(true)), None);
    }
    let refused = too_long.map(|ask| (ask, None));
    assert_eq!(told(&mut story), refused);
    story.asks(&longest, confirm(None), None);
    story.land();
    story.answers(1, YES);
    story.shell.settle_disk();
    assert_eq!(told(&mut story), [(longest, Some(YES))]);
    story.stops();
    story.ends();
}

/// C25, C36: a name that is too long to be said back ends the run.
#[test]
fn c25_c36_an_engine_that_names_a_question_beyond_all_bounds_is_given_up() {
    let mut story = Story::working();
    story.asks(&"q".repeat(MAX_ASK_BYTES), confirm(None), None);
    assert_eq!(told(&mut story).len(), 1);
    story.asks(&"q".repeat(MAX_ASK_BYTES + 1), confirm(None), None);
    assert_eq!(told(&mut story), []);
    story.shell.settle_disk();
    let Some(RunOutcome::Failed(failure)) = story.outcome() else {
        panic!("{:?}", story.outcome());
    };
    assert_eq!(failure.code, "engine_gone");
    story.ends();
}

#[test]
fn c25_c27_the_newest_ends_are_listed_whatever_the_clock_does() {
    let mut story = Story::working();
    // Two wait at any time, and the one that was asked later is answered first.
    for number in (1..=40).step_by(2) {
        for ask in [number, number + 1] {
            story.asks(&format!("q{ask}"), confirm(None), None);
        }
        story.shell.settle_disk();
        if number == 21 {
            let back = story.shell.now.as_millis() - HOUR;
            story.shell.now = Timestamp::from_millis(back);
        }
        for ask in [number + 1, number] {
            story.answers(ask, YES);
            story.land();
        }
    }
    story.stops();
    story.shell.settle_disk();
    let listed = &story.shell.view().interactions;
    let newest = (9..=40).map(|number| story.question(number));
    assert!(listed.keys().copied().eq(newest));
    story.ends();
}

#[test]
fn c25_c27_ends_that_a_crash_writes_come_after_those_before_it() {
    let mut story = Story::working();
    for number in 1..=36 {
        story.asks(&format!("q{number}"), confirm(None), None);
        story.land();
        if number > 4 {
            story.answers(number, YES);
            story.land();
        }
    }
    let back = story.shell.now.as_millis() - 1_000;
    story.shell.now = Timestamp::from_millis(back);
    story.shell.crash(false);
    let listed = &story.shell.view().interactions;
    for number in 1..=4 {
        assert!(
            listed.contains_key(&story.question(number)),
            "{number} ended last"
        );
    }
    story.ends();
}

#[test]
fn c25_c60_of_more_questions_than_may_be_open_the_next_is_answered_by_nobody() {
    let mut story = Story::working();
    for number in 1..=16 {
        story.asks(&format!("q{number}"), confirm(None), None);
    }
    story.shell.settle_disk();
    assert_eq!(told(&mut story), []);
    story.asks("one too many", confirm(Some(true)), None);
    story.shell.settle_disk();
    assert_eq!(told(&mut story), [("one too many".to_owned(), None)]);
    assert_eq!(story.shell.store.interactions.len(), 16);
    assert_eq!(story.shell.view().open_interactions().count(), 16);
    story.answers(1, YES);
    story.shell.settle_disk();
    story.asks("again", confirm(None), None);
    story.shell.settle_disk();
    assert_eq!(cause(&story, 17), None, "there is room again");
    story.stops();
    story.ends();
}
