//! A table of expectations: who may do what to which session, and who may not. It holds a set of policies
//! to what is meant by it.
//!
//! What must never enter: a session or a principal of a server that runs.

use serde::Deserialize;
use sessionplane_core::domain::access::{
    Action, PolicyContext, Principal, PrincipalKind, Resource, SessionFacts,
};
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels};
use sessionplane_core::domain::ids::{
    AgentName, IdError, PrincipalId, SessionId, SessionName, TenantId, WorkspaceName,
};
use sessionplane_core::domain::place::{Directory, Place};
use sessionplane_core::domain::provenance::{Channel, Trust};

use super::authorizer::CedarAuthorizer;

/// The table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    expect: Vec<Expectation>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    /// `TENANT/NAME`.
    principal: String,
    /// `human`, `service` or `agent`.
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    trust: Trusted,
    /// An action's name.
    action: String,
    /// The session; without one it is about the tenant.
    session: Option<Session>,
    #[serde(default)]
    context: Context,
    /// Whether it may.
    allow: bool,
    /// One of the policies that decide it.
    by: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Human,
    Service,
    Agent,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Trusted {
    Untrusted,
    #[default]
    Relayed,
    Typed,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Session {
    name: Option<String>,
    #[serde(default = "some_agent")]
    agent: String,
    #[serde(default)]
    labels: Vec<String>,
    workspace: Option<String>,
    directory: Option<String>,
    #[serde(default)]
    paused: bool,
}

fn some_agent() -> String {
    "agent".to_owned()
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    size: Option<u64>,
    model: Option<String>,
    level: Option<String>,
    agent: Option<String>,
    name: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    workspace: Option<String>,
    directory: Option<String>,
    #[serde(default)]
    shared: bool,
}

/// What a table says and what the policies say.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How many are as expected.
    pub right: usize,
    /// The others, each with its number in the table.
    pub wrong: Vec<String>,
}

/// Holds policies to a table.
///
/// # Errors
/// When the table cannot be read, in words.
pub fn hold(authorizer: &CedarAuthorizer, table: &str) -> Result<Outcome, String> {
    let table: Table = toml::from_str(table).map_err(|error| error.to_string())?;
    let mut outcome = Outcome {
        right: 0,
        wrong: Vec::new(),
    };
    for (at, expected) in table.expect.iter().enumerate() {
        let number = at + 1;
        let told = expected.told(authorizer);
        match told.map_err(|problem| format!("expectation {number}: {problem}"))? {
            None => outcome.right += 1,
            Some(wrong) => outcome.wrong.push(format!("expectation {number}: {wrong}")),
        }
    }
    Ok(outcome)
}

impl Expectation {
    /// How the policies say otherwise, if they do.
    fn told(&self, authorizer: &CedarAuthorizer) -> Result<Option<String>, String> {
        let who = self.who()?;
        let action = Action::named(&self.action);
        let action = action.ok_or_else(|| format!("{:?} is no action", self.action))?;
        let session = self.session.as_ref().map(Session::known).transpose()?;
        let resource = match &session {
            None => Resource::Tenant(&who.tenant),
            Some(known) => Resource::Session(known.facts(&who.tenant)),
        };
        let asked = self.context.known()?;
        let decision = authorizer.decide_anew((&who, action), &resource, &asked.context(action));
        let by = decision.policies.join(", ");
        let by = if by.is_empty() { "no policy" } else { &by };
        let what = format!("{} {}", self.principal, self.action);
        if decision.allowed != self.allow {
            let is = if decision.allowed {
                "allowed"
            } else {
                "refused"
            };
            return Ok(Some(format!("{what} is {is}, by {by}")));
        }
        let named = self.by.as_ref();
        let missing = named.filter(|by| !decision.policies.contains(by));
        Ok(missing.map(|wanted| format!("{what} is decided by {by}, not by {wanted}")))
    }

    fn who(&self) -> Result<Principal, String> {
        let parts = self.principal.split_once('/');
        let (tenant, id) =
            parts.ok_or_else(|| format!("{:?} is no TENANT/NAME", self.principal))?;
        Ok(Principal {
            tenant: TenantId::parse(tenant).map_err(told)?,
            id: PrincipalId::parse(id).map_err(told)?,
            kind: match self.kind {
                Kind::Human => PrincipalKind::Human,
                Kind::Service => PrincipalKind::Service,
                Kind::Agent => PrincipalKind::Agent,
            },
            groups: self.groups.clone().into(),
            ceiling: match self.trust {
                Trusted::Untrusted => Trust::Untrusted,
                Trusted::Relayed => Trust::Relayed,
                Trusted::Typed => Trust::Typed,
            },
            credential: "expected".into(),
        })
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "it is an argument of map_err"
)]
fn told(error: IdError) -> String {
    error.to_string()
}

/// A session's parts.
struct Known {
    name: Option<SessionName>,
    agent: AgentName,
    labels: Labels,
    place: Option<Place>,
    paused: bool,
}

