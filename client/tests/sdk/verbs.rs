//! The verbs of `sessionctl` that read runs, change a session between runs, and branch: each in
//! words and as JSON.

use std::process::Stdio;

use sessionplane::v1::{self, dispatch_request::Command as Given, session_event::Payload};
use tonic::{Code, Status};

use super::cli::{interrupt, ran, reads, sends, sessionctl, told};
use super::fake::{Fake, Stage, Step, soon};
use super::wire;

fn run_of(number: u64, outcome: v1::RunOutcome, code: &str) -> v1::RunRecord {
    v1::RunRecord {
        run_id: format!("01K000000000000000000001{number:02}"),
        first_entry_id: wire::entry_id(number),
        ..wire::settled(outcome, code)
    }
}

fn runs(runs: Vec<v1::RunRecord>, next_page_token: &str) -> v1::ListRunsResponse {
    let next_page_token = next_page_token.to_owned();
    v1::ListRunsResponse {
        runs,
        next_page_token,
    }
}

fn state(state: v1::SessionState) -> v1::GetStateResponse {
    v1::GetStateResponse { state: Some(state) }
}

fn given(fake: &Fake) -> Given {
    fake.look(|stage| stage.dispatched.last().unwrap().command.clone().unwrap())
}

#[tokio::test]
async fn c16_runs_are_a_table_that_fits_its_lines_and_says_where_the_older_ones_are() {
    let pages = || {
        [
            runs(
                vec![
                    run_of(3, v1::RunOutcome::Completed, ""),
                    run_of(
                        2,
                        v1::RunOutcome::Failed,
                        "a_code_that_is_far_too_long_for_it",
                    ),
                ],
                "more",
            ),
            runs(vec![run_of(1, v1::RunOutcome::Aborted, "aborted")], "more"),
        ]
    };
    let fake = Fake::start(Stage {
        run_pages: pages().into_iter().chain(pages()).map(Ok).collect(),
        ..Stage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["runs", "docs", "--limit", "3"]).await;
    assert_eq!(code, 0, "{err}");
    let rows: Vec<_> = out.lines().collect();
    assert_eq!(rows.len(), 4, "{out}");
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{out}");
    assert!(
        rows[0].starts_with("RUN") && rows[0].contains("OUTCOME"),
        "{out}"
    );
    assert!(rows[2].contains("failed: a_code_that_i…"), "{out}");
    assert!(
        rows[3].contains("aborted") && rows[3].contains("12s"),
        "{out}"
    );
    let last = run_of(1, v1::RunOutcome::Aborted, "").run_id;
    assert!(
        err.contains(&format!("sessionctl runs docs --before {last}")),
        "{err}"
    );
    fake.look(|stage| {
        assert_eq!(stage.runs_listed[0].page_token, "");
        let second = run_of(2, v1::RunOutcome::Failed, "").run_id;
        assert_eq!(
            stage.runs_listed[1].page_token, second,
            "the last of the page before"
        );
        assert_eq!(stage.runs_listed[1].page_size, 1, "no more than is wanted");
    });
    let (_, out, err) = ran(&fake, &["--json", "runs", "docs", "--limit", "3"]).await;
    assert_eq!(err, "");
    let ids: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["outcome"].clone())
        .collect();
    assert_eq!(ids, ["completed", "failed", "aborted"]);
}

