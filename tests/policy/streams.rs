//! C55: what is open when other policies begin to hold ends where they do not allow it any more, within
//! five seconds; and so it is where a session becomes another one to them.

use std::time::{Duration, Instant};

use prost::Message as _;
use sessionplane::v1 as wire;
use sessionplane::v1::invoke_event::Event;
use tonic::{Code, Status, Streaming};

use crate::world::{World, event, invoke, named, soon};

const OPERATOR: &str = "team/ada/operator";
const READER: &str = "team/rita/readers";
const READERS: &str = "@id(\"readers\") permit (principal in Group::\"readers\", \
    action in [Action::\"Look\", Action::\"Invoke\"], resource) \
    unless { resource is Session && resource.labels.contains(\"secret=yes\") };";
const WITHIN: Duration = Duration::from_secs(5);

/// What can be open of a session and its run, each with something of it told; and the run.
async fn open(world: &World) -> (Vec<(&'static str, Streaming<bytes::Bytes>)>, String) {
    let run = invoke("docs", "say \"one\"\nhang").encode_to_vec();
    let invoking = world.begin(Some(READER), "/sessionplane.v1.Invoke/Invoke", run.into());
    let mut invoking = invoking.await.unwrap();
    let first = soon(invoking.message()).await.unwrap().unwrap();
    let Some(Event::Accepted(accepted)) = event(first) else {
        panic!("it is accepted");
    };
    let events = wire::EventsRequest {
        session: named("docs"),
        ..Default::default()
    };
    let path = "/sessionplane.v1.SessionControl/Events";
    let observing = world.begin(Some(READER), path, events.encode_to_vec().into());
    let mut observing = observing.await.unwrap();
    soon(observing.message()).await.unwrap();
    (
        vec![("invoke", invoking), ("events", observing)],
        accepted.run_id,
    )
}

#[allow(clippy::disallowed_methods, reason = "how long it really takes")]
fn now() -> Instant {
    Instant::now()
}

/// Has all of it open, does something, and sees all of it end as what is not there.
async fn ends_all(world: &World, change: impl Future<Output = ()>) {
    let (open, run_id) = open(world).await;
    let wait = wire::WaitRunRequest { run_id }.encode_to_vec();
    let waiting = world.call(Some(READER), "/sessionplane.v1.Invoke/WaitRun", wait.into());
    let changing = async {
        // On the same connection: by then the wait has begun.
        for _ in 0..5 {
            let state = wire::GetStateRequest {
                session: named("docs"),
                min_position: None,
            };
            let path = "/sessionplane.v1.SessionControl/GetState";
            let state: Result<wire::GetStateResponse, Status> =
                world.ask(READER, path, &state).await;
            state.unwrap();
        }
        change.await;
        now()
    };
    let (waited, began) = tokio::join!(waiting, changing);
    let waited = waited.unwrap_err();
    assert_eq!(waited.code(), Code::NotFound, "{waited:?}");
    for (what, mut stream) in open {
        let status = end(&mut stream).await.expect(what);
        assert_eq!(status.code(), Code::NotFound, "{what}: {status:?}");
    }
    assert!(began.elapsed() < WITHIN, "{:?}", began.elapsed());
}

async fn end(stream: &mut Streaming<bytes::Bytes>) -> Option<Status> {
    loop {
        match soon(stream.message()).await {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(status) => return Some(status),
        }
    }
}

#[tokio::test]
async fn c55_streams_end_within_five_seconds_when_other_policies_hold() {
    let world = World::new().await;
    world.hold(READERS);
    world.create(OPERATOR, "docs", &[]).await;
    ends_all(&world, async { world.hold("") }).await;
    // The run was DETACHED from its caller, and goes on.
    let state = wire::GetStateRequest {
        session: named("docs"),
        min_position: None,
    };
    let path = "/sessionplane.v1.SessionControl/GetState";
    let state: wire::GetStateResponse = world.ask(OPERATOR, path, &state).await.unwrap();
    assert!(!state.state.unwrap().active_run_id.is_empty());
}

#[tokio::test]
async fn c55_streams_end_when_their_session_becomes_one_that_their_caller_may_not_see() {
    let world = World::new().await;
    world.hold(READERS);
    world.create(OPERATOR, "docs", &[]).await;
    let relabelled = async {
        // One that says nothing to any policy ends nothing.
        world.label(OPERATOR, "docs", &[("team", "net")]).await;
        world.label(OPERATOR, "docs", &[("secret", "yes")]).await;
    };
    ends_all(&world, relabelled).await;
}

#[tokio::test]
async fn c55_c56_a_watch_of_the_trail_ends_when_other_policies_hold_and_its_pages_say_whether_more_follows()
 {
    let world = World::new().await;
    world.hold("@id(\"auditors\") permit (principal in Group::\"auditors\", action == Action::\"ReadAudit\", resource);");
    let auditor = "team/aud/auditors";
    for name in ["one", "two"] {
        world.create(OPERATOR, name, &[]).await;
    }
    let page = async |after_seq| -> wire::ListAuditRecordsResponse {
        let request = wire::ListAuditRecordsRequest {
            after_seq,
            page_size: 1,
            ..Default::default()
        };
        let path = "/sessionplane.v1.Audit/ListAuditRecords";
        world.ask(auditor, path, &request).await.unwrap()
    };
    let first = page(0).await;
    assert_eq!((first.records.len(), first.has_more), (1, true));
    let last = page(first.next_after_seq).await;
    assert_eq!((last.records.len(), last.has_more), (1, false));

    let watch = wire::WatchAuditRequest::default().encode_to_vec();
    let path = "/sessionplane.v1.Audit/WatchAudit";
    let mut watching = world
        .begin(Some(auditor), path, watch.into())
        .await
        .unwrap();
    for _ in 0..2 {
        soon(watching.message()).await.unwrap().expect("a record");
    }
    let began = now();
    world.hold("");
    let status = end(&mut watching).await.expect("it is ended in words");
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    assert!(began.elapsed() < WITHIN, "{:?}", began.elapsed());
}
