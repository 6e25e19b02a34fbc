//! Who connects and says nothing, or never finishes: it keeps nobody out and delays no stop.

use std::time::Duration;

use bytes::Bytes;
use sessionplane_server::grpc::server::{Config, Stopped};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use crate::doors::health;
use crate::server::{Running, framed, soon, told};
use crate::streams::observe;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const GET_STATE: &str = "/sessionplane.v1.SessionControl/GetState";
/// A test that takes its time cannot confuse it with another bound.
const LONG: Duration = Duration::from_secs(600);

/// Reads until the server has closed a connection.
async fn closed(mut connection: TcpStream) {
    let mut said = Vec::new();
    // A reset is a close, too.
    let _cut = soon(connection.read_to_end(&mut said)).await;
}

/// Whether a new connection is served, or closed at once.
async fn is_taken(server: &Running) -> bool {
    let mut connection = server.silent().await;
    let mut first = [0];
    let sent = connection.write_all(&[PREFACE, SETTINGS].concat()).await;
    sent.is_ok() && matches!(connection.read(&mut first).await, Ok(1))
}

async fn get_state(caller: &crate::server::Caller) -> Code {
    let message = [0x0a, 0x03, 0x12, 0x01, b'a'];
    caller.call(GET_STATE, &message).await.status().await.code()
}

#[tokio::test]
async fn c54_a_connection_without_a_call_is_closed_and_one_with_a_call_is_not() {
    let config = Config {
        first_request_within: Duration::from_secs(1),
        ..Config::default()
    };
    let server = Running::with(config).await;
    let caller = server.owner().await;
    let stream = observe(&caller).await;
    for said in [
        Vec::new(),
        PREFACE[..10].to_vec(),
        PREFACE.to_vec(),
        [PREFACE, SETTINGS].concat(),
    ] {
        let mut connection = server.silent().await;
        connection.write_all(&said).await.unwrap();
        closed(connection).await;
    }
    assert_eq!(get_state(&caller).await, Code::Ok);
    drop(stream);
}

#[tokio::test]
async fn c54_as_many_silent_connections_as_the_limit_keep_nobody_out() {
    let config = Config {
        max_connections: 4,
        first_request_within: LONG,
        ..Config::default()
    };
    let server = Running::with(config).await;
    let first = server.silent().await;
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(server.silent().await);
    }
    let caller = server.owner().await;
    assert_eq!(get_state(&caller).await, Code::Ok);
    // The oldest made room, and however many follow, who has called stays.
    closed(first).await;
    for _ in 0..16 {
        others.push(server.silent().await);
    }
    let another = server.owner().await;
    assert_eq!(get_state(&another).await, Code::Ok);
    assert_eq!(get_state(&caller).await, Code::Ok);
}

#[tokio::test]
async fn c60_whoever_only_watches_health_keeps_nobody_out() {
    let config = Config {
        max_connections: 2,
        rest_after: Duration::from_secs(1),
        first_request_within: LONG,
        ..Config::default()
    };
    let server = Running::with(config).await;
    let mut watches = Vec::new();
    for _ in 0..2 {
        let stranger = server.stranger().await;
        let mut watch = stranger.call("/grpc.health.v1.Health/Watch", &[]).await;
        assert!(watch.next().await.is_some(), "it watches");
        watches.push((stranger, watch));
    }
    soon(async {
        loop {
            // Refused, and so no use of their connections either.
            for (stranger, _) in &watches {
                assert_eq!(get_state(stranger).await, Code::Unauthenticated);
            }
            if is_taken(&server).await {
                break;
            }
        }
    })
    .await;
    // Until the server has seen that the one before has left, there is no room.
    let caller = soon(async {
        loop {
            let caller = server.owner().await;
            if caller.is_served().await {
                break caller;
            }
        }
    });
    let caller = caller.await;
    assert_eq!(get_state(&caller).await, Code::Ok);
    // The first has gone in words, and who is known stays.
    let (_first, watch) = watches.swap_remove(0);
    assert_eq!(watch.status().await.code(), Code::Unavailable);
    let stream = observe(&caller).await;
    let stranger = server.stranger().await;
    assert_eq!(health(&stranger, "").await, 1);
    assert_eq!(get_state(&caller).await, Code::Ok);
    drop((stream, watches));
}

