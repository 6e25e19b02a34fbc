//! Watches of sessions across every way in which a stream can end, and the commands over them.

use sessionplane::v1::{self, watch_sessions_response::Item};
use sessionplane_client::{FleetWatch, FleetWatchItem, FleetWatchOptions};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tonic::{Code, Status};

use super::cli::{interrupt, ran, sessionctl, told as told_by};
use super::fake::fleet::FleetStage;
use super::fake::{Fake, Stage, Step, soon};
use super::wire;

type Steps = Vec<Step<v1::WatchSessionsResponse>>;

/// A session with a name, at a revision.
pub(crate) fn session(number: u8, name: &str, revision: u64) -> v1::Session {
    v1::Session {
        id: format!("01K0000000000000000000000{number}"),
        name: name.to_owned(),
        agent: "demo".to_owned(),
        phase: v1::SessionPhase::Ready.into(),
        phase_since: Some(wire::time(1_767_225_600)),
        created_at: Some(wire::time(1_767_225_600)),
        updated_at: Some(wire::time(1_767_225_600)),
        etag: "4".to_owned(),
        revision,
        ..Default::default()
    }
}

/// A session whose run asks questions of these numbers.
pub(crate) fn asking(number: u8, name: &str, revision: u64, questions: &[u32]) -> v1::Session {
    let asked = |ordinal: &u32| v1::Interaction {
        id: format!("{}-q{ordinal}", wire::RUN),
        question: Some(v1::Question {
            title: "run `make`".to_owned(),
            shape: Some(v1::question::Shape::Confirm(v1::ConfirmShape {})),
            ..Default::default()
        }),
        asked_at: Some(wire::time(1_767_225_600)),
        ..Default::default()
    };
    v1::Session {
        phase: v1::SessionPhase::NeedsInput.into(),
        active_run_id: wire::RUN.to_owned(),
        questions: questions.iter().map(asked).collect(),
        ..session(number, name, revision)
    }
}

fn item(item: Item) -> Step<v1::WatchSessionsResponse> {
    Step::Send(v1::WatchSessionsResponse { item: Some(item) })
}

fn changed(sessions: Vec<v1::Session>, gone: &[u8]) -> Step<v1::WatchSessionsResponse> {
    let gone = gone.iter().map(|number| session(*number, "", 1).id);
    item(Item::Changed(v1::SessionsChanged {
        sessions,
        gone_session_ids: gone.collect(),
    }))
}

fn bookmark(text: &str) -> Step<v1::WatchSessionsResponse> {
    item(Item::Bookmark(v1::WatchBookmark {
        bookmark: text.to_owned(),
    }))
}

async fn watched(watches: Vec<Result<Steps, Status>>) -> Fake {
    Fake::start(Stage {
        fleet: FleetStage {
            watches: watches.into(),
            ..FleetStage::default()
        },
        ..Stage::default()
    })
    .await
}

/// Reads until so many times all was told; what was told, as `name@revision` and `-id`.
async fn told(watch: &mut FleetWatch, currents: usize) -> Vec<String> {
    let (mut told, mut seen) = (Vec::new(), 0);
    while seen < currents {
        match soon(watch.next()).await.unwrap().unwrap() {
            FleetWatchItem::Changed { sessions, gone } => {
                let named = sessions.iter().map(|it| {
                    let name = it.name.as_ref().unwrap();
                    format!("{name}@{}", it.revision)
                });
                told.extend(named);
                told.extend(gone.iter().map(|id| format!("-{id}")));
            }
            FleetWatchItem::Current => seen += 1,
            FleetWatchItem::Reconnecting { .. } => told.push("lost".to_owned()),
        }
    }
    told
}

async fn resumes_after(ending: Steps) {
    let first = vec![
        changed(vec![session(1, "docs", 5), session(2, "core", 6)], &[]),
        bookmark("b1"),
    ];
    let again = vec![
        changed(vec![session(1, "docs", 5), session(2, "core", 7)], &[]),
        bookmark("b2"),
        Step::Hang,
    ];
    let fake = watched(vec![Ok([first, ending].concat()), Ok(again)]).await;
    let options = FleetWatchOptions {
        filter: "agent = demo".to_owned(),
        ..FleetWatchOptions::default()
    };
    let mut watch = fake.client().watch_fleet(options);
    let told = told(&mut watch, 2).await;
    assert_eq!(told, ["docs@5", "core@6", "lost", "core@7"]);
    fake.look(|stage| {
        let asked: Vec<_> = stage
            .fleet
            .watched
            .iter()
            .map(|it| (it.filter.as_str(), it.bookmark.as_str()))
            .collect();
        assert_eq!(asked, [("agent = demo", ""), ("agent = demo", "b1")]);
    });
}

