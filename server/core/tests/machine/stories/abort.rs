//! Abort: at every stage of a run it ends as aborted, once.

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::command::{CommandKind, RejectionCode};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::domain::lease::{LeaseClause, LeaseToken};
use sessionplane_core::domain::lifecycle::{
    ActiveRun, Answer, Effect, EngineStatus, Input, ReplyId, Round, Session, Unread, step,
};
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::story::Story;
use crate::driver::facts;
use crate::driver::store::Store;

fn says_stopped(story: &mut Story) {
    story.stops_with(StopReason::Aborted);
}

#[test]
fn c21_b12_an_abort_while_the_admission_is_in_flight_ends_the_run_without_an_engine() {
    let mut story = Story::new();
    let invoke = story.invoke(true, OnDisconnect::Detach);
    let abort = story.abort();
    assert_eq!(story.answer(abort), None, "not before it is durable");
    story.land();
    story.land();
    assert!(matches!(
        story.answer(invoke),
        Some(Answer::Admitted { .. })
    ));
    assert!(story.is_accepted(abort));
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    let news = story.news();
    assert!(
        !news.has(|effect| matches!(effect, Effect::OpenEngine(_))),
        "it was never needed"
    );
    assert_eq!(
        news.event_types(),
        ["run_started", "entry_appended", "run_settled"]
    );
    story.ends();
}

#[test]
fn c21_an_admission_and_its_abort_may_be_one_commit_that_leaves_the_lease_free() {
    let (record, limits, now) = (facts::record(), facts::limits(), facts::START);
    let mut session = Session::unborn(record, limits);
    let (mut round, mut store) = (Round::default(), Store::default());
    let invoke = Input::Invoke {
        reply: ReplyId(1),
        facts: Box::new(facts::invoke(1, 1, true, OnDisconnect::Detach)),
    };
    let abort = Input::Dispatch {
        reply: ReplyId(2),
        facts: Box::new(facts::dispatch(2, CommandKind::Abort, true, None)),
    };
    for input in [invoke, abort] {
        round.join(step(&mut session, input, Unread::default(), now));
    }
    let (commit, _) = round.take().expect("there is something to write");
    assert_eq!(
        commit.lease,
        LeaseClause::Recover(LeaseToken(1)),
        "taken and given up at once"
    );
    assert_eq!(
        commit.runs.len(),
        1,
        "the later form of the record is the one that is written"
    );
    store.apply(&commit).expect("the store takes it");
    assert_eq!(store.holder, None);
    let run = &store.runs[&facts::run_id(1)];
    let outcome = run.settled.as_ref().map(|settled| &settled.outcome);
    assert_eq!(outcome, Some(&RunOutcome::Aborted));
}

#[test]
fn c21_an_abort_while_the_engine_opens_drops_it_as_soon_as_it_is_there() {
    let mut story = Story::new();
    story.invoke(false, OnDisconnect::Detach);
    story.land();
    let abort = story.abort();
    story.land();
    assert!(story.is_accepted(abort));
    assert_eq!(
        story.shell.session().run().map(ActiveRun::engine),
        Some(EngineStatus::Opening)
    );
    assert_eq!(story.news().aborts(), 0, "there is nobody to tell yet");
    story.open();
    let news = story.news();
    assert!(news.told().is_empty(), "it gets no prompt");
    assert!(news.has(|effect| matches!(effect, Effect::DropEngine(_))));
    story.land();
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    story.ends();
}

#[test]
fn c21_b14_an_abort_while_the_engine_works_ends_as_aborted_whatever_the_engine_says() {
    let failed = StopReason::Failed(sessionplane_core::domain::run::Failure {
        code: "oops".to_owned(),
        details: String::new(),
        retryable: true,
    });
    for reason in [StopReason::Completed, StopReason::Aborted, failed] {
        let mut story = Story::working();
        story.abort();
        assert_eq!(
            story.news().aborts(),
            1,
            "told before the disk has answered"
        );
        story.land();
        story.stops_with(reason.clone());
        story.land();
        assert_eq!(story.outcome(), Some(&RunOutcome::Aborted), "{reason:?}");
        story.ends();
    }
}

#[test]
fn c21_b14_an_abort_in_the_middle_of_a_tool_or_a_retry_delay_is_an_abort() {
    let mut story = Story::working();
    story.starts_tool("c");
    story.says(EngineEvent::RetryScheduled {
        attempt: 1,
        max_attempts: 3,
        delay: std::time::Duration::from_secs(60),
        reason: "overloaded".to_owned(),
    });
    story.abort();
    assert_eq!(story.news().aborts(), 1);
    story.gone();
    story.shell.settle_disk();
    assert_eq!(
        story.outcome(),
        Some(&RunOutcome::Aborted),
        "not engine_gone"
    );
    story.ends();
}

#[test]
fn c21_an_abort_at_rest_needs_no_engine() {
    let mut story = Story::working();
    let follow_up = story.follow_up();
    story.stops();
    // Both wait for the disk; the abort does not.
    let abort = story.abort();
    story.shell.settle_disk();
    assert!(story.is_accepted(abort));
    assert!(story.is_accepted(follow_up), "its acceptance was in flight");
    assert_eq!(story.fate(1), InputFate::Discarded(DiscardCause::Aborted));
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    story.ends();
}

