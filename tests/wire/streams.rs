//! Streams while the server runs: bytes shared between observers, and what callers that leave
//! bring about.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_server::app::observation::Published;
use sessionplane_server::grpc::server::Config;
use tonic::Code;
use wire::events_response::Item;

use crate::fake::{self, event};
use crate::server::{Answer, Caller, Running, soon, told};

const EVENTS: &str = "/sessionplane.v1.SessionControl/Events";
const INVOKE: &str = "/sessionplane.v1.Invoke/Invoke";

fn session() -> wire::SessionRef {
    let id = wire::session_ref::Ref::Id(fake::session().to_string());
    wire::SessionRef { r#ref: Some(id) }
}

/// Opens an observer's stream and reads to where live events begin.
pub(crate) async fn observe(caller: &Caller) -> Answer {
    let request = wire::EventsRequest {
        session: Some(session()),
        ..Default::default()
    };
    let mut answer = caller.ask(EVENTS, &request).await;
    let first = answer.message::<wire::EventsResponse>().await;
    assert!(matches!(first.item, Some(Item::Subscribed(_))), "{first:?}");
    let second = answer.message::<wire::EventsResponse>().await;
    assert!(matches!(second.item, Some(Item::Snapshot(_))), "{second:?}");
    answer
}

/// Starts a run and reads that it was accepted.
pub(crate) async fn invoke(caller: &Caller) -> Answer {
    let prompt = Some(wire::Prompt {
        text: "go".into(),
        ..Default::default()
    });
    let request = wire::InvokeRequest {
        session: Some(session()),
        prompt,
        ..Default::default()
    };
    let mut answer = caller.ask(INVOKE, &request).await;
    let first = answer
        .message::<wire::InvokeResponse>()
        .await
        .event
        .unwrap();
    assert!(
        matches!(first.event, Some(wire::invoke_event::Event::Accepted(_))),
        "{first:?}"
    );
    answer
}

async fn bytes_of(answer: &mut Answer, events: usize) -> Vec<Bytes> {
    let mut all = Vec::new();
    for _ in 0..events {
        all.push(answer.next().await.expect("one more event"));
    }
    all
}

#[tokio::test]
async fn c30_an_event_is_encoded_once_and_every_observer_gets_the_same_bytes() {
    let server = Running::start().await;
    server
        .fake
        .publish((1..=200).map(|seq| Published::new(event(seq, "a piece of text"))));
    let (one, other) = (server.owner().await, server.owner().await);
    let (mut one, mut other) = (observe(&one).await, observe(&other).await);
    let first = bytes_of(&mut one, 200).await;
    assert_eq!(first, bytes_of(&mut other, 200).await);
    for (seq, bytes) in (1..).zip(first) {
        let Some(Item::Event(event)) = wire::EventsResponse::decode(bytes).unwrap().item else {
            panic!("an event");
        };
        assert_eq!(
            (event.seq, event.event.unwrap().r#type.as_str()),
            (seq, "message_delta")
        );
    }
    assert_eq!(server.metrics.events_encoded.load(Ordering::Relaxed), 200);
}

#[tokio::test]
async fn c30_an_encoding_that_is_there_is_sent_as_it_is() {
    let server = Running::start().await;
    // Nothing that this server would write.
    let there = Bytes::from_static(&[0xfa, 0x3f, 0x03, b'n', b'e', b'w']);
    let published = Published::new(event(1, "known"));
    published.encoded(|_| there.clone());
    server.fake.publish([published]);
    let mut stream = observe(&server.owner().await).await;
    assert_eq!(bytes_of(&mut stream, 1).await, [there]);
    assert_eq!(server.metrics.events_encoded.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn c13_the_application_sees_it_when_a_caller_goes_away() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let (run, events) = (invoke(&caller).await, observe(&caller).await);
    server.fake.until_open(2).await;
    drop(run);
    server.fake.until_open(1).await;
    drop(events);
    server.fake.until_open(0).await;

    let caller = server.owner().await;
    let run = invoke(&caller).await;
    server.fake.until_open(1).await;
    drop((run, caller));
    server.fake.until_open(0).await;
}

#[tokio::test]
async fn c02_a_stream_that_fails_after_its_first_messages_ends_in_our_words() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let lapped = CallError::stream_ended(Reason::ObserverTooSlow, "too slow");
    server.fake.break_streams_with(lapped);
    for stream in [observe(&caller).await, invoke(&caller).await] {
        let status = stream.status().await;
        assert_eq!(
            (status.code(), status.message()),
            (Code::Aborted, "too slow")
        );
        assert_eq!(
            told(&status),
            ("OBSERVER_TOO_SLOW".to_owned(), "stream_ended".to_owned())
        );
    }
    server.fake.until_open(0).await;
}

#[tokio::test]
async fn c02_a_stream_that_is_refused_ends_in_our_words() {
    let server = Running::start().await;
    server
        .fake
        .fail_with(CallError::refused(Reason::NoSuchSession, "no such session"));
    let request = wire::EventsRequest {
        session: Some(session()),
        ..Default::default()
    };
    let caller = server.owner().await;
    let status = caller.ask(EVENTS, &request).await.status().await;
    assert_eq!(
        told(&status),
        ("NO_SUCH_SESSION".to_owned(), "refused".to_owned())
    );
}

#[tokio::test]
async fn c62_a_deadline_ends_a_quiet_stream() {
    let server = Running::start().await;
    let caller = server.owner().await.header("grpc-timeout", "1S");
    let status = observe(&caller).await.status().await;
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(
        told(&status),
        ("DEADLINE_EXCEEDED".to_owned(), "stream_ended".to_owned())
    );
    server.fake.until_open(0).await;
}

#[tokio::test]
async fn a_deadline_ends_a_stream_that_never_pauses() {
    let server = Running::start().await;
    server
        .fake
        .publish((1..=64).map(|seq| Published::new(event(seq, "a piece of text"))));
    server.fake.repeat_without_end();
    let caller = server.owner().await.header("grpc-timeout", "1S");
    let stream = observe(&caller).await;
    let status = soon(stream.status()).await;
    assert_eq!(
        told(&status),
        ("DEADLINE_EXCEEDED".to_owned(), "stream_ended".to_owned())
    );
}

/// A stream that never pauses and that its caller has stopped to read.
async fn unread(server: &Running, caller: &Caller) -> Answer {
    server
        .fake
        .publish((1..=64).map(|seq| Published::new(event(seq, "a piece of text"))));
    server.fake.repeat_without_end();
    observe(caller).await
}

#[tokio::test]
async fn c62_a_deadline_lets_go_of_a_stream_that_nobody_reads() {
    let server = Running::start().await;
    let caller = server.owner().await.header("grpc-timeout", "1S");
    let stream = unread(&server, &caller).await;
    server.fake.until_open(1).await;
    server.fake.until_open(0).await;
    let status = soon(stream.status()).await;
    assert_eq!(
        told(&status),
        ("DEADLINE_EXCEEDED".to_owned(), "stream_ended".to_owned())
    );
}

#[tokio::test]
async fn c62_a_deadline_counts_from_the_arrival_of_its_call() {
    let server = Running::start().await;
    server.fake.open_after(Duration::from_secs(2));
    let caller = server.owner().await.header("grpc-timeout", "3S");
    #[allow(clippy::disallowed_methods, reason = "how long a caller really waits")]
    let asked = std::time::Instant::now();
    let status = observe(&caller).await.status().await;
    assert_eq!(told(&status).0, "DEADLINE_EXCEEDED");
    assert!(asked.elapsed() < Duration::from_secs(5), "it began again");
}

#[tokio::test]
async fn a_stream_that_is_not_read_for_too_long_is_let_go_and_a_quiet_one_is_not() {
    let config = Config {
        unread_within: Duration::from_secs(1),
        ..Config::default()
    };
    let server = Running::with(config).await;
    let caller = server.owner().await;
    let mut quiet = invoke(&caller).await;
    let stream = unread(&server, &caller).await;
    server.fake.until_open(2).await;
    server.fake.until_open(1).await;
    let status = soon(stream.status()).await;
    assert_eq!(status.code(), Code::Aborted);
    assert_eq!(
        told(&status),
        ("OBSERVER_TOO_SLOW".to_owned(), "stream_ended".to_owned())
    );
    let more = tokio::time::timeout(Duration::from_millis(1), quiet.next()).await;
    assert!(more.is_err(), "it goes on");
}

#[tokio::test]
async fn c62_b61_an_old_connection_lets_go_of_its_streams_in_words_and_a_new_one_is_taken() {
    let config = Config {
        max_connection_age: Some(Duration::from_secs(1)),
        max_connection_age_grace: Duration::from_millis(100),
        ..Config::default()
    };
    let server = Running::with(config).await;
    let status = observe(&server.owner().await).await.status().await;
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(
        told(&status),
        ("SERVER_DRAINING".to_owned(), "stream_ended".to_owned())
    );
    observe(&server.owner().await).await;
}

#[tokio::test]
async fn a_long_answer_that_is_not_read_for_too_long_is_let_go_and_one_that_is_read_is_whole() {
    const LIST: &str = "/sessionplane.v1.SessionControl/ListEntries";
    let config = Config {
        unread_within: Duration::from_secs(1),
        ..Config::default()
    };
    let server = Running::with(config).await;
    server.fake.hold_entries(20_000);
    let id = wire::session_ref::Ref::Id(fake::session().to_string());
    let request = wire::ListEntriesRequest {
        session: Some(wire::SessionRef { r#ref: Some(id) }),
        ..Default::default()
    };
    let (reader, caller) = (server.owner().await, server.owner().await);
    let page: wire::ListEntriesResponse = reader.ask(LIST, &request).await.ok().await;
    assert_eq!(page.entries.len(), 20_000);

    let unread_answer = caller.ask(LIST, &request).await;
    // Each of two streams, one after the other, is let go of for the same reason: that takes longer.
    for _ in 0..2 {
        let other = server.owner().await;
        let _stream = unread(&server, &other).await;
        server.fake.until_open(1).await;
        server.fake.until_open(0).await;
    }
    let status = soon(unread_answer.status()).await;
    assert_eq!(told(&status).0, "OBSERVER_TOO_SLOW", "{status:?}");
}
