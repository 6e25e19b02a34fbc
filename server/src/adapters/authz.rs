//! Who may do what on a server without configured policies: its owner everything in its tenant, the
//! principals of a tenant what their groups allow in it.
//!
//! What must never enter: how a caller was authenticated.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::access::{Action, Decision, Principal, PrincipalKind, Resource};
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::ports::authorizer::Authorizer;

/// What the owner may do, as audit records name it.
const OWNER: &str = "owner";

/// A group that allows something. Other groups are names for policies to come, and allow nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Everything.
    Admin,
    /// Everything but to administer.
    Operator,
    /// To look on.
    Observer,
}

impl Role {
    /// Every role there is, the mightiest first.
    pub const ALL: [Self; 3] = [Self::Admin, Self::Operator, Self::Observer];

    /// The group that has it.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Observer => "observer",
        }
    }

    /// The group of a principal for which none is configured. A program that is itself driven by a
    /// model looks on until somebody says that it may do more.
    #[must_use]
    pub fn default_of(kind: PrincipalKind) -> Self {
        match kind {
            PrincipalKind::Human | PrincipalKind::Service => Self::Operator,
            PrincipalKind::Agent => Self::Observer,
        }
    }

    /// The table: what the role allows. An action that is added has to be decided here.
    fn allows(self, action: Action) -> bool {
        match action {
            Action::Observe | Action::ReadMetadata => true,
            Action::Create
            | Action::Invoke
            | Action::Steer
            | Action::FollowUp
            | Action::Abort
            | Action::Compact
            | Action::SetModel
            | Action::SetThinking
            | Action::Navigate
            | Action::Respond
            | Action::Update
            | Action::Delete
            | Action::ChangeDirectory
            | Action::Pause => self != Self::Observer,
            Action::ReadAudit => self == Self::Admin,
        }
    }
}

/// Decides by tenant and group.
#[derive(Debug)]
pub struct GroupAuthorizer {
    tenant: TenantId,
    owner: PrincipalId,
    by_owner: Arc<[String]>,
    by_group: [Arc<[String]>; 3],
    by_nobody: Arc<[String]>,
}

impl GroupAuthorizer {
    /// An authorizer for a server of `owner`, whose tenant is `tenant`.
    #[must_use]
    pub fn new(tenant: TenantId, owner: PrincipalId) -> Self {
        Self {
            tenant,
            owner,
            by_owner: [OWNER.to_owned()].into(),
            by_group: Role::ALL.map(|role| [format!("group:{}", role.group())].into()),
            by_nobody: Arc::new([]),
        }
    }

    /// The policies that allow it; none if nothing does.
    fn decide(&self, principal: &Principal, action: Action, tenant: &TenantId) -> &Arc<[String]> {
        if principal.tenant != *tenant {
            return &self.by_nobody;
        }
        if principal.tenant == self.tenant && principal.id == self.owner {
            return &self.by_owner;
        }
        let mut roles = Role::ALL.iter().zip(&self.by_group);
        let allowing = roles.find(|(role, _)| {
            let named = principal.groups.iter().any(|group| group == role.group());
            named && role.allows(action)
        });
        allowing.map_or(&self.by_nobody, |(_, policies)| policies)
    }
}

/// The groups that allow an action, the mightiest first.
fn ways_in(action: Action) -> Arc<[String]> {
    let roles = Role::ALL.iter().filter(|role| role.allows(action));
    roles
        .map(|role| format!("the group {}", role.group()))
        .collect()
}

