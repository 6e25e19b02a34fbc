//! Runs and how they ended.

use sessionplane::v1 as wire;
use sessionplane_core::contract::{ListRunsRequest, RunPage};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::run::{RunOutcome, RunRecord};
use sessionplane_core::domain::session::LastRun;

use super::{field, input, origin, session, time, usage};

/// A run's record.
pub(crate) fn record(run: &RunRecord) -> wire::RunRecord {
    let settled = run.settled.as_ref();
    let ending = settled.map(|settlement| &settlement.outcome);
    let failure = match ending {
        Some(RunOutcome::Failed(failure)) => Some(failure),
        Some(RunOutcome::Completed | RunOutcome::Aborted) | None => None,
    };
    wire::RunRecord {
        run_id: run.id.to_string(),
        session_id: run.session.to_string(),
        request_id: origin::optional_request_id(run.request_id.as_ref()),
        origin: Some(origin::to_wire(&run.origin)),
        started_at: Some(time::timestamp(run.started_at)),
        settled_at: settled.map(|settlement| time::timestamp(settlement.at)),
        outcome: ending.map_or(wire::RunOutcome::Unspecified, outcome).into(),
        code: code(ending),
        details: failure
            .map(|failure| failure.details.clone())
            .unwrap_or_default(),
        retryable: failure.is_some_and(|failure| failure.retryable),
        first_entry_id: run.first_entry.to_string(),
        final_entry_id: run
            .final_entry
            .map(|entry| entry.to_string())
            .unwrap_or_default(),
        usage: Some(usage::to_wire(run.usage)),
        undelivered: run.undelivered.iter().map(input::undelivered).collect(),
        model: run.settings.model.clone().unwrap_or_default(),
        thinking_level: run.settings.thinking_level.clone().unwrap_or_default(),
        agent: run.agent.to_string(),
    }
}

/// A request for a page of runs. The token is the id of the last run of the page before.
pub(crate) fn list_request(request: wire::ListRunsRequest) -> Result<ListRunsRequest, CallError> {
    Ok(ListRunsRequest {
        session: session::reference(request.session)?,
        before: field::optional_id("page_token", &request.page_token)?,
        page_size: request.page_size,
    })
}

/// A page of runs.
pub(crate) fn page(page: &RunPage) -> wire::ListRunsResponse {
    let last = page.runs.last().filter(|_| page.has_more);
    wire::ListRunsResponse {
        runs: page.runs.iter().map(record).collect(),
        next_page_token: last.map(|run| run.id.to_string()).unwrap_or_default(),
    }
}

/// How a session's newest run ended.
pub(crate) fn last(last: &LastRun) -> wire::LastRun {
    let failure = match &last.outcome {
        RunOutcome::Failed(failure) => Some(failure),
        RunOutcome::Completed | RunOutcome::Aborted => None,
    };
    wire::LastRun {
        run_id: last.run.to_string(),
        outcome: outcome(&last.outcome).into(),
        code: code(Some(&last.outcome)),
        settled_at: Some(time::timestamp(last.settled_at)),
        details: failure
            .map(|failure| failure.details.clone())
            .unwrap_or_default(),
        retryable: failure.is_some_and(|failure| failure.retryable),
    }
}

fn outcome(outcome: &RunOutcome) -> wire::RunOutcome {
    match outcome {
        RunOutcome::Completed => wire::RunOutcome::Completed,
        RunOutcome::Failed(_) => wire::RunOutcome::Failed,
        RunOutcome::Aborted => wire::RunOutcome::Aborted,
    }
}

fn code(outcome: Option<&RunOutcome>) -> String {
    outcome
        .and_then(RunOutcome::code)
        .unwrap_or_default()
        .to_owned()
}
