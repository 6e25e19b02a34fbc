//! The agents that the configuration defines.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::{AgentName, WorkspaceName};
use sessionplane_core::domain::lifecycle::AgentFacts;
use sessionplane_core::domain::settings::ModelPolicy;
use sessionplane_core::domain::withholding::Withheld;
use sessionplane_core::ports::engine::Engine;

/// Agents that a refusal names at most.
const NAMED: usize = 10;

/// Agents by name, one of them the default.
#[derive(Clone)]
pub struct AgentCatalog {
    agents: BTreeMap<AgentName, Agent>,
    default: AgentName,
}

#[derive(Clone)]
struct Agent {
    engine: Arc<dyn Engine>,
    facts: Arc<AgentFacts>,
}

impl Agent {
    fn new(engine: Arc<dyn Engine>) -> Self {
        let described = engine.describe();
        let facts = AgentFacts {
            capabilities: described.capabilities.clone(),
            models: described.models.clone(),
            ..AgentFacts::default()
        };
        Self {
            facts: Arc::new(facts),
            engine,
        }
    }
}

impl AgentCatalog {
    /// A catalog of one agent; `default` is it, or one that is added later.
    #[must_use]
    pub fn new(default: AgentName, name: AgentName, engine: Arc<dyn Engine>) -> Self {
        Self {
            agents: BTreeMap::from([(name, Agent::new(engine))]),
            default,
        }
    }

    /// Adds or replaces an agent.
    #[must_use]
    pub fn with(mut self, name: AgentName, engine: Arc<dyn Engine>) -> Self {
        self.agents.insert(name, Agent::new(engine));
        self
    }

    /// Says in which workspaces an agent may work, the first one unless another is named. An agent that
    /// is not in the catalog stays so.
    #[must_use]
    pub fn working_in(mut self, name: &AgentName, workspaces: Vec<WorkspaceName>) -> Self {
        if let Some(agent) = self.agents.get_mut(name) {
            let facts = AgentFacts {
                workspaces,
                ..(*agent.facts).clone()
            };
            agent.facts = Arc::new(facts);
        }
        self
    }

    /// Says what an agent is to do with data: what it goes without after it, and what it is told where it
    /// came without an instruction; none is the server's default. An agent that is not in the catalog stays
    /// so.
    #[must_use]
    pub fn careful_with_data(
        mut self,
        name: &AgentName,
        withholds: Withheld,
        on_file: Option<Arc<str>>,
    ) -> Self {
        if let Some(agent) = self.agents.get_mut(name) {
            let facts = AgentFacts {
                withholds,
                on_file,
                ..(*agent.facts).clone()
            };
            agent.facts = Arc::new(facts);
        }
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
        self.agent(name).map(|agent| &agent.engine)
    }

    /// What an agent can do and use.
    ///
    /// # Errors
    /// When no agent of that name is configured; the message lists those that are.
    pub fn facts(&self, name: &AgentName) -> Result<&Arc<AgentFacts>, CallError> {
        self.agent(name).map(|agent| &agent.facts)
    }

    /// The models that a session's agent may use: none if it is no longer configured.
    #[must_use]
    pub fn models(&self, name: &AgentName) -> ModelPolicy {
        let agent = self.agents.get(name);
        agent.map_or_else(ModelPolicy::default, |agent| agent.facts.models.clone())
    }

    fn agent(&self, name: &AgentName) -> Result<&Agent, CallError> {
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
