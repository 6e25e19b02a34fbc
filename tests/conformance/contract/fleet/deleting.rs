//! The end of a session.

use sessionplane_core::contract::fleet::{CreateSession, DeleteAnswer, DeleteSession};
use sessionplane_core::contract::{CallOptions, Parent};
use sessionplane_core::domain::command::RejectionCode;
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::ids::SessionRef;

use super::super::desk::{Ask, named};
use super::FleetWorlds;
use super::crew::{Crew, new, relabel};

pub(crate) async fn c61_a_deleted_session_is_unknown_to_everybody(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let desk = crew.desk("docs");
    let run = desk.invoke(Ask::new("say \"x\"").id("run")).await;
    let (id, run_id) = (run.session, run.id);
    run.finish().await;
    let mut lookout = crew.watch("").await;
    assert_eq!(lookout.snapshot().await, ["docs"]);
    let mut watch = desk.watch().await;
    let deleted = crew.try_delete(named("docs"), false, Some("end")).await;
    assert_eq!(deleted, Ok(DeleteAnswer::Deleted));
    lookout.until(|it| it.gone == [id]).await;
    assert!(lookout.seen.is_empty());
    while let Some(Ok(_)) = watch.next().await {}
    for _ in 0..2 {
        for session in [named("docs"), SessionRef::Id(id)] {
            let unknown = crew.try_get(session).await.expect_err("it is gone");
            assert_eq!(unknown.reason, Reason::NoSuchSession);
        }
        assert_eq!(crew.names("").await, [""; 0]);
        let state = desk.try_state(None).await.expect_err("it is gone");
        assert_eq!(state.reason, Reason::NoSuchSession);
        let update = crew.try_update("docs", relabel("a=b"), None, None).await;
        assert_eq!(
            update.expect_err("it is gone").reason,
            Reason::NoSuchSession
        );
        let caller = desk.caller();
        let record = caller.get_run(run_id, CallOptions::default()).await;
        assert_eq!(record.expect_err("it is gone").reason, Reason::NoSuchRun);
        // A repeat of what was accepted is no news.
        let again = crew.try_delete(named("docs"), false, Some("end")).await;
        assert_eq!(again, Ok(DeleteAnswer::Deleted));
        let joined = desk.open(Ask::new("say \"x\"").id("run")).await.err();
        assert_eq!(joined.map(|it| it.reason), Some(Reason::SessionDeleted));
        crew.world.restart().await;
    }
    // Its name is free, and what is made under it has nothing of it.
    let made = crew.create(new("docs")).await;
    assert_ne!(made.id, id);
    assert_eq!(desk.state().await.view.entries, 0);
}

pub(crate) async fn c61_a_session_at_work_is_deleted_only_if_that_is_said(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let desk = crew.desk("docs");
    let run = desk.invoke("say \"x\"\nhang").await;
    match crew.try_delete(named("docs"), false, Some("end")).await {
        Ok(DeleteAnswer::Rejected(no)) => {
            assert_eq!((no.code, no.retryable), (RejectionCode::SessionBusy, true));
        }
        other => panic!("{other:?}"),
    }
    assert!(crew.get("docs").await.active_run.is_some(), "it goes on");
    // The rejection bound nothing.
    let deleted = crew.try_delete(named("docs"), true, Some("end")).await;
    assert_eq!(deleted, Ok(DeleteAnswer::Deleted));
    let events = run.finish().await;
    let aborted = events.last().expect("a terminal");
    assert!(format!("{aborted:?}").contains("aborted"), "{aborted:?}");
    assert_eq!(crew.names("").await, [""; 0]);
}

pub(crate) async fn c61_a_session_that_others_branch_off_stays(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    crew.create(new("trunk")).await;
    let branch = CreateSession {
        parent: Some(Parent {
            session: named("trunk"),
            entry: None,
        }),
        ..new("child")
    };
    crew.create(branch).await;
    let refused = crew.try_delete(named("trunk"), false, None).await;
    assert_eq!(
        refused.expect_err("it has a child").reason,
        Reason::HasChildren
    );
    // It is as it was, and takes what it took before.
    crew.update("trunk", relabel("a=b")).await;
    crew.desk("trunk").run("say \"x\"").await;
    for name in ["child", "trunk"] {
        let deleted = crew.try_delete(named(name), false, None).await;
        assert_eq!(deleted, Ok(DeleteAnswer::Deleted), "{name}");
    }
}

/// C2: what is refused has done nothing, also where what is active was to be aborted.
pub(crate) async fn c61_c02_a_deletion_that_is_refused_aborts_nothing(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let desk = crew.desk("trunk");
    let run = desk.invoke("say \"x\"\nhang").await;
    let seen = crew.get("trunk").await;
    let newer = crew.update("trunk", relabel("a=b")).await;
    let end = |etag| DeleteSession {
        session: named("trunk"),
        etag: Some(etag),
        abort: true,
    };
    let refused = crew.end(end(seen.metadata_revision), Some("end")).await;
    let refused = refused.expect_err("it is not what it was");
    assert_eq!(
        (refused.reason, refused.outcome),
        (Reason::EtagMismatch, Outcome::Refused)
    );
    let branch = CreateSession {
        parent: Some(Parent {
            session: named("trunk"),
            entry: None,
        }),
        ..new("child")
    };
    crew.create(branch).await;
    let refused = crew.end(end(newer.metadata_revision), Some("end")).await;
    assert_eq!(
        refused.expect_err("it has a child").reason,
        Reason::HasChildren
    );
    assert_eq!(crew.get("trunk").await.active_run, Some(run.id));
    let gone = crew.try_delete(named("child"), false, None).await;
    assert_eq!(gone, Ok(DeleteAnswer::Deleted));
    let deleted = crew.end(end(newer.metadata_revision), Some("end")).await;
    assert_eq!(deleted, Ok(DeleteAnswer::Deleted));
    run.finish().await;
    // Of one at rest the revision counts as well.
    let made = crew.create(new("docs")).await;
    crew.update("docs", relabel("a=b")).await;
    let end = DeleteSession {
        session: named("docs"),
        etag: Some(made.metadata_revision),
        abort: false,
    };
    let refused = crew
        .end(end, None)
        .await
        .expect_err("it is not what it was");
    assert_eq!(refused.reason, Reason::EtagMismatch);
    assert_eq!(crew.names("").await, ["docs"]);
}
