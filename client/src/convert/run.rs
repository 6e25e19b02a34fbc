//! Run records.

use sessionplane::v1;
use sessionplane_core::contract::{ListRunsRequest, RunPage};
use sessionplane_core::domain::input::UndeliveredInput;
use sessionplane_core::domain::run::{Failure, RunOutcome, RunRecord, RunSettings, Settlement};

use super::field::{Malformed, id, optional_id, optional_text, required, time};
use super::{origin, pending, session, usage};

/// The answer to `GetRun`.
pub(crate) fn answer(answer: v1::GetRunResponse) -> Result<RunRecord, Malformed> {
    read(required("run", answer.run)?)
}

/// The answer to `WaitRun`.
pub(crate) fn waited(answer: v1::WaitRunResponse) -> Result<RunRecord, Malformed> {
    read(required("run", answer.run)?)
}

/// Asks for a page of runs.
pub(crate) fn list_request(request: &ListRunsRequest) -> v1::ListRunsRequest {
    v1::ListRunsRequest {
        session: Some(session::reference(&request.session)),
        page_size: request.page_size,
        page_token: request
            .before
            .map_or_else(String::new, |run| run.to_string()),
    }
}

/// A page of runs.
pub(crate) fn page(page: v1::ListRunsResponse) -> Result<RunPage, Malformed> {
    let runs = page.runs.into_iter().map(read);
    Ok(RunPage {
        runs: runs.collect::<Result<_, _>>()?,
        has_more: !page.next_page_token.is_empty(),
    })
}

/// A run's record.
pub(crate) fn read(run: v1::RunRecord) -> Result<RunRecord, Malformed> {
    let outcome = outcome(run.outcome(), &run);
    let abort_requested = run.outcome() == v1::RunOutcome::Aborted;
    let settled = match run.settled_at {
        Some(at) => Some(Settlement {
            at: time("run.settled_at", Some(at))?,
            outcome,
        }),
        None => None,
    };
    let undelivered = run.undelivered.iter().map(undelivered);
    Ok(RunRecord {
        id: id("run.run_id", &run.run_id)?,
        session: id("run.session_id", &run.session_id)?,
        agent: id("run.agent", &run.agent)?,
        request_id: optional_id("run.request_id", &run.request_id)?,
        origin: origin::read("run.origin", run.origin)?,
        started_at: time("run.started_at", run.started_at)?,
        first_entry: id("run.first_entry_id", &run.first_entry_id)?,
        final_entry: optional_id("run.final_entry_id", &run.final_entry_id)?,
        usage: usage::read(run.usage),
        undelivered: undelivered.collect::<Result<_, _>>()?,
        settings: settings(run.model, run.thinking_level),
        abort_requested,
        settled,
    })
}

/// How a settled run ended. An outcome this client does not know is a failure.
pub(crate) fn ending(
    outcome: v1::RunOutcome,
    code: &str,
    details: &str,
    retryable: bool,
) -> RunOutcome {
    match outcome {
        v1::RunOutcome::Completed => RunOutcome::Completed,
        v1::RunOutcome::Aborted => RunOutcome::Aborted,
        v1::RunOutcome::Failed | v1::RunOutcome::Unspecified => RunOutcome::Failed(Failure {
            code: code.to_owned(),
            details: details.to_owned(),
            retryable,
        }),
    }
}

/// Model and level; empty where the engine has none.
pub(crate) fn settings(model: String, thinking_level: String) -> RunSettings {
    RunSettings {
        model: optional_text(model),
        thinking_level: optional_text(thinking_level),
    }
}

fn outcome(outcome: v1::RunOutcome, run: &v1::RunRecord) -> RunOutcome {
    ending(outcome, &run.code, &run.details, run.retryable)
}

fn undelivered(input: &v1::UndeliveredInput) -> Result<UndeliveredInput, Malformed> {
    Ok(UndeliveredInput {
        kind: pending::kind(input.kind()),
        cause: pending::cause(input.cause()),
        id: id("run.undelivered.input_id", &input.input_id)?,
        text: Some(input.text.as_str().into())
            .filter(|text: &std::sync::Arc<str>| !text.is_empty()),
    })
}
