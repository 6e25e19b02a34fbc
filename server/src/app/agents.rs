//! The agents that the configuration defines.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::AgentName;
use sessionplane_core::ports::engine::Engine;

/// Agents that a refusal names at most.
const NAMED: usize = 10;

/// Agents by name, one of them the default.
#[derive(Clone)]
pub struct AgentCatalog {
    agents: BTreeMap<AgentName, Arc<dyn Engine>>,
    default: AgentName,
}

impl AgentCatalog {
    /// A catalog of one agent; `default` is it, or one that is added later.
    #[must_use]
    pub fn new(default: AgentName, name: AgentName, engine: Arc<dyn Engine>) -> Self {
        Self {
            agents: BTreeMap::from([(name, engine)]),
            default,
        }
    }

    /// Adds or replaces an agent.
    #[must_use]
    pub fn with(mut self, name: AgentName, engine: Arc<dyn Engine>) -> Self {
        self.agents.insert(name, engine);
        self
    }

    /// The agent that a new session gets unless another is named.
    #[must_use]
    pub fn default_agent(&self) -> &AgentName {
        &self.default
    }

    /// Every agent's name.
    pub fn names(&self) -> impl Iterator<Item = &AgentName> {
        self.agents.keys()
    }

    /// The engine that an agent runs.
    ///
    /// # Errors
    /// When no agent of that name is configured; the message lists those that are.
    pub fn engine(&self, name: &AgentName) -> Result<&Arc<dyn Engine>, CallError> {
        self.agents.get(name).ok_or_else(|| {
            let others = self.names().filter(|other| **other != self.default);
            let named: Vec<&str> = std::iter::once(&self.default)
                .chain(others)
                .take(NAMED)
                .map(AgentName::as_str)
                .collect();
            let rest = match self.agents.len().saturating_sub(named.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!(
                "no agent \"{name}\" is configured; configured are: {}{rest}",
                named.join(", ")
            );
            CallError::refused(Reason::NoSuchAgent, message)
        })
    }
}
