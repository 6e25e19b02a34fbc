//! C16: runs are listed and waited for; both only read.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use sessionplane_core::contract::RunPage;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::run::{RunOutcome, RunRecord};

use super::desk::{Ask, Desk, follow_up};
use super::disconnects::outcome;
use super::world::{Worlds, quick};

fn ids(runs: &[RunRecord]) -> Vec<RunId> {
    runs.iter().map(|run| run.id).collect()
}

pub(crate) async fn c16_runs_are_listed_newest_first_by_pages_of_any_size(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "runs");
    let mut newest_first = Vec::new();
    // More than one in the millisecond that an id holds.
    for n in 0..52 {
        let prompt = ["stop", "fail broken \"x\"", "usage in=3", "say \"x\""][n % 4];
        let run = desk.invoke(Ask::new(prompt).id(format!("r{n}"))).await;
        newest_first.insert(0, run.id);
        run.finish().await;
    }
    let active = desk.invoke("hang").await;
    newest_first.insert(0, active.id);
    let listed = desk.runs(500).await;
    assert_eq!(ids(&listed), newest_first);
    for run in &listed {
        assert_eq!(
            *run,
            desk.record(run.id).await,
            "listed as it is read alone"
        );
    }
    assert_eq!(listed[0].settled, None, "the active one is among them");
    for size in [0, 1, 7, 50, 52, 53, 54] {
        assert_eq!(desk.runs(size).await, listed, "by {size}");
    }
    let first = desk.try_runs(None, 0).await.expect("a page");
    assert_eq!(
        (first.runs.len(), first.has_more),
        (50, true),
        "the default"
    );
    let all = desk.try_runs(None, 53).await.expect("a page");
    assert!(!all.has_more, "nothing follows a page that holds the rest");
    world.restart().await;
    assert_eq!(ids(&desk.runs(9).await), newest_first);
}

/// C16 C64: each run that was there when the first page was read is read once.
pub(crate) async fn c16_paging_returns_each_run_once_while_runs_are_added(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "growing");
    let mut there = BTreeSet::new();
    for _ in 0..14 {
        let run = desk.invoke("stop").await;
        there.insert(run.id);
        run.finish().await;
    }
    let (mut before, mut read) = (None, Vec::new());
    loop {
        let page = desk.try_runs(before, 3).await.expect("a page");
        read.extend(ids(&page.runs));
        assert!(read.len() <= there.len(), "more than there were");
        before = read.last().copied();
        if !page.has_more {
            break;
        }
        desk.run("stop").await;
    }
    let once: BTreeSet<RunId> = read.iter().copied().collect();
    assert_eq!(once.len(), read.len(), "read twice");
    assert_eq!(once, there);
}

pub(crate) async fn c16_a_bad_place_or_size_is_refused(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let (desk, other) = (Desk::new(&world, "mine"), Desk::new(&world, "other"));
    desk.run("stop").await;
    let foreign = other.invoke("stop").await;
    let (elsewhere, never) = (foreign.id, RunId::from_bytes([7; 16]));
    foreign.finish().await;
    let refused = |answer: Result<RunPage, CallError>, field: &str| {
        let error = answer.expect_err("a refusal");
        assert_eq!(error.reason, Reason::InvalidArgument, "{error:?}");
        assert_eq!(error.violations[0].field, field, "{error:?}");
        error.message
    };
    for before in [elsewhere, never] {
        refused(desk.try_runs(Some(before), 3).await, "page_token");
    }
    let told = refused(desk.try_runs(None, 501).await, "page_size");
    assert!(told.contains("500"), "{told}");
    let unknown = Desk::new(&world, "nobody").try_runs(None, 0).await;
    assert_eq!(unknown, Err(CallError::no_such_session()));
}

