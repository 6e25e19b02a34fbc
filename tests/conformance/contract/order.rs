//! C4: in which order a call is judged, and that hidden looks like unknown.

use sessionplane_core::contract::{
    CallOptions, CapabilityTarget, DispatchRequest, EventFilter, EventsRequest, InvokeRequest,
    ListEntriesRequest, OnDisconnect,
};
use sessionplane_core::domain::command::{Command, RejectionCode};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{RunId, SessionId, SessionRef};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::time::Timestamp;

use super::desk::{Ask, Desk, follow_up, steer, with_id};
use super::world::{Caller, Worlds, quick};

fn unknown_session() -> SessionRef {
    SessionRef::Id(SessionId::mint(Timestamp::from_millis(1), 1))
}

fn reason<T>(answer: Result<T, CallError>) -> Reason {
    let error = answer.err().expect("a refusal");
    assert_eq!(error.outcome, Outcome::Refused, "{error:?}");
    error.reason
}

pub(crate) async fn c04_an_unknown_session_is_told_before_the_payload(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    for desk in [
        Desk::new(&world, "nobody"),
        Desk::at(&world, unknown_session()),
    ] {
        for command in [steer(""), follow_up(""), Command::Abort] {
            let answer = desk.try_dispatch(command, None, None).await;
            assert_eq!(reason(answer), Reason::NoSuchSession);
        }
        let answer = desk.open(Ask::new("").must_exist()).await;
        assert_eq!(reason(answer), Reason::NoSuchSession);
        let answer = desk.page(None, 100_000).await;
        assert_eq!(reason(answer), Reason::NoSuchSession);
    }
}

pub(crate) async fn c04_the_capability_is_judged_before_payload_and_run(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "mute");
    desk.run(Ask::new("say \"x\"").agent("no-steering")).await;
    let other = RunId::mint(Timestamp::from_millis(1), 1);
    for expected in [None, Some(other)] {
        let answer = desk.try_dispatch(steer(""), None, expected).await;
        let rejected = format!("{answer:?}");
        assert!(rejected.contains("UnsupportedCapability"), "{rejected}");
    }
    let run = desk.invoke("hang").await;
    let answer = desk.try_dispatch(steer("x"), None, Some(other)).await;
    let rejected = format!("{answer:?}");
    assert!(rejected.contains("UnsupportedCapability"), "{rejected}");
    drop(run);
}

pub(crate) async fn c04_the_payload_is_judged_before_the_run(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "payload");
    desk.run("say \"x\"").await;
    for command in [steer(""), follow_up("")] {
        let answer = desk.try_dispatch(command, None, None).await;
        assert_eq!(reason(answer), Reason::InvalidArgument);
    }
    assert_eq!(desk.rejected(steer("x")).await, RejectionCode::NoActiveRun);
    let run = desk.invoke("hang").await;
    let answer = desk.open("").await;
    assert_eq!(reason(answer), Reason::InvalidArgument, "not busy");
    drop(run);
}

pub(crate) async fn c04_a_bound_answer_is_compared_before_capability_and_payload(
    worlds: &dyn Worlds,
) {
    let world = worlds.make(quick()).await;
    let desk = Desk::new(&world, "bound");
    let run = desk.invoke(Ask::new("hang").id("one")).await;
    desk.dispatch(follow_up("x"), Some("two")).await;
    let answer = desk.open(Ask::new("").id("one")).await;
    assert_eq!(reason(answer), Reason::RequestIdReused);
    let answer = desk.try_dispatch(steer(""), Some("two"), None).await;
    assert_eq!(reason(answer), Reason::RequestIdReused);
    // The binding supplies the session: the reference in the repeat is compared, not resolved.
    let nobody = Desk::at(&world, unknown_session());
    let answer = nobody.try_dispatch(follow_up("x"), Some("two"), None).await;
    assert_eq!(reason(answer), Reason::RequestIdReused);
    drop(run);
}

/// Every call that names a session, and what it was refused with.
async fn refusals(caller: &dyn Caller, session: SessionRef) -> Vec<(&'static str, CallError)> {
    let none = CallOptions::default;
    let mut refusals = Vec::new();
    for command in [steer("x"), steer(""), follow_up("x"), Command::Abort] {
        let request = DispatchRequest {
            session: session.clone(),
            command,
            expected_run: None,
        };
        let answer = caller.dispatch(request, with_id(Some("d"))).await;
        refusals.push(("dispatch", answer.expect_err("refused")));
    }
    for prompt in ["x", ""] {
        let request = InvokeRequest {
            session: session.clone(),
            prompt: prompt.to_owned(),
            given: Given::default(),
            agent: None,
            parent: None,
            must_exist: true,
            on_disconnect: OnDisconnect::Cancel,
        };
        let answer = caller.invoke(request, with_id(Some("i"))).await;
        refusals.push(("invoke", answer.err().expect("refused")));
    }
    for position in [
        None,
        Some(Position {
            epoch: u64::MAX,
            seq: 9,
        }),
    ] {
        let answer = caller.get_state(session.clone(), position, none()).await;
        refusals.push(("state", answer.expect_err("refused")));
    }
    for page_size in [0, 100_000] {
        let request = ListEntriesRequest {
            session: session.clone(),
            since: Some("what".to_owned()),
            page_size,
        };
        let answer = caller.list_entries(request, none()).await;
        refusals.push(("entries", answer.expect_err("refused")));
    }
    let request = EventsRequest {
        session: session.clone(),
        resume: None,
        filter: EventFilter::default(),
        entries_since: None,
    };
    let answer = caller.events(request, none()).await;
    refusals.push(("events", answer.err().expect("refused")));
    let target = CapabilityTarget::Session(session);
    let answer = caller.get_capabilities(target, none()).await;
    refusals.push(("capabilities", answer.expect_err("refused")));
    refusals
}

pub(crate) async fn c04_hidden_is_unknown_byte_for_byte(worlds: &dyn Worlds) {
    let world = worlds.make(quick()).await;
    let Some(stranger) = world.stranger() else {
        return;
    };
    let desk = Desk::new(&world, "hidden");
    let run = desk.invoke("hang").await;
    // In memory, and only in the store.
    for restarted in [false, true] {
        if restarted {
            world.restart().await;
        }
        let stranger = if restarted {
            world.stranger().expect("a stranger")
        } else {
            stranger.clone()
        };
        let hidden = refusals(&*stranger, SessionRef::Id(run.session)).await;
        let unknown = refusals(&*stranger, unknown_session()).await;
        assert_eq!(hidden, unknown);
        let by_name = refusals(&*stranger, desk.session.clone()).await;
        assert_eq!(by_name, unknown);
        for (call, error) in hidden {
            assert_eq!(error, CallError::no_such_session(), "{call}");
        }
        let none = CallOptions::default;
        let hidden = stranger.get_run(run.id, none()).await.expect_err("hidden");
        let never = RunId::mint(Timestamp::from_millis(1), 1);
        let unknown = stranger.get_run(never, none()).await.expect_err("unknown");
        assert_eq!(hidden, unknown);
        assert_eq!(hidden.reason, Reason::NoSuchRun);
    }
}
