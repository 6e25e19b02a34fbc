//! Invoke: admission, busy, and what a caller may rely on when it is told.

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::AuditAction;
use sessionplane_core::domain::binding::BoundAnswer;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::lease::{Holder, LeaseToken};
use sessionplane_core::domain::lifecycle::{ActiveRun, Answer, Effect, EngineStatus};
use sessionplane_core::ports::engine::EngineCommand;

use super::story::Story;

#[test]
fn c11_nothing_is_told_or_opened_before_the_admission_is_durable() {
    let mut story = Story::new();
    let reply = story.invoke(true, OnDisconnect::Detach);
    assert!(story.news().0.is_empty(), "the disk has not answered yet");
    assert_eq!(story.answer(reply), None);

    story.land();
    let news = story.news();
    assert!(news.has(|effect| matches!(effect, Effect::OpenEngine(_))));
    assert_eq!(
        story.answer(reply),
        Some(&Answer::Admitted { run: story.run() })
    );
}

#[test]
fn c11_one_commit_admits_the_run_with_all_that_belongs_to_it() {
    let mut story = Story::new();
    story.invoke(true, OnDisconnect::Detach);
    story.land();
    let (rows, run) = (&story.shell.store, story.stored_run());
    assert!(rows.session.is_some(), "the session is created");
    let holder = rows.holder.map(|lease| (lease.token, lease.holder));
    assert_eq!(holder, Some((LeaseToken(1), Holder::Run(run.id))));
    assert_eq!(rows.bindings[0].answer, BoundAnswer::Run(run.id));
    let [entry] = rows.entries.as_slice() else {
        panic!("one entry is the prompt: {:?}", rows.entries);
    };
    assert!(
        matches!(&entry.body, EntryBody::User { origin, input: None, .. } if *origin == run.origin),
        "the prompt names its sender: {entry:?}"
    );
    let [audit] = rows.audits.as_slice() else {
        panic!("one commit, one audit record: {:?}", rows.audits);
    };
    assert_eq!(audit.action, AuditAction::Call(Action::Invoke));
    assert_eq!(
        (audit.run, audit.entries.as_slice()),
        (Some(run.id), &[entry.id][..])
    );
    assert!(audit.actor.is_some() && audit.request_digest.is_some() && audit.bytes > 0);
}

#[test]
fn c06_the_answer_follows_the_events_of_its_batch_and_the_first_of_them_is_run_started() {
    let mut story = Story::new();
    story.invoke(false, OnDisconnect::Detach);
    story.land();
    let news = story.news();
    assert_eq!(news.event_types(), ["run_started", "entry_appended"]);
    let told = |effect: &Effect| matches!(effect, Effect::Answer(..));
    let answered = news.0.iter().position(told);
    let events = news
        .0
        .iter()
        .filter(|effect| matches!(effect, Effect::Publish(_) | Effect::Show(..)))
        .count();
    assert_eq!(
        answered,
        Some(events),
        "the position before the batch misses nothing"
    );
}

#[test]
fn c06_the_prompt_reaches_the_engine_once_it_is_open() {
    let mut story = Story::new();
    story.invoke(false, OnDisconnect::Detach);
    story.land();
    assert!(story.news().told().is_empty(), "not before it is open");
    story.open();
    let news = story.news();
    let [
        EngineCommand::Prompt {
            text, input: None, ..
        },
    ] = news.told()[..]
    else {
        panic!("told: {:?}", news.told());
    };
    let header =
        "[relayed instruction from human \"ada\" by prompt; each of its lines begins with \"> \"]";
    assert_eq!(**text, format!("{header}\n> prompt 1"), "C58");
}

#[test]
fn c07_an_invoke_on_a_running_session_is_busy_and_observers_see_nothing() {
    let mut story = Story::working();
    let before = story.shell.store.clone();
    let reply = story.invoke(true, OnDisconnect::Cancel);
    assert_eq!(
        story.answer(reply),
        Some(&Answer::Busy {
            run: Some(story.run())
        })
    );
    assert!(!story.shell.in_flight(), "nothing is written");
    assert!(story.news().events().is_empty());
    assert_eq!(story.shell.store, before, "a busy answer binds nothing");
}

