//! A session's state at a position.

use sessionplane::v1;
use sessionplane_core::contract::SessionState;
use sessionplane_core::domain::ids::{SessionRef, TenantId};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::session::{LastRun, SessionRecord};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::view::SessionView;

use super::field::{Malformed, id, optional_id, required, time};
use super::{pending, position, run, session, usage};

/// Stands for the caller's own tenant, which the wire does not tell.
const OWN_TENANT: &str = "own";

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

/// A state. The record's tenant and time of creation are not told to callers: they read as `own`
/// and 1970.
pub(crate) fn read(state: v1::SessionState) -> Result<SessionState, Malformed> {
    let mut view = SessionView::reported(
        SessionRecord {
            id: id("state.session_id", &state.session_id)?,
            tenant: id::<TenantId>("tenant", OWN_TENANT)?,
            name: optional_id("state.name", &state.name)?,
            external_key: optional_id("state.external_key", &state.external_key)?,
            agent: id("state.agent", &state.agent)?,
            created_at: Timestamp::default(),
        },
        usage::read(state.usage),
    );
    view.active_run = optional_id("state.active_run_id", &state.active_run_id)?;
    view.last_run = state.last_run.as_ref().map(last_run).transpose()?;
    view.settings = run::settings(state.model, state.thinking_level);
    for input in state.pending {
        let input = pending::read(input)?;
        view.pending.insert(input.id, input);
    }
    view.leaf = optional_id("state.leaf_entry_id", &state.leaf_entry_id)?;
    view.entries = state.entry_count;
    Ok(SessionState {
        view,
        position: position::read("state.position", state.position)?,
    })
}

fn last_run(last: &v1::LastRun) -> Result<LastRun, Malformed> {
    Ok(LastRun {
        outcome: run::ending(last.outcome(), &last.code, "", false),
        run: id("state.last_run.run_id", &last.run_id)?,
        settled_at: time("state.last_run.settled_at", last.settled_at)?,
    })
}
