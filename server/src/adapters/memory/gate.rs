//! The place where a simulation delays or breaks a commit. Decides nothing itself.

use async_trait::async_trait;
use sessionplane_core::domain::commit::Commit;

/// Where in a commit the gate is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommitStep {
    /// Nothing is judged or kept yet: a crash or a failure here loses the commit.
    BeforeSync,
    /// It is kept and not yet acknowledged: a crash or a failure here leaves the caller in doubt.
    AfterSync,
}

/// Stands between a caller and the store. The store waits as long as the gate does, so a test holds
/// a commit back by not returning.
#[async_trait]
pub trait CommitGate: Send + Sync {
    /// Lets a commit pass a step.
    ///
    /// # Errors
    /// What the failing device is to have said: the store is broken from then on.
    async fn pass(&self, step: CommitStep, commit: &Commit) -> Result<(), String>;
}

/// Lets everything pass.
pub(super) struct Open;

#[async_trait]
impl CommitGate for Open {
    async fn pass(&self, _: CommitStep, _: &Commit) -> Result<(), String> {
        Ok(())
    }
}
