//! What an operator sets: one file, overridden by flags and environment.
//!
//! Unknown keys are errors. Every value is parsed into the type it is used as; what is wrong is
//! told with the key, the limit and the way out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use sessionplane_core::domain::ids::AgentName;

use crate::app::config::AppConfig;

/// Where the server listens unless told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:50051";

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("the configuration {path} is wrong: {error}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// A value makes no sense.
    #[error("{key}: {problem}")]
    Value {
        /// The key.
        key: String,
        /// What is wrong, and the way out.
        problem: String,
    },
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigFile {
    /// `127.0.0.1:50051` or `unix:/path`.
    pub listen: Option<String>,
    /// Where the store, the owner token and nothing else lives.
    pub data_dir: Option<PathBuf>,
    /// The agent that a new session gets unless another is named.
    pub default_agent: Option<String>,
    /// Directory trees that agents may see, by name.
    pub workspaces: BTreeMap<String, WorkspaceConfig>,
    /// Agents, by name.
    pub agents: BTreeMap<String, AgentConfig>,
    /// Bounds and delays.
    pub limits: LimitsConfig,
    /// The embedded store.
    pub store: StoreConfig,
    /// Logging.
    pub log: LogConfig,
}

/// A directory tree that agents may see.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// Its root on this host.
    pub root: PathBuf,
}

/// What drives an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// Searches and reads a workspace; no model.
    Demo,
    /// Plays the scenario in its prompt.
    Scripted,
}

/// An agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// What drives it.
    pub engine: EngineKind,
    /// The workspace it sees, for engines that see one.
    pub workspace: Option<String>,
}

/// Bounds and delays.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Most inputs that wait in one run's queue; default 256.
    pub max_pending_inputs: Option<usize>,
    /// Seconds a CANCEL run waits for a rejoin after its caller vanished; default 10.
    pub cancel_grace_seconds: Option<u64>,
    /// Seconds it waits when the server ended the stream; default 60.
    pub rejoin_grace_seconds: Option<u64>,
    /// Seconds an engine has to stop after an abort before it is killed; default 5.
    pub abort_grace_seconds: Option<u64>,
    /// Events that a session's ring retains; default 16384.
    pub ring_events: Option<usize>,
    /// Seconds between heartbeats on a quiet event stream; default 15.
    pub heartbeat_seconds: Option<u64>,
    /// Hours that a request id stays bound, at least; default 24.
    pub binding_retention_hours: Option<u64>,
    /// Seconds a session's task stays after its last activity; default 60.
    pub idle_seconds: Option<u64>,
}

/// The embedded store.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// Page cache in MiB.
    pub cache_mib: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { cache_mib: 256 }
    }
}

/// Logging.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// One JSON object a line instead of text.
    pub json: bool,
    /// A `tracing` filter; default `info`.
    pub filter: Option<String>,
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or has unknown keys or values of the wrong kind.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Read {
            path: path.into(),
            error,
        })?;
        toml::from_str(&text).map_err(|error| ConfigError::Parse {
            path: path.into(),
            error: Box::new(error),
        })
    }

    /// The agents to serve: those configured, or the two built-in ones over the workspace that the
    /// command line names, else over the first one that is configured, else over `here`.
    ///
    /// # Errors
    /// When a name is malformed, when an agent names a workspace that is not configured, or when
    /// the command line names one although agents are configured.
    pub fn agents(
        &self,
        flag: Option<&Path>,
        here: &Path,
    ) -> Result<Vec<(AgentName, EngineKind, Option<PathBuf>)>, ConfigError> {
        if self.agents.is_empty() {
            let configured = self.workspaces.values().next();
            let configured = configured.map(|space| space.root.as_path());
            let root = flag.or(configured).unwrap_or(here).to_owned();
            return Ok(vec![
                (agent_name("agents", "demo")?, EngineKind::Demo, Some(root)),
                (
                    agent_name("agents", "scripted")?,
                    EngineKind::Scripted,
                    None,
                ),
            ]);
        }
        if flag.is_some() {
            return Err(value(
                "--workspace",
                "is for the built-in agents, and [agents] replaces them; leave it out, or name \
                 the directory in [workspaces]",
            ));
        }
        let agents = self.agents.iter().map(|(name, agent)| {
            let root = self.workspace_of(name, agent)?;
            Ok((agent_name("agents", name)?, agent.engine, root))
        });
        agents.collect()
    }

    fn workspace_of(
        &self,
        name: &str,
        agent: &AgentConfig,
    ) -> Result<Option<PathBuf>, ConfigError> {
        let key = format!("agents.{name}.workspace");
        match (&agent.workspace, agent.engine) {
            (None, EngineKind::Demo) => Err(value(
                key,
                "is missing: this engine reads a workspace; name one",
            )),
            (None, EngineKind::Scripted) => Ok(None),
            (Some(workspace), _) => {
                if let Some(found) = self.workspaces.get(workspace) {
                    Ok(Some(found.root.clone()))
                } else {
                    let known: Vec<&str> = self.workspaces.keys().map(String::as_str).collect();
                    Err(value(
                        key,
                        format!(
                            "{workspace:?} is not in [workspaces]; there are: {}",
                            known.join(", ")
                        ),
                    ))
                }
            }
        }
    }

    /// The name of the default agent among those to be served.
    ///
    /// # Errors
    /// When it is not one of them.
    pub fn default_agent(&self, agents: &[AgentName]) -> Result<AgentName, ConfigError> {
        let Some(first) = agents.first() else {
            return Err(value("agents", "there are none"));
        };
        let Some(name) = &self.default_agent else {
            return Ok(first.clone());
        };
        let name = agent_name("default_agent", name)?;
        if agents.contains(&name) {
            return Ok(name);
        }
        let known: Vec<&str> = agents.iter().map(AgentName::as_str).collect();
        Err(value(
            "default_agent",
            format!(
                "\"{name}\" is not an agent; there are: {}",
                known.join(", ")
            ),
        ))
    }

    /// Bounds and delays for the application layer.
    #[must_use]
    pub fn app_config(&self) -> AppConfig {
        let mut config = AppConfig::default();
        let limits = &self.limits;
        let seconds = |value: Option<u64>, target: &mut Duration| {
            if let Some(value) = value {
                *target = Duration::from_secs(value);
            }
        };
        if let Some(value) = limits.max_pending_inputs {
            config.limits.max_pending_inputs = value;
        }
        if let Some(value) = limits.ring_events {
            config.ring_events = value;
        }
        seconds(limits.cancel_grace_seconds, &mut config.limits.cancel_grace);
        seconds(limits.rejoin_grace_seconds, &mut config.limits.rejoin_grace);
        seconds(limits.abort_grace_seconds, &mut config.limits.abort_grace);
        seconds(
            limits.heartbeat_seconds.map(|value| value.max(1)),
            &mut config.heartbeat,
        );
        seconds(limits.idle_seconds, &mut config.idle_ttl);
        let retention = limits
            .binding_retention_hours
            .map(|hours| hours.max(24).saturating_mul(3600));
        seconds(retention, &mut config.binding_retention);
        config
    }
}

