//! How the server stops: health first, then its streams, and always in bounded time.

use std::time::Duration;

use sessionplane::v1::WaitRunRequest;
use sessionplane_server::app::observation::Published;
use sessionplane_server::grpc::server::{Config, Stopped};
use tokio::task::JoinSet;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_types::StatusExt;

use crate::doors::health;
use crate::fake::{self, event};
use crate::server::{Running, soon, told};
use crate::streams::{invoke, observe};

const CLEAN: Stopped = Stopped {
    dropped_connections: 0,
    calls_left: 0,
};
const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;

#[tokio::test]
async fn c63_streams_end_with_a_reason_a_time_to_come_back_and_no_doubt() {
    let mut server = Running::start().await;
    let caller = server.owner().await;
    let streams = [invoke(&caller).await, observe(&caller).await];
    server.stop();
    for stream in streams {
        let status = stream.status().await;
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(
            told(&status),
            ("SERVER_DRAINING".to_owned(), "stream_ended".to_owned())
        );
        assert!(status.get_details_retry_info().is_some());
    }
    server.fake.until_open(0).await;
    drop(caller);
    assert_eq!(server.stopped().await, CLEAN);
}

#[tokio::test]
async fn c62_health_says_no_before_anything_else_stops() {
    let config = Config {
        // Over only when the test is.
        lame_duck: Duration::from_secs(600),
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    let caller = server.owner().await;
    let request = HealthCheckRequest {
        service: String::new(),
    };
    let mut watch = caller.ask("/grpc.health.v1.Health/Watch", &request).await;
    assert_eq!(watch.message::<HealthCheckResponse>().await.status, SERVING);
    server.stop();
    assert_eq!(
        watch.message::<HealthCheckResponse>().await.status,
        NOT_SERVING
    );
    for service in [
        "",
        "sessionplane.v1.Invoke",
        "sessionplane.v1.SessionControl",
    ] {
        assert_eq!(health(&caller, service).await, NOT_SERVING, "{service:?}");
    }
    assert_eq!(health(&caller, "liveness").await, SERVING);
    // Calls and even new connections are still taken.
    observe(&server.owner().await).await;
}

#[tokio::test]
async fn c63_streams_and_calls_go_on_until_the_time_of_what_is_at_work_is_over() {
    let config = Config {
        drain_within: Duration::from_secs(3),
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    server.fake.works(true);
    let caller = server.owner().await;
    let mut running = invoke(&caller).await;
    server.stop();
    let early = tokio::time::timeout(Duration::from_secs(1), running.next()).await;
    assert!(early.is_err(), "it goes on");
    // Who steers a run, or begins to watch it, is still let in.
    let newcomer = server.owner().await;
    observe(&newcomer).await;
    assert_eq!(health(&newcomer, "").await, NOT_SERVING);
    drop(newcomer);
    let status = running.status().await;
    assert_eq!(told(&status).0, "SERVER_DRAINING");
    drop(caller);
    assert_eq!(server.stopped().await, CLEAN);
}

#[tokio::test]
async fn c63_a_stop_waits_no_longer_than_for_what_is_at_work() {
    let config = Config {
        // Over only when the test is.
        drain_within: Duration::from_secs(600),
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    server.fake.works(true);
    let caller = server.owner().await;
    let watched = {
        let request = HealthCheckRequest::default();
        caller.ask("/grpc.health.v1.Health/Watch", &request).await
    };
    let mut running = invoke(&caller).await;
    server.stop();
    let early = tokio::time::timeout(Duration::from_secs(1), running.next()).await;
    assert!(early.is_err(), "it goes on");
    server.fake.works(false);
    assert_eq!(told(&running.status().await).0, "SERVER_DRAINING");
    assert_eq!(told(&watched.status().await).0, "SERVER_DRAINING");
    drop(caller);
    assert_eq!(server.stopped().await, CLEAN);
}

#[tokio::test]
async fn c63_b59_a_stream_that_nobody_reads_does_not_delay_the_exit() {
    let config = Config {
        stop_within: Duration::from_millis(200),
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    server
        .fake
        .publish((1..=64).map(|seq| Published::new(event(seq, "a piece of text"))));
    server.fake.repeat_without_end();
    let caller = server.owner().await;
    let stuck = observe(&caller).await;
    server.fake.until_open(1).await;
    server.stop();
    let fake = server.fake.clone();
    let stopped = server.stopped().await;
    assert_eq!(
        stopped,
        Stopped {
            dropped_connections: 1,
            calls_left: 0
        }
    );
    fake.until_open(0).await;
    drop(stuck);
}

#[tokio::test]
async fn c63_what_is_behind_a_stream_that_nobody_reads_is_let_go_at_once() {
    let config = Config {
        stop_within: Duration::from_secs(600),
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    server
        .fake
        .publish((1..=64).map(|seq| Published::new(event(seq, "a piece of text"))));
    server.fake.repeat_without_end();
    let caller = server.owner().await;
    let stuck = observe(&caller).await;
    server.fake.until_open(1).await;
    server.stop();
    server.fake.until_open(0).await;
    assert_eq!(told(&stuck.status().await).0, "SERVER_DRAINING");
    drop(caller);
    assert_eq!(server.stopped().await, CLEAN);
}

#[tokio::test]
async fn c63_a_call_that_the_application_never_answers_ends_in_words_and_delays_no_exit() {
    let config = Config {
        stop_within: Duration::from_secs(5),
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    server.fake.hang();
    let caller = server.owner().await;
    let mut asking = JoinSet::new();
    for path in [
        "/sessionplane.v1.SessionControl/GetState",
        "/sessionplane.v1.SessionControl/Events",
    ] {
        let caller = caller.clone();
        // The session `a`.
        let request = [0x0a, 0x03, 0x12, 0x01, b'a'];
        asking.spawn(async move { caller.call(path, &request).await.status().await });
    }
    soon(async {
        while server.fake.times_asked() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(caller);
    server.stop();
    while let Some(status) = soon(asking.join_next()).await {
        let status = status.expect("it is answered");
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(
            told(&status),
            ("SERVER_DRAINING".to_owned(), "unknown".to_owned())
        );
    }
    assert_eq!(server.stopped().await, CLEAN);
}

#[tokio::test]
async fn c63_c16_a_wait_for_a_run_does_not_delay_the_exit() {
    let config = Config {
        // Over only when the test is.
        stop_within: Duration::from_secs(600),
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    server.fake.hang();
    let caller = server.owner().await;
    let waiting = {
        let caller = caller.clone();
        let run_id = fake::run().to_string();
        tokio::spawn(async move {
            let request = WaitRunRequest { run_id };
            let answer = caller
                .ask("/sessionplane.v1.Invoke/WaitRun", &request)
                .await;
            answer.status().await
        })
    };
    soon(async {
        while server.fake.times_asked() < 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(caller);
    server.stop();
    let status = soon(waiting).await.expect("it is answered");
    assert_eq!(
        told(&status),
        ("SERVER_DRAINING".to_owned(), "unknown".to_owned())
    );
    assert_eq!(server.stopped().await, CLEAN);
}
