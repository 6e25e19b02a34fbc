//! What the fleet does to a session at rest, and what a pause holds.

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::AuditAction;
use sessionplane_core::domain::binding::{BoundAnswer, Placed, SessionAnswer};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::command::{CommandKind, RejectionCode};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::lifecycle::{Answer, Deletion};

use super::story::Story;
use crate::driver::facts;

fn action(story: &Story) -> Option<AuditAction> {
    story.shell.store.audits.last().map(|audit| audit.action)
}

fn placed(directory: &str) -> Placed {
    Placed {
        place: Some(facts::place(directory)),
        checkout: None,
        sandbox: SandboxLevel::None,
    }
}

#[test]
fn c14_a_session_that_is_created_at_rest_is_there_bound_and_audited() {
    let mut story = Story::new();
    let reply = story.creates(Some(facts::place(".")));
    assert_eq!(story.answer(reply), None, "not before it is durable");
    story.land();
    assert_eq!(story.answer(reply), Some(&Answer::Changed));
    let rows = &story.shell.store;
    let head = &rows.session.as_ref().expect("it is there").head;
    assert_eq!((&head.place, head.entries), (&Some(facts::place(".")), 0));
    let metadata = &rows.session.as_ref().expect("it is there").record.metadata;
    let answer = SessionAnswer {
        metadata: Some(metadata.clone()),
        placed: Some(placed(".")),
    };
    let bound = BoundAnswer::Session(Some(Box::new(answer)));
    assert_eq!(rows.bindings[0].answer, bound, "what it decided");
    assert_eq!(action(&story), Some(AuditAction::Call(Action::Create)));
    assert!(rows.holder.is_none(), "nothing holds it");
    let run = story.invoke(false, OnDisconnect::Detach);
    story.land();
    assert!(matches!(story.answer(run), Some(Answer::Admitted { .. })));
    story.open();
    story.stops();
    story.ends();
}

#[test]
fn c15_a_paused_session_fails_an_invoke_and_nothing_is_written_or_seen() {
    let mut story = Story::rested();
    let before = (story.shell.store.clone(), story.shell.view().clone());
    story.shell.done.clear();
    let reply = story.invoke_with(true, OnDisconnect::Detach, |facts| facts.paused = true);
    let Some(Answer::Failed(failure)) = story.answer(reply) else {
        panic!("{:?}", story.answer(reply));
    };
    assert_eq!(
        (failure.code.as_str(), failure.retryable),
        ("session_paused", true)
    );
    assert_eq!(
        (story.shell.store.clone(), story.shell.view().clone()),
        before
    );
    assert_eq!(story.news().event_types(), [""; 0]);
    story.ends();
}

#[test]
fn c07_c15_what_is_active_is_told_before_a_pause() {
    let mut story = Story::working();
    let reply = story.invoke_with(true, OnDisconnect::Detach, |facts| facts.paused = true);
    assert!(matches!(story.answer(reply), Some(Answer::Busy { .. })));
    story.stops();
    story.ends();
}

#[test]
fn c53_a_move_takes_the_lease_and_is_busy_while_a_run_holds_it() {
    let mut story = Story::working();
    let busy = story.moves("sub");
    assert_eq!(story.rejection(busy), Some(RejectionCode::SessionBusy));
    story.stops();
    // The end is decided and not durable: the move comes after it.
    let moved = story.moves("sub");
    assert_eq!(story.answer(moved), None);
    story.shell.settle_disk();
    assert_eq!(story.answer(moved), Some(&Answer::Changed));
    let head = &story
        .shell
        .store
        .session
        .as_ref()
        .expect("it is there")
        .head;
    assert_eq!(head.place, Some(facts::place("sub")));
    assert_eq!(
        action(&story),
        Some(AuditAction::Call(Action::ChangeDirectory))
    );
    story.ends();
}

#[test]
fn c45_an_invoke_that_looked_at_another_place_looks_again() {
    let mut story = Story::rested();
    let moved = story.moves("sub");
    // It looked while the move was on its way.
    let late = story.invoke_with(true, OnDisconnect::Detach, |facts| facts.place = None);
    story.shell.settle_disk();
    assert_eq!(story.answer(moved), Some(&Answer::Changed));
    assert_eq!(story.answer(late), Some(&Answer::Elsewhere));
    let again = story.invoke(false, OnDisconnect::Detach);
    story.land();
    assert!(matches!(story.answer(again), Some(Answer::Admitted { .. })));
    story.open();
    story.stops();
    story.ends();
}

