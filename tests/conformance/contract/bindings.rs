//! C3: a request id makes a repeat harmless; only an acceptance binds it.

use futures_util::future::join_all;
use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::command::{AcceptedInput, Command, DispatchAnswer, RejectionCode};
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::InputId;
use sessionplane_core::domain::input::{DiscardCause, InputFate};

use super::desk::{Ask, Desk, follow_up, steer};
use super::run::code;
use super::world::{Worlds, quick};

async fn input(desk: &Desk, command: Command, id: &str) -> AcceptedInput {
    let accepted = desk.dispatch(command, Some(id)).await;
    accepted.input.expect("a queued input")
}

pub(crate) async fn c03_a_repeat_returns_the_first_answer_with_its_present_fate(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "fates");
    let run = desk.invoke("wait-steer\nhang").await;
    let follow = input(&desk, follow_up("never"), "follow").await;
    assert_eq!(follow.fate, InputFate::Pending);
    assert_eq!(input(&desk, follow_up("never"), "follow").await, follow);
    let mut watch = desk.watch().await;
    let first = input(&desk, steer("say \"seen\"\nhang"), "steer").await;
    watch.until_type("input_delivered").await;
    let again = input(&desk, steer("say \"seen\"\nhang"), "steer").await;
    assert_eq!(again.id, first.id);
    let entry = again.entry().expect("it was delivered");
    let entries = desk.entries().await;
    let delivers = |body: &EntryBody| matches!(body, EntryBody::User { input: Some(id), .. } if *id == first.id);
    let delivered: Vec<_> = entries.iter().filter(|e| delivers(&e.body)).collect();
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].id, entry);
    desk.dispatch(Command::Abort, Some("abort")).await;
    run.finish().await;
    // The run is gone; the answers stand.
    let gone = input(&desk, follow_up("never"), "follow").await;
    assert_eq!(gone.discarded(), Some(DiscardCause::Aborted));
    assert_eq!(gone.id, follow.id);
    let aborted = desk.dispatch(Command::Abort, Some("abort")).await;
    assert_eq!((aborted.run, aborted.input), (Some(follow.id.run), None));
}

pub(crate) async fn c03_only_an_acceptance_binds(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "afresh");
    desk.run("say \"x\"").await;
    let answer = desk
        .try_dispatch(steer("say \"y\""), Some("one"), None)
        .await;
    assert!(
        matches!(answer, Ok(DispatchAnswer::Rejected(_))),
        "{answer:?}"
    );
    let run = desk.invoke("wait-steer").await;
    desk.busy(Ask::new("say \"later\"").id("two")).await;
    let accepted = desk.dispatch(steer("say \"y\""), Some("one")).await;
    assert_eq!(accepted.run, Some(run.id));
    run.finish().await;
    let later = desk.invoke(Ask::new("say \"later\"").id("two")).await;
    assert!(!later.joined, "busy bound nothing");
    assert_eq!(code(&later.finish().await), "completed");
}

fn reused<T: std::fmt::Debug>(answer: Result<T, CallError>) {
    match answer {
        Err(error) => {
            assert_eq!(error.reason, Reason::RequestIdReused);
            assert_eq!(error.outcome, Outcome::Refused);
        }
        Ok(answer) => panic!("{answer:?}"),
    }
}

pub(crate) async fn c03_an_id_with_another_payload_is_refused(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "payloads");
    let ask = Ask::new("say \"a\"\nhang").id("invoke");
    let run = desk.invoke(ask.clone()).await;
    for other in [
        Ask::new("say \"b\"\nhang").id("invoke"),
        ask.clone().must_exist(),
        ask.clone().agent("no-steering"),
    ] {
        reused(desk.open(other).await.map(|_| ()));
    }
    let other_session = Desk::new(&world, "elsewhere");
    reused(other_session.open(ask.clone()).await.map(|_| ()));
    assert!(
        other_session.try_state(None).await.is_err(),
        "nothing was created"
    );
    // How callers leave is not part of the payload, and the methods keep their ids apart.
    let joined = desk.invoke(ask.clone().cancel()).await;
    assert_eq!((joined.id, joined.joined), (run.id, true));
    assert_eq!(ask.on_disconnect, OnDisconnect::Detach);
    input(&desk, follow_up("x"), "invoke").await;

    reused(
        desk.try_dispatch(follow_up("y"), Some("invoke"), None)
            .await,
    );
    reused(desk.try_dispatch(steer("x"), Some("invoke"), None).await);
    reused(
        desk.try_dispatch(Command::Abort, Some("invoke"), None)
            .await,
    );
    let guarded = desk.try_dispatch(follow_up("x"), Some("invoke"), Some(run.id));
    reused(guarded.await);
    assert_eq!(desk.state().await.view.pending.len(), 1);
}

