//! Waiting for the end of a run, however long that takes and whatever breaks meanwhile.

use std::time::Duration;

use sessionplane::v1;
use sessionplane_client::contract::{Agent as _, CallOptions};
use sessionplane_client::domain::error::Reason;
use sessionplane_client::domain::run::{RunOutcome, RunRecord};
use sessionplane_client::{Client, ClientOptions};
use tonic::{Code, Status};

use super::fake::{Fake, Stage, client_of, soon};
use super::relay::Relay;
use super::wire;

fn settled() -> v1::WaitRunResponse {
    v1::WaitRunResponse {
        run: Some(wire::settled(v1::RunOutcome::Completed, "")),
    }
}

fn completed(record: &RunRecord) -> bool {
    let outcome = record.settled.as_ref().map(|settled| &settled.outcome);
    outcome == Some(&RunOutcome::Completed)
}

#[tokio::test]
async fn c16_a_wait_goes_on_when_its_call_is_out_of_time_or_its_server_is_lost() {
    let late = wire::ours(Code::DeadlineExceeded, "DEADLINE_EXCEEDED", "unknown");
    let draining = wire::ours(Code::Unavailable, "SERVER_DRAINING", "refused");
    let lost = wire::ours(Code::Unavailable, "SERVING_LOST", "unknown");
    let waits = [
        Err(Status::deadline_exceeded("a proxy's")),
        Err(late),
        Err(draining),
        Err(lost),
        Err(Status::unavailable("a proxy")),
        Ok(settled()),
    ];
    let fake = Fake::start(Stage {
        waits: waits.into(),
        ..Stage::default()
    })
    .await;
    let run = wire::RUN.parse().unwrap();
    let client = fake.client();
    let record = soon(client.wait_run(run, CallOptions::default())).await;
    assert!(completed(&record.unwrap()));
    assert_eq!(fake.look(|stage| stage.waited.len()), 6);
}

#[tokio::test]
async fn c16_a_wait_asks_again_when_its_own_call_is_out_of_time() {
    let fake = Fake::start(Stage::default()).await;
    let mut options = ClientOptions::new(fake.url().parse().unwrap());
    options.deadline = Duration::from_millis(100);
    let client = Client::connect(options).unwrap();
    let run = wire::RUN.parse().unwrap();
    let waiting = tokio::spawn(async move { client.wait_run(run, CallOptions::default()).await });
    soon(async {
        while fake.look(|stage| stage.waited.len()) < 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let later: Vec<_> = (0..4).map(|_| Ok(settled())).collect();
    fake.stage.lock().unwrap().waits = later.into();
    assert!(completed(&soon(waiting).await.unwrap().unwrap()));
}

#[tokio::test]
async fn c16_a_wait_outlives_the_connection_and_the_server() {
    let old = Fake::start(Stage::default()).await;
    let new = Fake::start(Stage {
        waits: [Ok(settled())].into(),
        ..Stage::default()
    })
    .await;
    let relay = Relay::to(old.address).await;
    let client = client_of(&relay.url());
    let run = wire::RUN.parse().unwrap();
    let waiting = tokio::spawn(async move { client.wait_run(run, CallOptions::default()).await });
    soon(async {
        while old.look(|stage| stage.waited.is_empty()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    relay.retarget(new.address);
    relay.cut();
    assert!(completed(&soon(waiting).await.unwrap().unwrap()));
}

#[tokio::test]
async fn c16_a_wait_ends_at_the_callers_own_deadline_and_where_asking_is_no_use() {
    let fake = Fake::start(Stage::default()).await;
    let run = wire::RUN.parse().unwrap();
    let options = CallOptions {
        request_id: None,
        deadline: Some(Duration::from_millis(200)),
    };
    let error = soon(fake.client().wait_run(run, options))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::DeadlineExceeded);
    assert!(error.message.contains("goes on"), "{error}");
    let unknown = wire::ours(Code::NotFound, "NO_SUCH_RUN", "refused");
    fake.stage.lock().unwrap().waits = [Err(unknown)].into();
    let error = soon(fake.client().wait_run(run, CallOptions::default())).await;
    assert_eq!(error.unwrap_err().reason, Reason::NoSuchRun);
}