#[async_trait]
impl Authorizer for GroupAuthorizer {
    async fn authorize(
        &self,
        principal: &Principal,
        action: Action,
        resource: &Resource,
    ) -> Decision {
        let (Resource::Tenant(tenant) | Resource::Session { tenant, .. }) = resource;
        let policies = self.decide(principal, action, tenant);
        let allowed = !policies.is_empty();
        Decision {
            allowed,
            policies: policies.clone(),
            ways_in: if allowed || principal.tenant != *tenant {
                Arc::new([])
            } else {
                ways_in(action)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::SessionId;
    use sessionplane_core::domain::provenance::Trust;
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn principal(tenant: &str, id: &str, groups: &[&str]) -> Principal {
        Principal {
            tenant: TenantId::parse(tenant).unwrap(),
            id: PrincipalId::parse(id).unwrap(),
            kind: PrincipalKind::Human,
            groups: groups.iter().map(ToString::to_string).collect(),
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

    fn authorizer() -> GroupAuthorizer {
        let owner = principal("default", "owner", &[]);
        GroupAuthorizer::new(owner.tenant, owner.id)
    }

    /// What a principal may do in a tenant, and what says so.
    async fn allowed(who: &Principal, tenant: &str) -> Vec<(Action, String)> {
        let mut allowed = Vec::new();
        for action in Action::ALL {
            let [whole, session] = resources(tenant);
            let whole = authorizer().authorize(who, action, &whole).await;
            let session = authorizer().authorize(who, action, &session).await;
            assert_eq!(whole, session);
            assert_eq!(whole.allowed, !whole.policies.is_empty());
            allowed.extend(whole.policies.iter().map(|policy| (action, policy.clone())));
        }
        allowed
    }

    #[tokio::test]
    async fn c55_the_owner_may_do_everything_in_its_tenant_and_nothing_elsewhere() {
        let owner = principal("default", "owner", &[]);
        let all = allowed(&owner, "default").await;
        assert_eq!(all, Action::ALL.map(|action| (action, OWNER.to_owned())));
        assert_eq!(allowed(&owner, "others").await, []);
        // Its name means nothing in another tenant.
        for named in [
            principal("others", "owner", &[]),
            principal("default", "Owner", &[]),
        ] {
            assert_eq!(allowed(&named, named.tenant.as_str()).await, []);
        }
    }

    #[tokio::test]
    async fn c55_groups_allow_what_the_table_says_and_only_in_their_tenant() {
        let looking = [Action::Observe, Action::ReadMetadata];
        let operating = Action::ALL.map(|action| (action != Action::ReadAudit).then_some(action));
        let operating: Vec<_> = operating.into_iter().flatten().collect();
        for (groups, policy, actions) in [
            (&["admin"][..], "group:admin", &Action::ALL[..]),
            (&["operator"], "group:operator", &operating),
            (&["observer", "operator"], "group:operator", &operating),
            (&["observer"], "group:observer", &looking),
            (&["ci", "Admin", "operators", ""], "", &[]),
            (&[], "", &[]),
        ] {
            let who = principal("team", "ada", groups);
            let told = actions.iter().map(|action| (*action, policy.to_owned()));
            let told: Vec<_> = told.collect();
            assert_eq!(allowed(&who, "team").await, told, "{groups:?}");
            assert_eq!(allowed(&who, "default").await, [], "{groups:?}");
        }
    }

    #[tokio::test]
    async fn c55_who_is_refused_is_told_the_groups_that_would_do_and_a_stranger_nothing() {
        let [tenant, _] = resources("team");
        for (groups, of, action, told) in [
            (
                &["observer"][..],
                "team",
                Action::Invoke,
                &["admin", "operator"][..],
            ),
            (
                &[],
                "team",
                Action::Observe,
                &["admin", "operator", "observer"],
            ),
            (&["operator"], "team", Action::Invoke, &[]),
            (&["operator"], "others", Action::Invoke, &[]),
        ] {
            let who = principal(of, "ada", groups);
            let decision = authorizer().authorize(&who, action, &tenant).await;
            let told: Vec<_> = told
                .iter()
                .map(|group| format!("the group {group}"))
                .collect();
            assert_eq!(*decision.ways_in, *told, "{groups:?} of {of}");
        }
    }

    #[test]
    fn an_agent_looks_on_unless_somebody_says_that_it_may_do_more() {
        let default = Role::default_of;
        assert_eq!(default(PrincipalKind::Human), Role::Operator);
        assert_eq!(default(PrincipalKind::Service), Role::Operator);
        assert_eq!(default(PrincipalKind::Agent), Role::Observer);
    }
}
