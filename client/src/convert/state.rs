//! A session's state at a position.

use sessionplane::v1;
use sessionplane_core::contract::SessionState;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::session::{LastRun, SessionIdentity};
use sessionplane_core::domain::settings::{ModelPolicy, Resolved, SettingsOverride};
use sessionplane_core::domain::view::SessionView;

use super::field::{Malformed, id, optional_id, required, time};
use super::{capabilities, interaction, pending, position, run, session, usage};

/// Asks for the state.
pub(crate) fn request(named: &SessionRef, min_position: Option<Position>) -> v1::GetStateRequest {
    v1::GetStateRequest {
        session: Some(session::reference(named)),
        min_position: min_position.map(position::write),
    }
}

/// The state.
pub(crate) fn answer(answer: v1::GetStateResponse) -> Result<SessionState, Malformed> {
    read(required("state", answer.state)?)
}

/// A state.
pub(crate) fn read(state: v1::SessionState) -> Result<SessionState, Malformed> {
    let identity = SessionIdentity {
        id: id("state.session_id", &state.session_id)?,
        name: optional_id("state.name", &state.name)?,
        external_key: optional_id("state.external_key", &state.external_key)?,
        agent: id("state.agent", &state.agent)?,
    };
    let sandbox = capabilities::sandbox(state.sandbox());
    let mut view = SessionView::unborn(identity, &ModelPolicy::default());
    view.compacting = state.status() == v1::SessionStatus::Compacting;
    view.usage = usage::read(state.usage);
    view.active_run = optional_id("state.active_run_id", &state.active_run_id)?;
    view.last_run = state.last_run.as_ref().map(last_run).transpose()?;
    view.chosen = SettingsOverride {
        model: state.model_override,
        thinking_level: state.thinking_level_override,
    };
    view.resolved = Resolved {
        settings: run::settings(state.model, state.thinking_level),
        available_levels: state.available_thinking_levels,
    };
    for asked in state.interactions {
        if let Some(asked) = interaction::read(asked)? {
            view.interactions.insert(asked.id, asked);
        }
    }
    for input in state.pending {
        let input = pending::read(input)?;
        view.pending.insert(input.id, input);
    }
    view.leaf = optional_id("state.leaf_entry_id", &state.leaf_entry_id)?;
    view.entries = state.entry_count;
    Ok(SessionState {
        view,
        sandbox,
        position: position::read("state.position", state.position)?,
    })
}

/// How a session's newest run ended.
pub(crate) fn last_run(last: &v1::LastRun) -> Result<LastRun, Malformed> {
    Ok(LastRun {
        outcome: run::ending(last.outcome(), &last.code, &last.details, last.retryable),
        run: id("state.last_run.run_id", &last.run_id)?,
        settled_at: time("state.last_run.settled_at", last.settled_at)?,
    })
}
