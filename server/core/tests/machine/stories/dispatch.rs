//! Dispatch: what is accepted, what is rejected, and by which code.

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::binding::BoundAnswer;
use sessionplane_core::domain::command::{
    Acceptance, AcceptedInput, CommandKind, DispatchAnswer, RejectionCode,
};
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::input::InputFate;
use sessionplane_core::domain::lifecycle::Answer;

use super::story::Story;
use crate::driver::facts;

/// The verbs that need a run and nothing else.
const OF_RUNS: [CommandKind; 3] = [
    CommandKind::Steer,
    CommandKind::FollowUp,
    CommandKind::Abort,
];

#[test]
fn c17_accepted_names_run_and_input_once_both_are_durable() {
    let mut story = Story::working();
    let reply = story.steer();
    assert_eq!(story.answer(reply), None, "the disk has not answered yet");
    assert!(
        story.news().events().is_empty(),
        "nor is the queue seen to change"
    );
    story.land();
    let input = Some(AcceptedInput {
        id: story.input(1),
        fate: InputFate::Pending,
    });
    let run = Some(story.run());
    let accepted = DispatchAnswer::Accepted(Acceptance { run, input });
    assert_eq!(story.answer(reply), Some(&Answer::Dispatched(accepted)));
    let bound = story
        .shell
        .store
        .bindings
        .last()
        .map(|binding| binding.answer.clone());
    let input = Some(story.input(1));
    assert_eq!(bound, Some(BoundAnswer::Dispatched { run, input }));
}

#[test]
fn c17_an_accepted_abort_names_its_run_and_no_input() {
    let mut story = Story::working();
    let reply = story.abort();
    story.land();
    let accepted = DispatchAnswer::Accepted(Acceptance {
        run: Some(story.run()),
        input: None,
    });
    assert_eq!(story.answer(reply), Some(&Answer::Dispatched(accepted)));
}

#[test]
fn c17_rejected_means_that_nothing_was_queued_or_written() {
    let mut story = Story::working();
    let before = story.shell.store.clone();
    let other = facts::run_id(99);
    let reply = story.dispatch_with(CommandKind::Steer, |facts| facts.expected_run = Some(other));
    assert!(story.rejection(reply).is_some());
    assert!(!story.shell.in_flight());
    assert!(story.news().events().is_empty());
    assert_eq!(story.shell.store, before);
    assert_eq!(
        story.shell.session().run().map(|run| run.queue().count()),
        Some(0)
    );
}

#[test]
fn c18_no_active_run_on_an_idle_session_for_every_verb() {
    for kind in OF_RUNS {
        let mut story = Story::working();
        story.stops();
        story.land();
        let reply = story.dispatch(kind);
        assert_eq!(
            story.rejection(reply),
            Some(RejectionCode::NoActiveRun),
            "{kind:?}"
        );
        story.ends();
    }
}

#[test]
fn c18_no_active_run_if_another_than_the_expected_one_runs() {
    for kind in OF_RUNS {
        let mut story = Story::working();
        let other = Some(facts::run_id(99));
        let wrong = story.dispatch_with(kind, |facts| facts.expected_run = other);
        assert_eq!(
            story.rejection(wrong),
            Some(RejectionCode::NoActiveRun),
            "{kind:?}"
        );
        let run = Some(story.run());
        let right = story.dispatch_with(kind, |facts| facts.expected_run = run);
        story.land();
        assert!(story.is_accepted(right), "{kind:?}");
    }
}

#[test]
fn c18_run_command_failed_once_the_end_is_decided_for_every_verb() {
    for kind in OF_RUNS {
        let mut story = Story::working();
        // A steer is in flight when the engine fails: end and command join one round.
        story.steer();
        story.gone();
        let reply = story.dispatch(kind);
        story.land();
        let expected = match kind {
            // Live: it came before the end was decided.
            CommandKind::Abort => None,
            _ => Some(RejectionCode::RunCommandFailed),
        };
        assert_eq!(story.rejection(reply), expected, "{kind:?}");
        let late = story.dispatch(CommandKind::Abort);
        assert_eq!(
            story.rejection(late),
            Some(RejectionCode::RunCommandFailed),
            "{kind:?}"
        );
        story.ends();
    }
}

#[test]
fn c18_run_command_failed_is_said_before_the_end_is_durable() {
    for kind in OF_RUNS {
        let mut story = Story::working();
        story.stops();
        assert!(story.shell.in_flight());
        let reply = story.dispatch(kind);
        assert_eq!(
            story.rejection(reply),
            Some(RejectionCode::RunCommandFailed),
            "{kind:?}"
        );
        story.land();
        story.ends();
    }
}

#[test]
fn c18_c26_unsupported_capability_comes_before_anything_else_about_the_command() {
    let mut story = Story::new();
    story.invoke_with(false, OnDisconnect::Detach, |facts| {
        let agent = std::sync::Arc::make_mut(&mut facts.agent);
        agent.capabilities.steering = None;
        agent.capabilities.follow_up = false;
    });
    story.land();
    let other = Some(facts::run_id(99));
    for kind in [CommandKind::Steer, CommandKind::FollowUp] {
        let reply = story.dispatch_with(kind, |facts| facts.expected_run = other);
        assert_eq!(
            story.rejection(reply),
            Some(RejectionCode::UnsupportedCapability),
            "{kind:?}"
        );
    }
    let abort = story.abort();
    story.shell.settle_disk();
    assert!(story.is_accepted(abort), "every engine can be aborted");
}

#[test]
fn c17_no_rejection_of_ours_invites_a_repeat_of_the_very_same_command() {
    let mut story = Story::working();
    story.stops();
    story.land();
    let reply = story.steer();
    let Some(Answer::Dispatched(DispatchAnswer::Rejected(no))) = story.answer(reply) else {
        panic!("it is rejected");
    };
    assert!(!no.retryable);
    assert!(
        no.message.contains("invoke"),
        "it names the way out: {}",
        no.message
    );
}

#[test]
fn c60_a_full_queue_is_a_refusal_that_names_the_limit_and_leaves_room_for_an_abort() {
    let mut story = Story::working();
    for _ in 0..facts::limits().max_pending_inputs {
        story.follow_up();
    }
    story.shell.settle_disk();
    let reply = story.follow_up();
    let Some(Answer::Refused(error)) = story.answer(reply) else {
        panic!("one too many was taken: {:?}", story.answer(reply));
    };
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::LimitReached, Outcome::Refused)
    );
    assert!(
        error.message.contains("max_pending_inputs"),
        "{}",
        error.message
    );
    let abort = story.abort();
    story.land();
    assert!(story.is_accepted(abort));
}

#[test]
fn c17_one_refused_command_does_not_undo_the_others_of_its_round() {
    let mut story = Story::working();
    story.steer();
    let other = Some(facts::run_id(99));
    let bad = story.dispatch_with(CommandKind::FollowUp, |facts| facts.expected_run = other);
    let good = story.follow_up();
    story.shell.settle_disk();
    assert_eq!(story.rejection(bad), Some(RejectionCode::NoActiveRun));
    assert!(story.is_accepted(good));
    assert_eq!(story.fate(2), InputFate::Pending);
}
