//! Attached: what is typed goes where it is meant to, and nothing waits for anything else.

use std::process::Stdio;

use sessionplane::v1::{self, dispatch_request::Command as Given};
use tokio::io::AsyncWriteExt as _;

use super::answering::{approval, requested};
use super::cli::{reads, sends, sessionctl, told};
use super::fake::{Fake, Stage, Step, soon};
use super::wire;

#[tokio::test]
async fn c21_c25_neither_an_answer_nor_an_abort_waits_for_a_slow_steer() {
    let mut watched = sends([
        wire::subscribed(false, false),
        wire::snapshot(5, true),
        requested(6, approval(1)),
        requested(7, approval(2)),
    ]);
    watched.push(Step::Hang);
    let state = v1::GetStateResponse {
        state: Some(wire::state(true)),
    };
    let fake = Fake::start(Stage {
        states: [Ok(state)].into(),
        events: [Ok(watched)].into(),
        dispatches: (0..2).map(|_| Ok(wire::dispatch_done())).collect(),
        slow_steers: true,
        ..Stage::default()
    })
    .await;
    let mut command = sessionctl(&fake, &["--timeout", "10s", "attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    reads(&mut child, "/answer q2").await;
    let mut stdin = child.stdin.take().unwrap();
    let lines = b"use tabs\nand no spaces\n/answer deny\n/answer q2 deny\n/abort\n";
    stdin.write_all(lines).await.unwrap();
    reads(&mut child, "accepted").await;
    let mut err = child.stderr.take().unwrap();
    let told = super::cli::reads_from(&mut err, "not sent").await;
    assert!(told.contains("say which one is answered"), "{told}");
    assert!(told.contains("the line before it was not sent"), "{told}");
    child.kill().await.unwrap();
    fake.look(|stage| {
        let kinds: Vec<_> = stage
            .dispatched
            .iter()
            .map(|given| match &given.command {
                Some(Given::Steer(_)) => "steer",
                Some(Given::Respond(_)) => "respond",
                Some(Given::Abort(_)) => "abort",
                _ => "?",
            })
            .collect();
        assert_eq!(
            kinds.iter().filter(|kind| **kind == "steer").count(),
            1,
            "{kinds:?}"
        );
        assert!(
            kinds.contains(&"respond") && kinds.contains(&"abort"),
            "{kinds:?}"
        );
    });
}

#[tokio::test]
async fn attach_gives_every_command_that_can_be_typed() {
    let mut watched = sends([wire::subscribed(false, false), wire::snapshot(5, false)]);
    watched.push(Step::Hang);
    let state = v1::GetStateResponse {
        state: Some(wire::state(false)),
    };
    let fake = Fake::start(Stage {
        states: [Ok(state)].into(),
        events: [Ok(watched)].into(),
        dispatches: (0..5).map(|_| Ok(wire::dispatch_done())).collect(),
        ..Stage::default()
    })
    .await;
    let mut command = sessionctl(&fake, &["attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = "/help\n/follow then docs\n/compact keep it\n/model deep\n/model --default\n\
                 /thinking high\n";
    stdin.write_all(lines.as_bytes()).await.unwrap();
    drop(stdin);
    let (code, out, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("/answer ANSWER"), "{out}");
    let given: Vec<_> = fake.look(|stage| {
        let all = stage.dispatched.iter();
        all.map(|given| given.command.clone().unwrap()).collect()
    });
    let model = |model: Option<&str>| {
        Given::SetModel(v1::SetModel {
            model: model.map(str::to_owned),
        })
    };
    assert_eq!(
        given,
        [
            Given::FollowUp(v1::FollowUp {
                text: "then docs".to_owned(),
                ..Default::default()
            }),
            Given::Compact(v1::Compact {
                instructions: "keep it".to_owned()
            }),
            model(Some("deep")),
            model(None),
            Given::SetThinking(v1::SetThinking {
                level: Some("high".to_owned())
            }),
        ]
    );
}

#[tokio::test]
async fn c45_what_is_typed_reaches_the_session_that_was_met_whoever_has_its_name_by_then() {
    let renamed = v1::StateChanged {
        session_name: Some("guide".to_owned()),
        ..v1::StateChanged::default()
    };
    let renamed = v1::session_event::Payload::StateChanged(renamed);
    let mut watched = sends([
        wire::subscribed(false, false),
        wire::snapshot(5, true),
        wire::event(6, renamed),
    ]);
    watched.push(Step::Hang);
    let fake = Fake::start(Stage {
        states: [Ok(wire::state_answer(wire::state(true)))].into(),
        events: [Ok(watched)].into(),
        dispatches: [Ok(wire::dispatch_accepted())].into(),
        ..Stage::default()
    })
    .await;
    let mut command = sessionctl(&fake, &["attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    reads(&mut child, "! the session is named guide now").await;
    stdin.write_all(b"go left\n").await.unwrap();
    drop(stdin);
    let (code, out, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(
        out.contains("re-attach with: sessionctl attach guide"),
        "{out}"
    );
    let given = fake.look(|stage| stage.dispatched[0].session.clone());
    let met = v1::session_ref::Ref::Id(wire::SESSION.to_owned());
    assert_eq!(given.and_then(|given| given.r#ref), Some(met));
}