#[tokio::test]
async fn c16_runs_show_the_first_words_of_their_prompts_if_asked() {
    let page = v1::ListEntriesResponse {
        entries: vec![wire::user_entry(3, "\n fix the tests\nplease")],
        ..v1::ListEntriesResponse::default()
    };
    let fake = Fake::start(Stage {
        run_pages: [Ok(runs(vec![run_of(3, v1::RunOutcome::Completed, "")], ""))].into(),
        pages: [Ok(page)].into(),
        ..Stage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["runs", "docs", "--prompts"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.ends_with("\n  > fix the tests\n"), "{out}");
    fake.look(|stage| assert_eq!(stage.listed[0].since, wire::entry_id(2)));
}

#[tokio::test]
async fn c16_wait_ends_as_the_run_did() {
    let settled = |outcome, code| {
        Ok(v1::WaitRunResponse {
            run: Some(wire::settled(outcome, code)),
        })
    };
    for (outcome, failure, expected) in [
        (v1::RunOutcome::Completed, "", 0),
        (v1::RunOutcome::Failed, "interrupted", 1),
        (v1::RunOutcome::Aborted, "aborted", 1),
    ] {
        let fake = Fake::start(Stage {
            waits: [
                Err(Status::deadline_exceeded("not yet")),
                settled(outcome, failure),
                settled(outcome, failure),
            ]
            .into(),
            states: [Ok(state(wire::state(true)))].into(),
            ..Stage::default()
        })
        .await;
        let (code, out, err) = ran(&fake, &["wait", "docs"]).await;
        assert_eq!((code, err.as_str()), (expected, ""), "{out}");
        assert!(out.contains(wire::RUN), "{out}");
        let (code, out, _) = ran(&fake, &["--json", "wait", wire::RUN]).await;
        assert_eq!(code, expected);
        let record: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(record["run_id"], wire::RUN);
        fake.look(|stage| assert!(stage.waited.iter().all(|asked| asked.run_id == wire::RUN)));
    }
}

#[tokio::test]
async fn c16_wait_takes_an_id_for_a_session_if_no_run_has_it_and_gives_up_in_time() {
    let mut idle = wire::state(false);
    let fake = Fake::start(Stage {
        no_run: true,
        states: [Ok(state(wire::state(true))), Ok(state(idle.clone()))].into(),
        ..Stage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["--timeout", "300ms", "wait", wire::SESSION]).await;
    assert_eq!(code, 3, "{err}");
    fake.look(|stage| assert_eq!(stage.waited[0].run_id, wire::RUN));
    let (code, _, err) = ran(&fake, &["wait", "docs"]).await;
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("has had no run"), "{err}");
    idle.last_run = Some(v1::LastRun {
        run_id: wire::RUN.to_owned(),
        outcome: v1::RunOutcome::Completed.into(),
        settled_at: Some(wire::time(1_767_225_600)),
        ..v1::LastRun::default()
    });
    {
        let mut stage = fake.stage.lock().unwrap();
        stage.states = [Ok(state(idle))].into();
        let run = Some(wire::settled(v1::RunOutcome::Completed, ""));
        stage.waits = [Ok(v1::WaitRunResponse { run })].into();
    }
    let (code, out, _) = ran(&fake, &["wait", "docs"]).await;
    assert_eq!(code, 0, "its last run is told: {out}");
}

#[tokio::test]
async fn c23_models_and_levels_are_chosen_and_given_back() {
    let fake = Fake::start(Stage {
        dispatches: (0..4).map(|_| Ok(wire::dispatch_done())).collect(),
        ..Stage::default()
    })
    .await;
    for (words, expected) in [
        (
            &["set-model", "docs", "deep"][..],
            Given::SetModel(v1::SetModel {
                model: Some("deep".to_owned()),
            }),
        ),
        (
            &["set-model", "docs", "--default"],
            Given::SetModel(v1::SetModel { model: None }),
        ),
        (
            &["set-thinking", "docs", "high"],
            Given::SetThinking(v1::SetThinking {
                level: Some("high".to_owned()),
            }),
        ),
    ] {
        let (code, out, err) = ran(&fake, words).await;
        assert_eq!((code, err.as_str()), (0, ""), "{words:?}");
        assert!(out.starts_with("the runs to come "), "{out}");
        assert_eq!(given(&fake), expected);
    }
    let (code, out, _) = ran(&fake, &["--json", "set-thinking", "docs", "--default"]).await;
    assert_eq!(code, 0);
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["accepted"]["run_id"], serde_json::Value::Null);
    for words in [
        &["set-model", "docs"][..],
        &["set-model", "docs", "a", "--default"],
    ] {
        assert_eq!(ran(&fake, words).await.0, 2, "{words:?}");
    }
}

#[tokio::test]
async fn c22_a_refused_change_says_what_to_do() {
    for (words, code, way) in [
        (
            &["compact", "docs"][..],
            v1::RejectionCode::SessionBusy,
            "sessionctl wait docs",
        ),
        (
            &["set-model", "docs", "gone"],
            v1::RejectionCode::InvalidCommand,
            "sessionctl capabilities docs",
        ),
        (
            &["set-thinking", "docs", "hot"],
            v1::RejectionCode::InvalidCommand,
            "sessionctl state docs",
        ),
        (
            &["compact", "docs"],
            v1::RejectionCode::NothingToCompact,
            "nothing_to_compact",
        ),
    ] {
        let fake = Fake::start(Stage {
            dispatches: [Ok(wire::dispatch_no(code))].into(),
            ..Stage::default()
        })
        .await;
        let (exit, out, err) = ran(&fake, words).await;
        assert_eq!((exit, out.as_str()), (1, ""), "{words:?}");
        assert!(err.contains(way), "{err}");
    }
}

#[tokio::test]
async fn c24_an_entry_to_go_on_from_is_named_by_its_id_or_its_number() {
    let fake = Fake::start(Stage {
        dispatches: (0..2).map(|_| Ok(wire::dispatch_done())).collect(),
        states: [Ok(state(wire::state(false)))].into(),
        ..Stage::default()
    })
    .await;
    let id = wire::entry_id(2);
    for (words, json) in [
        (&["navigate", "docs", "2"][..], false),
        (&["--json", "navigate", "docs", &id], true),
    ] {
        let (code, out, err) = ran(&fake, words).await;
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(out.contains("goes on from entry 2"), !json, "{out}");
        let expected = Given::Navigate(v1::Navigate {
            entry_id: wire::entry_id(2),
        });
        assert_eq!(given(&fake), expected);
    }
    assert_eq!(ran(&fake, &["navigate", "docs", "two"]).await.0, 2);
}

#[tokio::test]
async fn a_new_session_may_branch_off_another() {
    let fake = Fake::start(Stage {
        invokes: [Ok(sends([wire::accepted(false), wire::completed()]))].into(),
        states: [Ok(state(wire::state(false)))].into(),
        ..Stage::default()
    })
    .await;
    let words = [
        "invoke", "--new", "--parent", "docs", "--from", "1", "side", "hi",
    ];
    let (code, _, err) = ran(&fake, &words).await;
    assert_eq!(code, 0, "{err}");
    fake.look(|stage| {
        let asked = &stage.invoked[0];
        let parent = asked.parent_session.clone().unwrap().r#ref.unwrap();
        assert_eq!(parent, v1::session_ref::Ref::Name("docs".to_owned()));
        let hints = asked.branch_hints.clone().unwrap();
        assert_eq!(hints.from_entry_id, wire::entry_id(1));
    });
    let (code, ..) = ran(&fake, &["invoke", "--parent", "docs", "side", "hi"]).await;
    assert_eq!(code, 2, "only a new session has a parent");
}

#[tokio::test]
async fn c26_what_a_composer_may_offer_is_listed_whole() {
    let fake = Fake::start(Stage::default()).await;
    let (code, out, err) = ran(&fake, &["commands", "docs"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(
        out,
        "abort   dispatch  Stops the run.\nrecall  prompt    Tells what it knows.\n"
    );
    let (_, out, _) = ran(&fake, &["--json", "commands", "--agent", "demo"]).await;
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["target"], "prompt");
    fake.look(|stage| assert_eq!(stage.offers_asked[1].page_token, "more"));
}

fn finished(seq: u64, outcome: v1::CompactionOutcome) -> v1::EventsResponse {
    let finished = v1::CompactionFinished {
        outcome: outcome.into(),
        entry_id: wire::entry_id(3),
        code: "overloaded".to_owned(),
        details: "try later".to_owned(),
        retryable: true,
    };
    wire::between_runs(seq, Payload::CompactionFinished(finished))
}

/// A session in which a compaction is begun, and what its watcher is told.
async fn compacting(watched: Vec<Vec<Step<v1::EventsResponse>>>) -> Fake {
    let mut compacting = wire::state(false);
    compacting.status = v1::SessionStatus::Compacting.into();
    Fake::start(Stage {
        dispatches: [Ok(wire::dispatch_done())].into(),
        states: [Ok(state(wire::state(false))), Ok(state(compacting))].into(),
        events: watched.into_iter().map(Ok).collect(),
        ..Stage::default()
    })
    .await
}

#[tokio::test]
async fn c22_compact_tells_that_it_began_and_waits_for_the_outcome_if_asked() {
    let fake = compacting(Vec::new()).await;
    let words = ["compact", "docs", "--instructions", "keep it short"];
    let (code, out, _) = ran(&fake, &words).await;
    assert_eq!(code, 0);
    assert!(out.starts_with("compacting\n"), "{out}");
    let expected = Given::Compact(v1::Compact {
        instructions: "keep it short".to_owned(),
    });
    assert_eq!(given(&fake), expected);
    for (outcome, exit, words) in [
        (
            v1::CompactionOutcome::Completed,
            0,
            "compaction completed, entry 3",
        ),
        (
            v1::CompactionOutcome::Failed,
            1,
            "failed (overloaded: try later)",
        ),
        (v1::CompactionOutcome::Aborted, 1, "compaction aborted"),
    ] {
        for json in [false, true] {
            let mut steps = sends([
                wire::subscribed(false, false),
                wire::snapshot(5, false),
                finished(7, outcome),
            ]);
            steps.push(Step::Hang);
            let fake = compacting(vec![steps]).await;
            let all = [&["--json", "compact", "docs", "--wait"][usize::from(!json)..]].concat();
            let (code, out, err) = ran(&fake, &all).await;
            assert_eq!(code, exit, "{out}{err}");
            if json {
                let last = out.lines().last().unwrap();
                let last: serde_json::Value = serde_json::from_str(last).unwrap();
                assert!(last["compaction_finished"]["outcome"].is_string(), "{out}");
            } else {
                assert!((out + &err).contains(words));
            }
            fake.look(|stage| {
                let filter = stage.observed[0].filter.clone().unwrap();
                assert_eq!(filter.types, ["compaction_finished"]);
            });
        }
    }
}

#[tokio::test]
async fn c22_a_compaction_that_ended_while_the_connection_was_lost_is_told_by_its_entry() {
    let summary = v1::Entry {
        kind: "compaction".to_owned(),
        run_id: String::new(),
        body: Some(v1::entry::Body::Compaction(v1::CompactionEntry {
            summary: "all of it".to_owned(),
            ..v1::CompactionEntry::default()
        })),
        ..wire::user_entry(3, "")
    };
    for (entries, exit) in [(vec![summary], 0), (vec![], 3)] {
        let before = sends([wire::subscribed(false, false), wire::snapshot(5, false)]);
        let mut after = sends([
            wire::subscribed(false, true),
            wire::entries(entries),
            wire::snapshot(9, false),
        ]);
        after.push(Step::Hang);
        let fake = compacting(vec![before, after]).await;
        let (code, out, err) = ran(&fake, &["compact", "docs", "--wait"]).await;
        assert_eq!(code, exit, "{out}{err}");
        assert_eq!(out.contains("completed, entry 3"), exit == 0, "{out}");
    }
}

#[tokio::test]
async fn c32_events_are_filtered_by_the_server_and_a_typo_is_told() {
    let mut steps = sends([
        wire::subscribed(false, false),
        wire::snapshot(5, true),
        wire::turn(9),
    ]);
    steps.push(Step::Hang);
    let fake = Fake::start(Stage {
        states: [Ok(state(wire::state(true)))].into(),
        events: [Ok(steps)].into(),
        ..Stage::default()
    })
    .await;
    let words = [
        "events",
        "docs",
        "--filter",
        "turn_started,run_setled",
        "--no-thinking",
    ];
    let mut child = sessionctl(&fake, &words).spawn().unwrap();
    reads(&mut child, "9 turn_started").await;
    interrupt(&child).await;
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 130);
    assert!(err.contains("no events of type run_setled"), "{err}");
    fake.look(|stage| {
        let filter = stage.observed[0].filter.clone().unwrap();
        assert_eq!(filter.types, ["run_setled", "turn_started"]);
        assert!(filter.no_thinking);
    });
}

#[tokio::test]
async fn c29_entries_follow_across_a_lost_connection_each_once() {
    let before = sends([
        wire::subscribed(false, false),
        wire::entries(vec![wire::user_entry(2, "second")]),
        wire::snapshot(5, true),
        wire::appended(6, wire::user_entry(3, "third")),
    ]);
    let mut after = sends([
        wire::subscribed(false, true),
        wire::entries(vec![
            wire::user_entry(3, "third"),
            wire::user_entry(4, "fourth"),
        ]),
        wire::snapshot(8, true),
        wire::appended(9, wire::user_entry(5, "fifth")),
    ]);
    after.push(Step::Hang);
    let fake = Fake::start(Stage {
        states: [Ok(state(wire::state(true)))].into(),
        events: [Ok(before), Ok(after)].into(),
        ..Stage::default()
    })
    .await;
    let since = wire::entry_id(1);
    let words = ["--json", "entries", "docs", "--since", &since, "--follow"];
    let mut child = sessionctl(&fake, &words).spawn().unwrap();
    let out = reads(&mut child, "fifth").await;
    child.kill().await.unwrap();
    let texts = ["second", "third", "fourth", "fifth"];
    assert_eq!(out.lines().count(), 4, "{out}");
    for (line, text) in out.lines().zip(texts) {
        assert!(line.contains(text), "{out}");
    }
    fake.look(|stage| {
        assert_eq!(stage.observed[0].entries_since, since);
        assert_eq!(
            stage.observed[0].filter.clone().unwrap().types,
            ["entry_appended"]
        );
    });
}

#[tokio::test]
async fn completions_and_manual_pages_need_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let fake = Fake::start(Stage::default()).await;
    let run = async |words: &[&str]| {
        let mut command = sessionctl(&fake, words);
        command.env("SESSIONPLANE_TOKEN", "").stdin(Stdio::null());
        told(soon(command.output()).await.unwrap())
    };
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, err) = run(&["completions", shell]).await;
        assert_eq!((code, err.as_str()), (0, ""), "{shell}");
        assert!(out.contains("set-thinking"), "{shell}");
    }
    let (code, _, err) = run(&["man", &path]).await;
    assert_eq!(code, 0, "{err}");
    for page in ["sessionctl.1", "sessionctl-respond.1"] {
        let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(page.contains(".TH"), "{page}");
    }
}

#[tokio::test]
async fn quiet_leaves_answers_and_failures() {
    let run = || {
        let [started, ended] = wire::tool("README.md\n");
        let text = wire::text("m-1", "Two files.");
        let all = [
            wire::accepted(false),
            wire::thinking("hm"),
            started,
            ended,
            text,
        ];
        Ok(sends(all.into_iter().chain([wire::completed()])))
    };
    let missing = wire::ours(Code::NotFound, "NO_SUCH_SESSION", "refused");
    let fake = Fake::start(Stage {
        invokes: [run(), Err(missing)].into(),
        ..Stage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["--quiet", "invoke", "docs", "hi"]).await;
    assert_eq!((code, out.as_str(), err.as_str()), (0, "Two files.\n", ""));
    let (code, _, err) = ran(&fake, &["-q", "invoke", "docs", "hi"]).await;
    assert_eq!(code, 4);
    assert!(err.starts_with("error: "), "{err}");
}
