//! A question as Cedar takes it: principal, action, resource and context, of what is known of them.

use std::collections::{HashMap, HashSet};

use cedar_policy::{Context, Entities, Entity, EntityUid, Request, RestrictedExpression, Schema};
use sessionplane_core::domain::access::{Action, PolicyContext, Principal, Resource, SessionFacts};
use sessionplane_core::domain::fleet::labels::Labels;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::provenance::{Channel, Trust};

use super::words::{self, Kind};

/// The group that whoever holds the owner token is in. No principal can be configured into it.
const OWNERS: &str = "(owner)";

/// Who owns the server, and in which tenant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    pub(super) tenant: TenantId,
    pub(super) id: PrincipalId,
}

/// A question that cannot be put: a defect of this server.
#[derive(Debug, thiserror::Error)]
#[error("a question could not be put to the policies: {0}")]
pub(super) struct Unaskable(String);

/// A question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) request: Request,
    pub(super) entities: Entities,
}

impl Question {
    /// Puts a question. With a schema it is checked that the question is one of those that policies were
    /// checked against.
    pub(super) fn put(
        owner: &Owner,
        (principal, action): (&Principal, Action),
        resource: &Resource<'_>,
        context: &PolicyContext<'_>,
        schema: Option<&Schema>,
    ) -> Result<Self, Unaskable> {
        let who = who(owner, principal)?;
        let what = what(resource)?;
        let context = Context::from_pairs(pairs(action, context)).map_err(unaskable)?;
        let does = words::action(action);
        let does = does.ok_or_else(|| Unaskable("the action is unknown".to_owned()))?;
        let request = Request::new(who.uid(), does.uid(), what.uid(), context, schema);
        let request = request.map_err(unaskable)?;
        let entities = Entities::from_entities([who, does.clone(), what], None);
        let entities = entities.map_err(unaskable)?;
        Ok(Self { request, entities })
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "it is an argument of map_err"
)]
fn unaskable(error: impl std::error::Error) -> Unaskable {
    Unaskable(error.to_string())
}

fn text(text: impl Into<String>) -> RestrictedExpression {
    RestrictedExpression::new_string(text.into())
}

fn who(owner: &Owner, principal: &Principal) -> Result<Entity, Unaskable> {
    let attributes = HashMap::from([
        ("id".to_owned(), text(principal.id.as_str())),
        ("trust".to_owned(), text(words::trust(principal.ceiling))),
    ]);
    let is_owner = principal.tenant == owner.tenant && principal.id == owner.id;
    // Wherever groups come from, none of them is the owner's.
    let groups = principal.groups.iter().filter(|group| *group != OWNERS);
    let groups = groups.map(|group| Kind::Group.uid(group));
    let own = is_owner.then(|| Kind::Group.uid(OWNERS));
    let parents = groups.chain(own).chain([tenant(&principal.tenant)]);
    let parents: HashSet<EntityUid> = parents.collect();
    Entity::new(words::principal(principal), attributes, parents).map_err(unaskable)
}

fn tenant(tenant: &TenantId) -> EntityUid {
    Kind::Tenant.uid(tenant.as_str())
}

fn what(resource: &Resource<'_>) -> Result<Entity, Unaskable> {
    match resource {
        Resource::Tenant(id) => Ok(Entity::with_uid(tenant(id))),
        Resource::Session(session) => session_entity(session),
    }
}

fn session_entity(session: &SessionFacts<'_>) -> Result<Entity, Unaskable> {
    let mut attributes = HashMap::with_capacity(9);
    let mut set = |name: &str, value| attributes.insert(name.to_owned(), value);
    set("id", text(session.id.to_string()));
    set("agent", text(session.agent.as_str()));
    set("labels", labels(Some(session.labels)));
    set("paused", RestrictedExpression::new_bool(session.paused));
    if let Some(name) = session.name {
        set("name", text(name.as_str()));
    }
    if let Some(key) = session.external_key {
        set("external_key", text(key.as_str()));
    }
    if let Some(place) = session.place {
        set("workspace", text(place.workspace.as_str()));
        set("directory", text(place.directory.as_str()));
    }
    if let Some(parent) = session.parent {
        let parent = Kind::Session.uid(parent.to_string());
        set("parent", RestrictedExpression::new_entity_uid(parent));
    }
    let mut parents = HashSet::from([
        tenant(session.tenant),
        Kind::AgentDefinition.uid(session.agent.as_str()),
    ]);
    parents.extend(
        session
            .place
            .map(|place| Kind::Workspace.uid(place.workspace.as_str())),
    );
    let uid = Kind::Session.uid(session.id.to_string());
    Entity::new(uid, attributes, parents).map_err(unaskable)
}

fn labels(labels: Option<&Labels>) -> RestrictedExpression {
    RestrictedExpression::new_set(label_texts(labels).map(text))
}

/// Labels as policies know them.
pub(super) fn label_texts(labels: Option<&Labels>) -> impl Iterator<Item = String> {
    let labels = labels.into_iter().flat_map(Labels::iter);
    labels.map(|(key, value)| format!("{}={}", key.as_str(), value.as_str()))
}

/// The context that the schema declares for an action. What is needed and not known is as little as it
/// can be: no labels, not shared, and of texts what may do least.
fn pairs(action: Action, context: &PolicyContext<'_>) -> Vec<(String, RestrictedExpression)> {
    let mut pairs = Vec::new();
    let mut set = |name: &str, value| pairs.push((name.to_owned(), value));
    match action {
        Action::Invoke
        | Action::SendMessage
        | Action::Steer
        | Action::FollowUp
        | Action::Respond
        | Action::Compact => {
            let channel = context.channel.unwrap_or(Channel::Control);
            let trust = context.trust.unwrap_or(Trust::Untrusted);
            let size = i64::try_from(context.size.unwrap_or_default()).unwrap_or(i64::MAX);
            set("channel", text(words::channel(channel)));
            set("trust", text(words::trust(trust)));
            set("size", RestrictedExpression::new_long(size));
        }
        Action::SetModel => {
            if let Some(model) = context.model {
                set("model", text(model));
            }
        }
        Action::SetThinking => {
            if let Some(level) = context.level {
                set("level", text(level));
            }
        }
        Action::Create | Action::ChangeDirectory | Action::Update => {
            placing(action, context, &mut set);
        }
        Action::Observe
        | Action::ReadMetadata
        | Action::Abort
        | Action::Navigate
        | Action::Delete
        | Action::Pause
        | Action::ReadArtifact
        | Action::WriteArtifact
        | Action::ReadAudit
        | Action::ManageTokens
        | Action::Administer => {}
    }
    pairs
}

/// What is to become of a session's place and metadata.
fn placing(
    action: Action,
    context: &PolicyContext<'_>,
    set: &mut impl FnMut(&str, RestrictedExpression),
) {
    if action != Action::ChangeDirectory {
        set("labels", labels(context.labels));
        if let Some(name) = context.name {
            set("name", text(name.as_str()));
        }
    }
    if action == Action::Update {
        return;
    }
    let shared = context.shared.unwrap_or_default();
    set("shared", RestrictedExpression::new_bool(shared));
    match (action, context.place) {
        (_, Some(place)) => {
            set("workspace", text(place.workspace.as_str()));
            set("directory", text(place.directory.as_str()));
        }
        (Action::ChangeDirectory, None) => {
            set("workspace", text(""));
            set("directory", text(""));
        }
        (_, None) => {}
    }
    if action == Action::Create {
        set(
            "agent",
            text(context.agent.map_or("", |agent| agent.as_str())),
        );
    }
}
