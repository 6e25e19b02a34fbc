//! Who may do what on a server without configured policies: its owner everything, others nothing.
//!
//! What must never enter: how a caller was authenticated.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::access::{Action, Decision, Principal, Resource};
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::ports::authorizer::Authorizer;

/// The id of the one policy, as audit records name it.
const POLICY: &str = "owner";

/// Allows one principal everything in its own tenant.
#[derive(Debug)]
pub struct OwnerAuthorizer {
    tenant: TenantId,
    owner: PrincipalId,
    allows: Arc<[String]>,
    denies: Arc<[String]>,
}

impl OwnerAuthorizer {
    /// An authorizer for `owner` of `tenant`.
    #[must_use]
    pub fn new(tenant: TenantId, owner: PrincipalId) -> Self {
        Self {
            tenant,
            owner,
            allows: [POLICY.to_owned()].into(),
            denies: Arc::new([]),
        }
    }
}

#[async_trait]
impl Authorizer for OwnerAuthorizer {
    async fn authorize(
        &self,
        principal: &Principal,
        _action: Action,
        resource: &Resource,
    ) -> Decision {
        let (Resource::Tenant(tenant) | Resource::Session { tenant, .. }) = resource;
        let is_owner = principal.tenant == self.tenant && principal.id == self.owner;
        let allowed = is_owner && *tenant == self.tenant;
        let policies = if allowed { &self.allows } else { &self.denies };
        Decision {
            allowed,
            policies: policies.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::access::PrincipalKind;
    use sessionplane_core::domain::ids::SessionId;
    use sessionplane_core::domain::provenance::Trust;
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn principal(tenant: &str, id: &str) -> Principal {
        Principal {
            tenant: TenantId::parse(tenant).unwrap(),
            id: PrincipalId::parse(id).unwrap(),
            kind: PrincipalKind::Human,
            groups: Arc::new([]),
            ceiling: Trust::Relayed,
            credential: "test".into(),
        }
    }

    fn resources(tenant: &str) -> [Resource; 2] {
        let tenant = TenantId::parse(tenant).unwrap();
        let id = SessionId::mint(Timestamp::from_millis(1), 1);
        [
            Resource::Tenant(tenant.clone()),
            Resource::Session { tenant, id },
        ]
    }

    #[tokio::test]
    async fn the_owner_may_do_everything_in_its_tenant_and_nobody_else_anything() {
        let owner = principal("default", "owner");
        let policy = OwnerAuthorizer::new(owner.tenant.clone(), owner.id.clone());
        for action in Action::ALL {
            for resource in resources("default") {
                let decision = policy.authorize(&owner, action, &resource).await;
                assert!(decision.allowed && decision.policies[..] == [POLICY.to_owned()]);
                for other in [principal("default", "other"), principal("others", "owner")] {
                    assert!(!policy.authorize(&other, action, &resource).await.allowed);
                }
            }
            for elsewhere in resources("others") {
                assert!(!policy.authorize(&owner, action, &elsewhere).await.allowed);
            }
        }
    }
}
