//! What the fleet promises and only the house can show: many at once, laps, stalls, time, and what is
//! left of a deleted session.

#[path = "fleet/ends.rs"]
mod ends;
#[path = "fleet/narrow.rs"]
mod narrow;
#[path = "fleet/shown.rs"]
mod shown;
#[path = "fleet/watching.rs"]
mod watching;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{FutureExt as _, StreamExt as _};
use sessionplane_core::contract::fleet::{DeleteAnswer, DeleteSession, Fleet as _, SessionOrder};
use sessionplane_core::contract::{CallOptions, InvokeEvent};
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::AuditAction;
use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{SessionId, SessionRef};
use sessionplane_core::domain::interaction::InteractionAnswer;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::view::Status;
use sessionplane_core::ports::clock::Clock as _;
use sessionplane_core::ports::repository::Repository as _;
use sessionplane_server::adapters::artifacts::MemoryArtifacts;
use sessionplane_server::adapters::clock::TokioClock;
use sessionplane_server::adapters::memory::{CommitStep, Passing};
use sessionplane_server::app::config::AppConfig;
use sessionplane_server::app::face::Faces as _;

use crate::house::{House, owner};
use crate::suite::desk::{Ask, follow_up, named, within};
use crate::suite::fleet::crew::{Crew, Lookout, new, relabel, rename};
use crate::suite::hands::respond;
use crate::suite::world::{World as _, quick};

fn crew(config: AppConfig) -> (Arc<House>, Crew) {
    let house = House::new(config);
    let world = house.clone();
    (house, Crew { world })
}

/// Sessions and watchers: few, unless `SESSIONPLANE_FLAPPING` names others, such as `1000,100`.
fn flapping() -> (usize, usize) {
    let asked = std::env::var("SESSIONPLANE_FLAPPING").ok();
    let numbers = asked.as_deref().and_then(|it| it.split_once(','));
    let parsed = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed.unwrap_or((30, 6))
}

/// A session that works, asks, is answered, is renamed, held, labelled, and rests in between.
async fn flap(crew: &Crew, number: usize) {
    let mut name = format!("s-{number}");
    for turn in 0..3 {
        let desk = crew.desk(&name);
        let mut run = desk.invoke("ask q confirm \"Go on?\"\nwait-answers").await;
        let asked = run
            .until(|event| matches!(event, InvokeEvent::InteractionRequested { .. }))
            .await;
        let Some(InvokeEvent::InteractionRequested { interaction }) = asked.last() else {
            panic!("{asked:?}");
        };
        assert_eq!(crew.get(&name).await.phase, Phase::NeedsInput, "{name}");
        let next = format!("s-{number}-{turn}");
        crew.update(&name, rename(&next)).await;
        name = next;
        crew.pause(&name, true).await;
        let yes = InteractionAnswer::Confirmed(true);
        let desk = crew.desk(&name);
        desk.dispatch(respond(interaction.id, yes), None).await;
        run.finish().await;
        crew.update(&name, relabel(&format!("turn=t{turn}"))).await;
        if turn < 2 || number.is_multiple_of(2) {
            crew.pause(&name, false).await;
        }
    }
}

