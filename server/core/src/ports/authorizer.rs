//! The question every app method asks before it does anything.

use async_trait::async_trait;

use crate::domain::access::{Action, Decision, PolicyContext, Principal, Resource};

/// Decides whether a principal may do something.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Decides one question. A decision is a fact of this instant: long streams ask again, when what is
    /// decided by changes and when what is known of their session does.
    async fn authorize(
        &self,
        principal: &Principal,
        action: Action,
        resource: &Resource<'_>,
        context: &PolicyContext<'_>,
    ) -> Decision;

    /// Changes with what is decided by. The same number means the same answers.
    fn version(&self) -> u64 {
        0
    }

    /// Completes once the version is another one than this.
    async fn changed_from(&self, version: u64) {
        // One that never changes keeps whoever waits for it waiting.
        let _ = version;
        std::future::pending::<()>().await;
    }

    /// Whether anything that decides about an action asks if sessions share a directory: only then it
    /// is looked up.
    fn asks_of_sharing(&self, action: Action) -> bool {
        let _ = action;
        false
    }
}
