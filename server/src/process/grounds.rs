//! Opens the workspaces, each once, for everybody who works in them.
//!
//! What must never enter: which agent works where, and what a place is.

use std::collections::BTreeMap;
use std::path::Path;

use sessionplane_core::domain::ids::WorkspaceName;

use super::ProcessError;
use crate::adapters::boundary::{Access, Boundary, Grounds};
use crate::config::{Served, Settings, Workspace};

/// The workspaces that are configured, and those of agents whose workspace has no name of its own.
/// The server's own data are no part of any of them: the owner token and the store are nobody's reading
/// matter.
pub(super) fn open(
    config: &Settings,
    served: &[Served],
    data_dir: &Path,
) -> Result<Grounds, ProcessError> {
    let mut spaces: BTreeMap<WorkspaceName, Workspace> = config.named_workspaces()?;
    // The command line names one for the built-in agents, also where the name is taken.
    spaces.extend(served.iter().filter_map(|agent| agent.workspace.clone()));
    let opened = spaces.into_iter().map(|(name, space)| {
        let boundary = boundary(&name, &space, data_dir)?;
        Ok((name, boundary))
    });
    Ok(Grounds::new(
        opened.collect::<Result<Vec<_>, ProcessError>>()?,
    ))
}

fn boundary(
    name: &WorkspaceName,
    space: &Workspace,
    data_dir: &Path,
) -> Result<Boundary, ProcessError> {
    let access = if space.writable {
        Access::Writable
    } else {
        Access::ReadOnly
    };
    let failed = |problem: String| ProcessError::Workspace {
        workspace: name.to_string(),
        problem,
    };
    let opened = Boundary::open(&space.root, access).map_err(|error| {
        let root = space.root.display();
        failed(format!(
            "its root {root} cannot be opened: {error}; make it, or name another"
        ))
    })?;
    opened.hiding(data_dir).map_err(|error| {
        failed(format!(
            "the data directory cannot be kept from it: {error}"
        ))
    })
}
