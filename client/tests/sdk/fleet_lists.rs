//! The commands that list the fleet, and what a bare `sessionctl` shows.

use sessionplane::v1;
use tonic::Code;

use super::cli::{ran, sessionctl, told};
use super::fake::fleet::FleetStage;
use super::fake::{Fake, Stage, soon};
use super::fleet_watching::{asking, session};
use super::wire;

fn page(sessions: Vec<v1::Session>, next: &str) -> v1::ListSessionsResponse {
    v1::ListSessionsResponse {
        sessions,
        next_page_token: next.to_owned(),
    }
}

async fn listing(pages: Vec<v1::ListSessionsResponse>) -> Fake {
    Fake::start(Stage {
        fleet: FleetStage {
            pages: pages.into_iter().map(Ok).collect(),
            ..FleetStage::default()
        },
        ..Stage::default()
    })
    .await
}

#[tokio::test]
async fn c46_agents_lists_every_page_once_and_what_needs_people_first() {
    let fake = listing(vec![
        page(vec![session(1, "docs", 5)], "t1"),
        page(vec![], "t2"),
        page(vec![session(1, "docs", 5), asking(2, "core", 6, &[1])], ""),
    ])
    .await;
    let words = [
        "agents", "--label", "team=net", "--phase", "ready", "--agent", "demo",
    ];
    let (code, out, err) = ran(&fake, &words).await;
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 5, "{out}");
    assert!(lines[1].starts_with("needs input  core"), "{out}");
    assert!(
        lines[2].contains("answer: sessionctl answer core yes|no"),
        "{out}"
    );
    assert!(lines[3].starts_with("ready        docs"), "{out}");
    assert_eq!(lines[4], "2 sessions, 1 needs you");
    fake.look(|stage| {
        let asked = &stage.fleet.listed;
        let tokens: Vec<_> = asked.iter().map(|it| it.page_token.as_str()).collect();
        assert_eq!(tokens, ["", "t1", "t2"]);
        assert_eq!(
            asked[0].filter,
            "labels.team = \"net\" AND agent = \"demo\" AND phase = READY"
        );
        assert_eq!(asked[0].order_by, "attention");
    });
}

