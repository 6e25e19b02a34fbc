//! Sessions as the fleet shows them, and what becomes of them.

use serde_json::{Map, Value, json};
use sessionplane_core::contract::fleet::{ChangeDirectoryAnswer, DeleteAnswer, FleetInteraction};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;

use super::answer::rejected;
use super::field::{maybe, text, time, usage};
use super::interaction::interaction;
use super::state::last_run;

/// A session.
pub(crate) fn session(session: &SessionSummary) -> Value {
    let labels = session.labels.iter();
    let labels: Map<_, _> = labels
        .map(|(key, value)| (key.as_str().to_owned(), value.as_str().into()))
        .collect();
    let lineage = session.lineage;
    json!({
        "id": text(session.id),
        "name": maybe(session.name.as_ref()),
        "external_key": maybe(session.external_key.as_ref()),
        "agent": text(&session.agent),
        "labels": labels,
        "priority": session.priority.get(),
        "paused": session.paused,
        "place": session.place.as_ref().map(|place| json!({
            "workspace": text(&place.workspace),
            "directory": text(&place.directory),
        })),
        "checkout": session.checkout.as_ref().map(|checkout| json!({
            "branch": maybe(checkout.branch.as_deref()),
            "commit": maybe(checkout.commit.as_deref()),
        })),
        "parent_session_id": maybe(lineage.map(|lineage| lineage.parent)),
        "parent_entry_id": maybe(lineage.and_then(|lineage| lineage.entry)),
        "phase": session.phase.as_str().to_ascii_lowercase(),
        "phase_since": session.since.map(time),
        "stalled_since": session.stalled_since.map(time),
        "active_run_id": maybe(session.active_run),
        "last_run": session.last_run.as_ref().map(last_run),
        "questions": session.questions.iter().map(interaction).collect::<Vec<_>>(),
        "queued": session.queued,
        "model_override": session.chosen.model,
        "thinking_level_override": session.chosen.thinking_level,
        "usage": usage(&session.usage),
        "created_at": time(session.created_at),
        "updated_at": time(session.updated_at),
        "etag": text(session.metadata_revision),
        "revision": session.revision,
    })
}

/// A session that is not wanted any more, or is no more.
pub(crate) fn gone(id: SessionId) -> Value {
    json!({ "gone_session_id": text(id) })
}

/// A question, and whose it is.
pub(crate) fn asked(asked: &FleetInteraction) -> Value {
    json!({
        "session_id": text(asked.session),
        "session_name": maybe(asked.name.as_ref()),
        "interaction": interaction(&asked.interaction),
    })
}

/// What became of a move.
pub(crate) fn moved(answer: &ChangeDirectoryAnswer) -> Value {
    match answer {
        ChangeDirectoryAnswer::Moved {
            session: of,
            sandbox,
        } => json!({ "changed": {
            "session": session(of),
            "sandbox": sandbox.as_str(),
        }}),
        ChangeDirectoryAnswer::Rejected(rejection) => rejected(rejection),
    }
}

/// What became of a deletion.
pub(crate) fn deleted(answer: &DeleteAnswer) -> Value {
    match answer {
        DeleteAnswer::Deleted => json!({ "deleted": {} }),
        DeleteAnswer::Rejected(rejection) => rejected(rejection),
    }
}