/// Reads until the watch shows what is expected of each session, whatever of it is in memory.
async fn converges(mut lookout: Lookout, expected: Arc<BTreeMap<SessionId, SessionSummary>>) {
    let rest = |it: &SessionSummary| {
        let rests = matches!(it.phase, Phase::Ready | Phase::Dormant);
        let phase = if rests { Phase::Dormant } else { it.phase };
        SessionSummary {
            phase,
            since: None,
            revision: 0,
            ..it.clone()
        }
    };
    let all: Vec<_> = expected.values().map(rest).collect();
    lookout
        .until(|it| it.seen.values().map(rest).eq(all.iter().cloned()))
        .await;
    for (id, seen) in &lookout.seen {
        let listed = &expected[id];
        assert!(
            seen.revision != listed.revision || seen == listed,
            "one revision, two sessions: {seen:?}, {listed:?}"
        );
    }
    let names = lookout.names();
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), names.len(), "a name twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c46_b25_flapping_sessions_look_the_same_to_everybody_once_they_rest() {
    let (sessions, watchers) = flapping();
    let (_house, crew) = crew(quick());
    join_all((0..sessions).map(|number| crew.create(new(&format!("s-{number}"))))).await;
    let watching = join_all((0..watchers).map(|_| crew.watch(""))).await;
    let flaps = join_all((0..sessions).map(|number| flap(&crew, number)));
    within("all have flapped", flaps).await;
    let listed = crew.list_by("", SessionOrder::Id, 7).await;
    assert_eq!(listed.len(), sessions);
    let expected: BTreeMap<_, _> = listed.into_iter().map(|it| (it.id, it)).collect();
    let expected = Arc::new(expected);
    join_all(
        watching
            .into_iter()
            .map(|it| converges(it, expected.clone())),
    )
    .await;
    for listed in expected.values() {
        let got = crew
            .try_get(SessionRef::Id(listed.id))
            .await
            .expect("it is there");
        assert_eq!(
            (&got.name, got.paused, &got.labels),
            (&listed.name, listed.paused, &listed.labels)
        );
        let caller = crew.world.caller();
        let id = SessionRef::Id(listed.id);
        let view = caller.get_state(id, None, CallOptions::default()).await;
        let view = view.expect("its state").view;
        assert_eq!(
            (view.status(), &view.session.name),
            (Status::Idle, &got.name)
        );
        assert_eq!(
            (&view.last_run, got.phase.is_active()),
            (&got.last_run, false)
        );
    }
    let found = crew.names("phase = NEEDS_INPUT OR phase = WORKING").await;
    assert_eq!(found, [""; 0]);
}

