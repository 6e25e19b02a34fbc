//! `sessionctl` that comes in the middle, or misses an end: what comes is shown, and all of it whole.

use std::process::Stdio;
use std::sync::Arc;

use sessionplane::v1;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tonic::Status;

use super::cli::{ran, reads_from, sends, sessionctl, told};
use super::fake::{Fake, Stage, Step, soon};
use super::wire;

/// A stream whose observer came in the middle of a message and of a tool call.
fn joined() -> Vec<Step<v1::EventsResponse>> {
    let mut steps = sends([
        wire::subscribed(false, false),
        wire::entries(vec![wire::user_entry(1, "what is here?")]),
        wire::snapshot(5, true),
        wire::delta(6, "m-1", "fi"),
        wire::delta(7, "m-1", "les.\n"),
        wire::appended(8, wire::assistant_entry(2, "m-1", "Two files.\n")),
        wire::progress(9, "one\n"),
        wire::progress(10, "one\ntwo\n"),
        wire::appended(11, wire::tool_entry(3, "one\ntwo\n")),
        wire::message_started(12, "m-2"),
        wire::delta(13, "m-2", "That is all.\n"),
        wire::appended(14, wire::assistant_entry(4, "m-2", "That is all.\n")),
        wire::appended(15, wire::user_entry(5, "thanks")),
    ]);
    steps.push(Step::Hang);
    steps
}

async fn observed(events: Vec<Vec<Step<v1::EventsResponse>>>) -> Fake {
    let state = v1::GetStateResponse {
        state: Some(wire::state(true)),
    };
    Fake::start(Stage {
        states: [Ok(state)].into(),
        events: events.into_iter().map(Ok).collect(),
        run: Some(wire::interrupted()),
        ..Stage::default()
    })
    .await
}

/// What a command shows up to a text.
async fn shows(fake: &Fake, arguments: &[&str], until: &str) -> String {
    let mut command = sessionctl(fake, arguments);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let shown = reads_from(child.stdout.as_mut().unwrap(), until).await;
    child.kill().await.unwrap();
    shown
}

