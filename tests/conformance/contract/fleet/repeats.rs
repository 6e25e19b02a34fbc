//! Repeats of calls that were accepted: they apply nothing and are answered as the first ones were.

use sessionplane_core::contract::fleet::DeleteAnswer;
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionRef;

use super::super::desk::{Ask, named, with_id, within};
use super::FleetWorlds;
use super::crew::{Crew, labels, name, new, relabel, rename};

impl Crew {
    /// Pauses, or resumes, a session with a request id.
    async fn hold(&self, session: &str, paused: bool, id: &str) -> SessionSummary {
        let (fleet, options) = (self.fleet(), with_id(Some(id)));
        let held = if paused {
            within("pause", fleet.pause_session(named(session), options)).await
        } else {
            within("resume", fleet.resume_session(named(session), options)).await
        };
        held.unwrap_or_else(|error| panic!("pause {session}: {error:?}"))
    }
}

/// What a call made of the metadata.
fn decided(summary: &SessionSummary) -> (bool, u64, String) {
    let labels = &summary.labels;
    (
        summary.paused,
        summary.metadata_revision,
        format!("{labels:?}"),
    )
}

pub(crate) async fn c03_a_repeat_returns_what_the_call_decided_whatever_came_after_it(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    crew.create(new("docs")).await;
    let label = |id| crew.try_update("docs", relabel("team=net"), None, Some(id));
    let labelled = label("l").await.expect("labelled");
    let paused = crew.hold("docs", true, "p").await;
    let resumed = crew.hold("docs", false, "r").await;
    assert_eq!((paused.phase, resumed.paused), (Phase::Paused, false));
    let other = crew.update("docs", relabel("team=web")).await;
    for _ in 0..2 {
        let again = label("l").await.expect("bound");
        assert_eq!(decided(&again), decided(&labelled));
        assert_eq!(again.labels, labels(&["team=net"]));
        let again = crew.hold("docs", true, "p").await;
        assert_eq!(decided(&again), decided(&paused));
        assert_eq!((again.phase, again.revision), (Phase::Paused, 0));
        assert_eq!(again.updated_at, paused.updated_at);
        let again = crew.hold("docs", false, "r").await;
        assert_eq!(decided(&again), decided(&resumed));
        // Nothing was applied.
        let now = crew.get("docs").await;
        assert_eq!(decided(&now), decided(&other));
        assert!(now.revision > 0);
        crew.world.restart().await;
    }
}

pub(crate) async fn c03_a_repeated_creation_is_answered_as_the_first_one(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let first = crew.try_create(new("docs"), Some("one")).await;
    let first = first.expect("created");
    crew.update("docs", rename("papers")).await;
    let run = crew.desk("papers").invoke(Ask::new("say \"x\"")).await;
    let id = run.id;
    run.finish().await;
    crew.world.restart().await;
    let again = crew.try_create(new("docs"), Some("one")).await;
    let again = again.expect("bound");
    assert_eq!(
        (again.id, again.name.as_ref()),
        (first.id, first.name.as_ref())
    );
    assert_eq!(
        (decided(&again), again.place),
        (decided(&first), first.place)
    );
    // What the session is at is told as it is now.
    assert_eq!(again.last_run.map(|it| it.run), Some(id));
    assert_eq!(crew.get("papers").await.name, Some(name("papers")));
}

pub(crate) async fn c03_a_repeat_without_anything_in_between_is_the_session_as_it_is(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let first = crew.try_create(new("docs"), Some("one")).await;
    let again = crew.try_create(new("docs"), Some("one")).await;
    assert_eq!(again, first);
    let first = crew.hold("docs", true, "p").await;
    let again = crew.hold("docs", true, "p").await;
    assert_eq!((again.revision, &again), (first.revision, &first));
    assert_eq!(again, crew.get("docs").await);
}

pub(crate) async fn c03_c61_a_repeat_about_a_deleted_session_says_that_it_was_accepted(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let docs = crew.try_create(new("docs"), Some("one")).await;
    let docs = docs.expect("created").id;
    crew.hold("docs", false, "r").await;
    let ask = || Ask::new("say \"x\"").id("run");
    crew.desk("docs").invoke(ask()).await.finish().await;
    let end = || crew.try_delete(SessionRef::Name(name("docs")), false, Some("end"));
    assert_eq!(end().await, Ok(DeleteAnswer::Deleted));
    for _ in 0..2 {
        let again = crew.try_create(new("docs"), Some("one")).await;
        let gone = CallError::session_deleted(docs);
        assert_eq!(again, Err(gone.clone()));
        assert_eq!(
            (gone.reason, gone.outcome),
            (Reason::SessionDeleted, Outcome::Refused)
        );
        let fleet = crew.fleet();
        let again = fleet.resume_session(named("docs"), with_id(Some("r")));
        assert_eq!(within("resume", again).await, Err(gone.clone()));
        let again = crew.desk("docs").open(ask()).await;
        assert_eq!(again.err(), Some(gone), "an invoke's is gone, too");
        assert_eq!(
            end().await,
            Ok(DeleteAnswer::Deleted),
            "that was the answer"
        );
        // Another id begins anew.
        let fresh = crew
            .try_create(new("docs"), None)
            .await
            .expect("it is free");
        assert_ne!(fresh.id, docs);
        let ended = crew.try_delete(SessionRef::Id(fresh.id), false, None).await;
        assert_eq!(ended, Ok(DeleteAnswer::Deleted));
        crew.world.restart().await;
    }
}
