//! C3, C13, C38: what a caller in process alone can try. Reading writes nothing; principals of one
//! tenant keep their ids apart; who gives no id cannot come back.

use std::time::Duration;

use sessionplane_core::contract::{CallOptions, CapabilityTarget, InvokeRequest, OnDisconnect};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::AgentName;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::view::Status;

use crate::house::House;
use crate::suite::desk::{Ask, Desk, with_id};
use crate::suite::disconnects::{outcome, patient};
use crate::suite::hands::{compact, set_model};
use crate::suite::run::Run;
use crate::suite::world::{World as _, quick};

async fn read_everything(desk: &Desk, run: sessionplane_core::domain::ids::RunId) {
    for _ in 0..3 {
        desk.state().await;
        desk.pages_of(1).await;
        desk.record(run).await;
        let watch = desk.watch().await;
        let place = watch.position;
        desk.watch_from(Some(place), Some("nonsense".to_owned()))
            .await;
        let target = CapabilityTarget::Session(desk.session.clone());
        let caller = desk.caller();
        for target in [target, CapabilityTarget::Agent(named_agent("scripted"))] {
            let options = CallOptions::default;
            let report = caller.get_capabilities(target.clone(), options()).await;
            report.expect("a report");
            let offered = caller.list_commands(target, options()).await;
            offered.expect("names");
        }
        let runs = desk.runs(1).await;
        assert!(runs.iter().any(|listed| listed.id == run));
        if runs[0].settled.is_some() {
            desk.wait_run(run, None).await.expect("a record");
        } else {
            let soon = Some(Duration::from_millis(1));
            desk.wait_run(run, soon).await.expect_err("it runs");
        }
    }
}

fn named_agent(name: &str) -> AgentName {
    AgentName::parse(name).expect("an agent")
}

#[tokio::test(flavor = "multi_thread")]
async fn c38_reading_a_dormant_session_writes_nothing() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "dormant");
    let run = desk.invoke("say \"x\"").await;
    let (id, session) = (run.id, run.session);
    run.finish().await;
    let (written, audits) = (house.gate.kept(), house.store().audits(session));
    read_everything(&desk, id).await;
    assert_eq!(desk.state().await.view.status(), Status::Idle);
    assert_eq!(house.gate.kept(), written);
    house.restart().await;
    read_everything(&desk, id).await;
    let view = desk.state().await.view;
    assert_eq!(
        (view.status(), view.last_run.map(|last| last.run)),
        (Status::Idle, Some(id))
    );
    assert_eq!(
        house.gate.kept(),
        written,
        "a start without cut runs writes nothing either"
    );
    assert_eq!(house.store().audits(session), audits);
}

/// C38: what a session asked, chose and compacted is read without waking it.
#[tokio::test(flavor = "multi_thread")]
async fn c38_reading_wakes_no_session() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "asleep");
    let prompt = "ask q confirm \"Q?\" within 1ms default yes\nwait-answers";
    let run = desk.invoke(prompt).await;
    let id = run.id;
    run.finish().await;
    desk.dispatch(set_model(Some("scripted-thinking")), None)
        .await;
    desk.dispatch(compact(""), None).await;
    desk.watch_idle().await;
    let before = desk.all().await;
    house.restart().await;
    let (written, started) = (house.gate.kept(), house.sessions_started());
    read_everything(&desk, id).await;
    assert_eq!(desk.all().await, before);
    assert_eq!(house.gate.kept(), written);
    assert_eq!(house.sessions_started(), started, "a session was woken");
    // The counter counts: a choice wakes it.
    desk.dispatch(set_model(None), None).await;
    assert_eq!(house.sessions_started(), started + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn c38_reading_a_running_session_writes_nothing() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "running");
    let run = desk.invoke("say \"x\"\nmessage\nhang").await;
    let mut watch = desk.watch_from(Some(run.position), None).await;
    while watch.position.seq < run.position.seq + 7 && watch.missed.len() < 7 {
        watch.event().await;
    }
    let written = house.gate.kept();
    read_everything(&desk, run.id).await;
    assert_eq!(house.gate.kept(), written);
}

#[tokio::test(flavor = "multi_thread")]
async fn c03_ids_of_two_principals_are_apart() {
    let house = House::new(quick());
    let desk = Desk::new(&house.world(), "shared");
    let mine = desk.invoke(Ask::new("say \"x\"").id("same")).await;
    let id = mine.id;
    mine.finish().await;
    let request = InvokeRequest {
        session: desk.session.clone(),
        prompt: "say \"other\"".to_owned(),
        given: Given::default(),
        agent: None,
        parent: None,
        must_exist: true,
        on_disconnect: OnDisconnect::Detach,
    };
    let theirs = house
        .colleague()
        .invoke(request, with_id(Some("same")))
        .await;
    let theirs = Run::accepted(theirs.expect("an answer")).await;
    assert!(!theirs.joined);
    assert_ne!(theirs.id, id);
    theirs.finish().await;
}

/// C13: callers that give no id; the SDKs always give one.
#[tokio::test(flavor = "multi_thread")]
async fn c13_cancel_without_an_id_aborts_at_once() {
    let world = House::new(patient()).world();
    let desk = Desk::new(&world, "at-once");
    for prompt in ["hang", "say \"x\"\nhang", "tool t progress 1000 every 1s"] {
        let run = desk.invoke(Ask::new(prompt).cancel()).await;
        let id = run.id;
        drop(run);
        assert_eq!(outcome(&desk.settled(id).await), &RunOutcome::Aborted);
    }
}
