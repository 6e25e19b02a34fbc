//! What an operator sets: one file, overridden by flags and environment.
//!
//! Unknown keys are errors. Every value is parsed into the type it is used as; what is wrong is
//! told with the key, the limit and the way out.

mod identity;
mod tls;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use sessionplane_core::domain::ids::AgentName;

pub use self::identity::{IdentityConfig, KindConfig, PrincipalConfig};
pub use self::tls::{ClientAuth, TlsConfig};
use crate::app::config::AppConfig;

/// Where the server listens unless told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:50051";

/// The seconds of a day.
const DAY: u64 = 24 * 60 * 60;

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
    /// Who may call beside the owner.
    pub identity: IdentityConfig,
    /// TLS of the listener; without it the listener takes plaintext on loopback only.
    pub tls: Option<TlsConfig>,
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

/// Bounds and delays. A value outside its range is refused.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Most inputs that wait in one run's queue; 1 to 1024, default 256. All of them are in the
    /// session's state, which must fit one message.
    pub max_pending_inputs: Option<u64>,
    /// Seconds a CANCEL run waits for a rejoin after its caller vanished; up to a day, default 10.
    pub cancel_grace_seconds: Option<u64>,
    /// Seconds it waits when the server ended the stream; up to a day, default 60.
    pub rejoin_grace_seconds: Option<u64>,
    /// Seconds an engine has to stop after an abort before it is killed; 1 to 3600, default 5.
    pub abort_grace_seconds: Option<u64>,
    /// Events that a session's ring retains; 16 to 1048576, default 16384.
    pub ring_events: Option<u64>,
    /// Seconds between heartbeats on a quiet event stream; 1 to 20, default 15. Clients take a
    /// stream for dead that is silent for longer.
    pub heartbeat_seconds: Option<u64>,
    /// Hours that a request id stays bound, at least; 24 to 87600, default 24.
    pub binding_retention_hours: Option<u64>,
    /// Seconds a session's task stays after its last activity; 1 to a day, default 60.
    pub idle_seconds: Option<u64>,
    /// Takes values above their ranges, for measurements: memory is then not bounded any more.
    pub beyond_ranges: bool,
}

/// The embedded store.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// Page cache in MiB; 16 to 65536.
    pub cache_mib: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { cache_mib: 256 }
    }
}

impl StoreConfig {
    /// The page cache in bytes.
    ///
    /// # Errors
    /// When it is out of its range.
    pub fn cache_bytes(&self) -> Result<u64, ConfigError> {
        let range = 16..=64 * 1024;
        let mib = in_range("store.cache_mib", self.cache_mib, range, false)?;
        Ok(mib * 1024 * 1024)
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
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn app_config(&self) -> Result<AppConfig, ConfigError> {
        let mut config = AppConfig::default();
        let limits = &self.limits;
        let checked = |key: &str, value: Option<u64>, range: RangeInclusive<u64>| {
            let key = format!("limits.{key}");
            let checked = |value| in_range(&key, value, range, limits.beyond_ranges);
            value.map(checked).transpose()
        };
        let count = |key: &str, value, range, target: &mut usize| {
            if let Some(value) = checked(key, value, range)? {
                *target = usize::try_from(value).unwrap_or(usize::MAX);
            }
            Ok::<(), ConfigError>(())
        };
        let seconds = |key: &str, value, range, target: &mut Duration| {
            if let Some(value) = checked(key, value, range)? {
                *target = Duration::from_secs(value);
            }
            Ok::<(), ConfigError>(())
        };
        let (pending, ring) = (limits.max_pending_inputs, limits.ring_events);
        let target = &mut config.limits.max_pending_inputs;
        count("max_pending_inputs", pending, 1..=1024, target)?;
        count(
            "ring_events",
            ring,
            16..=1024 * 1024,
            &mut config.ring_events,
        )?;
        let target = &mut config.limits.cancel_grace;
        seconds(
            "cancel_grace_seconds",
            limits.cancel_grace_seconds,
            0..=DAY,
            target,
        )?;
        let target = &mut config.limits.rejoin_grace;
        seconds(
            "rejoin_grace_seconds",
            limits.rejoin_grace_seconds,
            0..=DAY,
            target,
        )?;
        let target = &mut config.limits.abort_grace;
        seconds(
            "abort_grace_seconds",
            limits.abort_grace_seconds,
            1..=3600,
            target,
        )?;
        let target = &mut config.heartbeat;
        seconds(
            "heartbeat_seconds",
            limits.heartbeat_seconds,
            1..=20,
            target,
        )?;
        seconds(
            "idle_seconds",
            limits.idle_seconds,
            1..=DAY,
            &mut config.idle_ttl,
        )?;
        let hours = (limits.binding_retention_hours, 24..=87_600);
        if let Some(hours) = checked("binding_retention_hours", hours.0, hours.1)? {
            config.binding_retention = Duration::from_secs(hours.saturating_mul(3600));
        }
        Ok(config)
    }
}

/// A value that is within its range, or above it where that is asked for.
fn in_range(
    key: &str,
    found: u64,
    range: RangeInclusive<u64>,
    beyond: bool,
) -> Result<u64, ConfigError> {
    if range.contains(&found) || (beyond && found > *range.end()) {
        return Ok(found);
    }
    let (least, most) = range.into_inner();
    Err(value(key, format!("is {found}; use {least} to {most}")))
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
mod tests;
