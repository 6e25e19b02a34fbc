//! Opens the workspaces, each once, for everybody who works in them.
//!
//! What must never enter: which agent works where, and what a place is.

use std::collections::BTreeMap;
use std::path::Path;

use sessionplane_core::domain::ids::WorkspaceName;

use super::{Options, ProcessError, wiring};
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
    let opened = spaces(config, served)?.into_iter().map(|(name, space)| {
        let boundary = boundary(&name, &space, data_dir)?;
        Ok((name, boundary))
    });
    Ok(Grounds::new(
        opened.collect::<Result<Vec<_>, ProcessError>>()?,
    ))
}

/// What keeps the workspaces from being opened that can be seen beforehand.
pub(super) fn unusable(config: &Settings, options: &Options) -> Vec<ProcessError> {
    let spaces = wiring::served(config, options).and_then(|served| spaces(config, &served));
    match spaces {
        Ok(spaces) => {
            let opened = spaces.iter().map(|(name, space)| root(name, space).err());
            opened.flatten().collect()
        }
        Err(error) => vec![error],
    }
}

fn spaces(
    config: &Settings,
    served: &[Served],
) -> Result<BTreeMap<WorkspaceName, Workspace>, ProcessError> {
    let mut spaces = config.named_workspaces()?;
    // The command line names one for the built-in agents, also where the name is taken.
    spaces.extend(served.iter().filter_map(|agent| agent.workspace.clone()));
    Ok(spaces)
}

fn boundary(
    name: &WorkspaceName,
    space: &Workspace,
    data_dir: &Path,
) -> Result<Boundary, ProcessError> {
    let hidden = root(name, space)?.hiding(data_dir);
    hidden.map_err(|error| {
        let problem = format!("the data directory cannot be kept from it: {error}");
        failed(name, problem)
    })
}

fn root(name: &WorkspaceName, space: &Workspace) -> Result<Boundary, ProcessError> {
    let access = if space.writable {
        Access::Writable
    } else {
        Access::ReadOnly
    };
    Boundary::open(&space.root, access).map_err(|error| {
        let root = space.root.display();
        let problem =
            format!("its root {root} cannot be opened: {error}; make it, or name another");
        failed(name, problem)
    })
}

fn failed(name: &WorkspaceName, problem: String) -> ProcessError {
    ProcessError::Workspace {
        workspace: name.to_string(),
        problem,
    }
}
