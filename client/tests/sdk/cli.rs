//! `sessionctl` as a process: what it prints where, and how it ends.

use std::process::{Output, Stdio};
use std::sync::Arc;

use sessionplane::v1;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tonic::Code;

use super::fake::{Fake, Script, Stage, Step, soon};
use super::wire;

pub(crate) fn sessionctl(fake: &Fake, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sessionctl"));
    // By name, as from the PATH: hints are the same wherever it was built.
    command
        .arg0("sessionctl")
        .args(arguments)
        .env_clear()
        .env("SESSIONPLANE_ADDRESS", fake.url())
        .env("SESSIONPLANE_TOKEN", "sp_test")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

pub(crate) async fn ran(fake: &Fake, arguments: &[&str]) -> (i32, String, String) {
    let output = soon(sessionctl(fake, arguments).output()).await.unwrap();
    told(output)
}

pub(crate) fn told(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().expect("ended by a signal");
    (code, text(output.stdout), text(output.stderr))
}

pub(crate) fn sends<T>(messages: impl IntoIterator<Item = T>) -> Vec<Step<T>> {
    messages.into_iter().map(Step::Send).collect()
}

async fn invoking(steps: Vec<Step<v1::InvokeResponse>>) -> Fake {
    Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        ..Stage::default()
    })
    .await
}

/// A run with thinking, a tool, and two messages, one of which attacks the terminal.
fn full_run() -> Vec<v1::InvokeResponse> {
    let mut run = vec![wire::accepted(false), wire::thinking("let me see")];
    run.push(wire::text("m-1", "I look. \u{1b}[2J"));
    run.extend(wire::tool("README.md\nsrc\n"));
    run.push(wire::text("m-2", "Two "));
    run.push(wire::text("m-2", "files."));
    run.push(wire::completed());
    run
}

#[tokio::test]
async fn the_answer_is_on_standard_output_and_all_else_beside_it() {
    let fake = invoking(sends(full_run())).await;
    let (code, out, err) = ran(&fake, &["invoke", "docs", "what is here?"]).await;
    insta::assert_snapshot!(format!("exit {code}\n--- stdout\n{out}--- stderr\n{err}"));
    let asked = fake.look(|stage| stage.invoked[0].clone());
    assert!(asked.must_exist, "a typo starts no agent");
    assert_eq!(asked.on_disconnect(), v1::OnDisconnect::Detach);
}

#[tokio::test]
async fn c14_a_session_is_created_only_when_asked_for() {
    let fake = invoking(sends(full_run())).await;
    fake.stage.lock().unwrap().states = [Err(wire::ours(
        Code::NotFound,
        "NO_SUCH_SESSION",
        "refused",
    ))]
    .into();
    let arguments = [
        "invoke",
        "--new",
        "--agent",
        "demo",
        "--cancel-on-disconnect",
        "docs",
        "hi",
    ];
    let (code, ..) = ran(&fake, &arguments).await;
    let asked = fake.look(|stage| stage.invoked[0].clone());
    assert_eq!(
        (code, asked.must_exist, asked.agent.as_str()),
        (0, false, "demo")
    );
    assert_eq!(asked.on_disconnect(), v1::OnDisconnect::Cancel);
}

