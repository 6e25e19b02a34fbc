//! The policies that can matter to a question, chosen when they are loaded: those of its action, without
//! those that are about another tenant. What a decision costs grows with their number.

use std::collections::{BTreeSet, HashMap};

use cedar_policy::{
    ActionConstraint, Effect, EntityUid, Policy, PolicySet, PrincipalConstraint, ResourceConstraint,
};
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::ids::TenantId;

use super::mentions::Mentions;
use super::role::Role;
use super::words::{self, Kind, tenant_of};

/// The policies of an action in a tenant.
#[derive(Debug, Default)]
pub(super) struct Slice {
    pub(super) set: PolicySet,
    pub(super) mentions: Mentions,
    /// The policies that forbid, by name.
    pub(super) forbidding: BTreeSet<String>,
    /// The groups that are allowed the action as such, the mightiest first.
    pub(super) groups: Vec<String>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Slices {
    /// Of the tenants that policies name.
    named: HashMap<TenantId, Vec<Slice>>,
    /// Of every other tenant.
    others: Vec<Slice>,
}

impl Slices {
    pub(super) fn of(policies: &[Policy]) -> Self {
        let actions = words::actions();
        let scoped: Vec<_> = policies.iter().map(|it| (it, Tenants::of(it))).collect();
        let of_tenant = |tenant: Option<&TenantId>| {
            let mine: Vec<&Policy> = scoped
                .iter()
                .filter(|(_, tenants)| tenants.matter_to(tenant))
                .map(|(policy, _)| *policy)
                .collect();
            let slices = actions.iter();
            slices.map(|(_, above)| Slice::of(&mine, above)).collect()
        };
        let tenants: BTreeSet<&TenantId> = scoped
            .iter()
            .flat_map(|(_, tenants)| tenants.0.iter().flatten())
            .collect();
        Self {
            named: tenants
                .into_iter()
                .map(|tenant| (tenant.clone(), of_tenant(Some(tenant))))
                .collect(),
            others: of_tenant(None),
        }
    }

    /// The slice of an action in a tenant.
    pub(super) fn get(&self, tenant: &TenantId, action: Action) -> Option<&Slice> {
        let slices = self.named.get(tenant).unwrap_or(&self.others);
        let at = Action::ALL.iter().position(|one| *one == action)?;
        slices.get(at)
    }

    /// Whether any policy about an action asks if sessions share a directory.
    pub(super) fn ask_of_sharing(&self, action: Action) -> bool {
        let at = Action::ALL.iter().position(|one| *one == action);
        let all = self.named.values().chain([&self.others]);
        let mut asking = all.filter_map(|slices| slices.get(at?));
        asking.any(|slice| slice.mentions.asks_of_sharing())
    }
}

/// The tenants that a policy is about, as its scope says: of the principal and of the resource. None
/// where the scope says nothing, and a policy of two different ones is about no tenant.
struct Tenants([Option<TenantId>; 2]);

impl Tenants {
    fn of(policy: &Policy) -> Self {
        let tenant = |uid: EntityUid| {
            let is = uid.type_name().to_string() == Kind::Tenant.as_str();
            let id = is.then(|| TenantId::parse(uid.id().unescaped()));
            id.and_then(Result::ok)
        };
        let principal = match policy.principal_constraint() {
            PrincipalConstraint::Eq(uid) => tenant_of(uid.id().unescaped()),
            PrincipalConstraint::In(uid) | PrincipalConstraint::IsIn(_, uid) => tenant(uid),
            PrincipalConstraint::Any | PrincipalConstraint::Is(_) => None,
        };
        let resource = match policy.resource_constraint() {
            ResourceConstraint::Eq(uid)
            | ResourceConstraint::In(uid)
            | ResourceConstraint::IsIn(_, uid) => tenant(uid),
            ResourceConstraint::Any | ResourceConstraint::Is(_) => None,
        };
        Self([principal, resource])
    }

    /// Whether the policy can decide anything in a tenant; none stands for one that no policy names.
    fn matter_to(&self, tenant: Option<&TenantId>) -> bool {
        let mut said = self.0.iter().flatten();
        said.all(|one| Some(one) == tenant)
    }
}

impl Slice {
    /// Of these policies those that are about an action, which is among `above`.
    fn of(policies: &[&Policy], above: &[EntityUid]) -> Self {
        let mut slice = Self::default();
        let mut groups = BTreeSet::new();
        for policy in policies.iter().filter(|it| is_about(it, above)) {
            // Names are unique, which is all that could keep it out.
            if slice.set.add((*policy).clone()).is_err() {
                continue;
            }
            slice.mentions.note(policy);
            match policy.effect() {
                Effect::Forbid => drop(slice.forbidding.insert(policy.id().to_string())),
                Effect::Permit => groups.extend(whole_group(policy)),
            }
        }
        let rank = |group: &String| {
            let role = Role::ALL.iter().position(|role| role.group() == group);
            role.unwrap_or(Role::ALL.len())
        };
        slice.groups = groups.into_iter().collect();
        slice.groups.sort_by_key(rank);
        slice
    }
}

fn is_about(policy: &Policy, above: &[EntityUid]) -> bool {
    match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(uid) => above.contains(&uid),
        ActionConstraint::In(uids) => uids.iter().any(|uid| above.contains(uid)),
    }
}

/// The group that a policy allows its actions, if it is one that configuration can name and nothing else
/// is asked.
fn whole_group(policy: &Policy) -> Option<String> {
    let PrincipalConstraint::In(uid) = policy.principal_constraint() else {
        return None;
    };
    let is_group = uid.type_name().to_string() == Kind::Group.as_str();
    let everywhere = matches!(policy.resource_constraint(), ResourceConstraint::Any);
    let written = policy.to_json().ok()?;
    let unconditional = written["conditions"].as_array().is_none_or(Vec::is_empty);
    let group = uid.id().unescaped();
    let plain = !group.starts_with('(');
    (is_group && everywhere && unconditional && plain).then(|| group.to_owned())
}