pub(crate) async fn c03_concurrent_repeats_of_one_dispatch_queue_once(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "repeats");
    let run = desk.invoke("wait-steer").await;
    let calls = (0..32).map(|_| {
        let desk = desk.clone();
        tokio::spawn(async move { input(&desk, follow_up("say \"once\""), "same").await.id })
    });
    let ids: Vec<InputId> = join_all(calls)
        .await
        .into_iter()
        .map(|id| id.expect("a call"))
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let state = desk.state().await;
    assert_eq!(state.view.pending.keys().collect::<Vec<_>>(), [&ids[0]]);
    desk.steer("say \"go\"").await;
    run.finish().await;
    let once = desk.entries().await.into_iter().filter(
        |entry| matches!(&entry.body, EntryBody::User { text, .. } if &**text == "say \"once\""),
    );
    assert_eq!(once.count(), 1);
}

/// C3 B22: parallel repeats, a settled run and a restart: one entry, the same answer each time.
pub(crate) async fn c03_b22_a_binding_survives_a_restart(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "kept");
    let ask = || Ask::new("wait-steer\nhang").id("invoke");
    let run = desk.invoke(ask()).await;
    let mut watch = desk.watch().await;
    let shown = input(&desk, steer("hang"), "steer").await;
    watch.until_type("input_delivered").await;
    let waiting = input(&desk, follow_up("never"), "follow").await;
    world.restart().await;
    let again = input(&desk, steer("hang"), "steer").await;
    assert_eq!(again.id, shown.id);
    assert!(again.entry().is_some(), "{again:?}");
    let cut = input(&desk, follow_up("never"), "follow").await;
    assert_eq!(cut.id, waiting.id);
    assert_eq!(cut.discarded(), Some(DiscardCause::Interrupted));
    let joined = desk.invoke(ask()).await;
    assert_eq!((joined.id, joined.joined), (run.id, true));
    reused(desk.try_dispatch(steer("other"), Some("steer"), None).await);
    reused(desk.open(Ask::new("other").id("invoke")).await.map(|_| ()));
    let prompts = desk.entries().await.into_iter();
    assert_eq!(prompts.filter(|e| e.body.kind() == "user").count(), 2);
}

pub(crate) async fn c03_ids_of_two_tenants_are_apart(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let Some(stranger) = world.stranger() else {
        return;
    };
    let desk = Desk::new(&world, "same-name");
    let mine = desk.invoke(Ask::new("hang").id("same-id")).await;
    let request = sessionplane_core::contract::InvokeRequest {
        session: desk.session.clone(),
        prompt: "hang".to_owned(),
        given: Given::default(),
        agent: None,
        parent: None,
        must_exist: false,
        on_disconnect: OnDisconnect::Detach,
    };
    let options = super::desk::with_id(Some("same-id"));
    let theirs = stranger.invoke(request, options).await.expect("an answer");
    let theirs = super::run::Run::accepted(theirs).await;
    assert!(!theirs.joined);
    assert_ne!((mine.session, mine.id), (theirs.session, theirs.id));
}

pub(crate) async fn c03_a_rejection_is_judged_afresh_each_time(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "judged");
    desk.run("say \"x\"").await;
    for text in ["one", "two"] {
        let answer = desk.try_dispatch(steer(text), Some("same"), None).await;
        let Ok(DispatchAnswer::Rejected(rejection)) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(rejection.code, RejectionCode::NoActiveRun);
    }
}
