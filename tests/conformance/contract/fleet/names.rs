//! Names and keys: unique in the tenant, changed without a trace in what they name.

use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::contract::fleet::{CreateSession, ListSessions};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{ExternalKey, SessionRef};

use super::super::desk::{Ask, named};
use super::FleetWorlds;
use super::crew::{Crew, name, new, rename};

pub(crate) async fn c04_a_name_or_key_that_is_taken_is_refused(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let key = ExternalKey::parse("ticket 7").expect("a key");
    let keyed = CreateSession {
        external_key: Some(key.clone()),
        ..new("docs")
    };
    let docs = crew.create(keyed.clone()).await;
    assert_eq!(docs.external_key, Some(key.clone()));
    crew.create(new("tests")).await;
    let same_key = CreateSession {
        name: Some(name("other")),
        ..keyed.clone()
    };
    for (request, field) in [
        (new("docs"), "name"),
        (keyed, "name"),
        (same_key, "external_key"),
    ] {
        let error = crew.try_create(request, None).await.expect_err("taken");
        assert_eq!(error.reason, Reason::NameTaken);
        assert_eq!(error.violations[0].field, field);
    }
    let renamed = crew.try_update("tests", rename("docs"), None, None).await;
    assert_eq!(renamed.expect_err("taken").reason, Reason::NameTaken);
    assert_eq!(crew.names("").await, ["docs", "tests"]);
    let by_key = crew.try_get(SessionRef::ExternalKey(key)).await;
    assert_eq!(by_key.map(|it| it.id), Ok(docs.id));
}

pub(crate) async fn c04_c60_a_reserved_name_is_refused_wherever_one_is_given(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    crew.create(new("docs")).await;
    let created = crew.try_create(new("all"), None).await.map(|_| ());
    let renamed = crew.try_update("docs", rename("me"), None, None).await;
    let invoked = crew.desk("none").open("say \"x\"").await.map(|_| ());
    for refused in [created, renamed.map(|_| ()), invoked] {
        let error = refused.expect_err("reserved");
        assert_eq!(error.reason, Reason::InvalidArgument);
        assert!(error.violations[0].field.ends_with("name"), "{error:?}");
        assert!(error.message.contains("reserved"), "{error}");
    }
    assert_eq!(crew.names("").await, ["docs"]);
}

pub(crate) async fn c46_a_rename_keeps_id_history_and_every_stream(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let desk = crew.desk("docs");
    let mut run = desk.invoke("say \"x\"\nhang").await;
    run.until(|event| matches!(event, InvokeEvent::Delta { .. }))
        .await;
    let mut watch = desk.watch().await;
    let before = crew.get("docs").await;
    let after = crew.update("docs", rename("papers")).await;
    assert_eq!(
        (after.id, after.name, after.active_run),
        (before.id, Some(name("papers")), before.active_run)
    );
    assert!(after.revision > before.revision);
    // Who observes is told, on the stream that is open.
    let told = loop {
        let event = watch.next().await.expect("an event").expect("no error");
        if let EventBody::StateChanged { renamed, .. } = event.event.body {
            break renamed;
        }
    };
    assert_eq!(told, Some(Some(name("papers"))));
    let unknown = crew.try_get(named("docs")).await.expect_err("the old name");
    assert_eq!(unknown.reason, Reason::NoSuchSession);
    let renamed = crew.desk("papers");
    let view = renamed.state().await.view;
    assert_eq!(view.session.name, Some(name("papers")));
    // Also who comes later, and the run that goes on.
    renamed.abort().await;
    run.finish().await;
    assert_eq!(renamed.entries().await[0].id.session, before.id);
    // The name that it had is free.
    assert_ne!(crew.create(new("docs")).await.id, before.id);
    crew.world.restart().await;
    assert_eq!(crew.get("papers").await.id, before.id);
}

pub(crate) async fn c03_b22_a_request_id_outlives_the_name_that_it_was_used_with(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let first = crew
        .desk("docs")
        .invoke(Ask::new("say \"x\"").id("once"))
        .await;
    let run = first.id;
    first.finish().await;
    let renamed = crew
        .try_update("docs", rename("papers"), None, Some("rename"))
        .await;
    let revision = renamed.expect("renamed").metadata_revision;
    // The repeat says the old name: what it is bound to is looked up before any name is.
    let again = crew
        .desk("docs")
        .invoke(Ask::new("say \"x\"").id("once"))
        .await;
    assert_eq!((again.id, again.joined), (run, true));
    for _ in 0..2 {
        let repeated = crew
            .try_update("docs", rename("papers"), None, Some("rename"))
            .await;
        let repeated = repeated.expect("bound");
        assert_eq!(
            repeated.metadata_revision, revision,
            "nothing is applied twice"
        );
        crew.world.restart().await;
    }
    let other = crew
        .try_update("docs", rename("notes"), None, Some("rename"))
        .await;
    assert_eq!(
        other.expect_err("another payload").reason,
        Reason::RequestIdReused
    );
}

pub(crate) async fn c03_a_repeated_creation_makes_one_session(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let calls = (0..16).map(|_| crew.try_create(new("docs"), Some("one")));
    let made = futures_util::future::join_all(calls).await;
    let ids: Vec<_> = made.into_iter().map(|it| it.expect("bound").id).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let other = crew.try_create(new("other"), Some("one")).await;
    assert_eq!(
        other.expect_err("another payload").reason,
        Reason::RequestIdReused
    );
    assert_eq!(crew.names("").await, ["docs"]);
}

pub(crate) async fn c04_what_is_hidden_is_unknown_to_the_fleet(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let Some(stranger) = crew.world.strangers_fleet() else {
        return;
    };
    let id = crew.create(new("docs")).await.id;
    let options = sessionplane_core::contract::CallOptions::default;
    for session in [SessionRef::Id(id), named("docs")] {
        let hidden = stranger.get_session(session, options()).await;
        let unknown = stranger.get_session(named("nobody"), options()).await;
        assert_eq!(hidden, unknown, "byte for byte");
        assert_eq!(hidden.expect_err("hidden").reason, Reason::NoSuchSession);
    }
    let listed = stranger
        .list_sessions(ListSessions::default(), options())
        .await;
    assert_eq!(listed.expect("a page").sessions, []);
    // A name is taken in its own tenant only.
    let made = stranger.create_session(new("docs"), options()).await;
    assert_ne!(made.expect("free there").id, id);
}
