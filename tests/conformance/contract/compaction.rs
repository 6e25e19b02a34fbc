//! C21, C22, B14, B20, B50: compaction accepts fast, tells its outcome, and loses nothing.

use std::time::Duration;

use sessionplane_core::domain::command::{Command, RejectionCode};
use sessionplane_core::domain::compaction::{CompactionOutcome, CompactionTrigger};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::event::{EventBody, EventEnvelope};
use sessionplane_core::domain::ids::EntryId;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::view::Status;

use super::desk::{Ask, Desk, follow_up, steer};
use super::disconnects::outcome;
use super::hands::{compact, fold};
use super::run::code;
use super::watch::{Watch, types};
use super::world::{Worlds, quick};

/// How a compaction ended, which must be told.
fn ended(events: &[EventEnvelope]) -> CompactionOutcome {
    let last = events.last().map(|event| &event.event.body);
    let Some(EventBody::CompactionFinished { outcome }) = last else {
        panic!("not the end of a compaction: {events:?}");
    };
    outcome.clone()
}
pub(crate) async fn finished(watch: &mut Watch) -> CompactionOutcome {
    ended(&watch.until_type("compaction_finished").await)
}
pub(super) fn summaries(entries: &[Entry]) -> Vec<&str> {
    let texts = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::Compaction { summary, .. } => Some(&*summary.text),
        _ => None,
    });
    texts.collect()
}
pub(crate) async fn c22_compact_accepts_fast_and_tells_its_outcome(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "outcome");
    desk.run("say \"first\"").await;
    let before = desk.entries().await;
    let mut watch = desk.watch().await;
    let accepted = desk
        .dispatch(compact("say \"in \"\nwait 300ms\nsay \"short\""), None)
        .await;
    assert_eq!((accepted.run, accepted.input), (None, None));
    // The answer came first: what it waits for is still to come.
    let view = desk.view().await;
    assert_eq!((view.status(), view.active_run), (Status::Compacting, None));
    let events = watch.until_type("compaction_finished").await;
    let order = [
        "compaction_started",
        "entry_appended",
        "compaction_finished",
    ];
    assert_eq!(types(&events), order);
    assert!(events.iter().all(|event| event.event.run.is_none()));
    let manual = CompactionTrigger::Manual;
    assert_eq!(
        events[0].event.body,
        EventBody::CompactionStarted { trigger: manual }
    );
    let entries = desk.entries().await;
    assert_eq!(entries[..before.len()], before[..]);
    let [summary] = &entries[before.len()..] else {
        panic!("{entries:?}");
    };
    assert_eq!(summaries(&entries), ["in short"]);
    assert_eq!(ended(&events), CompactionOutcome::Completed(summary.id));
    assert_eq!(summary.parent, before.last().map(|entry| entry.id));
    let view = desk.view().await;
    assert_eq!((view.status(), view.leaf), (Status::Idle, Some(summary.id)));
    assert_eq!(fold(watch.snapshot.view.clone(), &events), view);
    // A run after it is given the summary in the place of what it stands for.
    let told = desk.recall().await;
    assert!(
        told.contains("in short") && !told.contains("first"),
        "{told}"
    );
    assert!(desk.runs(0).await.len() == 2, "a compaction is no run");
}
pub(crate) async fn c22_c07_an_invoke_during_a_compaction_is_busy(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "busy");
    desk.run("say \"x\"").await;
    desk.dispatch(compact("hang"), None).await;
    let before = desk.all().await;
    assert_eq!(before.view.status(), Status::Compacting);
    for _ in 0..3 {
        desk.busy("me too").await;
        assert_eq!(desk.view().await.status(), Status::Compacting, "C27");
    }
    assert_eq!(desk.all().await, before);
    desk.abort().await;
    desk.watch_idle().await;
    assert_eq!(code(&desk.run("say \"now\"").await), "completed");
}
/// C21 B14: an abort ends it, and everything is as it was.
pub(crate) async fn c21_b14_an_abort_ends_a_compaction(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "aborted");
    desk.run("say \"first\"").await;
    let before = desk.all().await;
    let mut watch = desk.watch().await;
    for instructions in [
        "hang",
        "say \"half\"\nhang",
        "wait 1m",
        "say-words 1000 every 20ms",
    ] {
        desk.dispatch(compact(instructions), None).await;
        let accepted = desk.abort().await;
        assert_eq!((accepted.run, accepted.input), (None, None));
        assert_eq!(finished(&mut watch).await, CompactionOutcome::Aborted);
        assert_eq!(desk.all().await, before, "{instructions}");
        let nothing = desk.rejected(Command::Abort).await;
        assert_eq!(nothing, RejectionCode::NoActiveRun);
    }
    // In its middle, when the summary is under way.
    desk.dispatch(compact("say \"half\"\nhang"), None).await;
    tokio::task::yield_now().await;
    desk.view().await;
    desk.abort().await;
    assert_eq!(finished(&mut watch).await, CompactionOutcome::Aborted);
    let told = desk.recall().await;
    assert!(told.contains("first") && !told.contains("half"), "{told}");
}
/// C21: an abort that races with the end is one or the other, never both.
pub(crate) async fn c21_an_abort_that_races_with_a_compaction_ends_it_once(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "race");
    let mut entries = 0;
    for n in 0..40 {
        desk.run("say \"x\"").await;
        entries += 2;
        let mut watch = desk.watch().await;
        desk.dispatch(compact("say \"short\""), None).await;
        for _ in 0..n * 8 {
            tokio::task::yield_now().await;
        }
        let aborted = desk.try_dispatch(Command::Abort, None, None).await;
        aborted.expect("an answer");
        match finished(&mut watch).await {
            CompactionOutcome::Completed(_) => entries += 1,
            CompactionOutcome::Aborted => {}
            CompactionOutcome::Failed(failure) => panic!("{failure:?}"),
        }
        desk.watch_idle().await;
        assert_eq!(desk.entries().await.len(), entries);
    }
}
/// C22 B50: whatever step it fails or dies at, the transcript is as it was.
pub(crate) async fn c22_b50_a_failed_compaction_leaves_the_transcript_as_it_was(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "failed");
    desk.run("say \"first\"").await;
    desk.run("say \"second\"").await;
    let before = desk.all().await;
    let mut watch = desk.watch().await;
    for (instructions, wanted, retryable) in [
        (
            "fail rate_limited \"later\" retryable",
            "rate_limited",
            true,
        ),
        ("say \"half\"\nfail broken \"for good\"", "broken", false),
        (
            "wait 5ms\nfail session_busy \"a lie\"",
            "engine_failed",
            false,
        ),
        ("crash", "engine_gone", true),
        ("say \"half\"\ncrash", "engine_gone", true),
        ("stop", "engine_failed", true),
        ("tool t", "bad_scenario", false),
        ("compact \"x\" fail limit \"y\" retryable", "limit", true),
    ] {
        desk.dispatch(compact(instructions), None).await;
        let CompactionOutcome::Failed(failure) = finished(&mut watch).await else {
            panic!("{instructions} did not fail");
        };
        let told = (&*failure.code, failure.retryable);
        assert_eq!(told, (wanted, retryable), "{instructions}");
        assert_eq!(desk.all().await, before, "{instructions}");
    }
    let told = desk.recall().await;
    assert!(told.contains("first") && told.contains("second"), "{told}");
    desk.dispatch(compact("say \"at last\""), None).await;
    let outcome = finished(&mut watch).await;
    assert!(
        matches!(outcome, CompactionOutcome::Completed(_)),
        "{outcome:?}"
    );
}
/// C22 C44 B50: a server that is killed in it leaves the transcript as it was, and nothing busy.
pub(crate) async fn c22_b50_a_killed_compaction_leaves_the_transcript_as_it_was(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "killed");
    desk.run("say \"first\"").await;
    let before = desk.all().await;
    for (n, instructions) in ["hang", "say \"half\"\nhang", "wait 1m"].iter().enumerate() {
        let id = format!("killed-{n}");
        desk.dispatch(compact(instructions), Some(&id)).await;
        assert_eq!(desk.view().await.status(), Status::Compacting);
        world.restart().await;
        assert_eq!(desk.all().await, before, "{instructions}");
        // Its id was accepted: a repeat starts nothing.
        desk.dispatch(compact(instructions), Some(&id)).await;
        assert_eq!(desk.all().await, before, "{instructions}");
        let nothing = desk.rejected(Command::Abort).await;
        assert_eq!(nothing, RejectionCode::NoActiveRun);
    }
    let told = desk.recall().await;
    assert!(told.contains("first"), "{told}");
    // What was told as completed is there after a kill.
    let mut watch = desk.watch().await;
    desk.dispatch(compact("say \"short\""), None).await;
    let CompactionOutcome::Completed(summary) = finished(&mut watch).await else {
        panic!("it did not complete");
    };
    world.restart().await;
    assert_eq!(desk.view().await.leaf, Some(summary));
    let told = desk.recall().await;
    assert!(told.contains("short") && !told.contains("first"), "{told}");
}
/// C22 B50: kills at random moments leave the old leaf or the new one, complete.
pub(crate) async fn c22_b50_kills_at_random_moments_leave_the_old_leaf_or_the_new(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "random");
    desk.run("say \"first\"").await;
    for n in 0..12 {
        let before = desk.entries().await;
        let id = format!("c{n}");
        let compacting = compact("say \"a \"\nsay \"summary\"");
        let answer = desk.try_dispatch(compacting, Some(&id), None).await;
        answer.expect("an answer");
        for _ in 0..n * 6 {
            tokio::task::yield_now().await;
        }
        world.restart().await;
        let after = desk.all().await;
        assert_eq!(after.view.status(), Status::Idle);
        assert_eq!(after.entries[..before.len()], before[..]);
        let new = &after.entries[before.len()..];
        assert!(new.len() <= 1, "{new:?}");
        assert!(new.is_empty() || summaries(new) == ["a summary"], "{new:?}");
        assert_eq!(after.view.leaf, after.entries.last().map(|entry| entry.id));
        desk.run("say \"next\"").await;
    }
}
pub(crate) async fn c22_nothing_to_compact_is_told(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "nothing");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    desk.dispatch(compact(""), Some("one")).await;
    finished(&mut watch).await;
    let (before, position) = (desk.all().await, desk.state().await.position);
    let rejection = desk.rejection(compact("")).await;
    let told = (rejection.code, rejection.retryable);
    assert_eq!(told, (RejectionCode::NothingToCompact, false));
    // A repeat is answered as it was; another payload is another call.
    desk.dispatch(compact(""), Some("one")).await;
    let other = desk.try_dispatch(compact("x"), Some("one"), None).await;
    assert_eq!(other.expect_err("reused").reason, Reason::RequestIdReused);
    assert_eq!(desk.all().await, before);
    assert_eq!(desk.state().await.position, position);
    let long = "x".repeat(16 * 1024 + 1);
    let error = desk.try_dispatch(compact(&long), None, None).await;
    let error = error.expect_err("a limit");
    assert_eq!(error.reason, Reason::TooLarge);
    assert_eq!(error.violations[0].field, "compact.instructions");
    desk.run("say \"more\"").await;
    desk.dispatch(compact(&long[1..]), None).await;
    finished(&mut watch).await;
}
/// C20 B20: outside of a run there is nobody to be steered, at no step of it.
pub(crate) async fn c22_b20_inputs_during_a_compaction_are_rejected(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "inputs");
    desk.run("say \"x\"").await;
    let mut watch = desk.watch().await;
    desk.dispatch(compact("say \"a\"\nhang"), None).await;
    let before = desk.entries().await;
    for _ in 0..5 {
        for command in [steer("never"), follow_up("never")] {
            let code = desk.rejected(command).await;
            assert_eq!(code, RejectionCode::NoActiveRun);
        }
    }
    desk.abort().await;
    let events = watch.until_type("compaction_finished").await;
    assert_eq!(
        types(&events),
        ["compaction_started", "compaction_finished"]
    );
    assert_eq!(desk.entries().await, before);
}
/// C22: each of 50 compactions adds one entry, and nothing is copied.
pub(crate) async fn c22_growth_is_linear_over_50_compactions(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "growth");
    let mut watch: Option<Watch> = None;
    for n in 0..50 {
        desk.run(&*format!("say \"said {n}\"")).await;
        let watch = match &mut watch {
            Some(watch) => watch,
            none => none.insert(desk.watch().await),
        };
        let kept = format!("compact \"summary {n}\" kept 1");
        desk.dispatch(compact(&kept), None).await;
        let outcome = finished(watch).await;
        assert!(matches!(outcome, CompactionOutcome::Completed(_)));
    }
    let entries = desk.entries().await;
    assert_eq!(entries.len(), 50 * 3);
    let weight: usize = entries.iter().map(Entry::weight).sum();
    assert!(weight < 150 * 400, "{weight} bytes");
    // Only the newest summary, and what it kept, is before the model.
    let told = desk.recall().await;
    assert!(
        told.contains("summary 49") && !told.contains("summary 48"),
        "{told}"
    );
    assert!(!told.contains("said 48"), "{told}");
}
/// C22: what a compaction keeps is read as it is.
pub(crate) async fn c22_what_was_kept_is_read_after_the_summary(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "kept");
    desk.run("say \"first\"").await;
    desk.run("say \"second\"").await;
    let entries = desk.entries().await;
    desk.dispatch(compact("compact \"in short\" kept 2"), None)
        .await;
    desk.watch_idle().await;
    let all = desk.entries().await;
    let EntryBody::Compaction { first_kept, .. } = all.last().expect("a summary").body else {
        panic!("{all:?}");
    };
    let kept: Option<EntryId> = Some(entries[2].id);
    assert_eq!(first_kept, kept);
    for restarts in [false, true] {
        if restarts {
            world.restart().await;
        }
        let told = desk.recall().await;
        let at = |text: &str| told.find(text);
        assert_eq!(at("say \\\"first"), None, "{told}");
        assert!(at("in short") < at("second"), "{told}");
        assert!(at("in short").is_some(), "{told}");
    }
    let run = desk.runs(1).await.remove(0);
    assert_eq!(outcome(&run), &RunOutcome::Completed);
    let soon = Some(Duration::from_secs(5));
    desk.wait_run(run.id, soon).await.expect("a record");
}
/// C21 B14: an agent that hears nothing is dropped at the deadline, and the compaction is aborted.
pub(crate) async fn c21_b14_a_deaf_agent_s_compaction_is_aborted_at_the_deadline(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "deaf");
    let mut run = desk.invoke(Ask::new("x").agent("deaf")).await;
    run.until_text().await;
    desk.abort().await;
    assert_eq!(code(&run.finish().await), "aborted");
    let before = desk.all().await;
    let mut watch = desk.watch().await;
    desk.dispatch(compact(""), None).await;
    desk.abort().await;
    // It is ending: a second abort finds what it wants under way.
    desk.abort_if_active().await;
    assert_eq!(finished(&mut watch).await, CompactionOutcome::Aborted);
    assert_eq!(desk.all().await, before);
}
pub(crate) async fn c22_a_missing_agent_fails_the_compaction_not_the_call(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "absent");
    desk.run(Ask::new("x").agent("absent")).await;
    let before = desk.all().await;
    let mut watch = desk.watch().await;
    desk.dispatch(compact(""), None).await;
    let CompactionOutcome::Failed(failure) = finished(&mut watch).await else {
        panic!("it did not fail");
    };
    assert_eq!(
        (&*failure.code, failure.retryable),
        ("engine_unavailable", true)
    );
    assert!(failure.details.contains("no such program"), "{failure:?}");
    assert_eq!(desk.all().await, before);
}
