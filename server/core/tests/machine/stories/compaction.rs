//! A compaction is accepted fast, holds the session, and leaves the transcript as it was unless it
//! succeeds.

use std::time::Duration;

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::command::{CommandKind, DispatchAnswer, RejectionCode};
use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::ids::{EntryId, SessionId};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{Answer, DispatchFacts, Effect};
use sessionplane_core::domain::limits::MAX_LABEL_BYTES;
use sessionplane_core::domain::view::Status;
use sessionplane_core::ports::engine::{EngineCommand, EngineEvent, StopReason};

use super::story::Story;
use super::words::{confirm, entry, failure, summary};

#[test]
fn c22_a_compaction_is_answered_at_its_admission_and_told_at_its_end() {
    let mut story = Story::rested();
    let reply = story.compacts();
    assert!(story.answer(reply).is_none(), "not before it is durable");
    story.land();
    assert!(story.is_accepted(reply));
    assert_eq!(story.shell.view().status(), Status::Compacting);
    story.opens_to_compact();
    assert!(story.news().told().iter().any(
        |it| matches!(it, EngineCommand::Compact { instructions: Some(it) } if &**it == "keep the names")
    ));
    let before = story.shell.store.entries.len();
    story.compaction_ends(Ok("all of it in short"));
    assert_eq!(
        story.shell.view().status(),
        Status::Compacting,
        "until it is durable"
    );
    story.land();
    assert_eq!(story.shell.view().status(), Status::Idle);
    let entries = &story.shell.store.entries;
    assert_eq!(entries.len(), before + 1);
    assert!(matches!(
        &entries[before].body,
        EntryBody::Compaction { summary, first_kept: Some(id), .. }
            if summary.text == "all of it in short" && id.seq == 2
    ));
    story.ends();
}