#[test]
fn c21_the_queue_is_drained_first_and_what_is_handed_follows_the_engine() {
    let mut story = Story::working();
    story.steer();
    story.steer();
    story.follow_up();
    story.shell.settle_disk();
    assert_eq!(story.news().handed(), [1]);
    story.abort();
    let left: Vec<_> = story
        .shell
        .session()
        .run()
        .map(|run| run.queue().map(|it| it.record.id.ordinal).collect())
        .expect("it runs");
    assert_eq!(left, [1], "ours is empty before the engine is told");
    story.land();
    assert_eq!(story.fate(2), InputFate::Discarded(DiscardCause::Aborted));
    assert_eq!(story.fate(3), InputFate::Discarded(DiscardCause::Aborted));
    story.takes_back(1);
    assert!(
        story.news().handed().is_empty(),
        "nothing is handed to an aborted run"
    );
    says_stopped(&mut story);
    story.shell.settle_disk();
    assert_eq!(
        story.fate(1),
        InputFate::Discarded(DiscardCause::Aborted),
        "taken back: not lost"
    );
    story.ends();
}

#[test]
fn c19_c21_a_steer_that_the_engine_spent_on_its_way_to_the_abort_is_delivered() {
    let mut story = Story::working();
    story.steer();
    story.land();
    story.abort();
    story.shows(1);
    says_stopped(&mut story);
    story.shell.settle_disk();
    assert!(
        matches!(story.fate(1), InputFate::Delivered(_)),
        "the transcript shows it"
    );
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    story.ends();
}

#[test]
fn c21_b12_a_second_abort_is_accepted_and_the_engine_hears_one() {
    let mut story = Story::working();
    let first = story.abort();
    let second = story.abort();
    story.shell.settle_disk();
    assert!(story.is_accepted(first) && story.is_accepted(second));
    assert_eq!(story.news().aborts(), 1);
    says_stopped(&mut story);
    story.ends();
}

#[test]
fn c21_a_steer_after_an_abort_is_too_late() {
    let mut story = Story::working();
    story.abort();
    story.land();
    let reply = story.steer();
    assert_eq!(
        story.rejection(reply),
        Some(RejectionCode::RunCommandFailed)
    );
}

#[test]
fn c21_an_abort_while_the_end_is_being_written_is_run_command_failed() {
    let mut story = Story::working();
    story.stops();
    let reply = story.abort();
    assert_eq!(
        story.rejection(reply),
        Some(RejectionCode::RunCommandFailed)
    );
    story.land();
    assert_eq!(story.outcome(), Some(&RunOutcome::Completed));
    story.ends();
}

#[test]
fn c21_an_abort_on_an_idle_session_is_no_active_run() {
    let mut story = Story::new();
    let reply = story.abort();
    assert_eq!(story.rejection(reply), Some(RejectionCode::NoActiveRun));
    assert_eq!(story.shell.store.session, None, "it creates nothing");
}

#[test]
fn c21_an_engine_that_does_not_stop_is_killed_at_the_deadline_and_its_words_are_kept() {
    let mut story = Story::working();
    story.starts_message("m", "half a sen");
    story.abort();
    story.land();
    story.news();
    story.passes(
        facts::limits()
            .abort_grace
            .saturating_sub(std::time::Duration::from_millis(1)),
    );
    assert!(story.news().0.is_empty(), "it has its grace");
    story.passes(std::time::Duration::from_millis(1));
    assert!(
        story
            .news()
            .has(|effect| matches!(effect, Effect::DropEngine(_)))
    );
    story.land();
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    let last = story.shell.store.entries.last().expect("there are entries");
    assert!(
        matches!(&last.body, EntryBody::Assistant { partial: true, text, .. } if text.text == "half a sen"),
        "observers have seen it: {last:?}"
    );
    story.ends();
}

#[test]
fn c21_c20_what_the_engine_had_said_by_the_deadline_is_judged_before_the_end() {
    let mut story = Story::working();
    story.steer();
    story.land();
    story.starts_message("m", "the whole sentence");
    story.starts_message("n", "half a sen");
    story.starts_tool("c");
    story.abort();
    story.land();
    // A commit is in flight when the deadline comes, and reports wait behind it.
    story.finishes_tool("c");
    story.shows(1);
    story.finishes_message("m", Some(7));
    story.news();
    story.passes(facts::limits().abort_grace);
    let dropped = |effect: &Effect| matches!(effect, Effect::DropEngine(_));
    assert!(story.news().has(dropped), "it is not given a moment more");
    story.shell.settle_disk();
    assert!(
        matches!(story.fate(1), InputFate::Delivered(_)),
        "the transcript shows it"
    );
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    assert_eq!(story.stored_run().usage.output_tokens, Some(7));
    let said = |entry: &Entry| match &entry.body {
        EntryBody::Assistant { text, partial, .. } => Some((text.text.clone(), *partial)),
        _ => None,
    };
    let said: Vec<_> = story.shell.store.entries.iter().filter_map(said).collect();
    let expected = [("the whole sentence", false), ("half a sen", true)];
    assert_eq!(
        said,
        expected.map(|(text, partial)| (text.to_owned(), partial))
    );
    story.ends();
}

#[test]
fn c09_an_abort_projects_as_aborted_and_stays_so_after_a_crash() {
    for applied in [true, false] {
        let mut story = Story::working();
        story.abort();
        story.land();
        says_stopped(&mut story);
        story.shell.crash(applied);
        assert_eq!(
            story.outcome().and_then(|outcome| outcome.code()),
            Some("aborted")
        );
        story.ends();
    }
}