#[tokio::test]
async fn agents_as_json_is_one_object_a_line_with_the_names_of_the_api() {
    let whole = v1::Session {
        external_key: "k".to_owned(),
        labels: [("team".to_owned(), "net".to_owned())].into(),
        priority: 3,
        place: Some(v1::SessionPlace {
            workspace: "home".to_owned(),
            directory: "crates/net".to_owned(),
        }),
        checkout: Some(v1::SessionCheckout {
            branch: "main".to_owned(),
            commit: String::new(),
        }),
        parent_session_id: wire::SESSION.to_owned(),
        queued: 2,
        model_override: Some("deep".to_owned()),
        ..asking(2, "core", 6, &[1])
    };
    let fake = listing(vec![page(vec![session(1, "", 5), whole], "")]).await;
    let (code, out, err) = ran(&fake, &["--json", "agents"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(out);
}

#[tokio::test]
async fn c46_a_limit_keeps_the_head_of_the_list_and_that_there_are_more_is_told() {
    let urgent = v1::Session {
        priority: 50,
        ..session(4, "urgent", 8)
    };
    let pages = || {
        vec![
            page(vec![session(1, "a", 5), session(2, "b", 6)], "t1"),
            page(vec![session(3, "c", 7), urgent.clone()], ""),
        ]
    };
    let fake = listing([pages(), pages(), pages()].concat()).await;
    let (code, whole, _) = ran(&fake, &["agents"]).await;
    assert_eq!(code, 0);
    let (code, out, _) = ran(&fake, &["agents", "--limit", "2"]).await;
    assert_eq!(code, 0);
    let head = |text: &str| {
        let rows = text.lines().skip(1).take(2);
        let names = rows.map(|row| row.split_whitespace().nth(1).unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(head(&out)[0], "urgent", "{out}");
    assert_eq!(head(&out), head(&whole));
    assert_eq!(out.lines().count(), 4, "{out}");
    let last = out.lines().last().unwrap();
    assert_eq!(last, "the first 2 sessions (more: --limit)");
    let (code, out, err) = ran(&fake, &["--json", "agents", "--limit", "2"]).await;
    assert_eq!((code, out.lines().count()), (0, 2));
    assert_eq!(err, "! these are the first 2; more: --limit\n");
    let tokens = fake.look(|stage| {
        let asked = stage.fleet.listed.iter().skip(2).take(2);
        let tokens = asked.map(|it| it.page_token.clone());
        tokens.collect::<Vec<_>>()
    });
    assert_eq!(tokens, ["", "t1"]);
}

#[tokio::test]
async fn c46_that_a_filter_wants_none_is_not_that_there_are_none() {
    let fake = listing(vec![page(vec![], ""), page(vec![], "")]).await;
    let (code, out, _) = ran(&fake, &["agents", "--label", "team=net"]).await;
    assert!(
        code == 0 && out.starts_with("no session is what the filter wants"),
        "{out}"
    );
    let (code, out, _) = ran(&fake, &["agents"]).await;
    assert!(code == 0 && out.starts_with("no sessions yet"), "{out}");
}

#[tokio::test]
async fn what_cannot_start_says_so_in_a_line() {
    let fake = listing(vec![]).await;
    let mut command = sessionctl(&fake, &["agents"]);
    // More than any machine has.
    command.env("RUST_MIN_STACK", (1_u64 << 46).to_string());
    let (code, out, err) = told(soon(command.output()).await.unwrap());
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.starts_with("error: cannot start: the system gives no thread")
            && err.lines().count() == 1,
        "{err}"
    );
}

#[tokio::test]
async fn a_variable_is_no_part_of_the_usage() {
    let fake = listing(vec![]).await;
    let mut command = sessionctl(&fake, &["cd"]);
    command.env("SESSIONPLANE_DATA_DIR", "/nowhere");
    let (code, _, err) = told(soon(command.output()).await.unwrap());
    assert!(code == 2 && err.contains("Usage: sessionctl cd"), "{err}");
    assert!(!err.contains("--data-dir"), "{err}");
}

#[tokio::test]
async fn a_bare_sessionctl_shows_the_fleet_if_there_is_one_and_else_the_first_steps() {
    let fake = listing(vec![
        page(vec![session(1, "docs", 5)], ""),
        page(vec![], ""),
    ])
    .await;
    let (code, out, err) = ran(&fake, &[]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.contains("docs") && out.ends_with("1 session\n"),
        "{out}"
    );
    // An empty one, one that has no fleet, and no server at all.
    for _ in 0..2 {
        let (code, out, err) = ran(&fake, &[]).await;
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.starts_with("start a server:"), "{out}");
    }
    let mut nowhere = sessionctl(&fake, &[]);
    nowhere.env("SESSIONPLANE_ADDRESS", "http://127.0.0.1:1");
    let (code, out, err) = told(soon(nowhere.output()).await.unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("start a server:"), "{out}");
}

#[tokio::test]
async fn a_name_that_is_nearly_right_leads_to_the_right_one() {
    let sessions = || vec![session(1, "refactor-core", 5), session(2, "docs", 6)];
    let fake = listing(vec![page(sessions(), ""), page(sessions(), "")]).await;
    let unknown = || wire::ours(Code::NotFound, "NO_SUCH_SESSION", "refused");
    fake.stage.lock().unwrap().states = [Err(unknown()), Err(unknown())].into();
    let (code, _, err) = ran(&fake, &["state", "refacotr-core"]).await;
    assert_eq!(code, 4);
    let lines: Vec<_> = err.lines().collect();
    assert_eq!(lines[0], "error: there is no session \"refacotr-core\"");
    assert_eq!(lines[1], "  did you mean refactor-core?", "{err}");
    assert_eq!(
        fake.look(|stage| stage.fleet.listed[0].filter.clone()),
        "name = \"r*\""
    );
    // A server that has no fleet to tell of is no second failure.
    let (code, _, err) = ran(&fake, &["state", "refacotr-core"]).await;
    assert!(code == 4 && !err.contains("did you mean"), "{err}");
}

#[tokio::test]
async fn names_are_completed_with_those_that_the_server_has() {
    let sessions = vec![session(1, "docs", 5), session(2, "docs-old", 6)];
    let fake = listing(vec![page(sessions, "")]).await;
    let mut command = sessionctl(&fake, &["--", "sessionctl", "show", "do"]);
    command
        .env("SESSIONCTL_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "2")
        .env("_CLAP_IFS", "\n");
    let (code, out, err) = told(soon(command.output()).await.unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("docs\n") && out.contains("docs-old"), "{out}");
    assert_eq!(
        fake.look(|stage| stage.fleet.listed[0].filter.clone()),
        "name = \"do*\""
    );
    let mut command = sessionctl(&fake, &["--", "sessionctl", "agents", "--phase", "st"]);
    command
        .env("SESSIONCTL_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "3")
        .env("_CLAP_IFS", "\n");
    let (_, out, _) = told(soon(command.output()).await.unwrap());
    assert_eq!(out.trim_end(), "stalled");
    // No server, no names, and no words into somebody's line.
    let mut command = sessionctl(&fake, &["--", "sessionctl", "show", "do"]);
    command
        .env("SESSIONPLANE_ADDRESS", "http://127.0.0.1:1")
        .env("SESSIONCTL_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "2");
    let (code, out, err) = told(soon(command.output()).await.unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(!out.contains("docs"), "{out}");
}

#[tokio::test]
async fn c25_all_questions_of_the_fleet_are_listed_with_the_way_to_answer_them() {
    let asked = |name: &str, session: v1::Session| v1::FleetInteraction {
        session_id: session.id,
        session_name: name.to_owned(),
        interaction: session.questions.into_iter().next(),
    };
    let list = v1::ListInteractionsResponse {
        interactions: vec![
            asked("docs", asking(1, "", 1, &[1])),
            asked("", asking(2, "", 1, &[2])),
        ],
        next_page_token: String::new(),
    };
    let none = v1::ListInteractionsResponse::default();
    let fake = Fake::start(Stage {
        fleet: FleetStage {
            questions: [Ok(list.clone()), Ok(list), Ok(none)].into(),
            ..FleetStage::default()
        },
        ..Stage::default()
    })
    .await;
    let (code, out, _) = ran(&fake, &["questions"]).await;
    assert_eq!(code, 0);
    assert!(
        out.starts_with(&format!("docs  {}-q1  ", wire::RUN)),
        "{out}"
    );
    // The age of a question that was asked long ago is another every day.
    let ageless = out.lines().map(|line| match line.rsplit_once('d') {
        Some((line, "")) => format!("{}[age]", line.trim_end_matches(char::is_numeric)),
        _ => line.to_owned(),
    });
    insta::assert_snapshot!(ageless.collect::<Vec<_>>().join("\n"));
    let (_, out, _) = ran(&fake, &["--json", "questions"]).await;
    let first: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(first["session_name"], "docs");
    assert_eq!(first["interaction"]["question"]["title"], "run `make`");
    let (code, out, err) = ran(&fake, &["questions"]).await;
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "", "no question is open\n")
    );
}

#[tokio::test]
async fn c25_that_a_filter_wants_no_question_is_not_that_none_is_open() {
    let none = || Ok(v1::ListInteractionsResponse::default());
    let fake = Fake::start(Stage {
        fleet: FleetStage {
            questions: [none(), none()].into(),
            ..FleetStage::default()
        },
        ..Stage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["questions", "--phase", "working"]).await;
    let words = "no question is open that the filter wants; all there are: sessionctl questions\n";
    assert_eq!((code, err.as_str()), (0, words));
    let (code, _, err) = ran(&fake, &["questions"]).await;
    assert_eq!((code, err.as_str()), (0, "no question is open\n"));
}