#[tokio::test]
async fn json_is_one_object_a_line_with_the_names_of_the_api() {
    let fake = invoking(sends(full_run())).await;
    let (code, out, err) = ran(&fake, &["--json", "invoke", "docs", "what is here?"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    for line in out.lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(object.is_object(), "{line}");
    }
    insta::assert_snapshot!(out);
}

#[tokio::test]
async fn c07_a_busy_session_shows_the_ways_in() {
    let fake = invoking(sends([wire::busy()])).await;
    let (code, out, err) = ran(&fake, &["invoke", "docs", "hi"]).await;
    assert_eq!((code, out.as_str()), (1, ""));
    for way in [
        "sessionctl steer docs",
        "sessionctl abort docs",
        "attach docs",
    ] {
        assert!(err.contains(way), "{err}");
    }
}

#[tokio::test]
async fn c04_an_unknown_session_has_an_exit_code_of_its_own() {
    fn refusal<T>() -> Script<T> {
        Err(wire::ours(Code::NotFound, "NO_SUCH_SESSION", "refused"))
    }
    let fake = Fake::start(Stage {
        invokes: [refusal()].into(),
        states: [refusal()].into(),
        ..Stage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["invoke", "docs", "hi"]).await;
    assert_eq!(code, 4);
    assert!(err.contains("sessionctl invoke --new docs"), "{err}");
    let (code, ..) = ran(&fake, &["state", "docs"]).await;
    assert_eq!(code, 4);
}

#[tokio::test]
async fn c02_an_unknown_outcome_names_the_request_id_to_repeat() {
    let fake = Fake::start(Stage {
        mute: true,
        ..Stage::default()
    })
    .await;
    let arguments = [
        "--timeout",
        "300ms",
        "--request-id",
        "build-7",
        "steer",
        "docs",
        "go",
    ];
    let (code, _, err) = ran(&fake, &arguments).await;
    assert_eq!(code, 3);
    assert!(err.contains("--request-id build-7"), "{err}");
    assert_eq!(
        fake.look(|stage| stage.dispatched[0].request_id.clone()),
        "build-7"
    );
}

#[tokio::test]
async fn ctrl_c_leaves_while_a_text_is_read() {
    let fake = Fake::start(Stage::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(
        soon(Command::new("mkfifo").arg(&pipe).status())
            .await
            .unwrap()
            .success()
    );
    let path = pipe.display().to_string();
    let child = sessionctl(&fake, &["steer", "docs", "--text-file", &path])
        .spawn()
        .unwrap();
    // Opens once the command reads.
    let mut write = tokio::fs::OpenOptions::new();
    let writer = soon(write.write(true).open(&pipe)).await.unwrap();
    interrupt(&child).await;
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    drop(writer);
    assert_eq!((code, err.as_str()), (130, "error: interrupted\n"));
}

#[tokio::test]
async fn a_rejected_command_fails_and_an_accepted_one_names_its_input() {
    let fake = Fake::start(Stage {
        dispatches: [
            Ok(wire::dispatch_rejected()),
            Ok(wire::dispatch_rejected()),
            Ok(wire::dispatch_accepted()),
        ]
        .into(),
        ..Stage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["follow-up", "docs", "and then"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("no_active_run"), "{err}");
    assert_eq!(err.matches("invoke").count(), 1, "one hint, once: {err}");
    let (code, _, err) = ran(&fake, &["abort", "docs"]).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("nothing to abort") && !err.contains("invoke"),
        "{err}"
    );
    let (code, out, _) = ran(&fake, &["steer", "docs", "go"]).await;
    assert_eq!(
        (code, out),
        (0, format!("accepted: input {}-i1, waiting\n", wire::RUN))
    );
}

#[tokio::test]
async fn c57_what_is_piped_is_data_below_the_argument() {
    let fake = Fake::start(Stage {
        dispatches: [Ok(wire::dispatch_accepted())].into(),
        ..Stage::default()
    })
    .await;
    let mut command = sessionctl(
        &fake,
        &["steer", "docs", "The build broke.", "--text-file", "-"],
    );
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all("zwei\nZeilen".as_bytes()).await.unwrap();
    drop(stdin);
    let (code, ..) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 0);
    let given = fake.look(|stage| stage.dispatched[0].command.clone());
    let Some(v1::dispatch_request::Command::Steer(steer)) = given else {
        panic!("not a steer: {given:?}");
    };
    let part = v1::GivenData {
        name: "standard input".to_owned(),
        media_type: "text/plain".to_owned(),
        content: "zwei\nZeilen".into(),
    };
    assert_eq!(steer.text, "The build broke.");
    assert_eq!((steer.data, steer.typed), (vec![part], false));
}

#[tokio::test]
async fn the_single_reads_print_facts() {
    let page = v1::ListEntriesResponse {
        entries: vec![
            wire::user_entry(1, "what is here?"),
            wire::assistant_entry(2, "m-1", "Two files.\n\nThat is all."),
        ],
        leaf_entry_id: wire::entry_id(2),
        ..v1::ListEntriesResponse::default()
    };
    let state = v1::GetStateResponse {
        state: Some(wire::state(true)),
    };
    let fake = Fake::start(Stage {
        states: [Ok(state.clone()), Ok(state)].into(),
        pages: [Ok(page.clone()), Ok(page)].into(),
        ..Stage::default()
    })
    .await;
    let mut all = Vec::new();
    for arguments in [
        &["state", "docs"][..],
        &["--json", "state", "docs"],
        &["entries", "docs"],
        &["--json", "entries", "docs"],
        &["run", wire::RUN],
        &["--json", "run", wire::RUN],
        &["capabilities", "docs"],
        &["--json", "capabilities", "--agent", "demo"],
    ] {
        let (code, out, err) = ran(&fake, arguments).await;
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        all.push(format!("$ sessionctl {}\n{out}", arguments.join(" ")));
    }
    insta::assert_snapshot!(all.join("\n"));
}

/// Reads a child's standard output until it holds `text`.
pub(crate) async fn reads(child: &mut Child, text: &str) -> String {
    let out = child.stdout.as_mut().unwrap();
    reads_from(out, text).await
}

/// Reads until it has seen `text`.
pub(crate) async fn reads_from(out: &mut (impl AsyncRead + Unpin), text: &str) -> String {
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    while !seen.contains(text) {
        let read = soon(out.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "ended before {text:?}: {seen}");
        seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    seen
}

pub(crate) async fn interrupt(child: &Child) {
    let id = child.id().unwrap().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status();
    assert!(soon(killed).await.unwrap().success());
}

#[tokio::test]
async fn c13_ctrl_c_aborts_the_run_and_tells_how_it_ended() {
    let abort = Arc::new(Notify::new());
    let mut steps = sends([wire::accepted(false), wire::text("m-1", "counting")]);
    steps.extend([Step::Wait(abort.clone()), Step::Send(wire::aborted())]);
    let fake = Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        dispatches: [Ok(wire::dispatch_accepted())].into(),
        on_dispatch: Some(abort),
        ..Stage::default()
    })
    .await;
    let mut child = sessionctl(&fake, &["invoke", "docs", "count"])
        .spawn()
        .unwrap();
    reads(&mut child, "counting").await;
    interrupt(&child).await;
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 130);
    assert!(err.contains("aborted: run"), "{err}");
    fake.look(|stage| {
        let given = &stage.dispatched[0];
        assert_eq!(given.expected_run_id, wire::RUN);
        // Its name may be another's by now.
        let met = v1::session_ref::Ref::Id(wire::SESSION.to_owned());
        assert_eq!(given.session.clone().and_then(|it| it.r#ref), Some(met));
        assert!(matches!(
            given.command,
            Some(v1::dispatch_request::Command::Abort(_))
        ));
    });
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_at_once() {
    let mut steps = sends([wire::accepted(false), wire::text("m-1", "counting")]);
    steps.push(Step::Hang);
    let dispatched = Arc::new(Notify::new());
    let fake = Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        dispatches: [Ok(wire::dispatch_accepted())].into(),
        on_dispatch: Some(dispatched.clone()),
        ..Stage::default()
    })
    .await;
    let mut child = sessionctl(&fake, &["invoke", "docs", "count"])
        .spawn()
        .unwrap();
    reads(&mut child, "counting").await;
    interrupt(&child).await;
    soon(dispatched.notified()).await;
    interrupt(&child).await;
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 130);
    assert!(err.contains("sessionctl attach docs"), "{err}");
}

#[tokio::test]
async fn c02_a_reader_that_goes_away_leaves_a_run_of_which_the_end_is_unknown() {
    let mut steps = sends([wire::accepted(false), wire::text("m-1", "first\n")]);
    let gone = Arc::new(Notify::new());
    steps.push(Step::Wait(gone.clone()));
    steps.extend(sends([
        wire::text("m-1", "second\n"),
        wire::text("m-1", "third\n"),
    ]));
    steps.push(Step::Hang);
    let fake = invoking(steps).await;
    let mut child = sessionctl(&fake, &["invoke", "docs", "count"])
        .spawn()
        .unwrap();
    reads(&mut child, "first").await;
    drop(child.stdout.take());
    gone.notify_one();
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("the same command with --request-id"), "{err}");
}