#[tokio::test]
async fn c47_a_watcher_that_does_not_read_is_cut_and_its_old_bookmark_begins_anew() {
    let config = AppConfig {
        fleet_changes: 8,
        ..quick()
    };
    let (_house, crew) = crew(config);
    crew.create(new("docs")).await;
    let mut lookout = crew.watch("").await;
    lookout.snapshot().await;
    let bookmark = lookout.bookmark.clone();
    for number in 0..20 {
        crew.update("docs", relabel(&format!("n=v{number}"))).await;
    }
    let cut = lookout.step().await.expect_err("its place is gone");
    assert_eq!(cut.reason, Reason::ObserverTooSlow);
    let mut again = crew.watch_from("", bookmark).await;
    assert_eq!(again.snapshot().await, ["docs"]);
    assert!(again.expired);
    crew.update("docs", rename("papers")).await;
    again.until(|it| it.of("papers").is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn c47_a_change_reaches_a_watcher_within_20_ms_and_many_come_as_one() {
    let (_house, crew) = crew(quick());
    crew.create(new("docs")).await;
    let mut lookout = crew.watch("").await;
    lookout.snapshot().await;
    // Until what its creation still tells is told.
    tokio::time::sleep(Duration::from_secs(1)).await;
    while lookout.step().now_or_never().is_some() {}
    crew.update("docs", relabel("n=first")).await;
    let clock = TokioClock::starting_at(Timestamp::default());
    let began = clock.now();
    for number in 0..10 {
        crew.update("docs", relabel(&format!("n=v{number}"))).await;
    }
    let last = crew.get("docs").await;
    lookout.until(|it| it.of("docs") == Some(&last)).await;
    let took = clock.now().since(began);
    assert!(took <= Duration::from_millis(60), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn c46_a_session_that_shows_nothing_is_marked_and_unmarked() {
    let config = AppConfig {
        stalled_after: Duration::from_secs(30),
        ..quick()
    };
    let (_house, crew) = crew(config);
    let desk = crew.desk("docs");
    let run = desk.invoke("say \"x\"\nwait 50s\nsay \"y\"\nhang").await;
    let asks = crew.desk("asks");
    let asking = asks.invoke("ask q confirm \"Go on?\"\nwait-answers").await;
    let mut stalled = crew.watch("stalled = true").await;
    assert_eq!(stalled.snapshot().await, [""; 0]);
    let clock = TokioClock::starting_at(Timestamp::default());
    let began = clock.now();
    stalled.until(|it| it.of("docs").is_some()).await;
    let took = clock.now().since(began);
    let (least, most) = (Duration::from_secs(29), Duration::from_secs(32));
    assert!(least <= took && took <= most, "{took:?}");
    let marked = crew.get("docs").await;
    assert_eq!(marked.phase, Phase::Working);
    assert!(marked.stalled_since.is_some());
    assert_eq!(crew.names("stalled = true").await, ["docs"]);
    assert_eq!(
        crew.get("asks").await.stalled_since,
        None,
        "it waits for people"
    );
    // It says something again.
    stalled.until(|it| it.seen.is_empty()).await;
    assert_eq!(crew.get("docs").await.stalled_since, None);
    for (desk, run) in [(desk, run), (asks, asking)] {
        desk.abort().await;
        run.finish().await;
    }
}

/// Waits until nothing is left of what was deleted.
async fn erased(house: &House) {
    let left = async || house.store().deleted(None).await.expect("it is read");
    within("it is erased", async {
        while left().await.is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// What became of an input is not known any more: the answer is not made up.
#[tokio::test]
async fn c03_c61_a_repeat_whose_input_was_erased_says_that_the_session_was_deleted() {
    let (house, crew) = crew(quick());
    let desk = crew.desk("docs");
    let run = desk.invoke("hang").await;
    let id = run.session;
    desk.dispatch(follow_up("x"), Some("input")).await;
    let aborted = desk.dispatch(Command::Abort, Some("abort")).await;
    run.finish().await;
    crew.try_delete(named("docs"), false, None)
        .await
        .expect("deleted");
    erased(&house).await;
    let again = desk.try_dispatch(follow_up("x"), Some("input"), None).await;
    assert_eq!(again, Err(CallError::session_deleted(id)));
    let again = desk.dispatch(Command::Abort, Some("abort")).await;
    assert_eq!(again, aborted, "it holds whatever was erased");
}

#[tokio::test]
async fn c61_what_a_deleted_session_held_is_erased_and_its_trail_stays() {
    let artifacts = Arc::new(MemoryArtifacts::default());
    let house = House::keeping(quick(), artifacts.clone());
    let world = house.clone();
    let crew = Crew { world };
    let desk = crew.desk("docs");
    let run = desk.invoke("tool-big 200KiB\nsay \"x\"").await;
    let id = run.session;
    run.finish().await;
    let entries = desk.entries().await;
    let kept = format!("{entries:?}");
    assert!(kept.contains("artifact: Some"), "{kept}");
    let trail = house.store().audits(id).expect("the trail").len();
    crew.try_delete(named("docs"), false, None)
        .await
        .expect("deleted");
    erased(&house).await;
    for entry in entries {
        let read = house.store().entry(entry.id).await;
        assert_eq!(read, Ok(None), "{entry:?}");
        if let sessionplane_core::domain::entry::EntryBody::Tool {
            artifact: Some(it), ..
        } = entry.body
        {
            use sessionplane_core::ports::artifact_store::ArtifactStore as _;
            assert_eq!(artifacts.read(it.id, 0, 1).await, Ok(None));
        }
    }
    let audits = house.store().audits(id).expect("the trail");
    assert_eq!(audits.len(), trail + 1);
    let last = audits.last().expect("a record");
    assert_eq!(last.action, AuditAction::Call(Action::Delete));
    assert!(last.actor.is_some() && last.request_digest.is_some());
}

#[tokio::test]
async fn c44_an_erasure_that_a_crash_cut_goes_on_at_the_next_start() {
    let (house, crew) = crew(quick());
    crew.desk("docs").run("say \"x\"").await;
    let request = DeleteSession {
        session: named("docs"),
        etag: None,
        abort: false,
    };
    let caller = house.app().as_caller(owner());
    let deleted = caller.delete_session(request, CallOptions::default()).await;
    deleted.expect("deleted");
    crew.world.restart().await;
    erased(&house).await;
}

/// C2: the disk fails under a rename, before or after it was kept: its caller does not know, nobody is shown
/// what may not be, and the same request id finds out.
#[tokio::test(flavor = "multi_thread")]
async fn c02_c39_a_lost_rename_is_unknown_is_shown_to_nobody_and_the_same_id_finds_out() {
    for step in [CommitStep::BeforeSync, CommitStep::AfterSync] {
        let (house, crew) = crew(quick());
        crew.create(new("docs")).await;
        let mut held = house
            .gate
            .hold_any(move |at, passing| at == step && matches!(passing, Passing::Metadata(_)));
        let renaming = {
            let crew = Crew {
                world: crew.world.clone(),
            };
            tokio::spawn(async move {
                crew.try_update("docs", rename("notes"), None, Some("one"))
                    .await
            })
        };
        held.reached().await;
        assert_eq!(crew.names("").await, ["docs"]);
        held.fail("the disk is gone");
        let error = renaming.await.expect("no panic").expect_err("lost");
        assert_eq!(error.outcome, Outcome::Unknown, "{error:?}");
        house.gate.open();
        house.restart().await;
        let kept = step == CommitStep::AfterSync;
        let is = if kept { "notes" } else { "docs" };
        assert_eq!(crew.names("").await, [is]);
        let again = crew.try_update("docs", rename("notes"), None, Some("one"));
        let again = again.await.expect("it is told what became of it");
        let revision = again.metadata_revision;
        assert_eq!(again.name.expect("a name").as_str(), "notes");
        assert_eq!(revision, 2, "it was applied once");
    }
}

/// C2: the same of a deletion.
#[tokio::test(flavor = "multi_thread")]
async fn c02_c39_a_lost_deletion_is_unknown_and_the_same_id_finds_out() {
    for step in [CommitStep::BeforeSync, CommitStep::AfterSync] {
        let (house, crew) = crew(quick());
        crew.create(new("docs")).await;
        let mut held = house
            .gate
            .hold_any(move |at, passing| at == step && matches!(passing, Passing::Deletion(_)));
        let deleting = {
            let crew = Crew {
                world: crew.world.clone(),
            };
            tokio::spawn(async move { crew.try_delete(named("docs"), false, Some("end")).await })
        };
        held.reached().await;
        assert!(!deleting.is_finished(), "it is told before it is kept");
        held.fail("the disk is gone");
        let error = deleting.await.expect("no panic").expect_err("lost");
        assert_eq!(error.outcome, Outcome::Unknown, "{error:?}");
        house.gate.open();
        house.restart().await;
        let left = crew.names("").await.len();
        assert_eq!(left, usize::from(step == CommitStep::BeforeSync));
        let again = crew.try_delete(named("docs"), false, Some("end")).await;
        assert_eq!(again, Ok(DeleteAnswer::Deleted));
        assert_eq!(crew.names("").await, [""; 0]);
    }
}

/// A change that its caller does not wait for is made whole all the same: everybody is told of it.
#[tokio::test]
async fn c40_a_caller_that_leaves_leaves_no_change_untold() {
    let (house, crew) = crew(quick());
    let id = crew.create(new("docs")).await.id;
    let mut lookout = crew.watch("").await;
    lookout.snapshot().await;
    for number in 0..50 {
        let name = format!("docs-{number}");
        let caller = house.app().as_caller(owner());
        let request = sessionplane_core::contract::fleet::UpdateSession {
            session: SessionRef::Id(id),
            change: rename(&name),
            etag: None,
        };
        {
            let mut update = caller.update_session(request, CallOptions::default());
            // So far, and no further.
            for _ in 0..number {
                if update.as_mut().now_or_never().is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        // Behind whatever was sent before: from here on nothing is under way.
        let change = relabel(&format!("turn=t{number}"));
        let last = sessionplane_core::contract::fleet::UpdateSession {
            session: SessionRef::Id(id),
            change,
            etag: None,
        };
        let caller = house.app().as_caller(owner());
        let shown = caller.update_session(last, CallOptions::default()).await;
        let shown = shown.expect("updated").name;
        let stored = house.store().session(id).await.expect("it is read");
        let stored = stored.expect("it is there").record.metadata.name;
        assert_eq!(shown, stored, "what is stored is shown");
        let stored = stored.expect("a name");
        lookout.until(|it| it.of(stored.as_str()).is_some()).await;
    }
}

#[tokio::test]
async fn c63_a_watch_ends_when_the_server_begins_to_stop() {
    let (house, crew) = crew(quick());
    crew.create(new("docs")).await;
    let mut watch = crew.try_watch("", None).await.expect("a watch");
    let run = crew.desk("works").invoke(Ask::new("say \"x\"\nhang")).await;
    house.app().drain();
    let ended = within("its end", async {
        loop {
            if let Some(Err(error)) = watch.next().await {
                return error;
            }
        }
    })
    .await;
    assert_eq!(ended.reason, Reason::ServerDraining);
    let refused = crew.try_watch("", None).await.err().expect("refused");
    assert_eq!(refused.reason, Reason::ServerDraining);
    crew.desk("works").abort().await;
    run.finish().await;
}
