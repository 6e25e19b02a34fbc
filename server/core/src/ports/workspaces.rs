//! The directory trees that sessions work in, by the names that the configuration gives them.
//!
//! Promises that the suite checks: nothing is looked up from outside of a workspace's own descriptor;
//! what is judged is the real place, with links resolved; a place that is not there is told by its
//! name and never replaced by another.

use async_trait::async_trait;

use crate::domain::ids::WorkspaceName;
use crate::domain::place::{Checkout, Place};

/// Why a place cannot be worked in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlaceError {
    /// No workspace of that name is configured.
    #[error("no workspace {workspace} is configured; configured are: {known}")]
    NoSuchWorkspace {
        /// The name that was asked for.
        workspace: WorkspaceName,
        /// Those that are, for people.
        known: String,
    },
    /// There is nothing, or no directory, or it cannot be entered, or it leads out of the workspace.
    #[error("the directory {directory:?} of workspace {workspace} {problem}")]
    Unavailable {
        /// The workspace.
        workspace: WorkspaceName,
        /// The directory.
        directory: String,
        /// What is wrong with it, as the end of a sentence: "is not there".
        problem: String,
    },
    /// A worktree could not be made.
    #[error("the worktree could not be made: {0}")]
    Worktree(String),
}

impl PlaceError {
    /// What a session's saved directory was is elsewhere now, or nowhere: a link has its name.
    #[must_use]
    pub fn moved(saved: &Place, leads_to: &Place) -> Self {
        let to = &leads_to.directory;
        Self::Unavailable {
            workspace: saved.workspace.clone(),
            directory: saved.directory.to_string(),
            problem: format!("is a link by now, to {:?}", to.as_str()),
        }
    }
}

/// The workspaces of this host. Methods may block for as long as a file system does; none waits for a
/// pipe or a device.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// Looks a place up. Returns the real one: links resolved, within the same workspace.
    async fn ground(&self, place: &Place) -> Result<Place, PlaceError>;
    /// What version control says of a place; none where there is none, or where it cannot be read.
    async fn checkout(&self, place: &Place) -> Option<Checkout>;
    /// Makes a new working tree of the repository that a place is in, beneath the same workspace, with
    /// that branch checked out; the branch is made if it is missing. Returns the new place. Where the
    /// branch has a working tree already, that one is returned.
    async fn add_worktree(&self, place: &Place, branch: &str) -> Result<Place, PlaceError>;
}