/// A directory alone is one of the workspace that was looked at; another move may have been first.
#[test]
fn c45_c53_a_move_that_names_no_workspace_is_none_to_another_one() {
    let mut story = Story::rested();
    story.moves("sub");
    story.shell.settle_disk();
    let late = story.moves_within("lib", Some("former"));
    story.shell.settle_disk();
    assert_eq!(story.answer(late), Some(&Answer::Elsewhere));
    let meant = story.moves_within("lib", Some("repo"));
    story.shell.settle_disk();
    assert_eq!(story.answer(meant), Some(&Answer::Changed));
    let stored = story.shell.store.session.as_ref().expect("it is there");
    assert_eq!(stored.head.place, Some(facts::place("lib")));
    story.ends();
}

#[test]
fn c45_a_checkout_is_noted_if_it_is_news_of_where_the_session_works_and_nothing_runs() {
    let mut story = Story::rested();
    story.moves("sub");
    story.shell.settle_disk();
    let audits = story.shell.store.audits.len();
    story.notes("elsewhere", "main");
    assert!(!story.shell.in_flight(), "it is of another place");
    story.notes("sub", "main");
    story.shell.settle_disk();
    assert_eq!(action(&story), Some(AuditAction::Checkout));
    story.notes("sub", "main");
    assert!(!story.shell.in_flight(), "it is no news");
    assert_eq!(story.shell.store.audits.len(), audits + 1);
    let run = story.invoke_with(false, OnDisconnect::Detach, |facts| {
        facts.checkout = Some(facts::checkout("main"));
    });
    story.land();
    assert!(matches!(story.answer(run), Some(Answer::Admitted { .. })));
    story.notes("sub", "topic");
    assert!(!story.shell.in_flight(), "the run notes it at its end");
    story.open();
    story.stops();
    story.ends();
}

#[test]
fn c61_a_deletion_waits_for_what_was_decided_and_everybody_else_waits_for_it() {
    let mut story = Story::rested();
    let chosen = story.sets_model(Some("deep"));
    let moved = story.moves("sub");
    let deleted = story.deletes();
    story.land();
    assert!(story.is_accepted(chosen));
    assert!(story.shell.in_flight(), "the move is written first");
    story.land();
    assert_eq!(story.answer(moved), Some(&Answer::Changed));
    let commit = story.shell.session().deletion_commit(3, story.shell.now);
    let commit = commit.expect("now the store is asked");
    let head = story.shell.session().head();
    assert_eq!(
        (commit.expected_audits, commit.expected_metadata),
        (head.audits, 3)
    );
    assert_eq!(commit.audit.ordinal, head.audits + 1);
    let invoke = story.invoke(true, OnDisconnect::Detach);
    let steer = story.dispatch(CommandKind::Steer);
    for reply in [deleted, invoke, steer] {
        assert_eq!(story.answer(reply), None);
    }
    story.shell.keep();
    let Some(Answer::Refused(error)) = story.answer(deleted) else {
        panic!("{:?}", story.answer(deleted));
    };
    assert_eq!(error.reason, Reason::HasChildren);
    story.land();
    assert!(matches!(
        story.answer(invoke),
        Some(Answer::Admitted { .. })
    ));
    assert!(story.answer(steer).is_some());
    let abort = story.abort();
    story.shell.settle_disk();
    assert!(story.is_accepted(abort));
    story.passes(facts::limits().abort_grace);
    story.ends();
}

/// Another one waits behind it, and means another revision.
#[test]
fn c61_a_deletion_keeps_the_revision_that_it_is_meant_for() {
    let mut story = Story::rested();
    story.moves("sub");
    let (first, second) = (story.deletes_at(Some(7)), story.deletes());
    story.land();
    let etag = |story: &Story| story.shell.session().deletion().map(Deletion::etag);
    assert_eq!(etag(&story), Some(Some(7)));
    assert_eq!((story.answer(first), story.answer(second)), (None, None));
    story.shell.keep();
    assert_eq!(etag(&story), Some(None), "now it is the second one's turn");
    story.shell.keep();
    story.ends();
}

#[test]
fn c61_a_deletion_during_a_run_is_busy() {
    let mut story = Story::working();
    let busy = story.deletes();
    assert_eq!(story.rejection(busy), Some(RejectionCode::SessionBusy));
    story.stops();
    story.ends();
}
