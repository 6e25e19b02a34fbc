//! A session's task that panics: a bug, which must cost one run and nothing else.

use sessionplane_core::domain::given::Given;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_client::contract::{
    Agent as _, CallOptions, DispatchRequest, EventFilter, EventsRequest, InvokeEvent,
    SessionControl as _,
};
use sessionplane_client::detached;
use sessionplane_client::domain::command::{Command, DispatchAnswer};
use sessionplane_client::domain::error::{Outcome, Reason};
use sessionplane_client::domain::ids::{RequestId, SessionName, SessionRef};
use sessionplane_client::domain::input::{DiscardCause, InputFate};
use sessionplane_client::domain::run::code;
use tokio::time::timeout;

use crate::daemon::{Home, Started};
use crate::load::under;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn c44_b15_a_session_whose_task_panics_is_settled_and_takes_the_next_run() {
    let home = Home::new();
    // The admission is the first commit, the input the second: over that one the task dies.
    let failpoints = "session::after-commit=1*off->1*panic(a bug)";
    let Started::Ready(daemon) = home.try_start(Some(failpoints)).await else {
        panic!("it did not start: {}", home.said());
    };
    let client = daemon.client();
    let at = SessionRef::Name(SessionName::parse("unlucky").unwrap());
    let request = detached(at.clone(), "hang".to_owned());
    let mut stream = client
        .invoke(request, CallOptions::default())
        .await
        .unwrap();
    let Some(Ok(InvokeEvent::Accepted { run, .. })) = stream.next().await else {
        panic!("not accepted");
    };
    let watched = EventsRequest {
        session: at.clone(),
        resume: None,
        entries_since: None,
        filter: EventFilter::default(),
    };
    let mut events = client
        .events(watched, CallOptions::default())
        .await
        .unwrap();

    let id = RequestId::parse("once").unwrap();
    let command = Command::FollowUp {
        text: "and then".into(),
        given: Given::default(),
    };
    let dispatch = DispatchRequest {
        session: at.clone(),
        command,
        expected_run: Some(run),
    };
    let lost = client
        .dispatch(dispatch.clone(), under(&id))
        .await
        .unwrap_err();
    assert_eq!(lost.outcome, Outcome::Unknown, "{lost:?}");
    let observed = async {
        loop {
            if let Err(error) = events.next().await.expect("it ends in words") {
                return error;
            }
        }
    };
    let told = timeout(SOON, observed).await.expect("observers are told");
    assert_eq!(
        (told.reason, told.outcome),
        (Reason::ServingLost, Outcome::StreamEnded)
    );

    // Whoever was told finds the run settled.
    let found = client.get_run(run, CallOptions::default()).await.unwrap();
    let outcome = found.settled.expect("it was settled first").outcome;
    assert_eq!(outcome.code(), Some(code::INTERRUPTED));
    let DispatchAnswer::Accepted(again) = client.dispatch(dispatch, under(&id)).await.unwrap()
    else {
        panic!("it was durable");
    };
    let fate = again.input.map(|input| input.fate);
    assert_eq!(fate, Some(InputFate::Discarded(DiscardCause::Interrupted)));

    let next = detached(at, "say \"y\"".to_owned());
    let next = client.invoke(next, CallOptions::default()).await.unwrap();
    let last = next.collect::<Vec<_>>().await.pop();
    assert!(
        matches!(last, Some(Ok(InvokeEvent::Completed { .. }))),
        "{last:?}"
    );
}
