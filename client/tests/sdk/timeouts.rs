//! `sessionctl --timeout`: what is said when the time is up.

use std::process::Stdio;

use sessionplane::v1;

use super::cli::{ran, sends, sessionctl, told};
use super::fake::{Fake, Stage, Step, soon};
use super::wire;

#[tokio::test]
async fn c02_a_time_out_is_the_same_for_a_program_whichever_timer_is_up() {
    let hanging = || {
        let mut steps = sends([wire::subscribed(false, false)]);
        steps.push(Step::Hang);
        Ok(steps)
    };
    let state = v1::GetStateResponse {
        state: Some(wire::state(false)),
    };
    let fake = Fake::start(Stage {
        mute: true,
        states: [Ok(state)].into(),
        events: [hanging()].into(),
        invokes: [Ok(vec![Step::Send(wire::accepted(false)), Step::Hang])].into(),
        ..Stage::default()
    })
    .await;
    for words in [
        &["steer", "docs", "go"][..],
        &["events", "docs"],
        &["invoke", "docs", "go"],
    ] {
        let all = [&["--json", "--timeout", "300ms"], words].concat();
        let (code, out, _) = ran(&fake, &all).await;
        assert_eq!(code, 3, "{words:?}");
        let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!(
            last["error"]["reason"], "DEADLINE_EXCEEDED",
            "{words:?}: {out}"
        );
        assert_eq!(last["error"]["outcome"], "unknown", "{words:?}: {out}");
    }
}

#[tokio::test]
async fn a_time_that_is_up_says_what_becomes_of_what_was_followed() {
    let state = || {
        Ok(v1::GetStateResponse {
            state: Some(wire::state(false)),
        })
    };
    let run = || Ok(vec![Step::Send(wire::accepted(false)), Step::Hang]);
    let mut steps = sends([wire::subscribed(false, false)]);
    steps.push(Step::Hang);
    let fake = Fake::start(Stage {
        states: [state()].into(),
        events: [Ok(steps)].into(),
        invokes: [run(), run()].into(),
        ..Stage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["--timeout", "300ms", "events", "docs"]).await;
    let words = "error: the time is up: this was shown for 300ms\n";
    assert_eq!((code, err.as_str()), (3, words));
    let words = [
        "--timeout",
        "300ms",
        "--request-id",
        "r-1",
        "invoke",
        "docs",
        "go",
    ];
    let (code, _, err) = ran(&fake, &words).await;
    let late = format!(
        "error: run {run} has not settled within 300ms; it goes on\n  \
         wait on:   sessionctl wait {run}\n  \
         rejoin it: the same command with --request-id r-1\n",
        run = wire::RUN
    );
    assert_eq!((code, err), (3, late));
    let words = [&words[..], &["--cancel-on-disconnect"]].concat();
    let (_, _, err) = ran(&fake, &words).await;
    assert!(
        err.contains("it is aborted unless somebody rejoins it soon"),
        "{err}"
    );
}

#[tokio::test]
async fn a_text_that_never_comes_is_not_waited_for_longer_than_asked() {
    let fake = Fake::start(Stage::default()).await;
    let mut command = sessionctl(&fake, &["--timeout", "300ms", "steer", "docs", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    drop(stdin);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("nothing was sent"), "{err}");
    fake.look(|stage| assert!(stage.dispatched.is_empty()));
}
