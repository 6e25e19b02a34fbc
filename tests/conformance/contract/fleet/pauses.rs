//! Pause and resume.

use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::command::RejectionCode;
use sessionplane_core::domain::fleet::phase::Phase;

use super::super::desk::{Ask, Desk};
use super::super::hands::compact;
use super::super::run::Run;
use super::FleetWorlds;
use super::crew::{Crew, new};

/// Invokes where the session is paused: the one event of the answer says so.
async fn held(desk: &Desk, id: &str) {
    let stream = desk.open(Ask::new("say \"x\"").id(id)).await;
    let mut stream = stream.unwrap_or_else(|error| panic!("invoke: {error:?}"));
    match Run::next_of(&mut stream).await {
        Some(Ok(InvokeEvent::Failed {
            code,
            retryable: true,
            run: None,
            details,
        })) => {
            assert_eq!(code, "session_paused");
            assert!(details.contains("resume"), "{details}");
        }
        other => panic!("not held: {other:?}"),
    }
    assert!(Run::next_of(&mut stream).await.is_none(), "nothing follows");
}

pub(crate) async fn c15_a_paused_session_begins_nothing_and_goes_on_when_resumed(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    crew.create(new("docs")).await;
    let desk = crew.desk("docs");
    let before = desk.state().await;
    assert_eq!(crew.pause("docs", true).await.phase, Phase::Paused);
    held(&desk, "one").await;
    crew.world.restart().await;
    held(&desk, "one").await;
    let after = desk.state().await.view;
    assert_eq!((after.entries, after.last_run), (before.view.entries, None));
    let resumed = crew.pause("docs", false).await;
    assert!(!resumed.paused && resumed.phase != Phase::Paused);
    // It bound nothing: the same id is judged afresh.
    let run = desk.invoke(Ask::new("say \"x\"").id("one")).await;
    assert!(!run.joined);
    run.finish().await;
}

pub(crate) async fn c46_a_pause_lets_the_run_settle_and_is_seen_from_then_on(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let desk = crew.desk("docs");
    let run = desk.invoke("say \"x\"\nhang").await;
    let mut lookout = crew.watch("").await;
    lookout.snapshot().await;
    let paused = crew.pause("docs", true).await;
    assert_eq!((paused.paused, paused.phase), (true, Phase::Working));
    desk.busy("say \"y\"").await;
    desk.abort().await;
    run.finish().await;
    assert_eq!(crew.get("docs").await.phase, Phase::Paused);
    let paused =
        |it: &super::crew::Lookout| it.of("docs").map(|it| it.phase) == Some(Phase::Paused);
    lookout.until(paused).await;
    held(&desk, "later").await;
}

pub(crate) async fn c15_a_paused_session_is_not_compacted_until_it_is_resumed(
    worlds: &dyn FleetWorlds,
) {
    let crew = Crew::new(worlds).await;
    let desk = crew.desk("docs");
    desk.run("say \"x\"").await;
    crew.pause("docs", true).await;
    let before = desk.state().await;
    let no = desk.rejection(compact("what matters")).await;
    assert_eq!(no.code, RejectionCode::BoundaryCommandFailed);
    assert!(no.retryable && no.message.contains("resume"), "{no:?}");
    assert_eq!(desk.state().await.view, before.view, "nothing began");
    assert_eq!(crew.get("docs").await.phase, Phase::Paused);
    crew.pause("docs", false).await;
    desk.dispatch(compact("what matters"), None).await;
    desk.watch_idle().await;
}