#[tokio::test]
async fn attach_shows_what_was_and_what_is_takes_lines_and_detaches() {
    let steered = Arc::new(Notify::new());
    let message_id = "m-2".to_owned();
    let started = v1::session_event::Payload::MessageStarted(v1::MessageStarted { message_id });
    let delta = v1::session_event::Payload::MessageDelta(v1::MessageDelta {
        message_id: "m-2".to_owned(),
        channel: v1::DeltaChannel::Text.into(),
        text: "Working on it.".to_owned(),
    });
    let mut steps = sends([
        wire::subscribed(false, false),
        wire::entries(vec![
            wire::user_entry(1, "what is here?"),
            wire::assistant_entry(2, "m-1", "Two files."),
        ]),
        wire::snapshot(5, true),
        wire::event(6, started),
        wire::event(7, delta),
        wire::appended(8, wire::assistant_entry(3, "m-2", "Working on it.")),
    ]);
    steps.extend([Step::Wait(steered.clone()), Step::Hang]);
    let state = v1::GetStateResponse {
        state: Some(wire::state(true)),
    };
    let fake = Fake::start(Stage {
        states: [Ok(state)].into(),
        events: [Ok(steps)].into(),
        dispatches: [Ok(wire::dispatch_accepted())].into(),
        on_dispatch: Some(steered),
        ..Stage::default()
    })
    .await;
    let mut command = sessionctl(&fake, &["attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut shown = reads(&mut child, "Working on it.").await;
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"use tabs\n").await.unwrap();
    shown.push_str(&reads(&mut child, "accepted").await);
    drop(stdin);
    let (code, rest, err) = told(soon(child.wait_with_output()).await.unwrap());
    shown.push_str(&rest);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(shown);
}