impl Known {
    fn facts<'a>(&'a self, tenant: &'a TenantId) -> SessionFacts<'a> {
        SessionFacts {
            tenant,
            id: SessionId::from_bytes([0; 16]),
            name: self.name.as_ref(),
            external_key: None,
            agent: &self.agent,
            labels: &self.labels,
            place: self.place.as_ref(),
            paused: self.paused,
            parent: None,
        }
    }
}

impl Session {
    fn known(&self) -> Result<Known, String> {
        Ok(Known {
            name: name(self.name.as_deref())?,
            agent: AgentName::parse(&self.agent).map_err(told)?,
            labels: labels(&self.labels)?,
            place: place(self.workspace.as_deref(), self.directory.as_deref())?,
            paused: self.paused,
        })
    }
}

/// A context's parts.
struct Asked<'c> {
    of: &'c Context,
    agent: Option<AgentName>,
    name: Option<SessionName>,
    labels: Labels,
    place: Option<Place>,
}

impl Context {
    fn known(&self) -> Result<Asked<'_>, String> {
        let agent = self.agent.as_deref().map(AgentName::parse);
        Ok(Asked {
            of: self,
            agent: agent.transpose().map_err(told)?,
            name: name(self.name.as_deref())?,
            labels: labels(&self.labels)?,
            place: place(self.workspace.as_deref(), self.directory.as_deref())?,
        })
    }
}

impl Asked<'_> {
    fn context(&self, action: Action) -> PolicyContext<'_> {
        let channel = match action {
            Action::Invoke => Channel::Invoke,
            Action::Steer => Channel::Steer,
            Action::FollowUp => Channel::FollowUp,
            Action::Respond => Channel::Respond,
            _ => Channel::Control,
        };
        PolicyContext {
            channel: Some(channel),
            trust: Some(Trust::Relayed),
            size: self.of.size,
            model: self.of.model.as_deref(),
            level: self.of.level.as_deref(),
            agent: self.agent.as_ref(),
            name: self.name.as_ref(),
            labels: Some(&self.labels),
            place: self.place.as_ref(),
            shared: Some(self.of.shared),
        }
    }
}

fn name(text: Option<&str>) -> Result<Option<SessionName>, String> {
    text.map(SessionName::parse).transpose().map_err(told)
}

fn labels(texts: &[String]) -> Result<Labels, String> {
    let mut labels = Vec::new();
    for text in texts {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("the label {text:?} is no KEY=VALUE"))?;
        let key = LabelKey::parse(key).map_err(told)?;
        labels.push((key, LabelValue::parse(value).map_err(told)?));
    }
    Labels::of(labels).map_err(|error| error.to_string())
}

fn place(workspace: Option<&str>, directory: Option<&str>) -> Result<Option<Place>, String> {
    let Some(workspace) = workspace else {
        return Ok(None);
    };
    Ok(Some(Place {
        workspace: WorkspaceName::parse(workspace).map_err(told)?,
        directory: Directory::parse(directory.unwrap_or(".")).map_err(told)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::PolicySource;
    use super::*;

    fn held(table: &str) -> Result<Outcome, String> {
        let owner = (
            TenantId::parse("default").unwrap(),
            PrincipalId::parse("owner").unwrap(),
        );
        let opened = CedarAuthorizer::open(owner, &[PolicySource::default_set()]);
        hold(&opened.unwrap(), table)
    }

    #[test]
    fn c55_policies_are_held_to_a_table_and_what_differs_is_told_with_its_number() {
        let outcome = held(
            r#"
            [[expect]]
            principal = "team/builds"
            kind = "service"
            groups = ["ci"]
            action = "SendMessage"
            session = { labels = ["accepts=ci"] }
            allow = true
            by = "group:ci"

            [[expect]]
            principal = "team/builds"
            groups = ["ci"]
            action = "Invoke"
            session = { labels = ["accepts=ci"] }
            allow = true

            [[expect]]
            principal = "team/ada"
            groups = ["operator"]
            action = "Create"
            context = { agent = "coder", labels = ["a=b"] }
            allow = true
            by = "group:admin"
            "#,
        )
        .unwrap();
        assert_eq!(outcome.right, 1);
        assert_eq!(
            outcome.wrong,
            [
                "expectation 2: team/builds Invoke is refused, by no policy",
                "expectation 3: team/ada Create is decided by group:operator, not by group:admin",
            ]
        );
    }

    #[test]
    fn a_table_that_makes_no_sense_is_refused_with_its_number() {
        for (table, says) in [
            (
                "[[expect]]\nprincipal = \"ada\"\naction = \"Invoke\"\nallow = true",
                "expectation 1: \"ada\" is no TENANT/NAME",
            ),
            (
                "[[expect]]\nprincipal = \"t/ada\"\naction = \"Invok\"\nallow = true",
                "\"Invok\" is no action",
            ),
            (
                "[[expect]]\nprincipal = \"t/ada\"\nactoin = \"Invoke\"\nallow = true",
                "actoin",
            ),
            (
                "[[expect]]\nprincipal = \"t/ada\"\naction = \"Observe\"\nsession = { labels = [\"x\"] }\nallow = true",
                "KEY=VALUE",
            ),
        ] {
            let error = held(table).unwrap_err();
            assert!(error.contains(says), "{table}\n{error}");
        }
    }
}
