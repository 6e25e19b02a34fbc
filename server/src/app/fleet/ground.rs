//! Where sessions may work: the place is looked up before anything is decided about it, and one that is
//! not there is told by its name and never replaced by another (C45, C53).

use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::WorkspaceName;
use sessionplane_core::domain::lifecycle::AgentFacts;
use sessionplane_core::domain::place::{Checkout, Directory, Place};
use sessionplane_core::ports::workspaces::PlaceError;

use crate::app::context::Context;

/// A place as it was found.
pub(crate) struct Ground {
    pub(crate) place: Option<Place>,
    pub(crate) checkout: Option<Checkout>,
}

impl Context {
    /// Looks a place up. A host without workspaces knows nothing of it: what is saved holds.
    pub(crate) async fn ground(&self, place: Option<Place>) -> Result<Ground, PlaceError> {
        let (Some(place), Some(workspaces)) = (&place, &self.ports.workspaces) else {
            return Ok(Ground {
                place,
                checkout: None,
            });
        };
        let place = workspaces.ground(place).await?;
        let checkout = workspaces.checkout(&place).await;
        Ok(Ground {
            place: Some(place),
            checkout,
        })
    }

    /// Looks up where a session works already. What is saved is a real place: where a link has taken its
    /// name, it was moved, and nobody follows it there unasked (C45, C53).
    pub(crate) async fn saved_ground(&self, saved: Option<Place>) -> Result<Ground, PlaceError> {
        let found = self.ground(saved.clone()).await?;
        match (&saved, &found.place) {
            (Some(saved), Some(real)) if saved != real => Err(PlaceError::moved(saved, real)),
            _ => Ok(found),
        }
    }
}

/// Where a new session works unless its caller says so: in the agent's first workspace, if it has one.
pub(crate) fn usual(agent: &AgentFacts) -> Option<Place> {
    let workspace = agent.workspaces.first()?.clone();
    let directory = Directory::root();
    Some(Place {
        workspace,
        directory,
    })
}

/// Refuses a workspace that an agent may not work in.
pub(super) fn allowed(agent: &AgentFacts, workspace: &WorkspaceName) -> Result<(), CallError> {
    if agent.workspaces.contains(workspace) {
        return Ok(());
    }
    let known = known(agent);
    let told = if known.is_empty() {
        format!("is {workspace:?}, and the session's agent works in no workspace; leave it out")
    } else {
        format!("is \"{workspace}\", where the session's agent may not work; it may in: {known}")
    };
    Err(CallError::invalid("workspace", told))
}

/// What keeps a session's agent from its saved place: the configuration may have changed since it was
/// put there (C53). None where nothing does.
pub(crate) fn barred(agent: &AgentFacts, place: &Place) -> Option<String> {
    if agent.workspaces.contains(&place.workspace) {
        return None;
    }
    let Place {
        workspace,
        directory,
    } = place;
    let known = known(agent);
    let may = if known.is_empty() {
        "it may in none".to_owned()
    } else {
        format!("it may in: {known}")
    };
    Some(format!(
        "the session works in the directory \"{directory}\" of workspace {workspace}, where its agent may \
         not work; {may}; allow it in the configuration, or move the session with ChangeDirectory"
    ))
}

fn known(agent: &AgentFacts) -> String {
    let known: Vec<_> = agent.workspaces.iter().map(WorkspaceName::as_str).collect();
    known.join(", ")
}

/// A place that cannot be worked in, as a refusal that names it.
#[allow(
    clippy::needless_pass_by_value,
    reason = "it is an argument of map_err"
)]
pub(super) fn refused(error: PlaceError) -> CallError {
    let field = match &error {
        PlaceError::NoSuchWorkspace { .. } => "workspace",
        PlaceError::Unavailable { .. } => "directory",
        PlaceError::Worktree(_) => "worktree_branch",
    };
    CallError::invalid(field, error.to_string())
}
