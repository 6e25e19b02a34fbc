//! gRPC-Web on the same port, as a browser speaks it; and what a browser must not do.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use sessionplane::v1 as wire;
use sessionplane_server::app::observation::Published;
use sessionplane_server::grpc::server::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::fake::{self, event};
use crate::server::{Running, framed, soon};

const GET_STATE: &str = "/sessionplane.v1.SessionControl/GetState";
const EVENTS: &str = "/sessionplane.v1.SessionControl/Events";
const PAGE: (&str, &str) = ("origin", "http://localhost:5173");
const STRANGER: (&str, &str) = ("origin", "http://evil.example");
const WEB: (&str, &str) = ("content-type", "application/grpc-web+proto");
/// The flag of the message that holds the trailers.
const TRAILERS: u8 = 0x80;

/// A browser's connection.
struct Browser {
    send: SendRequest<Full<Bytes>>,
    token: String,
}

impl Browser {
    async fn of(server: &Running) -> Self {
        let stream = TokioIo::new(server.silent().await);
        let (send, connection) = handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let token = format!("Bearer {}", server.token);
        Self { send, token }
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Bytes,
    ) -> http::Response<hyper::body::Incoming> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        let put = |(name, value): &(&'static str, &str)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_static(name), value)
        };
        let token = ("authorization", &*self.token.clone());
        let all = [&[("host", "server"), token], headers].concat();
        *request.headers_mut() = all.iter().map(put).collect::<HeaderMap>();
        soon(self.send.ready()).await.unwrap();
        soon(self.send.send_request(request)).await.unwrap()
    }
}

fn session() -> wire::SessionRef {
    let id = wire::session_ref::Ref::Id(fake::session().to_string());
    wire::SessionRef { r#ref: Some(id) }
}

fn get_state() -> Bytes {
    let request = wire::GetStateRequest {
        session: Some(session()),
        ..Default::default()
    };
    framed(0, &request.encode_to_vec())
}

/// The first message of a body: its flag and its content.
fn first(body: &mut Bytes) -> (u8, Bytes) {
    let length = u32::from_be_bytes(body[1..5].try_into().unwrap()) as usize;
    let mut message = body.split_to(5 + length);
    let content = message.split_off(5);
    (message[0], content)
}

#[tokio::test]
async fn c62_a_local_page_calls_over_http1_and_reads_its_status() {
    let server = Running::start().await;
    let mut browser = Browser::of(&server).await;
    // More than one call on one connection.
    for _ in 0..2 {
        let answer = browser
            .ask(Method::POST, GET_STATE, &[WEB, PAGE], get_state())
            .await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["access-control-allow-origin"], PAGE.1);
        assert_eq!(
            answer.headers()["content-type"],
            "application/grpc-web+proto"
        );
        let exposed = &answer.headers()["access-control-expose-headers"];
        assert!(exposed.to_str().unwrap().contains("grpc-status"));
        let mut body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
        let (flag, message) = first(&mut body);
        assert_eq!(flag, 0);
        wire::GetStateResponse::decode(message).unwrap();
        let (flag, trailers) = first(&mut body);
        assert_eq!(flag, TRAILERS);
        assert!(String::from_utf8_lossy(&trailers).contains("grpc-status:0"));
    }
    // A refusal is one in words, too.
    browser.token = "Bearer nobody".to_owned();
    let answer = browser
        .ask(Method::POST, GET_STATE, &[WEB, PAGE], get_state())
        .await;
    assert_eq!(answer.headers()["grpc-status"], "16");
}

