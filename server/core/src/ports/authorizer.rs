//! The question every app method asks before it does anything.

use async_trait::async_trait;

use crate::domain::access::{Action, Decision, Principal, Resource};

/// Decides whether a principal may do something.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Decides one question. A decision is a fact of this instant: long streams ask again.
    async fn authorize(
        &self,
        principal: &Principal,
        action: Action,
        resource: &Resource,
    ) -> Decision;
}
