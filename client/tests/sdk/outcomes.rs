//! The three outcomes of a call, from every kind of ending.

use sessionplane_core::domain::given::Given;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane::v1;
use sessionplane_client::contract::{
    Agent as _, CallOptions, DispatchRequest, EventFilter, EventItem, EventsRequest, InvokeEvent,
    ResultStream, SessionControl as _,
};
use sessionplane_client::domain::command::{Command, DispatchAnswer, RejectionCode};
use sessionplane_client::domain::error::{CallError, Outcome, Reason};
use sessionplane_client::{Client, ClientOptions, detached};
use tonic::{Code, Status};

use super::fake::{Fake, Stage, Step, client_of, soon};
use super::relay::Relay;
use super::wire;

async fn invoke(client: &Client) -> Result<ResultStream<InvokeEvent>, CallError> {
    let request = detached(wire::docs(), "hi".to_owned());
    soon(client.invoke(request, CallOptions::default())).await
}

fn steer() -> DispatchRequest {
    DispatchRequest {
        session: wire::docs(),
        command: Command::Steer {
            text: "go".into(),
            given: Given::default(),
        },
        expected_run: None,
    }
}

/// The error that a stream ends with, and that nothing follows.
async fn ending<T>(mut stream: ResultStream<T>) -> CallError {
    loop {
        match soon(stream.next()).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                assert!(soon(stream.next()).await.is_none());
                return error;
            }
            None => panic!("the stream ended in silence"),
        }
    }
}

#[tokio::test]
async fn a_caller_may_wait_for_ever_without_a_panic() {
    let state = v1::GetStateResponse {
        state: Some(wire::state(false)),
    };
    let fake = Fake::start(Stage {
        states: [Ok(state.clone()), Ok(state)].into(),
        ..Stage::default()
    })
    .await;
    let patient = ClientOptions {
        connect_timeout: Duration::MAX,
        deadline: Duration::MAX,
        keepalive_interval: Duration::MAX,
        keepalive_timeout: Duration::MAX,
        ..ClientOptions::new(fake.url().parse().unwrap())
    };
    let client = Client::connect(patient).unwrap();
    for deadline in [None, Some(Duration::MAX)] {
        let options = CallOptions {
            request_id: None,
            deadline,
        };
        let state = soon(client.get_state(wire::docs(), None, options)).await;
        assert!(state.is_ok(), "{state:?}");
    }
}

#[tokio::test]
async fn c02_our_refusal_is_believed() {
    let refusal = wire::ours(Code::NotFound, "NO_SUCH_SESSION", "refused");
    let fake = Fake::start(Stage {
        states: [Err(refusal)].into(),
        ..Stage::default()
    })
    .await;
    let client = fake.client();
    let state = client.get_state(wire::docs(), None, CallOptions::default());
    let error = soon(state).await.unwrap_err();
    assert_eq!(
        (error.outcome, error.reason),
        (Outcome::Refused, Reason::NoSuchSession)
    );
}

#[tokio::test]
async fn c02_a_foreign_status_before_the_first_message_is_unknown() {
    let proxy = || Err(Status::unavailable("upstream connect error"));
    let fake = Fake::start(Stage {
        invokes: [proxy(), proxy(), proxy(), proxy(), proxy()].into(),
        ..Stage::default()
    })
    .await;
    let error = invoke(&fake.client()).await.err().unwrap();
    assert_eq!(
        (error.outcome, error.reason),
        (Outcome::Unknown, Reason::Transport)
    );
    assert_eq!(
        fake.look(|stage| stage.invoked.len()),
        4,
        "attempts are bounded"
    );
}

#[tokio::test]
async fn c02_a_stream_without_a_first_message_is_unknown() {
    let fake = Fake::start(Stage {
        invokes: [Ok(vec![]), Ok(vec![]), Ok(vec![]), Ok(vec![])].into(),
        ..Stage::default()
    })
    .await;
    let error = invoke(&fake.client()).await.err().unwrap();
    assert_eq!(
        (error.outcome, error.reason),
        (Outcome::Unknown, Reason::Transport)
    );
}

#[tokio::test]
async fn c02_a_foreign_status_after_the_first_message_is_stream_ended() {
    let steps = vec![
        Step::Send(wire::accepted(false)),
        Step::Fail(Status::internal("h2 protocol error")),
    ];
    let fake = Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        ..Stage::default()
    })
    .await;
    let error = ending(invoke(&fake.client()).await.unwrap()).await;
    assert_eq!(
        (error.outcome, error.reason),
        (Outcome::StreamEnded, Reason::Transport)
    );
    assert_eq!(
        fake.look(|stage| stage.invoked.len()),
        1,
        "a trait call is one stream"
    );
}

