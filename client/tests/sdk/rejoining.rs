//! Runs that are followed to their end across lost streams.

use sessionplane::v1;
use sessionplane_client::contract::{CallOptions, InvokeEvent};
use sessionplane_client::domain::error::{CallError, Outcome, Reason};
use sessionplane_client::{Client, RunItem, RunStream, detached};
use tonic::{Code, Status};

use super::fake::{Fake, Stage, Step, client_of, soon};
use super::relay::Relay;
use super::wire;

type Steps = Vec<Step<v1::InvokeResponse>>;

fn first_half() -> Steps {
    let steps = [
        wire::accepted(false),
        wire::text("m-1", "one "),
        wire::text("m-2", "tw"),
    ];
    steps.map(Step::Send).into()
}

/// What a rejoin plays: the run from its start.
fn whole() -> Steps {
    let steps = [
        wire::accepted(true),
        wire::text("m-1", "one "),
        wire::text("m-2", "tw"),
        wire::text("m-2", "o"),
        wire::completed(),
    ];
    steps.map(Step::Send).into()
}

fn follow(client: &Client) -> RunStream {
    let request = detached(wire::docs(), "count".to_owned());
    client.invoke_to_end(request, CallOptions::default())
}

/// The text of a run, how often it was rejoined, and its end.
async fn told(mut run: RunStream) -> (String, usize, Result<InvokeEvent, CallError>) {
    let (mut text, mut rejoined, mut accepted) = (String::new(), 0, 0);
    loop {
        match soon(run.next()).await.expect("ended in silence") {
            Ok(RunItem::Event(InvokeEvent::Delta { text: piece, .. })) => text.push_str(&piece),
            Ok(RunItem::Event(event)) if event.is_terminal() => {
                assert!(soon(run.next()).await.is_none());
                assert_eq!(accepted, 1, "accepted is told once");
                return (text, rejoined, Ok(event));
            }
            Ok(RunItem::Event(InvokeEvent::Accepted { .. })) => accepted += 1,
            Ok(RunItem::Rejoined) => rejoined += 1,
            Ok(_) => {}
            Err(error) => return (text, rejoined, Err(error)),
        }
    }
}

async fn rejoins_after(ending: Steps) {
    let fake = Fake::start(Stage {
        invokes: [Ok([first_half(), ending].concat()), Ok(whole())].into(),
        ..Stage::default()
    })
    .await;
    let (text, rejoined, end) = told(follow(&fake.client())).await;
    assert_eq!((text.as_str(), rejoined), ("one two", 1));
    assert!(matches!(end, Ok(InvokeEvent::Completed { .. })), "{end:?}");
    fake.look(|stage| {
        assert_eq!(stage.invoked.len(), 2);
        assert_eq!(
            stage.invoked[0], stage.invoked[1],
            "the same request, id included"
        );
    });
}

#[tokio::test]
async fn c12_a_run_is_rejoined_with_the_same_request_id() {
    rejoins_after(vec![Step::Fail(Status::unavailable("a proxy"))]).await;
    let lost = wire::ours(Code::Unavailable, "SERVING_LOST", "stream_ended");
    rejoins_after(vec![Step::Fail(lost)]).await;
}

#[tokio::test]
async fn c12_a_run_whose_stream_ends_without_a_terminal_is_rejoined() {
    rejoins_after(vec![]).await;
}

#[tokio::test]
async fn c12_a_run_whose_connection_was_cut_is_rejoined() {
    let fake = Fake::start(Stage {
        invokes: [Ok([first_half(), vec![Step::Hang]].concat()), Ok(whole())].into(),
        ..Stage::default()
    })
    .await;
    let relay = Relay::to(fake.address).await;
    let mut run = follow(&client_of(&relay.url()));
    while !matches!(
        soon(run.next()).await,
        Some(Ok(RunItem::Event(InvokeEvent::Delta { message, .. }))) if message == "m-2"
    ) {}
    relay.cut();
    let mut text = String::new();
    while let Some(item) = soon(run.next()).await {
        if let RunItem::Event(InvokeEvent::Delta { text: piece, .. }) = item.unwrap() {
            text.push_str(&piece);
        }
    }
    assert_eq!(text, "o");
}

