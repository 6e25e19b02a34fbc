//! A caller that does not heed that its connection closes, frame by frame: what it is still given.

use std::time::Duration;

use prost::Message as _;
use sessionplane::v1 as wire;
use sessionplane_server::grpc::server::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fake;
use crate::server::{Running, framed, soon};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const EVENTS: &str = "/sessionplane.v1.SessionControl/Events";
const WAIT_RUN: &str = "/sessionplane.v1.Invoke/WaitRun";

/// A connection whose caller answers nothing that the server asks.
struct Stubborn {
    stream: TcpStream,
    token: String,
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
}

impl Stubborn {
    async fn to(server: &Running) -> Self {
        let mut stream = server.silent().await;
        stream.write_all(PREFACE).await.unwrap();
        let token = format!("Bearer {}", server.token);
        let mut caller = Self { stream, token };
        caller.send(SETTINGS, 0, 0, &[]).await;
        caller
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.stream.write_all(&frame).await.unwrap();
    }

    async fn call(&mut self, stream: u32, path: &str, message: &[u8]) {
        let token = self.token.clone();
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "server"),
            (":path", path),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("authorization", &token),
        ];
        let mut block = Vec::new();
        for (name, value) in fields {
            // A literal field that is not indexed, its texts as they are.
            block.push(0);
            for text in [name, value] {
                assert!(text.len() < 127, "a length of one byte");
                block.push(u8::try_from(text.len()).unwrap());
                block.extend(text.as_bytes());
            }
        }
        self.send(HEADERS, END_HEADERS, stream, &block).await;
        self.send(DATA, END_STREAM, stream, &framed(0, message))
            .await;
    }

    async fn frame(&mut self) -> Frame {
        let mut head = [0; 9];
        soon(self.stream.read_exact(&mut head)).await.unwrap();
        let [a, b, c, kind, flags, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        soon(self.stream.read_exact(&mut payload)).await.unwrap();
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        Frame {
            kind,
            flags,
            stream,
        }
    }

    /// Reads up to a frame of a kind, of a stream.
    async fn until(&mut self, kind: u8, stream: u32) -> Frame {
        loop {
            let frame = self.frame().await;
            if (frame.kind, frame.stream) == (kind, stream) {
                return frame;
            }
        }
    }
}

#[tokio::test]
async fn c63_what_may_last_is_refused_on_a_connection_that_closes() {
    let config = Config {
        max_connection_age: Some(Duration::from_secs(1)),
        // Over only when the test is.
        max_connection_age_grace: Duration::from_secs(600),
        ..Config::default()
    };
    let server = Running::with(config).await;
    let mut caller = Stubborn::to(&server).await;
    let id = wire::session_ref::Ref::Id(fake::session().to_string());
    let events = wire::EventsRequest {
        session: Some(wire::SessionRef { r#ref: Some(id) }),
        ..Default::default()
    };
    let wait = wire::WaitRunRequest {
        run_id: fake::run().to_string(),
    };
    caller.call(1, EVENTS, &events.encode_to_vec()).await;
    let opened = caller.until(HEADERS, 1).await;
    assert_eq!(opened.flags & END_STREAM, 0, "it goes on");
    caller.until(GOAWAY, 0).await;
    server.fake.hang();
    let calls = [
        (3, EVENTS, events.encode_to_vec()),
        (5, WAIT_RUN, wait.encode_to_vec()),
    ];
    for (stream, path, message) in calls {
        caller.call(stream, path, &message).await;
        let refused = caller.until(HEADERS, stream).await;
        assert_eq!(refused.flags & END_STREAM, END_STREAM, "{path} is over");
    }
    assert_eq!(
        server.fake.times_asked(),
        1,
        "the application hears of none"
    );
}

/// A process that was stopped (SIGSTOP), or one behind a link that is gone: the connection stands,
/// and nobody reads it.
#[tokio::test]
async fn c63_b59_a_peer_that_has_stopped_delays_the_exit_by_a_moment_only() {
    let config = Config {
        // Whoever waited for all of it would not be here in time.
        stop_within: Duration::from_secs(600),
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    let mut caller = Stubborn::to(&server).await;
    let id = wire::session_ref::Ref::Id(fake::session().to_string());
    let events = wire::EventsRequest {
        session: Some(wire::SessionRef { r#ref: Some(id) }),
        ..Default::default()
    };
    caller.call(1, EVENTS, &events.encode_to_vec()).await;
    caller.until(HEADERS, 1).await;
    server.stop();
    let stopped = server.stopped().await;
    assert_eq!(stopped.calls_left, 0);
    drop(caller);
}