#[test]
fn c07_nobody_is_told_busy_while_state_would_still_say_idle() {
    let mut story = Story::working();
    story.stops();
    // The settlement is in flight: both invokes wait, the first is admitted in the next round.
    let first = story.invoke(true, OnDisconnect::Detach);
    let second = story.invoke(true, OnDisconnect::Detach);
    story.land();
    assert_eq!(
        story.shell.view().active_run,
        None,
        "the admission is not durable"
    );
    assert_eq!((story.answer(first), story.answer(second)), (None, None));
    story.land();
    assert!(story.shell.view().active_run.is_some());
    assert!(matches!(story.answer(first), Some(Answer::Admitted { .. })));
    assert!(matches!(story.answer(second), Some(Answer::Busy { .. })));
}

#[test]
fn c12_a_keyed_invoke_leaves_a_binding_and_a_record_that_can_be_joined() {
    let mut story = Story::working();
    story.starts_message("m", "hello");
    story.finishes_message("m", Some(3));
    story.shell.settle_disk();
    assert_eq!(story.stored_run().usage.output_tokens, Some(3));
    assert_eq!(
        story.stored_run().final_entry,
        None,
        "an active run has no last entry"
    );
    story.stops();
    story.shell.settle_disk();
    let run = story.stored_run().clone();
    let shell = story.ends();
    let last = shell.store.entries.last().expect("there are entries");
    assert_eq!((run.first_entry.seq, run.final_entry), (1, Some(last.id)));
    assert!(matches!(&last.body, EntryBody::Assistant { text, .. } if text.text == "hello"));
}

#[test]
fn c12_a_keyless_invoke_binds_nothing() {
    let mut story = Story::new();
    story.invoke(false, OnDisconnect::Detach);
    story.land();
    assert!(story.shell.store.bindings.is_empty());
    assert_eq!(story.stored_run().request_id, None);
}

#[test]
fn c12_a_join_of_a_settled_run_is_told_so() {
    let mut story = Story::working();
    let active = story.attach(7, OnDisconnect::Cancel);
    assert_eq!(
        story.answer(active),
        Some(&Answer::Attached { active: true })
    );
    story.stops();
    story.land();
    let late = story.attach(8, OnDisconnect::Cancel);
    assert_eq!(
        story.answer(late),
        Some(&Answer::Attached { active: false })
    );
    story.ends();
}

#[test]
fn c11_an_engine_that_cannot_be_opened_fails_the_run_after_its_admission() {
    let mut story = Story::new();
    let reply = story.invoke(false, OnDisconnect::Detach);
    story.land();
    story.gone();
    story.land();
    assert!(matches!(story.answer(reply), Some(Answer::Admitted { .. })));
    assert_eq!(
        story.outcome().and_then(|outcome| outcome.code()),
        Some("engine_unavailable")
    );
    story.ends();
}

#[test]
fn c43_an_engine_behind_our_record_leaves_a_divergence_entry() {
    use sessionplane_core::domain::lifecycle::Input;
    use sessionplane_core::ports::engine::Revalidation;
    let mut story = Story::new();
    story.invoke(false, OnDisconnect::Detach);
    story.land();
    story.shell.send(Input::EngineOpened {
        tag: story.tag(),
        revalidation: Revalidation::Replaced,
    });
    let run = story.shell.session().run().map(ActiveRun::engine);
    assert_eq!(
        run,
        Some(EngineStatus::Working),
        "the prompt does not wait for the entry"
    );
    story.land();
    let last = story.shell.store.entries.last().expect("there are entries");
    assert!(matches!(&last.body, EntryBody::Notice { code, .. } if code == "divergence"));
}