#[tokio::test]
async fn c62_a_local_page_reads_a_stream_event_by_event() {
    let server = Running::start().await;
    let events = (1..=2).map(|seq| Published::new(event(seq, "a piece of text")));
    server.fake.publish(events);
    let mut browser = Browser::of(&server).await;
    let request = wire::EventsRequest {
        session: Some(session()),
        ..Default::default()
    };
    let request = framed(0, &request.encode_to_vec());
    let answer = browser
        .ask(Method::POST, EVENTS, &[WEB, PAGE], request)
        .await;
    let (mut body, mut read, mut seen) = (answer.into_body(), Vec::new(), Vec::new());
    while seen.len() < 4 {
        // The stream has no end: what is read is there before it.
        let frame = soon(body.frame()).await.expect("it goes on").unwrap();
        read.extend(frame.into_data().unwrap());
        let mut left = Bytes::from(read);
        while left.len() >= 5 {
            let (flag, message) = first(&mut left);
            assert_eq!(flag, 0);
            seen.push(wire::EventsResponse::decode(message).unwrap());
        }
        read = left.to_vec();
    }
    drop((browser, body));
    server.fake.until_open(0).await;
}

#[tokio::test]
async fn c54_a_browser_is_told_what_a_local_page_may_do_and_a_strange_page_may_do_nothing() {
    let server = Running::start().await;
    let mut browser = Browser::of(&server).await;
    let asks = ("access-control-request-method", "POST");
    let answer = browser
        .ask(Method::OPTIONS, GET_STATE, &[PAGE, asks], Bytes::new())
        .await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    let headers = answer.headers();
    assert_eq!(headers["access-control-allow-origin"], PAGE.1);
    assert_eq!(headers["access-control-allow-methods"], "POST");
    let sent = headers["access-control-allow-headers"].to_str().unwrap();
    for name in [
        "authorization",
        "content-type",
        "x-grpc-web",
        "grpc-timeout",
    ] {
        assert!(sent.contains(name), "{name} in {sent}");
    }
    for origin in [
        STRANGER,
        ("origin", "null"),
        ("origin", "http://localhost.evil.example"),
    ] {
        for (method, more) in [(Method::OPTIONS, asks), (Method::POST, WEB)] {
            let answer = browser
                .ask(method, GET_STATE, &[origin, more], get_state())
                .await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{origin:?}");
            assert!(!answer.headers().contains_key("access-control-allow-origin"));
            let body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&body).contains("edge.web_origins"));
        }
    }
    // Over HTTP/2 a page is the same page.
    let caller = server.owner().await.header("origin", STRANGER.1);
    let answer = caller.call_framed(GET_STATE, get_state()).await;
    assert_eq!(answer.header("grpc-status"), None, "HTTP's own word");
    assert!(!server.fake.was_asked());
}

#[tokio::test]
async fn c62_http1_is_for_pages_only_and_says_what_else_to_do() {
    let server = Running::start().await;
    let mut browser = Browser::of(&server).await;
    let grpc = ("content-type", "application/grpc");
    for (method, headers) in [(Method::POST, &[grpc][..]), (Method::GET, &[])] {
        let answer = browser.ask(method, GET_STATE, headers, get_state()).await;
        assert_eq!(answer.status(), StatusCode::HTTP_VERSION_NOT_SUPPORTED);
        let body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("HTTP/2"));
    }
}

#[tokio::test]
async fn c54_b59_a_browser_that_does_not_finish_is_closed_and_one_that_rests_delays_no_stop() {
    let config = Config {
        first_request_within: Duration::from_secs(1),
        message_within: Duration::from_secs(1),
        ..Config::default()
    };
    let mut server = Running::with(config).await;
    for said in ["P", "POST /x HTTP/1.1\r\nhost: a\r\n"] {
        let mut stream = server.silent().await;
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A reset is a close, too.
        let _cut = soon(stream.read_to_end(&mut answer)).await;
    }
    // A body that never comes.
    let mut stream = server.silent().await;
    let head = format!(
        "POST {GET_STATE} HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc-web\r\n\
         authorization: Bearer {}\r\ncontent-length: 100\r\n\r\n",
        server.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = soon(stream.read(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.contains("grpc-status: 4"), "{answer}");

    let mut browser = Browser::of(&server).await;
    let answer = browser
        .ask(Method::POST, GET_STATE, &[WEB, PAGE], get_state())
        .await;
    soon(answer.into_body().collect()).await.unwrap();
    server.stop();
    server.stopped().await;
}