pub(crate) async fn c16_everyone_who_waits_is_given_the_record(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "waited");
    for (prompt, code) in [
        ("wait-steer\nsay \"x\"", None),
        ("wait-steer\nfail broken \"x\"", Some("broken")),
        ("wait-steer\nhang", Some("aborted")),
    ] {
        let run = desk.invoke(prompt).await;
        let id = run.id;
        let waiting = (0..8).map(|_| {
            let desk = desk.clone();
            tokio::spawn(async move { desk.wait_run(id, None).await })
        });
        let waiting: Vec<_> = waiting.collect();
        desk.follow_up("say \"more\"").await;
        if code == Some("aborted") {
            desk.abort().await;
        } else {
            desk.steer("say \"on\"").await;
        }
        run.finish().await;
        let record = desk.record(id).await;
        assert_eq!(outcome(&record).code(), code);
        for waited in join_all(waiting).await {
            assert_eq!(waited.expect("no panic"), Ok(record.clone()));
        }
        // It has settled already, also where nobody serves the session.
        assert_eq!(desk.wait_run(id, None).await, Ok(record.clone()));
        world.restart().await;
        assert_eq!(desk.wait_run(id, None).await, Ok(record));
    }
}

/// C16: who waits while the session goes to rest and comes back misses no end.
pub(crate) async fn c16_a_wait_sees_the_end_whatever_moment_it_begins(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let lines = (0..4).map(|line| {
        let desk = Desk::new(&world, &format!("moment-{line}"));
        tokio::spawn(async move {
            for _ in 0..100 {
                let run = desk.invoke("stop").await;
                let record = desk.wait_run(run.id, None).await.expect("a record");
                assert_eq!(outcome(&record), &RunOutcome::Completed);
            }
        })
    });
    for line in join_all(lines).await {
        line.expect("no panic");
    }
}

pub(crate) async fn c16_a_wait_ends_at_its_deadline_and_the_run_goes_on(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "deadline");
    let run = desk.invoke("wait-steer\nsay \"x\"").await;
    let soon = Some(Duration::from_millis(100));
    let error = desk.wait_run(run.id, soon).await.expect_err("not settled");
    assert_eq!(error.reason, Reason::DeadlineExceeded, "{error:?}");
    assert_eq!(desk.view().await.active_run, Some(run.id));
    desk.steer("say \"on\"").await;
    let patient = Some(Duration::from_secs(50));
    let record = desk.wait_run(run.id, patient).await.expect("a record");
    assert_eq!(outcome(&record), &RunOutcome::Completed);
    run.finish().await;
}

/// C16 C4: a run of another tenant is as unknown as one that never was, byte for byte.
pub(crate) async fn c16_runs_of_others_are_unknown(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "hidden");
    let run = desk.invoke("hang").await;
    let stranger = world.stranger().expect("another tenant");
    let options = sessionplane_core::contract::CallOptions::default;
    let never = RunId::from_bytes([7; 16]);
    for id in [run.id, never] {
        let waited = stranger.wait_run(id, options()).await;
        let error = waited.expect_err("unknown");
        assert_eq!(error, CallError::refused(Reason::NoSuchRun, "no such run"));
        assert_eq!(stranger.get_run(id, options()).await, Err(error));
    }
    let request = sessionplane_core::contract::ListRunsRequest {
        session: sessionplane_core::domain::ids::SessionRef::Id(run.session),
        before: None,
        page_size: 0,
    };
    let listed = stranger.list_runs(request, options()).await;
    assert_eq!(listed, Err(CallError::no_such_session()));
    let error = desk.wait_run(never, None).await.expect_err("unknown");
    assert_eq!(error.reason, Reason::NoSuchRun);
}

/// C16 C36: a wait that a crash cut is repeated, and finds how the run ended.
pub(crate) async fn c16_b27_a_wait_across_a_restart_finds_the_end(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "cut");
    let run = desk.invoke("say \"x\"\nhang").await;
    let id = run.id;
    desk.dispatch(follow_up("never"), None).await;
    let cut = tokio::spawn({
        let desk = desk.clone();
        async move { desk.wait_run(id, None).await }
    });
    world.restart().await;
    // What it was told, if anything, is not of the new server.
    cut.abort();
    let record = desk.wait_run(id, None).await.expect("a record");
    assert_eq!(outcome(&record).code(), Some("interrupted"));
    assert_eq!(record, desk.record(id).await);
    assert_eq!(record.undelivered.len(), 1);
    let listed = desk.runs(0).await;
    assert_eq!(ids(&listed), [id]);
    assert_eq!(outcome(&listed[0]).code(), Some("interrupted"));
}
