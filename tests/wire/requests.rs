//! Single calls: what reaches the application, and how refusals look.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sessionplane::v1 as wire;
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::provenance::Trust;
use tonic::Code;
use tonic_types::StatusExt;

use crate::contract::methods;
use crate::server::{Running, framed, info, told};
use crate::streams::{invoke, observe};

const GET_STATE: &str = "/sessionplane.v1.SessionControl/GetState";
const DISPATCH: &str = "/sessionplane.v1.SessionControl/Dispatch";
const LIST_ENTRIES: &str = "/sessionplane.v1.SessionControl/ListEntries";
const INVOKE: &str = "/sessionplane.v1.Invoke/Invoke";
const GET_RUN: &str = "/sessionplane.v1.Invoke/GetRun";

fn session() -> wire::SessionRef {
    let name = wire::session_ref::Ref::Name("a".into());
    wire::SessionRef { r#ref: Some(name) }
}

fn get_state() -> wire::GetStateRequest {
    wire::GetStateRequest {
        session: Some(session()),
        min_position: None,
    }
}

fn abort(request_id: &str) -> wire::DispatchRequest {
    wire::DispatchRequest {
        session: Some(session()),
        request_id: request_id.into(),
        command: Some(wire::dispatch_request::Command::Abort(wire::Abort {})),
        ..Default::default()
    }
}

#[tokio::test]
async fn c02_every_refusal_reaches_the_caller_with_its_reason_and_outcome() {
    let server = Running::start().await;
    let caller = server.owner().await;
    for reason in Reason::ALL
        .into_iter()
        .filter(|reason| *reason != Reason::Transport)
    {
        for outcome in [Outcome::Refused, Outcome::Unknown, Outcome::StreamEnded] {
            server.fake.fail_with(CallError {
                outcome,
                ..CallError::refused(reason, "why")
            });
            for path in [GET_STATE, "/sessionplane.v1.SessionControl/Events"] {
                let status = caller.ask(path, &get_state()).await.status().await;
                let expected = (reason.as_str().to_owned(), outcome.as_str().to_owned());
                assert_eq!(told(&status), expected, "{path}");
                assert_eq!(status.message(), "why");
            }
        }
    }
}

#[tokio::test]
async fn c01_a_malformed_request_is_refused_before_the_application_is_asked() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let refused = [
        (
            caller
                .ask(GET_STATE, &wire::GetStateRequest::default())
                .await,
            "session",
        ),
        (
            caller.ask(INVOKE, &wire::InvokeRequest::default()).await,
            "session",
        ),
        (
            caller.ask(DISPATCH, &abort("two words")).await,
            "request_id",
        ),
        (
            caller.ask(DISPATCH, &abort(&"a".repeat(129))).await,
            "request_id",
        ),
        (
            caller
                .ask(GET_RUN, &wire::GetRunRequest { run_id: "x".into() })
                .await,
            "run_id",
        ),
    ];
    for (answer, field) in refused {
        let status = answer.status().await;
        assert_eq!(status.code(), Code::InvalidArgument, "{field}");
        assert_eq!(told(&status).1, "refused");
        let violations = status.get_details_bad_request().expect("names the field");
        assert_eq!(violations.field_violations[0].field, field);
    }
    let unset = wire::DispatchRequest {
        command: None,
        ..abort("")
    };
    let status = caller.ask(DISPATCH, &unset).await.status().await;
    assert!(
        status.message().contains("`steer`, `follow_up`, `abort`"),
        "{}",
        status.message()
    );
    assert!(!server.fake.was_asked());
}

#[tokio::test]
async fn c01_b38_a_message_that_cannot_be_read_is_refused_with_our_details() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let not_utf8 = [0x0a, 0x03, 0x12, 0x01, 0xff];
    let too_large = vec![0; 4 * 1024 * 1024 + 1];
    for (body, reason) in [
        (framed(0, &not_utf8), "INVALID_ARGUMENT"),
        (framed(0, &[0xff]), "INVALID_ARGUMENT"),
        (framed(1, &[]), "INVALID_ARGUMENT"),
        (bytes::Bytes::new(), "INVALID_ARGUMENT"),
        (framed(0, &too_large), "TOO_LARGE"),
    ] {
        for path in [GET_STATE, INVOKE] {
            let status = caller.call_framed(path, body.clone()).await.status().await;
            assert_eq!(
                told(&status),
                (reason.to_owned(), "refused".to_owned()),
                "{status:?}"
            );
            assert_eq!(status.code(), Code::InvalidArgument);
        }
    }
    let large = caller.call(GET_STATE, &too_large).await.status().await;
    assert!(
        large.message().contains("4194304"),
        "names the limit: {}",
        large.message()
    );
    assert!(!server.fake.was_asked());
}

#[tokio::test]
async fn every_method_of_the_descriptors_is_served_and_no_other() {
    let server = Running::start().await;
    let caller = server.owner().await;
    for path in methods() {
        // No message: an empty one is a request that some of them take.
        let status = caller.call(&path, &[0xff]).await.status().await;
        assert_eq!(told(&status).0, "INVALID_ARGUMENT", "{path}: {status:?}");
    }
    for unknown in [
        "/sessionplane.v1.Invoke/Nope",
        "/sessionplane.v1.SessionControl/Nope",
        "/x/y",
        "/",
    ] {
        let status = caller.call(unknown, &[]).await.status().await;
        assert_eq!(status.code(), Code::Unimplemented, "{unknown}");
        assert_eq!(
            told(&status),
            ("UNIMPLEMENTED".to_owned(), "refused".to_owned())
        );
    }
}

