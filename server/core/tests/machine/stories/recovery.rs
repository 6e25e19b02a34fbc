//! A crash at any instant: what is recorded of the run that it cut.

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::audit::AuditAction;
use sessionplane_core::domain::command::CommandKind;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::input::{DiscardCause, InputFate};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{Answer, interrupt};
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::ports::repository::CommitError;

use super::story::Story;
use crate::driver::store::Cut;

#[test]
fn c36_a_run_that_a_crash_cut_is_settled_as_interrupted_in_record_and_entries() {
    let mut story = Story::working();
    story.shell.crash(false);
    let outcome = story.outcome().expect("it has settled");
    assert!(
        matches!(outcome, RunOutcome::Failed(failure) if failure.code == "interrupted" && failure.retryable),
        "{outcome:?}"
    );
    let run = story.stored_run();
    let last = story.shell.store.entries.last().expect("there are entries");
    assert!(matches!(&last.body, EntryBody::Notice { code, .. } if code == "interrupted"));
    assert_eq!(run.final_entry, Some(last.id));
    let audit = story.shell.store.audits.last().expect("there are audits");
    assert_eq!(
        (audit.action, audit.run),
        (AuditAction::Recover, Some(run.id))
    );
    let view = story.shell.view();
    assert_eq!(view.active_run, None, "later observers see it idle");
    assert_eq!(view.last_run.as_ref().map(|last| last.run), Some(run.id));
    story.ends();
}

#[test]
fn c20_inputs_that_a_crash_cut_end_as_interrupted_handed_or_not() {
    let mut story = Story::working();
    story.steer();
    story.steer();
    story.shell.settle_disk();
    story.shows(1);
    // The delivery was in flight and did not reach the disk.
    story.shell.crash(false);
    for ordinal in [1, 2] {
        assert_eq!(
            story.fate(ordinal),
            InputFate::Discarded(DiscardCause::Interrupted)
        );
    }
    assert_eq!(story.stored_run().undelivered.len(), 2);
    story.ends();
}

#[test]
fn c20_an_input_whose_delivery_reached_the_disk_stays_delivered_after_a_crash() {
    let mut story = Story::working();
    story.steer();
    story.land();
    story.shows(1);
    story.shell.crash(true);
    assert!(matches!(story.fate(1), InputFate::Delivered(_)));
    assert!(story.stored_run().undelivered.is_empty());
    story.ends();
}

#[test]
fn c09_an_accepted_abort_makes_a_cut_run_aborted_and_its_inputs_too() {
    let mut story = Story::working();
    story.steer();
    story.follow_up();
    story.shell.settle_disk();
    story.abort();
    story.land();
    story.shell.crash(false);
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    let causes: Vec<_> = story
        .stored_run()
        .undelivered
        .iter()
        .map(|it| (it.id.ordinal, it.cause))
        .collect();
    assert_eq!(
        causes,
        [(2, DiscardCause::Aborted), (1, DiscardCause::Aborted)]
    );
    story.ends();
}

#[test]
fn c39_an_abort_that_never_reached_the_disk_was_not_answered_and_leaves_the_run_interrupted() {
    let mut story = Story::working();
    let reply = story.abort();
    story.shell.crash(false);
    assert_eq!(
        story.answer(reply),
        None,
        "its outcome is unknown to the caller"
    );
    assert_eq!(
        story.outcome().and_then(|outcome| outcome.code()),
        Some("interrupted")
    );
    story.ends();
}

#[test]
fn c16_what_a_cut_run_used_is_recorded_with_its_messages() {
    let mut story = Story::working();
    story.starts_message("m", "hello");
    story.finishes_message("m", Some(7));
    story.land();
    story.shell.crash(false);
    assert_eq!(story.stored_run().usage.output_tokens, Some(7));
    let head = story
        .shell
        .store
        .session
        .as_ref()
        .map(|session| session.head.usage.output_tokens);
    assert_eq!(head, Some(Some(7)));
    story.ends();
}

#[test]
fn c41_a_run_is_not_recovered_while_its_writer_lives() {
    let mut story = Story::working();
    let token = LeaseToken(story.shell.mint());
    let store = &mut story.shell.store;
    let Some(Cut::Run(cut)) = store.cut() else {
        panic!("a run is active");
    };
    let commit = interrupt(cut, token, story.shell.now);
    let refused = store.apply(&commit);
    assert!(
        matches!(refused, Err(CommitError::Fenced { .. })),
        "{refused:?}"
    );
    store.reopen();
    assert_eq!(store.apply(&commit), Ok(()));
    assert_eq!(store.holder, None);
}

#[test]
fn c44_a_recovered_session_accepts_the_next_run() {
    let mut story = Story::working();
    story.shell.crash(false);
    let reply = story.invoke(true, OnDisconnect::Detach);
    story.land();
    assert_eq!(
        story.answer(reply),
        Some(&Answer::Admitted { run: story.run() })
    );
    let abort = story.dispatch(CommandKind::Abort);
    story.shell.settle_disk();
    story.open();
    story.shell.settle_disk();
    assert!(story.is_accepted(abort));
    story.ends();
}

#[test]
fn c44_an_admission_in_flight_at_the_crash_either_happened_or_did_not() {
    for applied in [true, false] {
        let mut story = Story::new();
        let reply = story.invoke(true, OnDisconnect::Detach);
        story.shell.crash(applied);
        assert_eq!(story.answer(reply), None);
        assert_eq!(story.shell.store.session.is_some(), applied);
        assert_eq!(story.shell.store.runs.len(), usize::from(applied));
        assert_eq!(story.shell.store.holder, None, "nobody is stuck");
        story.ends();
    }
}