#[tokio::test]
async fn attach_shows_what_it_joined_in_the_middle_as_it_comes_and_then_whole() {
    let fake = observed(vec![joined()]).await;
    let shown = shows(&fake, &["attach", "docs"], "thanks\n").await;
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn events_list_entries_with_their_contents_unless_they_were_told_live() {
    let fake = observed(vec![joined()]).await;
    let shown = shows(&fake, &["events", "--all", "docs"], "thanks\n").await;
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn c29_what_is_sent_again_from_the_first_entry_is_shown_again_and_said_so() {
    for words in [&["attach", "docs"][..], &["events", "--all", "docs"]] {
        let entries = vec![
            wire::user_entry(1, "what is here?"),
            wire::assistant_entry(2, "m-1", "Two files.\n"),
        ];
        let mut before = sends([
            wire::subscribed(false, false),
            wire::entries(entries.clone()),
            wire::snapshot(5, false),
        ]);
        before.push(Step::Fail(Status::unavailable("gone")));
        let mut after = sends([
            wire::subscribed(false, true),
            wire::entries_anew(entries),
            wire::snapshot(1, false),
            wire::appended(2, wire::user_entry(3, "thanks")),
        ]);
        after.push(Step::Hang);
        let fake = observed(vec![before, after]).await;
        let shown = shows(&fake, words, "thanks\n").await;
        assert_eq!(shown.matches("Two files.").count(), 2, "{shown}");
        assert_eq!(
            shown.matches("all entries from the first").count(),
            1,
            "{shown}"
        );
    }
}

#[tokio::test]
async fn attach_shows_that_the_beginning_of_a_text_is_missing() {
    let (mut asked, mut said) = (
        wire::user_entry(1, "asked"),
        wire::assistant_entry(2, "m-1", "said"),
    );
    let mut used = wire::tool_entry(3, "printed\n");
    if let Some(v1::entry::Body::User(user)) = &mut asked.body {
        user.omitted_bytes = 11;
    }
    if let Some(v1::entry::Body::Assistant(assistant)) = &mut said.body {
        assistant.thinking = "thought".to_owned();
        (assistant.omitted_bytes, assistant.thinking_omitted_bytes) = (12, 13);
    }
    if let Some(v1::entry::Body::Tool(tool)) = &mut used.body {
        (tool.omitted_bytes, tool.input_omitted_bytes) = (14, 15);
    }
    let mut steps = sends([
        wire::subscribed(false, false),
        wire::entries(vec![asked, said, used, wire::user_entry(4, "thanks")]),
        wire::snapshot(5, true),
    ]);
    steps.push(Step::Hang);
    let fake = observed(vec![steps]).await;
    let shown = shows(&fake, &["attach", "docs"], "m1 --\n").await;
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn attach_tells_how_a_run_ended_whose_server_was_started_anew() {
    let mut before = sends([wire::subscribed(false, false), wire::snapshot(5, true)]);
    before.push(Step::Fail(Status::unavailable("gone")));
    let mut after = sends([wire::subscribed(false, true), wire::snapshot(1, false)]);
    after.push(Step::Hang);
    let fake = observed(vec![before, after]).await;
    let mut command = sessionctl(&fake, &["attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let shown = reads_from(child.stdout.as_mut().unwrap(), "use tabs").await;
    let settled = format!(
        "failed (interrupted: the server stopped): run {}",
        wire::RUN
    );
    assert!(shown.contains(&settled), "{shown}");
    assert!(
        shown.contains("steer") && shown.contains("interrupted"),
        "{shown}"
    );
    drop(child.stdin.take());
    let (code, rest, _) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 0);
    assert!(rest.contains("detached"), "nothing is running: {rest}");
}

#[tokio::test]
async fn attach_tells_how_each_run_ended_whose_end_was_missed() {
    let another = wire::RUN.replace('2', "3");
    let lost = |run: &str| {
        let state = v1::SessionState {
            active_run_id: run.to_owned(),
            ..wire::state(true)
        };
        let mut steps = sends([wire::subscribed(false, true), wire::snapshot_of(state)]);
        steps.push(Step::Fail(Status::unavailable("gone")));
        steps
    };
    let mut last = sends([
        wire::subscribed(false, true),
        wire::snapshot(1, false),
        wire::appended(2, wire::user_entry(3, "thanks")),
    ]);
    last.push(Step::Hang);
    let fake = observed(vec![lost(wire::RUN), lost(&another), last]).await;
    let told = Arc::new(Semaphore::new(0));
    fake.stage.lock().unwrap().runs_told = Some(told.clone());
    let mut command = sessionctl(&fake, &["attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let out = child.stdout.as_mut().unwrap();
    reads_from(out, "thanks\n").await;
    // Both were asked for before either is answered.
    told.add_permits(2);
    let shown = reads_from(out, &format!("run {another}, ")).await;
    child.kill().await.unwrap();
    assert!(shown.contains(&format!("run {}, ", wire::RUN)), "{shown}");
}

#[tokio::test]
async fn attach_in_a_pipe_leaves_more_than_it_can_have_under_way_in_the_pipe() {
    let mut steps = sends([wire::subscribed(false, false), wire::snapshot(5, true)]);
    steps.push(Step::Hang);
    let fake = observed(vec![steps]).await;
    fake.stage.lock().unwrap().dispatches =
        (0..100).map(|_| Ok(wire::dispatch_accepted())).collect();
    let mut command = sessionctl(&fake, &["attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = "/abort\n".repeat(100);
    stdin.write_all(lines.as_bytes()).await.unwrap();
    drop(stdin);
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    fake.look(|stage| assert_eq!(stage.dispatched.len(), 100));
}

#[tokio::test]
async fn a_run_tells_what_never_reached_the_model() {
    let fake = observed(Vec::new()).await;
    let (code, out, _) = ran(&fake, &["run", wire::RUN]).await;
    assert_eq!(code, 0);
    let told = format!(
        "not shown  steer {}-i1, interrupted\n           use tabs\n           not spaces\n",
        wire::RUN
    );
    assert!(out.ends_with(&told), "{out}");
    let (_, out, _) = ran(&fake, &["--json", "run", wire::RUN]).await;
    let run: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(run["undelivered"][0]["text"], "use tabs\nnot spaces");
}

#[tokio::test]
async fn an_invoke_names_the_input_that_was_not_shown() {
    let failed = v1::invoke_event::Event::Failed(v1::InvokeFailed {
        code: "interrupted".to_owned(),
        details: "the server stopped".to_owned(),
        retryable: true,
        run: Some(wire::interrupted()),
    });
    let fake = Fake::start(Stage {
        invokes: [Ok(sends([wire::accepted(false), wire::invoked(failed)]))].into(),
        ..Stage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["invoke", "docs", "hi"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("1 input was not shown\n"), "{err}");
    let named = format!("not shown: steer {}-i1, interrupted", wire::RUN);
    assert!(err.contains(&named), "{err}");
}

/// An answer of which `first ` was told before the stream was lost; the run settled meanwhile, and
/// its entry holds the end.
async fn settled_meanwhile(omitted_bytes: u64, kept: &str) -> Fake {
    let mut first = sends([wire::accepted(false), wire::text("m-1", "first ")]);
    first.push(Step::Fail(Status::unavailable("a proxy")));
    let mut entry = wire::assistant_entry(2, "m-1", kept);
    if let Some(v1::entry::Body::Assistant(assistant)) = &mut entry.body {
        assistant.omitted_bytes = omitted_bytes;
    }
    let page = v1::ListEntriesResponse {
        entries: vec![entry],
        ..v1::ListEntriesResponse::default()
    };
    let second = sends([wire::accepted(true), wire::completed()]);
    Fake::start(Stage {
        invokes: [Ok(first), Ok(second)].into(),
        pages: [Ok(page)].into(),
        ..Stage::default()
    })
    .await
}

#[tokio::test]
async fn c12_an_answer_whose_rest_is_kept_is_shown_whole() {
    let fake = settled_meanwhile(4, "t second").await;
    let (code, out, err) = ran(&fake, &["invoke", "docs", "count"]).await;
    assert_eq!((code, out.as_str()), (0, "first second\n"), "{err}");
}

#[tokio::test]
async fn c12_a_hole_in_an_answer_is_marked_and_never_a_success() {
    let fake = settled_meanwhile(100, "the end").await;
    let (code, out, err) = ran(&fake, &["invoke", "docs", "count"]).await;
    assert_eq!(code, 3, "{err}");
    assert_eq!(out, "first \n[... 94 bytes are not shown ...]\nthe end\n");
    let id = wire::entry_id(2);
    let hole = format!("(94 bytes are not shown; the entry {id} keeps the last 7)\n");
    assert!(err.contains(&hole), "{err}");
    assert!(err.contains("sessionctl --json entries docs"), "{err}");
}

#[tokio::test]
async fn c12_json_tells_a_hole_and_the_rest_before_the_end() {
    let fake = settled_meanwhile(100, "the end").await;
    let (code, out, err) = ran(&fake, &["--json", "invoke", "docs", "count"]).await;
    assert_eq!(code, 3, "{err}");
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<serde_json::Value> = lines.collect();
    let at = |name| lines.iter().position(|line| line.get(name).is_some());
    let order = ["rejoined", "missed", "missed_text", "completed"].map(at);
    assert!(order.is_sorted() && order[0].is_some(), "{out}");
    assert_eq!(
        lines[order[2].unwrap()]["missed_text"],
        serde_json::json!({
            "entry_id": wire::entry_id(2),
            "message_id": "m-1",
            "seen_bytes": 6,
            "missing_bytes": 94,
            "text": "the end",
        })
    );
}

/// A page that ends with an entry of a kind that no client knows yet.
fn ending_unknown(mut entries: Vec<v1::Entry>, last: u64) -> v1::ListEntriesResponse {
    entries.push(v1::Entry {
        kind: "weather".to_owned(),
        body: None,
        ..wire::user_entry(last, "")
    });
    v1::ListEntriesResponse {
        entries,
        next_since: wire::entry_id(last),
        has_more: true,
        ..v1::ListEntriesResponse::default()
    }
}

fn last_page(entry: v1::Entry) -> v1::ListEntriesResponse {
    v1::ListEntriesResponse {
        next_since: entry.id.clone(),
        entries: vec![entry],
        ..v1::ListEntriesResponse::default()
    }
}

#[tokio::test]
async fn c29_pages_go_on_behind_entries_that_this_client_cannot_read() {
    let fake = observed(Vec::new()).await;
    fake.stage.lock().unwrap().pages = [
        Ok(ending_unknown(vec![wire::user_entry(1, "first")], 2)),
        Ok(ending_unknown(Vec::new(), 3)),
        Ok(last_page(wire::user_entry(4, "last"))),
    ]
    .into();
    let (code, out, err) = ran(&fake, &["entries", "docs"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("first") && out.contains("last"), "{out}");
    let asked: Vec<_> = fake.look(|stage| stage.listed.iter().map(|l| l.since.clone()).collect());
    assert_eq!(asked, [String::new(), wire::entry_id(2), wire::entry_id(3)]);
}

#[tokio::test]
async fn c12_the_rest_of_an_answer_is_found_behind_unreadable_entries() {
    let fake = settled_meanwhile(4, "t second").await;
    {
        let mut stage = fake.stage.lock().unwrap();
        let run = v1::RunRecord {
            final_entry_id: wire::entry_id(3),
            ..wire::settled(v1::RunOutcome::Completed, "")
        };
        let end = v1::invoke_event::Event::Completed(v1::InvokeCompleted {
            data: None,
            run: Some(run),
        });
        stage.invokes[1] = Ok(sends([wire::accepted(true), wire::invoked(end)]));
        stage.pages[0].as_mut().unwrap().entries[0].id = wire::entry_id(3);
        stage.pages.push_front(Ok(ending_unknown(Vec::new(), 2)));
    }
    let (code, out, err) = ran(&fake, &["invoke", "docs", "count"]).await;
    assert_eq!((code, out.as_str()), (0, "first second\n"), "{err}");
}

#[tokio::test]
async fn a_server_that_names_no_next_page_is_not_asked_for_ever() {
    let fake = observed(Vec::new()).await;
    let page = v1::ListEntriesResponse {
        entries: vec![wire::user_entry(1, "first")],
        has_more: true,
        ..v1::ListEntriesResponse::default()
    };
    fake.stage.lock().unwrap().pages = [Ok(page)].into();
    let (code, out, err) = ran(&fake, &["entries", "docs"]).await;
    assert_eq!(code, 1, "{err}");
    assert!(
        out.contains("first") && err.contains("no place"),
        "{out}{err}"
    );
}

#[tokio::test]
async fn attach_as_json_prints_nothing_but_objects() {
    let mut steps = sends([wire::subscribed(false, false), wire::snapshot(5, true)]);
    steps.push(Step::Hang);
    let fake = observed(vec![steps]).await;
    fake.stage.lock().unwrap().dispatches = [Ok(wire::dispatch_accepted())].into();
    let mut command = sessionctl(&fake, &["--json", "attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"use tabs\n").await.unwrap();
    drop(stdin);
    let (code, out, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 0, "{err}");
    let names: Vec<_> = out
        .lines()
        .map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            object.as_object().unwrap().keys().next().unwrap().clone()
        })
        .collect();
    assert_eq!(names, ["subscribed", "snapshot", "accepted"]);
    assert!(err.contains("re-attach with"), "{err}");
}

#[tokio::test]
async fn attach_in_a_pipe_goes_on_after_a_bad_line_and_fails_at_the_end() {
    let mut steps = sends([wire::subscribed(false, false), wire::snapshot(5, true)]);
    steps.push(Step::Hang);
    let fake = observed(vec![steps]).await;
    fake.stage.lock().unwrap().dispatches = [Ok(wire::dispatch_accepted())].into();
    let mut command = sessionctl(&fake, &["attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\xff\xfe\nuse tabs\n").await.unwrap();
    drop(stdin);
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("not valid UTF-8"), "{err}");
    fake.look(|stage| assert_eq!(stage.dispatched.len(), 1, "the next line is sent"));
}

#[tokio::test]
async fn c03_a_typed_line_of_unknown_outcome_can_be_repeated_by_its_id() {
    for json in [false, true] {
        let mut steps = sends([wire::subscribed(false, false), wire::snapshot(5, true)]);
        steps.push(Step::Hang);
        let fake = observed(vec![steps]).await;
        fake.stage.lock().unwrap().dispatches = (0..4)
            .map(|_| Err(Status::unavailable("a proxy")))
            .collect();
        let words = [&["--json", "attach", "docs"][..], &["attach", "docs"]][usize::from(!json)];
        let mut command = sessionctl(&fake, words);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"use tabs\n").await.unwrap();
        drop(stdin);
        let (code, out, err) = told(soon(child.wait_with_output()).await.unwrap());
        assert_eq!(code, 3, "{err}");
        let ids: Vec<_> = fake.look(|stage| {
            stage
                .dispatched
                .iter()
                .map(|d| d.request_id.clone())
                .collect()
        });
        assert!(
            ids.len() > 1 && ids.iter().all(|id| *id == ids[0]),
            "{ids:?}"
        );
        let repeat = format!(
            "sessionctl steer {} --request-id {} 'use tabs'",
            wire::SESSION,
            ids[0]
        );
        assert!(err.contains(&repeat), "{err}");
        assert_eq!(
            out.contains(&format!("\"request_id\":\"{}\"", ids[0])),
            json,
            "{out}"
        );
    }
}

#[tokio::test]
async fn attach_takes_no_request_id_as_it_gives_many_commands() {
    let fake = observed(Vec::new()).await;
    let (code, _, err) = ran(&fake, &["--request-id", "r-1", "attach", "docs"]).await;
    assert_eq!(code, 2);
    assert!(err.contains("--request-id"), "{err}");
}

#[tokio::test]
async fn attach_in_a_pipe_fails_when_a_steer_was_refused() {
    let mut steps = sends([wire::subscribed(false, false), wire::snapshot(5, true)]);
    steps.push(Step::Hang);
    let fake = observed(vec![steps]).await;
    fake.stage.lock().unwrap().dispatches = [Ok(wire::dispatch_rejected())].into();
    let mut command = sessionctl(&fake, &["attach", "docs"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"use tabs\n").await.unwrap();
    drop(stdin);
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 1, "{err}");
}
