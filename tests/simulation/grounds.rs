//! Directories that are there or not, on a disk that is slow, and whose branch changes by itself.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::ids::WorkspaceName;
use sessionplane_core::domain::place::{Checkout, Directory, Place};
use sessionplane_core::ports::workspaces::{PlaceError, Workspaces};
use sessionplane_server::app::agents::AgentCatalog;

use crate::disk::Disk;

/// What agents may work in.
pub(crate) const WORKSPACES: [&str; 2] = ["repo", "docs"];
/// Directories of each; the last one is gone now and then.
const DIRECTORIES: [&str; 3] = [".", "sub", "flaky"];

/// The workspaces.
pub(crate) struct Grounds(pub(crate) Arc<Disk>);

pub(crate) fn workspace(name: &str) -> WorkspaceName {
    WorkspaceName::parse(name).expect("a workspace")
}

/// One of the places, by number.
pub(crate) fn place(number: usize) -> Place {
    let directory = DIRECTORIES[number / WORKSPACES.len() % DIRECTORIES.len()];
    Place {
        workspace: workspace(WORKSPACES[number % WORKSPACES.len()]),
        directory: Directory::parse(directory).expect("a directory"),
    }
}

/// Lets every agent work in them.
pub(crate) fn open_to_all(agents: AgentCatalog) -> AgentCatalog {
    let names: Vec<_> = agents.names().cloned().collect();
    let all = || WORKSPACES.map(workspace).into();
    names
        .iter()
        .fold(agents, |agents, name| agents.working_in(name, all()))
}

#[async_trait]
impl Workspaces for Grounds {
    async fn ground(&self, place: &Place) -> Result<Place, PlaceError> {
        self.0.wait().await;
        if place.directory.as_str() == "flaky" && self.0.one_in(3) {
            return Err(PlaceError::Unavailable {
                workspace: place.workspace.clone(),
                directory: place.directory.to_string(),
                problem: "is not there".to_owned(),
            });
        }
        Ok(place.clone())
    }

    async fn checkout(&self, place: &Place) -> Option<Checkout> {
        self.0.wait().await;
        let branch = if self.0.one_in(4) { "topic" } else { "main" };
        (place.directory.as_str() != ".").then(|| Checkout {
            branch: Some(branch.into()),
            commit: None,
        })
    }

    async fn add_worktree(&self, _: &Place, _: &str) -> Result<Place, PlaceError> {
        Err(PlaceError::Worktree("none are made here".to_owned()))
    }
}