#[tokio::test]
async fn c47_b05_a_watch_of_sessions_resumes_from_its_last_bookmark() {
    resumes_after(vec![Step::Fail(Status::unavailable("a proxy"))]).await;
    let draining = wire::ours(Code::Unavailable, "SERVER_DRAINING", "stream_ended");
    resumes_after(vec![Step::Fail(draining)]).await;
    let slow = wire::ours(Code::Aborted, "OBSERVER_TOO_SLOW", "stream_ended");
    resumes_after(vec![Step::Fail(slow)]).await;
    resumes_after(vec![Step::Fail(Status::internal("h2 error"))]).await;
    resumes_after(vec![]).await;
}

#[tokio::test]
async fn c47_a_bookmark_that_expired_tells_only_what_differs() {
    let first = vec![
        changed(vec![session(1, "docs", 5), session(2, "core", 6)], &[]),
        bookmark("b1"),
    ];
    let again = vec![
        item(Item::BookmarkExpired(v1::BookmarkExpired {})),
        changed(vec![session(2, "core", 6), session(3, "new", 1)], &[]),
        bookmark("c1"),
        Step::Hang,
    ];
    let fake = watched(vec![Ok(first), Ok(again)]).await;
    let mut watch = fake.client().watch_fleet(FleetWatchOptions::default());
    let told = told(&mut watch, 2).await;
    let gone = format!("-{}", session(1, "", 1).id);
    assert_eq!(told, ["docs@5", "core@6", "lost", "new@1", gone.as_str()]);
}

#[tokio::test]
async fn c47_a_refusal_for_good_ends_a_watch_of_sessions() {
    let refused = wire::ours(Code::InvalidArgument, "INVALID_ARGUMENT", "refused");
    let fake = watched(vec![Err(refused)]).await;
    let mut watch = fake.client().watch_fleet(FleetWatchOptions::default());
    let error = soon(watch.next()).await.unwrap().unwrap_err();
    assert_eq!(error.reason.as_str(), "INVALID_ARGUMENT");
    assert!(soon(watch.next()).await.is_none());
}

#[tokio::test]
async fn a_list_that_is_watched_in_a_pipe_prints_the_lines_that_change() {
    let later = v1::Session {
        phase_since: Some(wire::time(1_767_225_700)),
        ..session(2, "core", 7)
    };
    let steps = vec![
        changed(vec![session(1, "docs", 5), session(2, "core", 6)], &[]),
        bookmark("b1"),
        changed(vec![later], &[]),
        bookmark("b2"),
        changed(vec![asking(1, "docs", 8, &[1])], &[2]),
        bookmark("b3"),
        Step::Fail(wire::ours(
            Code::PermissionDenied,
            "PERMISSION_DENIED",
            "stream_ended",
        )),
    ];
    let fake = watched(vec![Ok(steps.clone()), Ok(steps)]).await;
    let (code, out, err) = ran(&fake, &["agents", "--watch"]).await;
    assert_eq!(code, 3, "{err}");
    let first: Vec<_> = out
        .lines()
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().take(3).collect();
            words.join(" ")
        })
        .collect();
    let expected = [
        "STATE NAME AGENT",
        "ready docs demo",
        "ready core demo",
        "needs input docs",
        "confirm? run `make`",
        "gone core",
    ];
    assert_eq!(first, expected, "{out}");
    let (_, out, _) = ran(&fake, &["--json", "agents", "--watch"]).await;
    let told: Vec<_> = out
        .lines()
        .map(|line| {
            let told: serde_json::Value = serde_json::from_str(line).unwrap();
            (told["name"].clone(), told["gone_session_id"].clone())
        })
        .collect();
    let null = serde_json::Value::Null;
    assert_eq!(told.len(), 6, "{out}");
    assert_eq!(told[3], ("docs".into(), null.clone()));
    assert_eq!(told[4], (null, session(2, "", 1).id.into()), "{out}");
}

