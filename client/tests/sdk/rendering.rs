//! Facts as `sessionctl` words them for a person: nothing empty, nothing twice.

use sessionplane::v1;

use super::cli::ran;
use super::fake::{Fake, Stage};
use super::wire;

#[tokio::test]
async fn an_answer_that_is_empty_has_no_heading() {
    let mut entry = wire::assistant_entry(2, "m-1", "");
    if let Some(v1::entry::Body::Assistant(said)) = &mut entry.body {
        said.thinking = "let me see".to_owned();
    }
    let page = v1::ListEntriesResponse {
        entries: vec![entry],
        ..v1::ListEntriesResponse::default()
    };
    let fake = Fake::start(Stage {
        pages: [Ok(page)].into(),
        ..Stage::default()
    })
    .await;
    let (code, out, _) = ran(&fake, &["entries", "docs"]).await;
    assert_eq!(code, 0);
    assert!(out.ends_with("(thinking)\n  let me see\n"), "{out}");
}

#[tokio::test]
async fn the_last_runs_failure_is_told_with_its_code() {
    let last = |outcome: v1::RunOutcome, code: &str| {
        let mut state = wire::state(false);
        state.last_run = Some(v1::LastRun {
            run_id: wire::RUN.to_owned(),
            outcome: outcome.into(),
            code: code.to_owned(),
            settled_at: Some(wire::time(1_767_225_600)),
            ..v1::LastRun::default()
        });
        Ok(v1::GetStateResponse { state: Some(state) })
    };
    let fake = Fake::start(Stage {
        states: [
            last(v1::RunOutcome::Failed, "interrupted"),
            last(v1::RunOutcome::Aborted, "aborted"),
        ]
        .into(),
        ..Stage::default()
    })
    .await;
    for words in ["failed: interrupted", "aborted"] {
        let (_, out, _) = ran(&fake, &["state", "docs"]).await;
        let line = format!("last run  {words}, {}\n", wire::RUN);
        assert!(out.contains(&line), "{out}");
    }
}

#[tokio::test]
async fn json_tells_all_that_is_known_of_the_last_run() {
    let mut state = wire::state(false);
    state.last_run = Some(v1::LastRun {
        run_id: wire::RUN.to_owned(),
        outcome: v1::RunOutcome::Failed.into(),
        code: "interrupted".to_owned(),
        details: "the server stopped".to_owned(),
        retryable: true,
        settled_at: Some(wire::time(1_767_225_600)),
    });
    let fake = Fake::start(Stage {
        states: [Ok(v1::GetStateResponse { state: Some(state) })].into(),
        ..Stage::default()
    })
    .await;
    let (_, out, _) = ran(&fake, &["--json", "state", "docs"]).await;
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        told["last_run"],
        serde_json::json!({
            "run_id": wire::RUN,
            "outcome": "failed",
            "code": "interrupted",
            "details": "the server stopped",
            "retryable": true,
            "settled_at": "2026-01-01T00:00:00.000Z",
        })
    );
}

#[tokio::test]
async fn a_model_of_the_agents_name_is_not_told_beside_it() {
    let mut state = wire::state(false);
    state.model.clone_from(&state.agent);
    let fake = Fake::start(Stage {
        states: [Ok(v1::GetStateResponse {
            state: Some(state.clone()),
        })]
        .into(),
        events: [Ok(super::cli::sends([
            wire::subscribed(false, false),
            wire::snapshot_of(state),
        ]))]
        .into(),
        ..Stage::default()
    })
    .await;
    let (code, out, _) = ran(&fake, &["attach", "docs"]).await;
    assert_eq!(code, 0);
    assert!(out.contains("-- docs: idle, agent demo --"), "{out}");
}