#[tokio::test]
async fn c02_a_broken_connection_after_the_first_message_is_stream_ended() {
    let steps = vec![Step::Send(wire::accepted(false)), Step::Hang];
    let fake = Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        ..Stage::default()
    })
    .await;
    let relay = Relay::to(fake.address).await;
    let stream = invoke(&client_of(&relay.url())).await.unwrap();
    relay.cut();
    let error = ending(stream).await;
    assert_eq!(
        (error.outcome, error.reason),
        (Outcome::StreamEnded, Reason::Transport)
    );
}

#[tokio::test]
async fn c05_a_stream_that_ends_without_a_terminal_is_not_taken_for_complete() {
    let steps = vec![
        Step::Send(wire::accepted(false)),
        Step::Send(wire::text("m", "half")),
    ];
    let fake = Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        ..Stage::default()
    })
    .await;
    let error = ending(invoke(&fake.client()).await.unwrap()).await;
    assert_eq!(error.outcome, Outcome::StreamEnded);
}

#[tokio::test]
async fn c05_nothing_follows_the_terminal() {
    let steps = vec![
        Step::Send(wire::accepted(false)),
        Step::Send(wire::completed()),
        Step::Hang,
    ];
    let fake = Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        ..Stage::default()
    })
    .await;
    let stream = invoke(&fake.client()).await.unwrap();
    let events: Vec<_> = soon(stream.collect()).await;
    assert_eq!(events.len(), 2);
    assert!(events[1].as_ref().unwrap().is_terminal());
}

#[tokio::test]
async fn c02_a_deadline_without_an_answer_is_unknown() {
    let fake = Fake::start(Stage {
        mute: true,
        ..Stage::default()
    })
    .await;
    let options = CallOptions {
        request_id: None,
        deadline: Some(Duration::from_millis(200)),
    };
    let client = fake.client();
    let error = soon(client.dispatch(steer(), options)).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Unknown);
    assert_eq!(error.reason, Reason::DeadlineExceeded);
}

#[tokio::test]
async fn c02_where_nobody_listens_nothing_was_sent_and_the_cause_is_named() {
    // A socket that nobody serves, unlike a port, cannot be taken by a neighbouring test.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let client = client_of(&format!("unix:{}", path.display()));
    let error = soon(client.dispatch(steer(), CallOptions::default()))
        .await
        .unwrap_err();
    assert_eq!(
        (error.outcome, error.reason),
        (Outcome::Refused, Reason::Transport)
    );
    assert!(error.message.contains("refused"), "{}", error.message);
}

#[tokio::test]
async fn c01_a_rejection_is_an_answer() {
    let fake = Fake::start(Stage {
        dispatches: [Ok(wire::dispatch_rejected()), Ok(wire::dispatch_accepted())].into(),
        ..Stage::default()
    })
    .await;
    let client = fake.client();
    let first = soon(client.dispatch(steer(), CallOptions::default())).await;
    let Ok(DispatchAnswer::Rejected(rejection)) = first else {
        panic!("not a rejection: {first:?}");
    };
    assert_eq!(rejection.code, RejectionCode::NoActiveRun);
    let second = soon(client.dispatch(steer(), CallOptions::default())).await;
    assert!(
        matches!(second, Ok(DispatchAnswer::Accepted(_))),
        "{second:?}"
    );
}

#[tokio::test]
async fn c34_an_event_of_an_unknown_type_does_not_end_the_stream() {
    let steps = vec![
        Step::Send(wire::subscribed(false, false)),
        Step::Send(wire::snapshot(1, false)),
        Step::Send(wire::future_event(2)),
        Step::Send(wire::turn(3)),
        Step::Hang,
    ];
    let fake = Fake::start(Stage {
        events: [Ok(steps)].into(),
        ..Stage::default()
    })
    .await;
    let request = EventsRequest {
        session: wire::docs(),
        resume: None,
        entries_since: None,
        filter: EventFilter::default(),
    };
    let client = fake.client();
    let stream = soon(client.events(request, CallOptions::default()))
        .await
        .unwrap();
    let items: Vec<_> = soon(stream.take(3).collect()).await;
    assert!(matches!(&items[2], Ok(EventItem::Event(event)) if event.seq == 3));
}

#[tokio::test]
async fn c54_the_token_and_the_clients_name_ride_on_every_call() {
    let fake = Fake::start(Stage::default()).await;
    let _ = soon(
        fake.client()
            .get_state(wire::docs(), None, CallOptions::default()),
    )
    .await;
    fake.look(|stage| {
        let sent = &stage.metadata[0];
        assert_eq!(sent.get("authorization").unwrap(), "Bearer sp_test");
        let agent = sent.get("user-agent").unwrap().to_str().unwrap();
        assert!(agent.starts_with("sessionplane-rust/"), "{agent}");
    });
}
