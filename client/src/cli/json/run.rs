//! Run records.

use serde_json::{Value, json};
use sessionplane_core::domain::input::UndeliveredInput;
use sessionplane_core::domain::run::{RunOutcome, RunRecord};

use super::field::{maybe, origin, text, time, usage};

/// A run's record.
pub(crate) fn run(run: &RunRecord) -> Value {
    let settled = run.settled.as_ref();
    let outcome = settled.map(|settled| &settled.outcome);
    let failure = match outcome {
        Some(RunOutcome::Failed(failure)) => Some(failure),
        _ => None,
    };
    json!({
        "run_id": text(run.id),
        "session_id": text(run.session),
        "request_id": maybe(run.request_id.as_ref()),
        "origin": origin(&run.origin),
        "started_at": time(run.started_at),
        "settled_at": settled.map(|settled| time(settled.at)),
        "outcome": outcome.map(RunOutcome::as_str),
        "code": outcome.and_then(RunOutcome::code),
        "details": failure.map(|failure| &failure.details),
        "retryable": failure.is_some_and(|failure| failure.retryable),
        "first_entry_id": text(run.first_entry),
        "final_entry_id": run.final_entry.map(text),
        "usage": usage(&run.usage),
        "undelivered": run.undelivered.iter().map(undelivered).collect::<Vec<_>>(),
        "model": run.settings.model,
        "thinking_level": run.settings.thinking_level,
        "agent": text(&run.agent),
    })
}

fn undelivered(input: &UndeliveredInput) -> Value {
    json!({
        "input_id": text(input.id),
        "kind": input.kind.as_str(),
        "cause": input.cause.as_str(),
        "text": input.text.as_deref(),
    })
}
