//! The commands that change a session outside of any run.

use sessionplane::v1;
use tonic::Code;

use super::cli::ran;
use super::fake::fleet::FleetStage;
use super::fake::{Fake, Stage};
use super::fleet_watching::session;
use super::wire;

async fn answering(sessions: Vec<v1::Session>) -> Fake {
    staged(FleetStage {
        sessions: sessions.into_iter().map(Ok).collect(),
        ..FleetStage::default()
    })
    .await
}

async fn staged(fleet: FleetStage) -> Fake {
    Fake::start(Stage {
        fleet,
        ..Stage::default()
    })
    .await
}

#[tokio::test]
async fn new_asks_for_all_that_was_said_under_the_id_that_was_given() {
    let fake = answering(vec![session(1, "docs", 5)]).await;
    let words = [
        "new",
        "docs",
        "--agent",
        "demo",
        "--workspace",
        "home",
        "--dir",
        "./crates//net",
        "--worktree",
        "fix/flaky",
        "--label",
        "team=net",
        "--label",
        "urgent=",
        "--priority",
        "-5",
        "--paused",
        "--key",
        "ci 7",
        "--parent",
        "core",
        "--from",
        "01K00000000000000000000001-3",
        "--request-id",
        "r-7",
    ];
    let (code, out, err) = ran(&fake, &words).await;
    assert_eq!(code, 0, "{err}");
    assert_eq!(
        out,
        format!("created docs, {}, agent demo\n", session(1, "", 1).id)
    );
    let asked = fake.look(|stage| stage.fleet.created[0].clone());
    let expected = v1::CreateSessionRequest {
        request_id: "r-7".to_owned(),
        name: "docs".to_owned(),
        external_key: "ci 7".to_owned(),
        agent: "demo".to_owned(),
        labels: [("team", "net"), ("urgent", "")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        priority: -5,
        paused: true,
        workspace: "home".to_owned(),
        directory: "crates/net".to_owned(),
        worktree_branch: "fix/flaky".to_owned(),
        parent_session: Some(v1::SessionRef {
            r#ref: Some(v1::session_ref::Ref::Name("core".to_owned())),
        }),
        from_entry_id: "01K00000000000000000000001-3".to_owned(),
    };
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn c53_a_working_tree_that_is_shared_is_told_with_those_who_share_it() {
    let placed = |number, name| v1::Session {
        place: Some(v1::SessionPlace {
            workspace: "home".to_owned(),
            directory: ".worktrees/fix-flaky".to_owned(),
        }),
        ..session(number, name, 5)
    };
    let fake = staged(FleetStage {
        sessions: [Ok(placed(1, "docs"))].into(),
        pages: [Ok(v1::ListSessionsResponse {
            sessions: vec![placed(1, "docs"), placed(2, "core")],
            next_page_token: String::new(),
        })]
        .into(),
        ..FleetStage::default()
    })
    .await;
    let words = ["new", "docs", "--worktree", "fix/flaky"];
    let (code, out, err) = ran(&fake, &words).await;
    assert!(code == 0 && out.starts_with("created docs"), "{err}");
    let shared = "! branch fix/flaky has its working tree in home:.worktrees/fix-flaky already; it \
                  is shared with core\n";
    assert!(err.starts_with(shared), "{err}");
    let filter = fake.look(|stage| stage.fleet.listed[0].filter.clone());
    let place = "workspace = \"home\" AND directory = \".worktrees/fix-flaky\"";
    assert_eq!(filter, place);
}

#[tokio::test]
async fn c03_a_change_whose_answer_is_lost_is_repeated_under_one_id() {
    let lost = || Err(tonic::Status::unavailable("a proxy"));
    let fake = staged(FleetStage {
        sessions: [lost(), lost(), Ok(session(1, "guide", 5))].into(),
        ..FleetStage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["rename", "docs", "guide"]).await;
    assert_eq!((code, out.as_str()), (0, "docs is guide now\n"), "{err}");
    let asked = fake.look(|stage| stage.fleet.updated.clone());
    assert_eq!(asked.len(), 3);
    assert!(!asked[0].request_id.is_empty());
    assert!(asked.iter().all(|one| *one == asked[0]), "{asked:?}");
    assert_eq!(asked[0].update_mask.as_ref().unwrap().paths, ["name"]);
}

#[tokio::test]
async fn c40_labels_and_priority_change_only_what_was_said() {
    let labelled = v1::Session {
        labels: [("team".to_owned(), "net".to_owned())].into(),
        priority: 7,
        ..session(1, "docs", 5)
    };
    let fake = answering(vec![labelled.clone(), labelled.clone(), labelled]).await;
    let (code, out, err) = ran(&fake, &["label", "docs", "team=net", "urgent-"]).await;
    assert_eq!((code, out.as_str()), (0, "docs: team=net\n"), "{err}");
    let (code, out, _) = ran(&fake, &["priority", "docs", "7"]).await;
    assert_eq!((code, out.as_str()), (0, "docs has priority 7\n"));
    let asked = fake.look(|stage| stage.fleet.updated.clone());
    let mask = |at: usize| asked[at].update_mask.clone().unwrap().paths;
    assert_eq!(mask(0), ["labels.team", "labels.urgent"]);
    assert_eq!(asked[0].labels.len(), 1);
    assert_eq!(mask(1), ["priority"]);
    let (code, out, _) = ran(&fake, &["label", "docs"]).await;
    assert_eq!((code, out.as_str()), (0, "docs: team=net\n"));
    assert_eq!(
        fake.look(|stage| stage.fleet.updated.len()),
        2,
        "only shown"
    );
    let (code, _, err) = ran(&fake, &["priority", "docs", "101"]).await;
    assert!(code == 2 && err.contains("-100 to 100"), "{err}");
}

#[tokio::test]
async fn c15_a_pause_and_its_end_tell_what_is_true_after_them() {
    let pausing = v1::Session {
        paused: true,
        phase: v1::SessionPhase::Working.into(),
        ..session(1, "docs", 5)
    };
    let fake = answering(vec![pausing, session(1, "docs", 6)]).await;
    let (code, out, _) = ran(&fake, &["pause", "docs"]).await;
    assert_eq!((code, out.as_str()), (0, "docs is pausing\n"));
    let (code, out, _) = ran(&fake, &["resume", "docs"]).await;
    assert_eq!((code, out.as_str()), (0, "docs is ready\n"));
    fake.look(|stage| {
        assert_eq!(
            (stage.fleet.paused.len(), stage.fleet.resumed.len()),
            (1, 1)
        );
    });
}

fn busy() -> v1::DispatchRejected {
    v1::DispatchRejected {
        code: v1::RejectionCode::SessionBusy.into(),
        message: "a run is active".to_owned(),
        retryable: true,
    }
}

#[tokio::test]
async fn c53_a_move_tells_where_the_next_run_starts_or_what_is_in_the_way() {
    use v1::change_directory_response::Answer;
    let moved = v1::DirectoryChanged {
        session: Some(v1::Session {
            place: Some(v1::SessionPlace {
                workspace: "home".to_owned(),
                directory: "docs".to_owned(),
            }),
            ..session(1, "docs", 5)
        }),
        sandbox: v1::SandboxLevel::Confined.into(),
    };
    let answer = |answer| {
        Ok(v1::ChangeDirectoryResponse {
            answer: Some(answer),
        })
    };
    let fake = staged(FleetStage {
        moves: [
            answer(Answer::Changed(moved)),
            answer(Answer::Rejected(busy())),
        ]
        .into(),
        ..FleetStage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["cd", "docs", "docs", "--workspace", "home"]).await;
    let words = "the next run of docs starts in home:docs\n";
    assert_eq!((code, out.as_str()), (0, words), "{err}");
    let (code, _, err) = ran(&fake, &["cd", "docs", "."]).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("session_busy") && err.contains("sessionctl wait docs"),
        "{err}"
    );
    let (code, _, err) = ran(&fake, &["cd", "docs", "../x"]).await;
    assert!(code == 2 && err.contains("upwards"), "{err}");
    fake.look(|stage| {
        let asked = &stage.fleet.moved;
        assert_eq!(
            (asked[0].workspace.as_str(), asked[0].directory.as_str()),
            ("home", "docs")
        );
        assert_eq!(
            (asked[1].workspace.as_str(), asked[1].directory.as_str()),
            ("", ".")
        );
    });
}

#[tokio::test]
async fn rm_deletes_what_is_said_to_be_meant_and_nothing_else() {
    use v1::delete_session_response::Answer;
    let answer = |answer| {
        Ok(v1::DeleteSessionResponse {
            answer: Some(answer),
        })
    };
    let fake = staged(FleetStage {
        deletions: [
            answer(Answer::Rejected(busy())),
            answer(Answer::Deleted(v1::SessionDeleted {})),
        ]
        .into(),
        ..FleetStage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["rm", "docs"]).await;
    assert!(code == 2 && err.contains("rm docs --yes"), "{err}");
    let (code, _, err) = ran(&fake, &["rm", "docs", "--abort"]).await;
    assert!(code == 2 && err.contains("rm docs --abort --yes"), "{err}");
    assert_eq!(fake.look(|stage| stage.fleet.deleted.len()), 0);
    let (code, _, err) = ran(&fake, &["rm", "docs", "--yes"]).await;
    assert!(
        code == 1 && err.contains("sessionctl rm docs --abort --yes"),
        "{err}"
    );
    let (code, out, _) = ran(&fake, &["--json", "rm", "docs", "--yes", "--abort"]).await;
    assert_eq!((code, out.as_str()), (0, "{\"deleted\":{}}\n"));
    let aborts = fake.look(|stage| {
        stage
            .fleet
            .deleted
            .iter()
            .map(|it| it.abort)
            .collect::<Vec<_>>()
    });
    assert_eq!(aborts, [false, true]);
}

#[tokio::test]
async fn several_sessions_are_deleted_each_by_a_call_of_its_own() {
    use v1::delete_session_response::Answer;
    let deleted = || {
        Ok(v1::DeleteSessionResponse {
            answer: Some(Answer::Deleted(v1::SessionDeleted {})),
        })
    };
    let unknown = Err(wire::ours(Code::NotFound, "NO_SUCH_SESSION", "refused"));
    let fake = staged(FleetStage {
        deletions: [deleted(), unknown, deleted()].into(),
        sessions: [Ok(session(1, "a", 5)), Ok(session(2, "b", 5))].into(),
        ..FleetStage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["rm", "a", "b", "c", "--yes"]).await;
    assert_eq!((code, out.as_str()), (4, "deleted a\ndeleted c\n"), "{err}");
    assert!(err.contains("there is no session \"b\""), "{err}");
    let mut ids = fake.look(|stage| {
        let asked = stage.fleet.deleted.iter();
        asked.map(|it| it.request_id.clone()).collect::<Vec<_>>()
    });
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    let (code, out, _) = ran(&fake, &["pause", "a", "b"]).await;
    assert_eq!((code, out.as_str()), (0, "a is ready\nb is ready\n"));
    let words = ["resume", "a", "b", "--request-id", "r-1"];
    let (code, _, err) = ran(&fake, &words).await;
    assert!(code == 2 && err.contains("names one call"), "{err}");
}

#[tokio::test]
async fn c41_a_name_that_is_taken_leads_to_who_has_it() {
    let taken = || Err(wire::ours(Code::AlreadyExists, "NAME_TAKEN", "refused"));
    let words = "another session has this external_key; choose another one";
    let key_taken = wire::about(Code::AlreadyExists, "NAME_TAKEN", "external_key", words);
    let fake = staged(FleetStage {
        sessions: [taken(), taken(), Err(key_taken)].into(),
        ..FleetStage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["new", "docs"]).await;
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("sessionctl show docs"), "{err}");
    let (code, _, err) = ran(&fake, &["rename", "core", "docs"]).await;
    assert!(code == 1 && err.contains("sessionctl show docs"), "{err}");
    let (code, _, err) = ran(&fake, &["new", "docs", "--key", "ci 7"]).await;
    assert!(
        code == 1 && err.contains("another session has this --key"),
        "{err}"
    );
    assert!(err.contains("sessionctl show 'key:ci 7'"), "{err}");
}

#[tokio::test]
async fn c53_a_move_within_a_workspace_that_is_none_any_more_shows_how_to_name_another() {
    let words = "is \"demo\", where the session's agent may not work; it may in: tree";
    let refused = wire::about(
        Code::InvalidArgument,
        "INVALID_ARGUMENT",
        "workspace",
        words,
    );
    let fake = staged(FleetStage {
        moves: [Err(refused.clone()), Err(refused)].into(),
        ..FleetStage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["cd", "docs", "."]).await;
    let way = "name another: sessionctl cd docs . --workspace WORKSPACE";
    assert!(code == 1 && err.contains(way), "{err}");
    let words = ["cd", "docs", ".", "--workspace", "demo"];
    let (code, _, err) = ran(&fake, &words).await;
    assert!(code == 1 && !err.contains(way), "{err}");
}

#[tokio::test]
async fn c45_show_tells_all_that_is_known() {
    let fake = answering(vec![session(1, "docs", 5), session(1, "docs", 5)]).await;
    let (code, out, _) = ran(&fake, &["show", "docs"]).await;
    assert_eq!(code, 0);
    for fact in [
        "session   01K",
        "name      docs",
        "agent     demo",
        "state     ready",
    ] {
        assert!(out.contains(fact), "{fact}: {out}");
    }
    let (_, out, _) = ran(&fake, &["--json", "show", "docs"]).await;
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&told["phase"], &told["etag"]),
        (&"ready".into(), &"4".into())
    );
}

/// A state with open questions of these numbers.
fn state(questions: &[u32]) -> v1::GetStateResponse {
    let asked = super::fleet_watching::asking(1, "docs", 1, questions);
    v1::GetStateResponse {
        state: Some(v1::SessionState {
            interactions: asked.questions,
            ..wire::state(true)
        }),
    }
}

#[tokio::test]
async fn c25_answer_answers_the_only_open_question_or_the_one_that_is_named() {
    use v1::interaction_answer::Answer;
    let accepted = || Ok(wire::dispatch_accepted());
    let fake = Fake::start(Stage {
        states: [Ok(state(&[1])), Ok(state(&[1, 2])), Ok(state(&[1, 2]))].into(),
        dispatches: [accepted(), accepted()].into(),
        ..Stage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["answer", "docs", "yes"]).await;
    let words = format!("answered {}-q1\n", wire::RUN);
    assert_eq!((code, out.as_str()), (0, words.as_str()), "{err}");
    let (code, out, err) = ran(&fake, &["answer", "docs", "no"]).await;
    assert_eq!((code, out.as_str()), (4, ""));
    for ordinal in [1, 2] {
        let candidate = format!(" docs q{ordinal} ");
        assert!(err.contains(&candidate), "{err}");
    }
    let second = format!("{}-q2", wire::RUN);
    let (code, out, err) = ran(&fake, &["answer", "docs", &second, "no"]).await;
    assert_eq!(
        (code, out.trim_end()),
        (0, &*format!("answered {second}")),
        "{err}"
    );
    let answers = fake.look(|stage| {
        let command = |it: &v1::DispatchRequest| match it.command.clone() {
            Some(v1::dispatch_request::Command::Respond(it)) => it,
            other => panic!("no answer: {other:?}"),
        };
        stage.dispatched.iter().map(command).collect::<Vec<_>>()
    });
    let given = |at: usize| answers[at].answer.clone().and_then(|answer| answer.answer);
    assert_eq!(given(0), Some(Answer::Confirmed(true)));
    assert_eq!(given(1), Some(Answer::Confirmed(false)));
    assert_eq!(answers[1].interaction_id, second);
    // Not the session of the run whose question it is, if that is another one.
    let named = v1::session_ref::Ref::Name("docs".to_owned());
    let asked = fake.look(|stage| stage.dispatched[1].session.clone());
    assert_eq!(asked.and_then(|asked| asked.r#ref), Some(named));
    fake.stage.lock().unwrap().states = [Ok(state(&[1]))].into();
    let (code, out, err) = ran(&fake, &["answer", "docs", &second, "no"]).await;
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("is open in session \"docs\""), "{err}");
}

#[tokio::test]
async fn c25_a_question_of_a_session_is_named_as_where_it_is_attached_to() {
    let fake = Fake::start(Stage {
        states: (0..5).map(|_| Ok(state(&[1, 2]))).collect(),
        dispatches: [(); 2].map(|()| Ok(wire::dispatch_accepted())).into(),
        ..Stage::default()
    })
    .await;
    let id = |ordinal| format!("{}-q{ordinal}", wire::RUN);
    // The second by what the verb was called before.
    for (verb, word) in [("answer", "q2"), ("respond", "q1")] {
        let (code, out, err) = ran(&fake, &[verb, "docs", word, "yes"]).await;
        assert_eq!(code, 0, "{err}");
        assert!(out.ends_with(&format!("-{word}\n")), "{out}");
    }
    let (code, out, _) = ran(&fake, &["answer", "docs", "q2"]).await;
    assert!(code == 0 && out.starts_with(&id(2)), "it is listed: {out}");
    let (code, _, err) = ran(&fake, &["answer", "docs", "q7", "yes"]).await;
    let way = "\n  sessionctl answer docs q1 ...";
    let told = err.contains("\"docs\" has asked no question q7") && err.contains(way);
    assert!(code == 4 && told, "{err}");
    let words = ["answer", "docs", "q1", "yes", "--text-file", "-"];
    let (code, _, err) = ran(&fake, &words).await;
    assert!(code == 2 && err.contains("given twice"), "{err}");
}
