//! The words of the schema: types of entities, their ids, and the words that contexts use.

use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::LazyLock;

use cedar_policy::{Entity, EntityId, EntityTypeName, EntityUid};
use sessionplane_core::domain::access::{Action, Principal, PrincipalKind};
use sessionplane_core::domain::ids::TenantId;
use sessionplane_core::domain::provenance::{Channel, Trust};

use super::set::schema;

/// A type of entities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Action,
    AgentDefinition,
    Group,
    Session,
    Tenant,
    Workspace,
    User,
    Service,
    Agent,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Action,
        Self::AgentDefinition,
        Self::Group,
        Self::Session,
        Self::Tenant,
        Self::Workspace,
        Self::User,
        Self::Service,
        Self::Agent,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Action => "Action",
            Self::AgentDefinition => "AgentDefinition",
            Self::Group => "Group",
            Self::Session => "Session",
            Self::Tenant => "Tenant",
            Self::Workspace => "Workspace",
            Self::User => "User",
            Self::Service => "Service",
            Self::Agent => "Agent",
        }
    }

    /// The entity of this type with that id.
    pub(super) fn uid(self, id: impl AsRef<str>) -> EntityUid {
        static NAMES: LazyLock<Vec<EntityTypeName>> = LazyLock::new(|| {
            let name = |kind: Kind| EntityTypeName::from_str(kind.as_str()).ok();
            Kind::ALL.into_iter().filter_map(name).collect()
        });
        // Each is a plain word, so that none is left out.
        let name = NAMES[self as usize].clone();
        EntityUid::from_type_name_and_id(name, EntityId::new(id))
    }

    /// What a kind of principals is called.
    pub(super) fn of(kind: PrincipalKind) -> Self {
        match kind {
            PrincipalKind::Human => Self::User,
            PrincipalKind::Service => Self::Service,
            PrincipalKind::Agent => Self::Agent,
        }
    }
}

/// The entity that a principal is. Names are unique in a tenant only, so that its id has both.
pub(super) fn principal(principal: &Principal) -> EntityUid {
    let (tenant, id) = (&principal.tenant, &principal.id);
    Kind::of(principal.kind).uid(format!("{tenant}/{id}"))
}

/// The tenant that an entity's id begins with.
pub(super) fn tenant_of(id: &str) -> Option<TenantId> {
    let (tenant, _) = id.split_once('/')?;
    TenantId::parse(tenant).ok()
}

/// Each action in the order of [`Action::ALL`], with what it is among: itself, and sets of actions.
pub(super) fn actions() -> &'static [(Action, Vec<EntityUid>)] {
    static ALL: LazyLock<Vec<(Action, Vec<EntityUid>)>> = LazyLock::new(|| {
        let known = schema().and_then(|schema| schema.action_entities().ok());
        let above = |action: Action| {
            let own = Kind::Action.uid(action.as_str());
            let above = known.as_ref().and_then(|known| known.ancestors(&own));
            let above: Vec<EntityUid> = above.into_iter().flatten().cloned().collect();
            (action, [own].into_iter().chain(above).collect())
        };
        Action::ALL.map(above).into()
    });
    &ALL
}

/// An action, as policies know it.
pub(super) fn action(action: Action) -> Option<&'static Entity> {
    static ALL: LazyLock<Vec<Entity>> = LazyLock::new(|| {
        let entity = |(_, above): &(Action, Vec<EntityUid>)| {
            let (own, sets) = above.split_first()?;
            Entity::new(own.clone(), HashMap::new(), sets.iter().cloned().collect()).ok()
        };
        actions().iter().filter_map(entity).collect()
    });
    let at = Action::ALL.iter().position(|one| *one == action)?;
    ALL.get(at)
}

pub(super) fn channel(channel: Channel) -> &'static str {
    match channel {
        Channel::Invoke => "INVOKE",
        Channel::Steer => "STEER",
        Channel::FollowUp => "FOLLOW_UP",
        Channel::Respond => "RESPOND",
        Channel::Control => "CONTROL",
    }
}

pub(super) fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Untrusted => "UNTRUSTED",
        Trust::Relayed => "RELAYED",
        Trust::Typed => "TYPED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_one_of_the_schema() {
        let known = schema().unwrap().action_entities().unwrap();
        for (action, above) in actions() {
            assert!(known.get(&above[0]).is_some(), "{action:?}");
            assert_eq!(super::action(*action).unwrap().uid(), above[0]);
        }
        // And no other, but for the sets.
        assert_eq!(known.iter().count(), Action::ALL.len() + 4);
    }

    #[test]
    fn every_type_of_entities_has_its_name() {
        for kind in Kind::ALL {
            let uid = kind.uid("a \"quoted\" id");
            assert_eq!(uid.type_name().to_string(), kind.as_str());
            assert_eq!(uid.id().unescaped(), "a \"quoted\" id");
        }
    }
}