#[test]
fn c15_c22_a_paused_session_is_not_compacted_and_what_takes_no_engine_is_done() {
    let mut story = Story::rested();
    let token = LeaseToken(story.shell.mint());
    let paused = |facts: &mut DispatchFacts| {
        facts.token = Some(token);
        facts.paused = true;
    };
    let reply = story.dispatch_with(CommandKind::Compact, paused);
    match story.answer(reply) {
        Some(Answer::Dispatched(DispatchAnswer::Rejected(no))) => {
            assert_eq!(no.code, RejectionCode::BoundaryCommandFailed);
            assert!(no.retryable && no.message.contains("resume"), "{no:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!story.shell.in_flight(), "nothing is written");
    assert_eq!(story.shell.view().status(), Status::Idle);
    let chosen = story.dispatch_with(CommandKind::SetModel, paused);
    story.shell.settle_disk();
    assert!(story.is_accepted(chosen));
    let resumed = story.compacts();
    story.land();
    assert!(story.is_accepted(resumed));
    story.abort();
    story.ends();
}

#[test]
fn c22_b50_a_compaction_that_fails_dies_or_says_nothing_leaves_the_transcript_as_it_was() {
    type End = fn(&mut Story);
    let ends: [End; 5] = [
        |story| story.compaction_ends(Err(failure("rate_limited"))),
        |story| story.compaction_ends(Ok("")),
        |story| story.compaction_engine_dies(),
        |story| {
            story.says_of_compaction(EngineEvent::Stopped {
                prompt: 0,
                reason: StopReason::Completed,
            });
        },
        |story| {
            story.dispatch(CommandKind::Abort);
            story.passes(Duration::from_secs(6));
        },
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let mut story = Story::rested();
        let before = story.shell.store.entries.clone();
        story.compacts();
        story.land();
        story.opens_to_compact();
        end(&mut story);
        story.shell.settle_disk();
        assert_eq!(story.shell.store.entries, before, "end {number}");
        assert_eq!(story.shell.view().status(), Status::Idle, "end {number}");
        story.ends();
    }
}

#[test]
fn c22_b50_a_crash_at_any_step_of_a_compaction_leaves_the_transcript_as_it_was() {
    for steps in 0..4 {
        let mut story = Story::rested();
        let before = story.shell.store.entries.clone();
        story.compacts();
        if steps > 0 {
            story.land();
        }
        if steps > 1 {
            story.opens_to_compact();
        }
        if steps > 2 {
            story.compaction_ends(Ok("short"));
        }
        story.shell.crash(false);
        assert_eq!(story.shell.store.entries, before, "after {steps} steps");
        assert_eq!(story.shell.view().status(), Status::Idle);
        let again = story.invoke(false, OnDisconnect::Detach);
        story.land();
        assert!(matches!(story.answer(again), Some(Answer::Admitted { .. })));
        story.open();
        story.stops();
        story.ends();
    }
}

#[test]
fn c21_an_abort_ends_a_running_compaction() {
    let mut story = Story::rested();
    let before = story.shell.store.entries.clone();
    story.compacts();
    story.land();
    story.opens_to_compact();
    story.news();
    let abort = story.dispatch(CommandKind::Abort);
    assert_eq!(story.news().aborts(), 1, "the engine is told at once");
    story.compaction_ends(Ok("too late"));
    story.shell.settle_disk();
    assert!(story.is_accepted(abort));
    let news = story.news();
    assert!(news.event_types().contains(&"compaction_finished"));
    assert!(news.has(|it| matches!(it, Effect::DropEngine(_))));
    assert_eq!(story.shell.store.entries, before);
    story.ends();
}

#[test]
fn c21_an_abort_before_the_engine_is_there_ends_a_compaction_too() {
    for opening in [false, true] {
        let mut story = Story::rested();
        story.compacts();
        if opening {
            story.land();
        }
        let abort = story.dispatch(CommandKind::Abort);
        story.shell.settle_disk();
        assert!(story.is_accepted(abort));
        assert_eq!(story.shell.view().status(), Status::Idle);
        story.ends();
    }
}

#[test]
fn c22_nothing_else_starts_while_a_session_is_compacted() {
    let mut story = Story::rested();
    story.compacts();
    story.land();
    let invoke = story.invoke(false, OnDisconnect::Detach);
    let again = story.compacts();
    let model = story.sets_model(Some("deep"));
    let steer = story.steer();
    assert!(matches!(
        story.answer(invoke),
        Some(Answer::Busy { run: None })
    ));
    assert_eq!(story.rejection(again), Some(RejectionCode::SessionBusy));
    assert_eq!(story.rejection(model), Some(RejectionCode::SessionBusy));
    assert_eq!(story.rejection(steer), Some(RejectionCode::NoActiveRun));
    story.opens_to_compact();
    story.compaction_ends(Ok("short"));
    story.ends();
}

#[test]
fn c22_there_is_nothing_to_compact_before_the_first_word_and_right_after_a_compaction() {
    let mut story = Story::rested();
    story.compacts();
    story.land();
    story.opens_to_compact();
    story.compaction_ends(Ok("short"));
    story.land();
    let again = story.compacts();
    assert_eq!(
        story.rejection(again),
        Some(RejectionCode::NothingToCompact)
    );
    story.ends();
}

#[test]
fn c22_a_choice_of_settings_is_nothing_to_compact() {
    let mut story = Story::rested();
    for model in ["deep", "swift"] {
        story.sets_model(Some(model));
        story.land();
    }
    story.compacts();
    story.land();
    story.opens_to_compact();
    story.compaction_ends(Ok("short"));
    story.land();
    for model in ["deep", "swift"] {
        story.sets_model(Some(model));
        story.land();
        let again = story.compacts();
        assert_eq!(
            story.rejection(again),
            Some(RejectionCode::NothingToCompact)
        );
    }
    story.ends();
}

#[test]
fn c27_a_compaction_within_a_run_reports_running() {
    let mut story = Story::working();
    story.says(EngineEvent::CompactionStarted);
    assert_eq!(story.shell.view().status(), Status::Running);
    story.says(EngineEvent::CompactionFinished(Err(failure("overloaded"))));
    story.says(EngineEvent::CompactionStarted);
    story.stops();
    story.shell.settle_disk();
    let told = story.news().event_types();
    let ends = told
        .iter()
        .filter(|it| **it == "compaction_finished")
        .count();
    assert_eq!(ends, 2, "also one that the run's end cuts: {told:?}");
    assert_eq!(story.shell.view().status(), Status::Idle);
    story.ends();
}

#[test]
fn c22_an_engine_that_asks_while_it_compacts_is_told_that_nobody_answers() {
    let mut story = Story::rested();
    story.compacts();
    story.land();
    story.opens_to_compact();
    story.says_of_compaction(EngineEvent::Asked {
        ask: "q".to_owned(),
        question: confirm(Some(true)),
        timeout: None,
    });
    let news = story.news();
    assert!(news.told().contains(&&EngineCommand::Answer {
        ask: "q".to_owned(),
        answer: None,
    }));
    // Under its whole name, however long that is.
    let ask = "q".repeat(MAX_LABEL_BYTES + 1);
    story.says_of_compaction(EngineEvent::Asked {
        ask: ask.clone(),
        question: confirm(Some(true)),
        timeout: None,
    });
    let answer = None;
    let refused = EngineCommand::Answer { ask, answer };
    assert!(story.news().told().contains(&&refused));
    story.compaction_ends(Ok("short"));
    story.ends();
}

#[test]
fn c37_a_compaction_within_a_run_is_told_behind_the_end_of_the_one_before() {
    let mut story = Story::working();
    story.says(EngineEvent::CompactionStarted);
    story.says(EngineEvent::CompactionFinished(Ok(summary("short"))));
    assert!(story.shell.in_flight());
    story.news();
    story.says(EngineEvent::CompactionStarted);
    story.land();
    assert_eq!(
        story.news().event_types(),
        [
            "entry_appended",
            "compaction_finished",
            "compaction_started"
        ]
    );
    story.stops();
    story.ends();
}

/// C34: it writes nothing, so it keeps its place among what the engine says.
#[test]
fn c34_the_start_of_a_compaction_within_a_run_is_told_in_its_place() {
    let mut story = Story::working();
    story.starts_message("m", "the first");
    story.finishes_message("m", None);
    assert!(story.shell.in_flight());
    story.news();
    story.says(EngineEvent::CompactionStarted);
    story.starts_message("n", "the second");
    assert_eq!(
        story.news().event_types(),
        ["compaction_started", "message_started", "message_delta"]
    );
    story.stops();
    story.ends();
}

/// C34, C37: also what the engine says in one go with the end of the compaction before, however it
/// ends, and at whatever moment that is taken.
#[test]
fn c34_c37_what_follows_a_second_compaction_waits_with_it() {
    for behind in [false, true] {
        let mut story = Story::working();
        story.says(EngineEvent::CompactionStarted);
        if behind {
            story.follow_up();
            assert!(story.shell.in_flight());
        }
        story.news();
        story.bursts([
            EngineEvent::CompactionFinished(Ok(summary("short"))),
            EngineEvent::CompactionStarted,
            EngineEvent::CompactionFinished(Err(failure("overloaded"))),
            EngineEvent::CompactionStarted,
            EngineEvent::TurnFinished,
        ]);
        story.shell.settle_disk();
        let told = story.news().event_types();
        let told: Vec<&str> = told
            .into_iter()
            .filter(|it| *it != "queue_changed")
            .collect();
        assert_eq!(
            told,
            [
                "entry_appended",
                "compaction_finished",
                "compaction_started",
                "compaction_finished",
                "compaction_started",
                "turn_finished"
            ],
            "behind a commit: {behind}"
        );
        story.stops();
        if behind {
            story.shell.settle_disk();
            story.shows(1);
            story.stops();
        }
        story.ends();
    }
}

#[test]
fn c22_fifty_compactions_grow_a_session_by_the_same_each_time() {
    let mut story = Story::rested();
    let mut grown = Vec::new();
    for _ in 0..50 {
        let before = rows(&story);
        story.invoke(true, OnDisconnect::Detach);
        story.land();
        story.open();
        story.starts_message("m", "hello");
        story.finishes_message("m", None);
        story.land();
        story.stops();
        story.shell.settle_disk();
        let spoken = story.shell.store.entries.len();
        story.compacts();
        story.land();
        story.opens_to_compact();
        story.compaction_ends(Ok("all of it in short"));
        story.shell.settle_disk();
        assert_eq!(story.shell.store.entries.len(), spoken + 1);
        let after = rows(&story);
        grown.push([
            after[0] - before[0],
            after[1] - before[1],
            after[2] - before[2],
        ]);
        let state = format!("{:?}", story.shell.session());
        assert!(state.len() < 4_000, "the state holds no history: {state}");
    }
    assert!(grown.iter().all(|rows| *rows == grown[0]), "{grown:?}");
    story.ends();
}

/// Entries, bindings and audit records.
fn rows(story: &Story) -> [usize; 3] {
    let store = &story.shell.store;
    [
        store.entries.len(),
        store.bindings.len(),
        store.audits.len(),
    ]
}

#[test]
fn c37_a_compaction_that_its_engine_leaves_open_ends_with_the_prompt() {
    let mut story = Story::working();
    story.follow_up();
    story.land();
    story.says(EngineEvent::CompactionStarted);
    story.stops();
    story.shell.settle_disk();
    let told = story.news().event_types();
    assert!(told.contains(&"compaction_finished"), "{told:?}");
    story.shows(1);
    story.land();
    story.says(EngineEvent::CompactionStarted);
    assert!(
        story.news().event_types().contains(&"compaction_started"),
        "another may begin"
    );
    story.stops();
    story.ends();
}

/// What its engine can have been given is only known where it was; what nobody can have been is not
/// written down.
#[test]
fn c22_what_no_engine_of_the_session_was_given_is_not_kept() {
    let foreign = EntryId {
        session: SessionId::from_bytes([9; 16]),
        seq: 1,
    };
    for (named, kept) in [
        (entry(1), Some(entry(1))),
        (entry(0), None),
        (entry(99), None),
        (foreign, None),
    ] {
        let mut story = Story::rested();
        story.compacts();
        story.land();
        story.opens_to_compact();
        story.says_of_compaction(EngineEvent::CompactionFinished(Ok(Compacted {
            first_kept: Some(named),
            ..summary("short")
        })));
        story.land();
        let last = story.shell.store.entries.last().map(|entry| &entry.body);
        assert!(
            matches!(last, Some(EntryBody::Compaction { first_kept, .. }) if *first_kept == kept),
            "{named}: {last:?}"
        );
        story.ends();
    }
}