#[tokio::test]
async fn at_the_limit_of_connections_that_work_a_new_one_is_closed_at_once() {
    let config = Config {
        max_connections: 2,
        rest_after: LONG,
        first_request_within: LONG,
        ..Config::default()
    };
    let server = Running::with(config).await;
    let callers = [server.owner().await, server.owner().await];
    for caller in &callers {
        assert_eq!(get_state(caller).await, Code::Ok);
    }
    closed(server.silent().await).await;
    let [stays, leaves] = callers;
    assert_eq!(get_state(&stays).await, Code::Ok);
    // Whoever leaves makes room; that the server saw it leave is not told, so ask until it has.
    drop(leaves);
    soon(async { while !is_taken(&server).await {} }).await;
}

#[tokio::test]
async fn at_the_limit_the_connection_that_rested_longest_is_asked_to_leave() {
    let config = Config {
        max_connections: 3,
        rest_after: Duration::ZERO,
        first_request_within: LONG,
        ..Config::default()
    };
    let server = Running::with(config).await;
    let [rests, rested, watches] = [
        server.owner().await,
        server.owner().await,
        server.owner().await,
    ];
    let stream = observe(&watches).await;
    for caller in [&rested, &rests] {
        assert_eq!(get_state(caller).await, Code::Ok);
    }
    let newcomer = server.owner().await;
    assert_eq!(get_state(&newcomer).await, Code::Ok);
    soon(rested.closed()).await;
    assert_eq!(get_state(&rests).await, Code::Ok);
    assert_eq!(get_state(&watches).await, Code::Ok);
    drop(stream);
}

#[tokio::test]
async fn c63_b59_silent_connections_do_not_delay_the_exit() {
    let config = Config {
        first_request_within: LONG,
        stop_within: LONG,
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    let mut silent = Vec::new();
    for number in 0..48 {
        let mut connection = server.silent().await;
        let begun = [PREFACE, SETTINGS].concat();
        let said = [10, PREFACE.len(), begun.len()][number % 3];
        connection.write_all(&begun[..said]).await.unwrap();
        silent.push(connection);
    }
    // They were accepted before this one.
    let caller = server.owner().await;
    assert_eq!(health(&caller, "").await, 1);
    server.stop();
    let in_time = tokio::time::timeout(Duration::from_secs(3), server.stopped()).await;
    let stopped = in_time.expect("the stop is quick");
    assert_eq!(
        stopped,
        Stopped {
            dropped_connections: 0,
            calls_left: 0
        }
    );
    for connection in silent {
        closed(connection).await;
    }
}

#[tokio::test]
async fn c54_a_message_that_never_ends_is_given_up_with_a_reason() {
    let config = Config {
        message_within: Duration::from_millis(300),
        ..Config::default()
    };
    let server = Running::with(config).await;
    let caller = server.owner().await;
    let whole = framed(0, &[0; 1000]);
    for path in [
        GET_STATE,
        "/sessionplane.v1.SessionControl/Events",
        "/sessionplane.v1.Invoke/Invoke",
    ] {
        for sent in [whole.slice(..900), whole.slice(..3), Bytes::new()] {
            let answer = caller.call_unfinished(path, sent).await;
            let status = answer.status().await;
            assert_eq!(status.code(), Code::DeadlineExceeded, "{path}: {status:?}");
            assert_eq!(
                told(&status),
                ("DEADLINE_EXCEEDED".to_owned(), "refused".to_owned())
            );
        }
    }
    assert!(!server.fake.was_asked());
}

#[tokio::test]
async fn who_does_not_speak_grpc_is_told_so_in_the_words_of_http() {
    let server = Running::start().await;
    let caller = server.owner().await;
    for (method, kind, code) in [
        ("GET", "application/grpc", 405),
        ("POST", "application/json", 415),
        ("POST", "application/grpc-webx", 415),
        ("POST", "application/grpc-web", 200),
        ("POST", "application/grpc+proto", 200),
    ] {
        let told = caller.speak(method, kind, GET_STATE).await;
        assert_eq!(told, code, "{method} {kind}");
    }
}