/// Where the data lives unless told otherwise: `$XDG_STATE_HOME/sessionplane`, else
/// `~/.local/state/sessionplane`. `sessionctl` looks for the owner token there too.
///
/// # Errors
/// When neither variable is set.
pub fn default_data_dir() -> Result<PathBuf, ConfigError> {
    let state = std::env::var_os("XDG_STATE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let home = std::env::var_os("HOME").filter(|value| !value.is_empty());
    state
        .or_else(|| home.map(|home| PathBuf::from(home).join(".local/state")))
        .map(|state| state.join("sessionplane"))
        .ok_or_else(|| {
            value(
                "data_dir",
                "is not set, and neither is HOME; give --data-dir",
            )
        })
}

fn agent_name(key: &str, name: &str) -> Result<AgentName, ConfigError> {
    AgentName::parse(name).map_err(|error| value(key, format!("{name:?}: {error}")))
}

fn value(key: impl Into<String>, problem: impl Into<String>) -> ConfigError {
    ConfigError::Value {
        key: key.into(),
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let error = toml::from_str::<ConfigFile>("lissten = \"x\"").unwrap_err();
        assert!(error.to_string().contains("lissten"), "{error}");
    }

    #[test]
    fn an_agent_without_its_workspace_is_told_which_there_are() {
        let config: ConfigFile = toml::from_str(
            "[workspaces.main]\nroot = \".\"\n[agents.a]\nengine = \"demo\"\nworkspace = \"mian\"",
        )
        .unwrap();
        let error = config.agents(None, Path::new(".")).unwrap_err().to_string();
        assert!(error.contains("mian") && error.contains("main"), "{error}");
    }

    #[test]
    fn the_workspace_of_the_command_line_goes_first_and_is_never_passed_over() {
        let root = |text: &str, flag: Option<&str>| {
            let config: ConfigFile = toml::from_str(text).unwrap();
            let agents = config.agents(flag.map(Path::new), Path::new("/here"));
            agents.map(|agents| agents[0].2.clone())
        };
        let workspaces = "[workspaces.main]\nroot = \"/file\"";
        let at = |root: &str| Some(PathBuf::from(root));
        assert_eq!(root(workspaces, Some("/flag")).unwrap(), at("/flag"));
        assert_eq!(root(workspaces, None).unwrap(), at("/file"));
        assert_eq!(root("", Some("/flag")).unwrap(), at("/flag"));
        assert_eq!(root("", None).unwrap(), at("/here"));
        let agents = "[agents.a]\nengine = \"scripted\"";
        assert_eq!(root(agents, None).unwrap(), None);
        let error = root(agents, Some("/flag")).unwrap_err().to_string();
        assert!(error.contains("--workspace"), "{error}");
    }

    #[test]
    fn a_fresh_server_has_the_demo_agent_as_its_default() {
        let config = ConfigFile::default();
        let agents: Vec<AgentName> = config
            .agents(None, Path::new("/repo"))
            .unwrap()
            .into_iter()
            .map(|(name, ..)| name)
            .collect();
        assert_eq!(config.default_agent(&agents).unwrap().as_str(), "demo");
    }

    #[test]
    fn retention_is_never_below_a_day() {
        let config: ConfigFile = toml::from_str("[limits]\nbinding_retention_hours = 1").unwrap();
        assert_eq!(
            config.app_config().binding_retention,
            Duration::from_secs(86_400)
        );
    }
}
