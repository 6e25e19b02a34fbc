//! The verbs of `sessionctl` that change a session between runs, branch, and read it: each in words
//! and as JSON.

use std::process::Stdio;

use sessionplane::v1::{self, dispatch_request::Command as Given};
use tonic::Code;

use super::cli::{interrupt, ran, reads, sends, sessionctl, told};
use super::fake::{Fake, Stage, Step, soon};
use super::wire;

fn given(fake: &Fake) -> Given {
    fake.look(|stage| stage.dispatched.last().unwrap().command.clone().unwrap())
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
        states: [Ok(wire::state_answer(wire::state(false)))].into(),
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
        states: [
            Err(wire::ours(Code::NotFound, "NO_SUCH_SESSION", "refused")),
            Ok(wire::state_answer(wire::state(false))),
        ]
        .into(),
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
async fn c14_what_is_given_for_a_new_session_in_vain_is_told_before_it_runs() {
    for (words, told) in [
        (
            &["--agent", "other"][..],
            "--agent is not used; its agent is demo",
        ),
        (
            &["--agent", "other", "--parent", "side"],
            "--agent and --parent are not used; its agent is demo",
        ),
        (&["--agent", "demo"], ""),
        (&[], ""),
    ] {
        let fake = Fake::start(Stage {
            invokes: [Ok(sends([wire::accepted(false), wire::completed()]))].into(),
            states: [Ok(wire::state_answer(wire::state(false)))].into(),
            ..Stage::default()
        })
        .await;
        let words = [&["invoke", "--new"], words, &["docs", "hi"]].concat();
        let (code, _, err) = ran(&fake, &words).await;
        assert_eq!(code, 0, "{err}");
        let first = err.lines().next().unwrap_or_default();
        assert_eq!(first.contains("exists already"), !told.is_empty(), "{err}");
        assert!(first.ends_with(told), "{err}");
        let asked = fake.look(|stage| stage.states.is_empty());
        assert_eq!(
            asked,
            words.len() > 4,
            "only where something may be in vain"
        );
    }
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

#[tokio::test]
async fn c64_a_list_of_commands_that_goes_in_a_circle_is_not_followed_for_ever() {
    let fake = Fake::start(Stage {
        offers: Some(wire::offers(1)),
        ..Stage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["commands", "docs"]).await;
    assert_eq!((code, out.as_str()), (3, ""), "{err}");
    assert!(err.contains("has no end"), "{err}");
    fake.look(|stage| assert_eq!(stage.offers_asked.len(), 2));
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
        states: [Ok(wire::state_answer(wire::state(true)))].into(),
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
    assert!(
        err.contains("no events of type run_setled; the nearest that it knows is run_settled"),
        "{err}"
    );
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
        states: [Ok(wire::state_answer(wire::state(true)))].into(),
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
    let folder = folder.path().join("is/made");
    let path = folder.display().to_string();
    let fake = Fake::start(Stage::default()).await;
    let run = async |words: &[&str]| {
        let mut command = sessionctl(&fake, words);
        command.env("SESSIONPLANE_TOKEN", "").stdin(Stdio::null());
        told(soon(command.output()).await.unwrap())
    };
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, err) = run(&["completions", shell]).await;
        assert_eq!((code, err.as_str()), (0, ""), "{shell}");
        assert!(out.contains("SESSIONCTL_COMPLETE"), "{shell}");
    }
    let (code, out, _) = run(&["--json", "completions", "bash"]).await;
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["shell"]), (0, &"bash".into()));
    assert!(
        told["script"]
            .as_str()
            .unwrap()
            .contains("SESSIONCTL_COMPLETE")
    );
    let (code, _, err) = run(&["man", &path]).await;
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = run(&["--json", "man", &path]).await;
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(told["folder"], path);
    for page in ["sessionctl.1", "sessionctl-answer.1"] {
        let page = std::fs::read_to_string(folder.join(page)).unwrap();
        assert!(page.contains(".TH"), "{page}");
    }
}

#[tokio::test]
async fn a_command_line_without_sense_is_json_where_json_was_asked_for() {
    let fake = Fake::start(Stage::default()).await;
    for (words, problem) in [
        (&["--json", "entries"][..], "<SESSION>"),
        (&["entries", "docs", "--since", "-3", "--json"], "--since"),
        (&["events", "docs", "--json", "--since", "x"], "its number"),
        (&["--json", "no-such-verb"], "no-such-verb"),
        (&["--json", "events", "docs", "--filter", ","], "--filter"),
    ] {
        let (code, out, err) = ran(&fake, words).await;
        assert_eq!(code, 2, "{words:?}");
        assert!(err.starts_with("error: "), "{err}");
        let told: serde_json::Value = serde_json::from_str(&out).expect("one object");
        let message = told["error"]["message"].as_str().unwrap();
        assert!(message.contains(problem), "{words:?}: {message}");
    }
    let (code, out, _) = ran(&fake, &["entries"]).await;
    assert_eq!((code, out.as_str()), (2, ""));
}

#[tokio::test]
async fn c24_where_reading_goes_on_is_named_as_where_a_run_does() {
    for verb in ["entries", "events"] {
        let state = wire::state_answer(wire::state(false));
        let fake = Fake::start(Stage {
            states: (0..2).map(|_| Ok(state.clone())).collect(),
            ..Stage::default()
        })
        .await;
        let words = [verb, "docs", "--since", "2"];
        let mut child = sessionctl(&fake, &words).spawn().unwrap();
        let asked = |stage: &Stage| {
            let listed = stage.listed.iter().map(|list| list.since.clone());
            let observed = stage.observed.iter();
            let since = observed.map(|asked| asked.entries_since.clone());
            listed.chain(since).any(|id| id == wire::entry_id(2))
        };
        soon(async {
            while !fake.look(asked) {
                tokio::task::yield_now().await;
            }
        })
        .await;
        child.kill().await.unwrap();
        let (code, ..) = ran(&fake, &[verb, "docs", "--since", "second"]).await;
        assert_eq!(code, 2, "{verb}");
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

#[tokio::test]
async fn a_text_without_quotes_is_told_so_and_a_word_too_many_elsewhere_is_not() {
    let fake = Fake::start(Stage::default()).await;
    for verb in ["invoke", "steer", "follow-up"] {
        let (code, _, err) = ran(&fake, &[verb, "first", "where", "is", "the", "token"]).await;
        assert_eq!(code, 2);
        assert!(err.contains("in quotes"), "{verb}: {err}");
    }
    for words in [
        &["state", "first", "invoked"][..],
        &["invoke", "first", "where", "--nw"],
    ] {
        let (code, _, err) = ran(&fake, words).await;
        assert_eq!(code, 2);
        assert!(!err.contains("in quotes"), "{words:?}: {err}");
    }
}

#[tokio::test]
async fn attach_does_not_offer_the_name_of_a_call_and_refuses_one_wherever_it_stands() {
    let fake = Fake::start(Stage::default()).await;
    let (_, out, _) = ran(&fake, &["attach", "--help"]).await;
    assert!(
        out.contains("--timeout") && !out.contains("--request-id"),
        "{out}"
    );
    for words in [
        ["--request-id", "r-1", "attach", "docs"],
        ["attach", "docs", "--request-id", "r-1"],
    ] {
        let (code, _, err) = ran(&fake, &words).await;
        assert_eq!(code, 2);
        assert!(err.contains("an id of its own"), "{err}");
    }
}
