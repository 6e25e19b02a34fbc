//! Which agents may work in a workspace beside those that have it for their own.

use sessionplane_core::domain::ids::{AgentName, WorkspaceName};

use super::setting::{Kind, Setting, Value, of};
use super::{ConfigError, Settings, Workspace, agent_name, value, workspace_name};

/// The agents whose sessions may be created in a workspace or moved there.
pub(super) const AGENTS: Setting = Setting {
    key: "workspaces.*.agents",
    kind: Kind::List("the name of an agent"),
    flag: None,
    variable: None,
    about: "Agents whose sessions may work in it, too: be created in it, or moved there. Those whose \
            own workspace it is need not be named.",
    needed: false,
    set: |settings, name, value| {
        if let Value::List(agents) = value {
            of(&mut settings.workspaces, name).agents = agents;
        }
    },
    get: |settings, name| {
        let found = settings.workspaces.get(name)?;
        Some(Value::List(found.agents.clone()))
    },
};

/// The workspace of the built-in agents, where it has no other name.
const BUILT_IN: &str = "demo";

impl Workspace {
    /// Whether it is said where it is.
    pub(super) fn has_root(&self) -> bool {
        !self.root.as_os_str().is_empty()
    }
}

impl Settings {
    /// The workspaces that an agent may work in beside its own, in order of their names.
    pub(super) fn further(
        &self,
        agent: &str,
        own: Option<&WorkspaceName>,
    ) -> Result<Vec<WorkspaceName>, ConfigError> {
        let open = self
            .workspaces
            .iter()
            .filter(|(_, space)| space.agents.iter().any(|it| it == agent));
        let names = open.map(|(name, _)| workspace_name(&format!("workspaces.{name}.root"), name));
        let names = names.filter(|name| !name.as_ref().is_ok_and(|name| Some(name) == own));
        names.collect()
    }

    /// What is wrong with the agents that workspaces name.
    pub(super) fn wrong_with_spaces(&self, known: &[AgentName]) -> Vec<ConfigError> {
        let mut wrong = Vec::new();
        for (name, space) in &self.workspaces {
            let root = format!("workspaces.{name}.root");
            wrong.extend(workspace_name(&root, name).err());
            // That of the built-in agents is where the command line or the start says.
            let is_built_in = self.agents.is_empty() && name == BUILT_IN;
            if !space.has_root() && !is_built_in {
                wrong.push(value(&root, "is missing: name the directory"));
            }
            let key = format!("workspaces.{name}.agents");
            for agent in &space.agents {
                match agent_name(&key, agent) {
                    Ok(agent) if known.contains(&agent) => {}
                    Ok(_) => {
                        let known: Vec<&str> = known.iter().map(AgentName::as_str).collect();
                        let known = known.join(", ");
                        let problem = format!("{agent:?} is not an agent; there are: {known}");
                        wrong.push(value(&key, problem));
                    }
                    Err(error) => wrong.push(error),
                }
            }
        }
        wrong
    }
}