#[tokio::test]
async fn the_application_learns_who_calls_the_key_the_deadline_and_the_trace() {
    let server = Running::start().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let caller = server.owner().await.header("grpc-timeout", "7S");
    let caller = caller.header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"));
    let answer = caller.ask(DISPATCH, &abort("key-1")).await;
    let answer = answer.ok::<wire::DispatchResponse>().await;
    assert!(matches!(
        answer.answer,
        Some(wire::dispatch_response::Answer::Accepted(_))
    ));

    let (caller, options) = server.fake.asked();
    assert_eq!(caller.principal.id.as_str(), "owner");
    assert_eq!(caller.principal.ceiling, Trust::Relayed);
    assert_eq!(caller.trace_id.as_deref(), Some(trace));
    assert_eq!(options.request_id.unwrap().as_str(), "key-1");
    let left = options.deadline.expect("a deadline");
    assert!(
        left <= Duration::from_secs(7) && left > Duration::ZERO,
        "{left:?}"
    );
}

/// Where the log of a test goes.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn c62_a_fault_of_the_server_is_logged_once_under_the_trace_of_its_call() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // While there is only one, a place in the code that another test's thread reaches first is taken
    // to be of no interest to anybody.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = Running::start().await;
    let trace = |id: u8| format!("{id:032x}");
    let caller = server.owner().await;
    let tracing = |id: u8| {
        let parent = format!("00-{}-00f067aa0ba902b7-01", trace(id));
        caller.header("traceparent", &parent)
    };
    let fault = CallError::unknown(Reason::Internal, "a bolt came loose");
    server.fake.break_streams_with(fault.clone());
    for stream in [observe(&tracing(1)).await, invoke(&tracing(2)).await] {
        assert_eq!(stream.status().await.code(), Code::Internal);
    }
    server.fake.fail_with(fault);
    let status = tracing(3).ask(GET_STATE, &get_state()).await.status().await;
    assert_eq!(status.code(), Code::Internal);

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("a bolt came loose"))
        .collect();
    assert_eq!(told.len(), 3, "{log}");
    for (line, id) in told.iter().zip(1..) {
        assert!(line.contains(&trace(id)), "{line}");
    }
}

#[tokio::test]
async fn c62_a_deadline_ends_a_call_that_the_application_does_not_answer() {
    let server = Running::start().await;
    server.fake.hang();
    let caller = server.owner().await.header("grpc-timeout", "20m");
    let status = caller.ask(GET_STATE, &get_state()).await.status().await;
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(
        told(&status),
        ("DEADLINE_EXCEEDED".to_owned(), "unknown".to_owned())
    );
}

#[tokio::test]
async fn c62_gzip_is_read_and_what_is_not_read_is_said() {
    let server = Running::start().await;
    let message = prost::Message::encode_to_vec(&get_state());
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(&message).unwrap();
    let body = framed(1, &zipped.finish().unwrap());
    let caller = server.owner().await.header("grpc-encoding", "gzip");
    caller
        .call_framed(GET_STATE, body.clone())
        .await
        .ok::<wire::GetStateResponse>()
        .await;

    let caller = server.owner().await.header("grpc-encoding", "snappy");
    let status = caller.call_framed(GET_STATE, body).await.status().await;
    assert_eq!(info(&status).reason, "UNIMPLEMENTED");
    assert!(status.message().contains("snappy"), "{}", status.message());
}

#[tokio::test]
async fn c62_a_long_page_is_compressed_for_who_can_read_it_and_a_short_one_is_not() {
    let server = Running::start().await;
    let caller = server.owner().await;
    let reader = caller.header("grpc-accept-encoding", "gzip");
    let request = wire::ListEntriesRequest {
        session: Some(session()),
        ..Default::default()
    };
    for (entries, caller, compressed) in [
        (1, &reader, false),
        (100, &caller, false),
        (100, &reader, true),
    ] {
        server.fake.hold_entries(entries);
        let mut answer = caller.ask(LIST_ENTRIES, &request).await;
        let message = answer.next().await.expect("a page");
        assert_eq!(answer.compressed, compressed, "{entries} entries");
        if compressed {
            let mut whole = Vec::new();
            flate2::read::GzDecoder::new(&message[..])
                .read_to_end(&mut whole)
                .unwrap();
            let page: wire::ListEntriesResponse = prost::Message::decode(&whole[..]).unwrap();
            assert_eq!(page.entries.len(), 100);
            assert_eq!(page.next_since, page.leaf_entry_id);
        }
    }
}

#[tokio::test]
async fn c60_b38_a_small_compressed_message_does_not_grow_past_the_limit() {
    let server = Running::start().await;
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    zipped.write_all(&vec![0; 64 * 1024 * 1024]).unwrap();
    let body = framed(1, &zipped.finish().unwrap());
    assert!(body.len() < 128 * 1024);
    let caller = server.owner().await.header("grpc-encoding", "gzip");
    let status = caller.call_framed(GET_STATE, body).await.status().await;
    assert_eq!(
        told(&status),
        ("TOO_LARGE".to_owned(), "refused".to_owned())
    );
}

#[tokio::test]
async fn many_calls_at_once_on_one_connection_are_all_answered() {
    let server = Running::start().await;
    let caller = Arc::new(server.owner().await);
    let calls = (0..64).map(|_| {
        let caller = caller.clone();
        async move {
            caller
                .ask(GET_STATE, &get_state())
                .await
                .ok::<wire::GetStateResponse>()
                .await
        }
    });
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.state.is_some()));
}
