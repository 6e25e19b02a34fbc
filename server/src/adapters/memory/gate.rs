//! The place where a simulation delays or breaks a commit. Decides nothing itself.

use async_trait::async_trait;
use sessionplane_core::domain::commit::{Commit, DeletionCommit, MetadataCommit};

/// Where in a commit the gate is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommitStep {
    /// Nothing is judged or kept yet: a crash or a failure here loses the commit.
    BeforeSync,
    /// It is kept and not yet acknowledged: a crash or a failure here leaves the caller in doubt.
    AfterSync,
}

/// What stands at the gate.
#[derive(Clone, Copy, Debug)]
pub enum Passing<'c> {
    /// What a session's lease holder writes.
    Commit(&'c Commit),
    /// A change of metadata.
    Metadata(&'c MetadataCommit),
    /// The end of a session.
    Deletion(&'c DeletionCommit),
}

impl<'c> Passing<'c> {
    /// The commit, if it is one of a lease holder.
    #[must_use]
    pub fn commit(self) -> Option<&'c Commit> {
        match self {
            Self::Commit(commit) => Some(commit),
            Self::Metadata(_) | Self::Deletion(_) => None,
        }
    }
}

/// Stands between a caller and the store. The store waits as long as the gate does, so a test holds
/// a commit back by not returning.
#[async_trait]
pub trait CommitGate: Send + Sync {
    /// Lets a commit pass a step.
    ///
    /// # Errors
    /// What the failing device is to have said: the store is broken from then on.
    async fn pass(&self, step: CommitStep, passing: Passing<'_>) -> Result<(), String>;
}

/// Lets everything pass.
pub(super) struct Open;

#[async_trait]
impl CommitGate for Open {
    async fn pass(&self, _: CommitStep, _: Passing<'_>) -> Result<(), String> {
        Ok(())
    }
}
