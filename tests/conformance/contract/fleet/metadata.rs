//! Durable metadata, compared with and counted in a revision of their own.

use futures_util::future::join_all;
use sessionplane_core::contract::Parent;
use sessionplane_core::contract::fleet::CreateSession;
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::fleet::labels::Priority;
use sessionplane_core::domain::fleet::metadata::{LabelsChange, MetadataChange};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::settings::SettingsOverride;

use super::super::desk::named;
use super::FleetWorlds;
use super::crew::{Crew, label, labels, new, relabel};

pub(crate) async fn c45_what_was_set_is_there_after_a_restart(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let parent = crew.create(new("trunk")).await;
    let request = CreateSession {
        labels: labels(&["team=net", "kind=flaky"]),
        priority: Priority::parse(7).expect("a priority"),
        paused: true,
        parent: Some(Parent {
            session: named("trunk"),
            entry: None,
        }),
        ..new("child")
    };
    let made = crew.create(request).await;
    assert_eq!(made.phase, Phase::Paused);
    assert_eq!(made.lineage.map(|it| it.parent), Some(parent.id));
    assert_eq!(made.chosen, SettingsOverride::default(), "nobody chose");
    let change = MetadataChange {
        priority: Some(Priority::parse(-3).expect("a priority")),
        ..relabel("team=docs")
    };
    let changed = crew.update("child", change).await;
    assert_eq!(changed.metadata_revision, made.metadata_revision + 1);
    assert_eq!(changed.labels, labels(&["team=docs", "kind=flaky"]));
    crew.world.restart().await;
    let found = crew.get("child").await;
    assert!(found.revision > changed.revision, "also over a restart");
    let same = sessionplane_core::domain::fleet::summary::SessionSummary {
        revision: found.revision,
        since: found.since,
        ..changed
    };
    assert_eq!(found, same);
}

pub(crate) async fn c40_a_change_expects_the_revision_that_was_seen(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    let etag = crew.create(new("docs")).await.metadata_revision;
    let first = crew
        .try_update("docs", relabel("a=1"), Some(etag), None)
        .await;
    let next = first.expect("as it was seen").metadata_revision;
    assert_ne!(next, etag);
    let late = crew
        .try_update("docs", relabel("a=2"), Some(etag), None)
        .await;
    assert_eq!(late.expect_err("it changed").reason, Reason::EtagMismatch);
    let found = crew.get("docs").await;
    assert_eq!(
        (found.labels, found.metadata_revision),
        (labels(&["a=1"]), next)
    );
}

pub(crate) async fn c40_changes_at_the_same_time_are_all_kept_and_no_run_notices(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let desk = crew.desk("docs");
    let run = desk.invoke("say \"x\"\nhang").await;
    let before = crew.get("docs").await;
    assert_eq!(before.phase, Phase::Working);
    let texts: Vec<_> = (0..16).map(|number| format!("l{number}=x")).collect();
    let changes = texts.iter().map(|text| crew.update("docs", relabel(text)));
    join_all(changes).await;
    let after = crew.get("docs").await;
    assert_eq!(after.labels.iter().count(), 16);
    assert_eq!(after.metadata_revision, before.metadata_revision + 16);
    assert_eq!(
        (after.active_run, after.phase),
        (before.active_run, Phase::Working)
    );
    desk.abort().await;
    run.finish().await;
    assert_eq!(crew.get("docs").await.labels, after.labels);
}

pub(crate) async fn c60_too_many_labels_are_refused_and_nothing_changes(worlds: &dyn FleetWorlds) {
    let crew = Crew::new(worlds).await;
    crew.create(new("docs")).await;
    let many = (0..33).map(|number| {
        let (key, value) = label(&format!("l{number}=x"));
        (key, Some(value))
    });
    let change = MetadataChange {
        labels: Some(LabelsChange::Merge(many.collect())),
        ..MetadataChange::default()
    };
    let error = crew.try_update("docs", change, None, None).await;
    let error = error.expect_err("too many");
    assert_eq!(error.violations[0].field, "labels");
    assert!(error.message.contains("at most 32"), "{error}");
    assert!(crew.get("docs").await.labels.is_empty());
}
