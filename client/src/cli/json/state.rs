//! A session's state.

use serde_json::{Value, json};
use sessionplane_core::contract::SessionState;
use sessionplane_core::domain::event::PendingInput;
use sessionplane_core::domain::run::RunOutcome;
use sessionplane_core::domain::session::LastRun;

use super::field::{maybe, origin, position, text, time, usage};
use super::interaction::interaction;

/// A session's state.
pub(crate) fn state(state: &SessionState) -> Value {
    let view = &state.view;
    json!({
        "session_id": text(view.session.id),
        "name": maybe(view.session.name.as_ref()),
        "external_key": maybe(view.session.external_key.as_ref()),
        "agent": text(&view.session.agent),
        "status": view.status().as_str(),
        "active_run_id": maybe(view.active_run),
        "last_run": view.last_run.as_ref().map(last_run),
        "model": view.resolved.settings.model,
        "thinking_level": view.resolved.settings.thinking_level,
        "available_thinking_levels": view.resolved.available_levels,
        "model_override": view.chosen.model,
        "thinking_level_override": view.chosen.thinking_level,
        "interactions": view.interactions.values().map(interaction).collect::<Vec<_>>(),
        "pending": view.pending.values().map(pending).collect::<Vec<_>>(),
        "usage": usage(&view.usage),
        "leaf_entry_id": maybe(view.leaf),
        "entry_count": view.entries,
        "sandbox": state.sandbox.as_str(),
        "position": position(state.position),
    })
}

/// An input that waits.
pub(super) fn pending(input: &PendingInput) -> Value {
    json!({
        "input_id": text(input.id),
        "kind": input.kind.as_str(),
        "text": input.preview,
        "omitted_bytes": input.bytes.saturating_sub(input.preview.len() as u64),
        "origin": origin(&input.origin),
        "handed": input.handed,
    })
}

/// How a session's newest run ended.
pub(super) fn last_run(last: &LastRun) -> Value {
    let failure = match &last.outcome {
        RunOutcome::Failed(failure) => Some(failure),
        RunOutcome::Completed | RunOutcome::Aborted => None,
    };
    json!({
        "run_id": text(last.run),
        "outcome": last.outcome.as_str(),
        "code": last.outcome.code(),
        "details": failure.map(|failure| &failure.details),
        "retryable": failure.is_some_and(|failure| failure.retryable),
        "settled_at": time(last.settled_at),
    })
}