#[tokio::test]
async fn c12_a_run_that_settled_meanwhile_tells_that_its_events_were_missed() {
    let settled = [wire::accepted(true), wire::completed()].map(Step::Send);
    let fake = Fake::start(Stage {
        invokes: [Ok(first_half()), Ok(settled.into())].into(),
        ..Stage::default()
    })
    .await;
    let mut run = follow(&fake.client());
    let mut missed = None;
    while let Some(item) = soon(run.next()).await {
        let item = item.unwrap();
        if let RunItem::Event(event) = &item
            && event.is_terminal()
        {
            assert_eq!(missed, Some(RunItem::Missed { skipped: None }));
            return;
        }
        missed = Some(item);
    }
    panic!("no terminal");
}

#[tokio::test]
async fn events_that_the_server_skips_are_missed_and_a_full_replay_misses_nothing() {
    let mut steps = first_half();
    let resumed = v1::invoke_event::Event::Resumed(v1::InvokeResumed { skipped: 7 });
    steps.push(Step::Send(wire::invoked(resumed)));
    let fake = Fake::start(Stage {
        invokes: [Ok(steps), Ok(whole())].into(),
        ..Stage::default()
    })
    .await;
    let (mut run, mut missed) = (follow(&fake.client()), Vec::new());
    while let Some(item) = soon(run.next()).await {
        if let RunItem::Missed { skipped } = item.unwrap() {
            missed.push(skipped);
        }
    }
    assert_eq!(missed, [Some(7)]);
}

#[tokio::test]
async fn c13_the_sdk_asks_for_a_run_that_outlives_its_caller() {
    let fake = Fake::start(Stage {
        invokes: [Ok(whole())].into(),
        ..Stage::default()
    })
    .await;
    told(follow(&fake.client())).await.2.unwrap();
    let asked = fake.look(|stage| stage.invoked[0].on_disconnect());
    assert_eq!(asked, v1::OnDisconnect::Detach);
}

#[tokio::test]
async fn a_run_is_not_rejoined_where_that_would_not_help() {
    let expired = wire::ours(Code::Unauthenticated, "UNAUTHENTICATED", "stream_ended");
    let fake = Fake::start(Stage {
        invokes: [
            Ok([first_half(), vec![Step::Fail(expired)]].concat()),
            Ok(whole()),
        ]
        .into(),
        ..Stage::default()
    })
    .await;
    let (_, rejoined, end) = told(follow(&fake.client())).await;
    let error = end.unwrap_err();
    assert_eq!((rejoined, error.reason), (0, Reason::Unauthenticated));
    assert_eq!(error.outcome, Outcome::StreamEnded);
}

#[tokio::test]
async fn c02_a_run_that_was_accepted_is_never_refused_by_a_later_opening() {
    for reason in ["UNAUTHENTICATED", "NO_SUCH_SESSION", "REQUEST_ID_REUSED"] {
        let refusal = wire::ours(Code::FailedPrecondition, reason, "refused");
        let fake = Fake::start(Stage {
            invokes: [Ok(first_half()), Err(refusal)].into(),
            ..Stage::default()
        })
        .await;
        let (text, _, end) = told(follow(&fake.client())).await;
        let error = end.unwrap_err();
        assert_eq!((text.as_str(), error.reason.as_str()), ("one tw", reason));
        assert_eq!(error.outcome, Outcome::StreamEnded, "the run stands");
    }
}

#[tokio::test]
async fn c07_a_busy_session_is_a_terminal_and_not_repeated() {
    let fake = Fake::start(Stage {
        invokes: [Ok(vec![Step::Send(wire::busy())]), Ok(whole())].into(),
        ..Stage::default()
    })
    .await;
    let mut run = follow(&fake.client());
    let item = soon(run.next()).await.unwrap().unwrap();
    let RunItem::Event(InvokeEvent::Failed { code, .. }) = item else {
        panic!("not a terminal: {item:?}");
    };
    assert_eq!(code, "session_busy");
    assert!(soon(run.next()).await.is_none());
    assert_eq!(fake.look(|stage| stage.invoked.len()), 1);
}
