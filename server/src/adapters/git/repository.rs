//! A repository as one value: where its files are, and its objects, opened.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::GitError;
use super::layout::{Head, Layout};
use super::objects::Objects;
use crate::adapters::boundary::Boundary;

/// A repository inside a boundary. It reads and never writes; no hook, filter or configuration of it
/// takes effect.
pub struct Git {
    pub(super) layout: Layout,
    pub(super) objects: Objects,
    /// The worktree's files, where they were asked for.
    pub(super) files: Option<Boundary>,
}

impl Git {
    /// Finds the repository whose worktree the folder is, or which it is itself.
    ///
    /// # Errors
    /// When there is none, it lies elsewhere, or uses what is not read here.
    pub fn open(boundary: &Boundary, stop: &AtomicBool) -> Result<Self, GitError> {
        let layout = Layout::at(boundary, Path::new(""), stop)?;
        Ok(Self {
            files: Some(boundary.clone()),
            ..Self::of(layout, stop)?
        })
    }

    /// Finds the repository that a folder of a workspace lies in: its data may be anywhere in that.
    /// Where the folder is no worktree's top, there is no status: that would tell of what lies beside
    /// it.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub fn beneath(workspace: &Boundary, at: &Path, stop: &AtomicBool) -> Result<Self, GitError> {
        let layout = Layout::around(workspace, at, stop)?;
        let files = if layout.top == at {
            Some(workspace.beneath(at)?.0)
        } else {
            None
        };
        Ok(Self {
            files,
            ..Self::of(layout, stop)?
        })
    }

    /// Opens the objects of a repository that was found.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn of(layout: Layout, stop: &AtomicBool) -> Result<Self, GitError> {
        let objects = Objects::open(&layout.boundary, &layout.common.join("objects"), stop)?;
        Ok(Self {
            layout,
            objects,
            files: None,
        })
    }

    /// What is checked out.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn head(&self, stop: &AtomicBool) -> Result<Head, GitError> {
        self.layout.head(stop)
    }
}