#[tokio::test]
async fn another_name_is_told_and_ctrl_c_is_the_end_that_a_watch_is_given_for() {
    let steps = vec![
        changed(vec![session(1, "t3", 5)], &[]),
        bookmark("b1"),
        changed(vec![session(1, "t33", 6)], &[]),
        bookmark("b2"),
        Step::Hang,
    ];
    let fake = watched(vec![Ok(steps)]).await;
    let mut child = sessionctl(&fake, &["agents", "--watch"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    while told.len() < 4 {
        told.push(soon(lines.next_line()).await.unwrap().expect("it goes on"));
    }
    assert_eq!(
        told[2].split_whitespace().collect::<Vec<_>>(),
        ["renamed", "t3", "->", "t33"]
    );
    assert_eq!(told[3].find("t33"), told[0].find("NAME"), "{told:?}");
    let pid = child.id().unwrap().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    let (code, _, err) = super::cli::told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!((code, err.as_str()), (130, ""));
}

#[tokio::test]
async fn c25_each_new_question_runs_a_command_once_whatever_breaks_between() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let first = vec![
        changed(vec![asking(1, "old", 5, &[1])], &[]),
        bookmark("b1"),
        changed(vec![asking(2, "docs", 6, &[1])], &[]),
        bookmark("b2"),
        Step::Fail(Status::unavailable("a proxy")),
    ];
    let again = vec![
        changed(vec![asking(2, "docs", 7, &[1, 2])], &[]),
        bookmark("b3"),
        Step::Hang,
    ];
    let fake = watched(vec![Ok(first), Ok(again)]).await;
    let script = format!(
        "echo \"$SESSIONPLANE_NAME $SESSIONPLANE_QUESTION $SESSIONPLANE_TITLE $1\" >> {}; echo done",
        told.display()
    );
    let words = [
        "watch",
        "--needs-input",
        "--exec",
        "sh",
        "-c",
        script.as_str(),
        "x",
        "--flag",
    ];
    let mut child = sessionctl(&fake, &words)
        .env("PATH", "/usr/bin:/bin")
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut done = 0;
    while done < 2 {
        let line = soon(lines.next_line()).await.unwrap().expect("it goes on");
        done += usize::from(line == "done");
    }
    let told = std::fs::read_to_string(told).unwrap();
    let line = |ordinal| format!("docs {}-q{ordinal} run `make` --flag", wire::RUN);
    let mut lines: Vec<_> = told.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [line(1), line(2)]);
    // Of a large fleet it asks for no more than it needs.
    let asked = fake.look(|stage| stage.fleet.watched[0].filter.clone());
    assert_eq!(asked, "phase = NEEDS_INPUT");
}

#[tokio::test]
async fn c25_a_question_is_told_with_the_way_to_answer_it() {
    let steps = vec![
        changed(vec![asking(1, "docs", 5, &[1, 2])], &[]),
        bookmark("b1"),
        Step::Fail(wire::ours(
            Code::PermissionDenied,
            "PERMISSION_DENIED",
            "stream_ended",
        )),
    ];
    let fake = watched(vec![Ok(steps)]).await;
    let (code, out, err) = ran(&fake, &["watch", "--needs-input", "--open"]).await;
    assert_eq!(code, 3, "{err}");
    insta::assert_snapshot!(out);
}

#[tokio::test]
async fn what_commands_say_is_not_among_the_objects_of_standard_output() {
    let steps = vec![
        changed(vec![asking(1, "docs", 5, &[1])], &[]),
        bookmark("b1"),
        Step::Hang,
    ];
    let fake = watched(vec![Ok(steps)]).await;
    let words = [
        "--json",
        "watch",
        "--needs-input",
        "--open",
        "--exec",
        "echo",
        "told",
    ];
    let mut child = sessionctl(&fake, &words).spawn().unwrap();
    let mut beside = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = soon(beside.next_line()).await.unwrap();
    assert_eq!(line.as_deref(), Some("told"));
    interrupt(&child).await;
    let (_, out, _) = told_by(soon(child.wait_with_output()).await.unwrap());
    let mut objects = out.lines().map(|line| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        object["session_name"].clone()
    });
    assert_eq!(objects.next(), Some("docs".into()), "{out}");
    assert!(!out.contains("told"), "{out}");
}

#[tokio::test]
async fn who_watches_is_told_of_a_loss_and_that_it_is_over() {
    for words in [&["watch", "--needs-input"][..], &["agents", "--watch"]] {
        let first = vec![changed(vec![session(1, "docs", 5)], &[]), bookmark("b1")];
        let fake = watched(vec![Ok(first), Ok(vec![bookmark("b2"), Step::Hang])]).await;
        let mut child = sessionctl(&fake, words).spawn().unwrap();
        let err = child.stderr.as_mut().unwrap();
        let told = super::cli::reads_from(err, "connected again to http://").await;
        assert!(told.starts_with("the connection is lost; "), "{told}");
    }
}

#[tokio::test]
async fn who_never_had_a_connection_is_not_told_that_it_is_lost() {
    let fake = watched(Vec::new()).await;
    for words in [&["watch", "--needs-input"][..], &["agents", "--watch"]] {
        let nowhere = [&["--address", "127.0.0.1:1"], words].concat();
        let (code, _, err) = ran(&fake, &nowhere).await;
        assert_eq!(code, 3, "{err}");
        assert!(err.starts_with("error: cannot connect to"), "{err}");
        assert!(!err.contains("Ctrl-C"), "{err}");
    }
}
