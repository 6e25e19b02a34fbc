//! What of a repository a program must reach that works in a linked worktree of it, and is kept in
//! there: the repository's data lie elsewhere.
//!
//! What a directory says of itself is what whoever works in it wrote: a `.git` file leads anywhere. It
//! is believed where the repository says the same, in a place that its worktrees' programs cannot
//! write: that this is its worktree, and where that has its record.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::GitError;
use super::layout::{Layout, small, typed};
use crate::adapters::boundary::{Boundary, Refusal};

/// What git writes for work in a worktree, beside the worktree's own record: objects, refs and their
/// logs. Not the configuration and the hooks, which others' programs would go by and run.
const WRITTEN: [&str; 3] = ["objects", "refs", "logs"];

/// The folders of a repository that git needs for a linked worktree: all of its data to be read, and
/// some to be written as far as the workspace is. None where the directory is no worktree's top, has
/// its data within it, or says what the repository does not: git does not work there then. Blocks.
#[must_use]
pub fn beside(workspace: &Boundary, at: &Path, stop: &AtomicBool) -> Vec<Boundary> {
    match found(workspace, at, stop) {
        Ok(folders) => folders,
        Err(error) => {
            let at = at.display();
            tracing::debug!(%at, %error, "git will not work there");
            Vec::new()
        }
    }
}

fn found(workspace: &Boundary, at: &Path, stop: &AtomicBool) -> Result<Vec<Boundary>, GitError> {
    let layout = match Layout::at(workspace, at, stop) {
        Err(GitError::NoRepository) => return Ok(Vec::new()),
        layout => layout?,
    };
    if layout.is_bare || layout.own == layout.common {
        return Ok(Vec::new());
    }
    // Its own record says where all data are, and is written in the worktree's name: it must say what
    // its place says.
    let is_its_record = layout.own.parent() == Some(&layout.common.join("worktrees"));
    if !is_its_record || !is_recorded(workspace, &layout, stop)? {
        return Err(GitError::Elsewhere);
    }
    let mut folders = vec![exactly(workspace, &layout.common)?.only_to_read()];
    folders.push(exactly(workspace, &layout.own)?);
    for name in WRITTEN {
        match exactly(workspace, &layout.common.join(name)) {
            Err(Refusal::Missing) => {}
            folder => folders.push(folder?),
        }
    }
    Ok(folders)
}

/// Whether the repository's record of a worktree names its directory.
fn is_recorded(workspace: &Boundary, layout: &Layout, stop: &AtomicBool) -> Result<bool, GitError> {
    let Some(text) = small(workspace, &layout.own.join("gitdir"), stop)? else {
        return Ok(false);
    };
    let pointer = typed(workspace, &layout.own.join(text.trim()))?.path;
    Ok(pointer == layout.top.join(".git"))
}

/// A folder by its real path, and none that a link leads to.
fn exactly(workspace: &Boundary, path: &Path) -> Result<Boundary, Refusal> {
    let (folder, real) = workspace.beneath(path)?;
    if real == path {
        return Ok(folder);
    }
    Err(Refusal::Outside)
}
