//! Callers come and go: what becomes of the run they leave behind.

use std::time::Duration;

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::audit::AuditAction;
use sessionplane_core::domain::lifecycle::{ActiveRun, DetachCause, Phase};
use sessionplane_core::domain::run::RunOutcome;

use super::story::Story;
use crate::driver::facts;

/// A CANCEL run at work, listened to by stream 1.
fn cancel(keyed: bool) -> Story {
    let mut story = Story::new();
    story.invoke(keyed, OnDisconnect::Cancel);
    story.land();
    story.open();
    story.shell.done.clear();
    story
}

fn phase(story: &Story) -> Option<Phase> {
    story.shell.session().run().map(ActiveRun::phase)
}

fn is_aborting(story: &Story) -> bool {
    phase(story) == Some(Phase::Aborting)
}

/// Nobody has asked it to stop, and it has not ended.
fn goes_on(story: &Story) -> bool {
    phase(story) == Some(Phase::Active)
}

const MOMENT: Duration = Duration::from_millis(1);

#[test]
fn c13_without_a_request_id_the_run_is_aborted_at_once() {
    let mut story = cancel(false);
    story.detach(1, DetachCause::CallerGone);
    assert_eq!(story.news().aborts(), 1, "in the same step");
    story.land();
    let audit = story
        .shell
        .store
        .audits
        .last()
        .map(|audit| (audit.action, audit.actor.is_none()));
    assert_eq!(
        audit,
        Some((AuditAction::Disconnect, true)),
        "by nobody's command"
    );
}

#[test]
fn c13_with_a_request_id_the_run_is_aborted_after_the_grace() {
    let mut story = cancel(true);
    story.detach(1, DetachCause::CallerGone);
    story.passes(facts::limits().cancel_grace.saturating_sub(MOMENT));
    assert!(goes_on(&story));
    story.passes(MOMENT);
    assert!(is_aborting(&story));
    assert_eq!(story.news().aborts(), 1);
}

#[test]
fn c13_a_rejoin_within_the_grace_keeps_the_run() {
    let mut story = cancel(true);
    story.detach(1, DetachCause::CallerGone);
    story.passes(facts::limits().cancel_grace.saturating_sub(MOMENT));
    story.attach(2, OnDisconnect::Cancel);
    story.passes(facts::limits().rejoin_grace);
    assert!(goes_on(&story));
    story.detach(2, DetachCause::CallerGone);
    story.passes(facts::limits().cancel_grace);
    assert!(is_aborting(&story), "the grace starts anew");
}

#[test]
fn c13_only_the_last_stream_that_leaves_counts() {
    let mut story = cancel(false);
    story.attach(2, OnDisconnect::Cancel);
    story.detach(1, DetachCause::CallerGone);
    story.detach(1, DetachCause::CallerGone);
    assert!(goes_on(&story), "a stream leaves once");
    story.detach(2, DetachCause::CallerGone);
    assert!(is_aborting(&story));
}

#[test]
fn c13_a_stream_that_the_server_ended_is_no_cancellation_before_the_rejoin_grace() {
    for keyed in [true, false] {
        let mut story = cancel(keyed);
        story.detach(1, DetachCause::ServerEnded);
        story.passes(facts::limits().rejoin_grace.saturating_sub(MOMENT));
        assert!(goes_on(&story), "keyed: {keyed}");
        story.passes(MOMENT);
        assert!(is_aborting(&story), "keyed: {keyed}");
    }
}

#[test]
fn c13_who_may_rejoin_keeps_the_time_for_it_whoever_else_leaves() {
    for keyed in [true, false] {
        let mut story = cancel(keyed);
        story.attach(2, OnDisconnect::Cancel);
        story.detach(1, DetachCause::ServerEnded);
        story.passes(Duration::from_secs(1));
        story.detach(2, DetachCause::CallerGone);
        let passed = Duration::from_secs(1) + MOMENT;
        story.passes(facts::limits().rejoin_grace.saturating_sub(passed));
        assert!(goes_on(&story), "keyed: {keyed}");
        story.passes(MOMENT);
        assert!(is_aborting(&story), "keyed: {keyed}");
    }
}

#[test]
fn c13_a_rejoin_uses_the_grace_of_who_left_before() {
    let mut story = cancel(true);
    story.detach(1, DetachCause::ServerEnded);
    story.attach(2, OnDisconnect::Cancel);
    story.detach(2, DetachCause::CallerGone);
    story.passes(facts::limits().cancel_grace);
    assert!(is_aborting(&story));
}

#[test]
fn c13_a_detach_join_makes_the_run_detached() {
    let mut story = cancel(false);
    story.attach(2, OnDisconnect::Detach);
    story.detach(1, DetachCause::CallerGone);
    story.detach(2, DetachCause::CallerGone);
    story.passes(Duration::from_secs(3600));
    assert!(goes_on(&story));
}

#[test]
fn c13_a_cancel_join_does_not_make_a_detached_run_cancellable() {
    let mut story = Story::working();
    story.attach(2, OnDisconnect::Cancel);
    story.detach(1, DetachCause::CallerGone);
    story.detach(2, DetachCause::CallerGone);
    story.passes(Duration::from_secs(3600));
    assert!(goes_on(&story));
}

#[test]
fn c13_a_stale_grace_timer_does_not_abort_a_run_that_is_listened_to() {
    use sessionplane_core::domain::lifecycle::{Input, Timer};
    let mut story = cancel(true);
    story.detach(1, DetachCause::CallerGone);
    story.attach(2, OnDisconnect::Cancel);
    // It had fired before the join took it away.
    let tag = story.tag();
    for timer in [Timer::DisconnectGrace, Timer::RejoinGrace] {
        story.shell.send(Input::Timer { tag, timer });
    }
    assert!(goes_on(&story));
}

#[test]
fn c13_b15_a_caller_that_vanishes_during_a_tool_call_leaves_no_wedged_run() {
    let mut story = cancel(false);
    story.starts_tool("c");
    story.detach(1, DetachCause::CallerGone);
    // The engine never says a word again.
    story.land();
    story.passes(facts::limits().abort_grace);
    story.land();
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    assert_eq!(story.shell.view().active_run, None);
    story.ends();
}

#[test]
fn c13_a_caller_that_vanishes_while_its_invoke_waits_leaves_after_it() {
    use sessionplane_core::domain::lifecycle::{Input, ReplyId};
    let mut story = Story::working();
    story.stops();
    // The settlement is in flight: the next invoke waits, and its caller does not.
    let token = story.shell.mint();
    let facts = Box::new(facts::invoke(7, token, false, OnDisconnect::Cancel));
    let (run, stream) = (facts.run, facts.stream);
    let reply = ReplyId(7);
    story.shell.send(Input::Invoke { reply, facts });
    let cause = DetachCause::CallerGone;
    story.shell.send(Input::Detach { run, stream, cause });
    story.shell.settle_disk();
    let settled = &story.shell.store.runs[&run].settled;
    assert_eq!(
        settled.as_ref().map(|settled| &settled.outcome),
        Some(&RunOutcome::Aborted),
        "it must not run for nobody"
    );
    story.ends();
}

#[test]
fn c13_a_caller_that_vanishes_while_the_admission_is_in_flight_is_noticed() {
    let mut story = Story::new();
    story.invoke(false, OnDisconnect::Cancel);
    story.detach(1, DetachCause::CallerGone);
    story.shell.settle_disk();
    assert_eq!(story.outcome(), Some(&RunOutcome::Aborted));
    story.ends();
}
