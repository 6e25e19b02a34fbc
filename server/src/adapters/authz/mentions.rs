//! What policies ask of a question. Two that are the same in all of it get the same answer, so that a
//! list of sessions takes a decision for each class of them and not for each of them.
//!
//! What is not understood counts as asking for everything.

use std::collections::BTreeSet;

use cedar_policy::Policy;
use serde_json::Value;
use sessionplane_core::domain::access::{PolicyContext, SessionFacts};
use sessionplane_core::domain::ids::{AgentName, ExternalKey, SessionName};

use super::entities::label_texts;
use super::words::{self, Kind};

/// What is asked of a session or of a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    /// Attributes of the session, by name.
    session: BTreeSet<String>,
    /// Whether it has these labels.
    labels: BTreeSet<String>,
    /// Which session it is, and all of its attributes.
    whole: bool,
    /// Anything of the context.
    context: bool,
    /// Whether another session works in the same directory.
    shared: bool,
}

impl Mentions {
    /// Adds what a policy asks.
    pub(super) fn note(&mut self, policy: &Policy) {
        let Ok(written) = policy.to_json() else {
            (self.whole, self.context, self.shared) = (true, true, true);
            return;
        };
        self.note_scope(&written["resource"]);
        self.walk(&written["conditions"]);
    }

    pub(super) fn asks_of_sharing(&self) -> bool {
        self.shared
    }

    fn note_scope(&mut self, scope: &Value) {
        match scope["op"].as_str() {
            Some("All") => {}
            Some("is") if scope.get("in").is_none() => {}
            Some("is") => self.note_above(&scope["in"]["entity"]),
            Some("in") => self.note_above(&scope["entity"]),
            _ => self.whole = true,
        }
    }

    /// Whether the session is in that entity.
    fn note_above(&mut self, entity: &Value) {
        let kind = entity["type"].as_str();
        let is = |wanted: Kind| kind == Some(wanted.as_str());
        if is(Kind::Workspace) {
            self.session.insert("workspace".to_owned());
        } else if is(Kind::AgentDefinition) {
            self.session.insert("agent".to_owned());
        } else if !is(Kind::Tenant) {
            self.whole = true;
        }
    }

    fn walk(&mut self, expression: &Value) {
        match expression {
            Value::Array(parts) => parts.iter().for_each(|part| self.walk(part)),
            Value::Object(parts) => {
                for (operator, inside) in parts {
                    if !self.is_understood(operator, inside) {
                        self.walk(inside);
                    }
                }
            }
            _ => {}
        }
    }

    /// Notes an expression that asks for a part of the session or the context, if it is one.
    fn is_understood(&mut self, operator: &str, inside: &Value) -> bool {
        match (operator, inside.as_str()) {
            ("Var", Some("resource")) => {
                self.whole = true;
                return true;
            }
            ("Var", Some("context")) => {
                (self.context, self.shared) = (true, true);
                return true;
            }
            _ => {}
        }
        let left = &inside["left"];
        match operator {
            "." | "has" if is_var(left, "resource") => {
                let Some(name) = inside["attr"].as_str() else {
                    return false;
                };
                self.session.insert(name.to_owned());
                true
            }
            "." | "has" if is_var(left, "context") => {
                self.context = true;
                self.shared |= inside["attr"].as_str().is_none_or(|name| name == "shared");
                true
            }
            "contains" | "containsAny" | "containsAll" if is_labels(left) => {
                let Some(labels) = texts(&inside["right"]) else {
                    return false;
                };
                self.labels.extend(labels);
                true
            }
            "in" if is_var(left, "resource")
                && inside["right"]["Value"]["__entity"].is_object() =>
            {
                self.note_above(&inside["right"]["Value"]["__entity"]);
                true
            }
            "is" if is_var(left, "resource") && inside.get("in").is_none() => true,
            _ => false,
        }
    }

    /// Adds what is asked of a session to a key.
    pub(super) fn key_of_session(&self, key: &mut Key, facts: &SessionFacts<'_>) {
        let asked = |name: &str| self.whole || self.session.contains(name);
        if asked("id") {
            key.text(&facts.id.to_string());
        }
        if asked("name") {
            key.optional(facts.name.map(SessionName::as_str));
        }
        if asked("external_key") {
            key.optional(facts.external_key.map(ExternalKey::as_str));
        }
        if asked("agent") {
            key.text(facts.agent.as_str());
        }
        if asked("workspace") {
            key.optional(facts.place.map(|it| it.workspace.as_str()));
        }
        if asked("directory") {
            key.optional(facts.place.map(|it| it.directory.as_str()));
        }
        if asked("paused") {
            key.text(if facts.paused { "1" } else { "0" });
        }
        if asked("parent") {
            key.optional(facts.parent.map(|it| it.to_string()).as_deref());
        }
        if asked("labels") {
            label_texts(Some(facts.labels)).for_each(|label| key.text(&label));
        } else if !self.labels.is_empty() {
            for (at, label) in self.labels.iter().enumerate() {
                if has(facts, label) {
                    key.text(&at.to_string());
                }
            }
        }
        key.text("");
    }

    /// Adds what is asked of a context to a key.
    pub(super) fn key_of_context(&self, key: &mut Key, context: &PolicyContext<'_>) {
        if !self.context {
            return;
        }
        let PolicyContext {
            channel,
            trust,
            size,
            model,
            level,
            agent,
            name,
            labels,
            place,
            shared,
        } = context;
        key.optional(channel.map(words::channel));
        key.optional(trust.map(words::trust));
        key.optional(size.map(|it| it.to_string()).as_deref());
        key.optional(*model);
        key.optional(*level);
        key.optional(agent.map(AgentName::as_str));
        key.optional(name.map(SessionName::as_str));
        key.optional(place.map(|it| it.workspace.as_str()));
        key.optional(place.map(|it| it.directory.as_str()));
        key.optional(shared.map(|it| if it { "1" } else { "0" }));
        label_texts(*labels).for_each(|label| key.text(&label));
        key.text("");
    }
}

/// Whether a session has a label, of which a policy has the text.
fn has(facts: &SessionFacts<'_>, label: &str) -> bool {
    let mut labels = facts.labels.iter();
    labels.any(|(key, value)| {
        let rest = label.strip_prefix(key.as_str());
        rest.and_then(|rest| rest.strip_prefix('=')) == Some(value.as_str())
    })
}

fn is_var(expression: &Value, name: &str) -> bool {
    expression["Var"].as_str() == Some(name)
}

fn is_labels(expression: &Value) -> bool {
    let of = &expression["."];
    is_var(&of["left"], "resource") && of["attr"].as_str() == Some("labels")
}

/// The texts that are written there; nothing if it is anything else.
fn texts(expression: &Value) -> Option<Vec<String>> {
    let text = |one: &Value| one["Value"].as_str().map(str::to_owned);
    match &expression["Set"] {
        Value::Array(all) => all.iter().map(text).collect(),
        _ => text(expression).map(|one| vec![one]),
    }
}

/// What is asked of a question, each part with its length.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Key(Vec<u8>);

impl Key {
    pub(super) fn text(&mut self, text: &str) {
        // No text here is as long as four bytes can tell.
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.0.extend(length.to_be_bytes());
        self.0.extend(text.as_bytes());
    }

    pub(super) fn optional(&mut self, text: Option<&str>) {
        self.0.push(u8::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
