//! The edge: what is refused by the name of its limit, what is shed, and what is compressed.

use std::time::Duration;

use sessionplane::v1 as wire;
use sessionplane_server::app::observation::Published;
use sessionplane_server::grpc::server::Config;
use tokio::task::JoinSet;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::doors::health;
use crate::fake::{self, event};
use crate::server::{Caller, Running, soon, told};
use crate::streams::{invoke, observe};

const GET_STATE: &str = "/sessionplane.v1.SessionControl/GetState";
const INVOKE: &str = "/sessionplane.v1.Invoke/Invoke";
const SERVING: i32 = 1;

fn get_state() -> wire::GetStateRequest {
    let id = wire::session_ref::Ref::Id(fake::session().to_string());
    wire::GetStateRequest {
        session: Some(wire::SessionRef { r#ref: Some(id) }),
        ..Default::default()
    }
}

#[tokio::test]
async fn c60_a_request_with_too_much_metadata_is_told_which_limit_it_was() {
    let config = Config {
        max_header_bytes: 8192,
        ..Config::default()
    };
    let server = Running::with(config).await;
    let caller = server.owner().await;
    // A little too much, and far too much: somebody's whole prompt.
    for size in [8192, 250 * 1024] {
        let much = caller.header("x-much", &"a".repeat(size));
        let status = much.ask(GET_STATE, &get_state()).await.status().await;
        assert_eq!(
            told(&status),
            ("TOO_LARGE".to_owned(), "refused".to_owned())
        );
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!(violations[0].field, "metadata");
        for part in ["the limit is 8192 bytes", "limits.max_header_bytes"] {
            assert!(status.message().contains(part), "{}", status.message());
        }
    }
    assert!(!server.fake.was_asked());
    // The connection goes on, and what fits is taken.
    let some = caller.header("x-much", &"a".repeat(7000));
    let answer = some.ask(GET_STATE, &get_state()).await;
    answer.ok::<wire::GetStateResponse>().await;
}

/// Watches the server's health, as far as one may: the state, or the refusal.
async fn watch(caller: &Caller) -> (Option<bytes::Bytes>, crate::server::Answer) {
    let mut watch = caller.call("/grpc.health.v1.Health/Watch", &[]).await;
    let first = watch.header("grpc-status").is_none();
    let first = if first { watch.next().await } else { None };
    (first, watch)
}

#[tokio::test]
async fn c60_streams_that_need_no_token_are_bounded_for_all_callers_together() {
    let server = Running::start().await;
    let (one, other) = (server.stranger().await, server.stranger().await);
    let mut watches = Vec::new();
    for _ in 0..1024 {
        let (state, watch) = watch(&one).await;
        assert!(state.is_some());
        watches.push(watch);
    }
    let (state, refused) = watch(&other).await;
    assert_eq!(state, None);
    let status = refused.status().await;
    let overloaded = ("OVERLOADED".to_owned(), "refused".to_owned());
    assert_eq!(told(&status), overloaded, "{status:?}");
    assert!(status.message().contains("1024 streams"), "{status:?}");
    // Who asks once is answered, who is known has streams of their own, and who leaves makes room.
    assert_eq!(health(&other, "").await, SERVING);
    let _known = observe(&server.owner().await).await;
    drop(watches);
    let room = async { while watch(&other).await.0.is_none() {} };
    soon(room).await;
}

async fn until_asked(server: &Running, times: usize) {
    let asked = async {
        while server.fake.times_asked() < times {
            tokio::task::yield_now().await;
        }
    };
    soon(asked).await;
}

#[tokio::test]
async fn c60_a_call_beyond_those_in_work_is_refused_before_it_costs_and_health_is_answered() {
    let config = Config {
        max_calls: 1,
        ..Config::default()
    };
    let server = Running::with(config).await;
    let caller = server.owner().await;
    // An open stream is answered: it takes nobody's room.
    let (_run, _events) = (invoke(&caller).await, observe(&caller).await);
    server.fake.hang();
    let mut hanging = JoinSet::new();
    let hang = |hanging: &mut JoinSet<_>, caller: Caller| {
        hanging.spawn(async move { caller.ask(GET_STATE, &get_state()).await.status().await });
    };
    let patient = caller.header("grpc-timeout", "3S");
    hang(&mut hanging, patient);
    until_asked(&server, 3).await;
    let stranger = server.stranger().await;
    for caller in [&caller, &stranger] {
        let status = caller.ask(GET_STATE, &get_state()).await.status().await;
        assert_eq!(status.code(), Code::Unavailable);
        let overloaded = ("OVERLOADED".to_owned(), "refused".to_owned());
        assert_eq!(told(&status), overloaded, "who it was is not asked");
        let retry = status.get_details_retry_info().expect("when to come back");
        assert!(retry.retry_delay.unwrap() > Duration::ZERO);
        assert!(status.message().contains("limits.max_calls"));
    }
    assert_eq!(health(&stranger, "").await, SERVING);
    assert_eq!(server.fake.times_asked(), 3);
    // Their deadline makes room.
    while let Some(status) = soon(hanging.join_next()).await {
        assert_eq!(status.unwrap().code(), Code::DeadlineExceeded);
    }
    let again = caller.header("grpc-timeout", "100m");
    let status = again.ask(GET_STATE, &get_state()).await.status().await;
    assert_eq!(status.code(), Code::DeadlineExceeded, "it was let in");
}

#[tokio::test]
async fn c62_long_messages_of_a_stream_are_compressed_and_none_waits_for_another() {
    let long = "a long text ".repeat(1000);
    for coding in ["zstd", "gzip"] {
        let server = Running::start().await;
        let texts = ["short", &long, "short again"];
        let events = (1..).zip(texts);
        let events = events.map(|(seq, text)| Published::new(event(seq, text)));
        server.fake.publish(events);
        let caller = server.owner().await;
        let reader = caller.header("grpc-accept-encoding", coding);
        // The stream goes on after them: each is there although nothing follows.
        let mut stream = observe(&reader).await;
        let mut plain = observe(&caller).await;
        for compressed in [false, true, false] {
            let bytes = stream.next().await.expect("an event");
            assert_eq!(stream.compressed, compressed, "{coding}");
            let whole = match (compressed, coding) {
                (false, _) => bytes.to_vec(),
                (true, "zstd") => zstd::decode_all(&bytes[..]).unwrap(),
                (true, _) => {
                    let mut whole = Vec::new();
                    let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
                    std::io::Read::read_to_end(&mut decoder, &mut whole).unwrap();
                    whole
                }
            };
            assert_eq!(plain.next().await.expect("the same"), whole);
            assert!(!plain.compressed);
        }
    }
}

#[tokio::test]
async fn c62_every_service_says_how_it_would_compress_and_a_refusal_says_nothing() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let reader = caller.header("grpc-accept-encoding", "gzip");
    let id = fake::session().to_string();
    let session = Some(wire::SessionRef {
        r#ref: Some(wire::session_ref::Ref::Id(id)),
    });
    let prompt = Some(wire::Prompt {
        text: "go".into(),
        ..Default::default()
    });
    let request = wire::InvokeRequest {
        session,
        prompt,
        ..Default::default()
    };
    for (caller, told) in [(&reader, Some("gzip")), (&caller, None)] {
        let answer = caller.ask(GET_STATE, &get_state()).await;
        assert_eq!(answer.header("grpc-encoding"), told);
        let answer = caller.ask(INVOKE, &request).await;
        assert_eq!(answer.header("grpc-encoding"), told);
    }
    let answer = reader.call(INVOKE, &[0xff]).await;
    assert_eq!(answer.header("grpc-encoding"), None);
}
