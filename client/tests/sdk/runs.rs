//! The verbs of `sessionctl` that read runs and wait for them.

use sessionplane::v1;
use tonic::{Code, Status};

use super::cli::{ran, reads_from, sends, sessionctl};
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

#[tokio::test]
async fn c16_runs_are_a_table_of_whole_cells_and_says_where_the_older_ones_are() {
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
    assert!(
        rows[0].starts_with("RUN") && rows[0].contains("OUTCOME"),
        "{out}"
    );
    assert!(
        rows[2].contains("failed: a_code_that_is_far_too_long_for_it"),
        "{out}"
    );
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
    let page_of_runs = || Ok(runs(vec![run_of(3, v1::RunOutcome::Completed, "")], ""));
    let page = v1::ListEntriesResponse {
        entries: vec![wire::user_entry(3, "\n fix the tests\nplease")],
        ..v1::ListEntriesResponse::default()
    };
    let fake = Fake::start(Stage {
        run_pages: [page_of_runs(), page_of_runs()].into(),
        pages: [Ok(page.clone()), Ok(page)].into(),
        ..Stage::default()
    })
    .await;
    let (code, out, err) = ran(&fake, &["runs", "docs", "--prompts"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.ends_with("\n  > fix the tests\n"), "{out}");
    fake.look(|stage| assert_eq!(stage.listed[0].since, wire::entry_id(2)));
    let (_, out, _) = ran(&fake, &["--json", "runs", "docs", "--prompts"]).await;
    let run: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(run["prompt"], "\n fix the tests\nplease");
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
            states: [Ok(wire::state_answer(wire::state(true)))].into(),
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
        states: [
            Ok(wire::state_answer(wire::state(true))),
            Ok(wire::state_answer(idle.clone())),
        ]
        .into(),
        ..Stage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["--timeout", "2s", "wait", wire::SESSION]).await;
    let late = format!(
        "error: run {run} has not settled within 2s; it goes on\n  \
         wait on: sessionctl wait {run}\n",
        run = wire::RUN
    );
    assert_eq!((code, err), (3, late));
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
        stage.states = [Ok(wire::state_answer(idle))].into();
        let run = Some(wire::settled(v1::RunOutcome::Completed, ""));
        stage.waits = [Ok(v1::WaitRunResponse { run })].into();
    }
    let (code, out, _) = ran(&fake, &["wait", "docs"]).await;
    assert_eq!(code, 0, "its last run is told: {out}");
}

#[tokio::test]
async fn c25_wait_tells_each_question_that_the_run_waits_with_once() {
    use super::answering::{approval, id, requested, waiting};
    let steps = sends([
        wire::subscribed(false, false),
        wire::snapshot_of(waiting(vec![approval(1)])),
        requested(6, approval(1)),
        requested(7, approval(2)),
    ]);
    for (target, quiet) in [("docs", "--plain"), (wire::RUN, "--json")] {
        let fake = Fake::start(Stage {
            states: [Ok(wire::state_answer(waiting(vec![approval(1)])))].into(),
            events: [Ok([steps.clone(), vec![Step::Hang]].concat())].into(),
            ..Stage::default()
        })
        .await;
        let mut child = sessionctl(&fake, &[quiet, "wait", target]).spawn().unwrap();
        // Of a run only the question is known.
        let which = |n| match target {
            "docs" => format!("docs q{n}"),
            _ => id(n),
        };
        let way = |n| format!("answer: sessionctl answer {} allow|deny\n", which(n));
        let told = reads_from(child.stderr.as_mut().unwrap(), &way(2)).await;
        child.kill().await.unwrap();
        assert_eq!(told.matches(&way(1)).count(), 1, "{told}");
        assert!(told.starts_with("? Deploy?\n"), "nothing else: {told}");
        fake.look(|stage| {
            assert_eq!((stage.waited.len(), stage.observed.len()), (1, 1));
            let types = &stage.observed[0].filter.as_ref().unwrap().types;
            assert_eq!(types, &["interaction_requested", "interaction_resolved"]);
        });
    }
}

#[tokio::test]
async fn c16_a_wait_goes_on_where_questions_cannot_be_watched() {
    let fake = Fake::start(Stage {
        states: [Ok(wire::state_answer(wire::state(true)))].into(),
        waits: [Err(Status::deadline_exceeded("not yet"))].into(),
        events: [Err(Status::failed_precondition("no"))].into(),
        ..Stage::default()
    })
    .await;
    let mut child = sessionctl(&fake, &["wait", "docs"]).spawn().unwrap();
    soon(async {
        while fake.look(|stage| stage.observed.is_empty()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    child.kill().await.unwrap();
}

#[tokio::test]
async fn c04_an_id_or_a_name_that_is_not_there_leads_to_the_verb_that_takes_it() {
    let unknown = || Err(wire::ours(Code::NotFound, "NO_SUCH_SESSION", "refused"));
    let fake = Fake::start(Stage {
        no_run: true,
        states: (0..4).map(|_| unknown()).collect(),
        ..Stage::default()
    })
    .await;
    for (words, exit, hint) in [
        (["run", "docs"], 2, "sessionctl runs docs"),
        (["run", wire::RUN], 4, "sessionctl runs SESSION"),
        (["wait", wire::RUN], 4, "neither a run nor a session"),
        (["wait", "docs"], 4, "there is no session \"docs\""),
        (
            ["answer", wire::RUN],
            4,
            &format!("sessionctl run {}", wire::RUN),
        ),
        (["state", "docs"], 4, "what there is: sessionctl agents"),
    ] {
        let (code, _, err) = ran(&fake, &words).await;
        assert_eq!(code, exit, "{words:?}: {err}");
        assert!(err.contains(hint), "{words:?}: {err}");
    }
}
