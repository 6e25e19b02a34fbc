//! A session as the fleet shows it.

use std::sync::Arc;

use sessionplane::v1 as wire;
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::place::{Checkout, Place};

use super::{interaction, run, time, usage};

/// A session.
pub(crate) fn to_wire(session: &SessionSummary) -> wire::Session {
    let lineage = session.lineage.as_ref();
    let parent_entry = lineage.and_then(|lineage| lineage.entry);
    wire::Session {
        id: session.id.to_string(),
        name: text(session.name.as_ref()),
        external_key: text(session.external_key.as_ref()),
        agent: session.agent.to_string(),
        labels: session
            .labels
            .iter()
            .map(|(key, value)| (key.as_str().to_owned(), value.as_str().to_owned()))
            .collect(),
        priority: session.priority.get().into(),
        paused: session.paused,
        place: session.place.as_ref().map(place),
        checkout: session.checkout.as_ref().map(checkout),
        parent_session_id: text(lineage.map(|lineage| lineage.parent).as_ref()),
        parent_entry_id: text(parent_entry.as_ref()),
        phase: phase(session.phase).into(),
        phase_since: session.since.map(time::timestamp),
        stalled_since: session.stalled_since.map(time::timestamp),
        active_run_id: text(session.active_run.as_ref()),
        last_run: session.last_run.as_ref().map(run::last),
        questions: session.questions.iter().map(interaction::to_wire).collect(),
        queued: u32::try_from(session.queued).unwrap_or(u32::MAX),
        model_override: session.chosen.model.clone(),
        thinking_level_override: session.chosen.thinking_level.clone(),
        usage: Some(usage::to_wire(session.usage)),
        created_at: Some(time::timestamp(session.created_at)),
        updated_at: Some(time::timestamp(session.updated_at)),
        etag: session.metadata_revision.to_string(),
        revision: session.revision,
    }
}

fn text<T: ToString>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn place(place: &Place) -> wire::SessionPlace {
    wire::SessionPlace {
        workspace: place.workspace.to_string(),
        directory: place.directory.to_string(),
    }
}

fn checkout(checkout: &Checkout) -> wire::SessionCheckout {
    let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
    wire::SessionCheckout {
        branch: text(&checkout.branch),
        commit: text(&checkout.commit),
    }
}

fn phase(phase: Phase) -> wire::SessionPhase {
    match phase {
        Phase::NeedsInput => wire::SessionPhase::NeedsInput,
        Phase::Working => wire::SessionPhase::Working,
        Phase::Compacting => wire::SessionPhase::Compacting,
        Phase::Queued => wire::SessionPhase::Queued,
        Phase::Ready => wire::SessionPhase::Ready,
        Phase::Paused => wire::SessionPhase::Paused,
        Phase::Dormant => wire::SessionPhase::Dormant,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c46_every_phase_has_the_name_that_filters_give_it() {
        for one in Phase::ALL {
            let name = format!("SESSION_PHASE_{}", one.as_str());
            assert_eq!(phase(one).as_str_name(), name);
        }
    }
}
