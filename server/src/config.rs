//! What an operator sets, declared once: in a file, the environment and flags.
//!
//! `declared` is the declaration; `load` brings the sources together; `explain`, `schema` and `page`
//! tell what is declared. A setting is never a secret: secrets are in files that a setting names, so
//! that everything here can be shown. What must never enter: what a value brings about.

#[macro_use]
mod declaring;
mod declared;
mod explain;
mod file;
mod fixed;
mod flags;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod identity;
mod issuers;
mod load;
mod page;
mod policy;
mod problem;
mod sandbox;
mod schema;
mod setting;
mod shown;
mod spaces;
mod tls;
mod untrusted;
mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sessionplane_core::domain::ids::{AgentName, WorkspaceName};
use tracing_subscriber::EnvFilter;

pub use self::explain::{explain, explain_one};
pub use self::flags::{given as given_flags, offered_by};
pub use self::identity::{IdentityConfig, PrincipalConfig};
pub use self::issuers::{IssuerConfig, KeyPlace};
pub use self::load::{FlagValue, Sources, load, look};
pub use self::page::page;
pub use self::policy::PolicyConfig;
pub use self::problem::{Problem, Source};
pub use self::schema::schema;
pub(crate) use self::shown::shown;
pub use self::tls::{TlsConfig, TlsSettings};
pub use self::variables::doubtful;
use crate::adapters::authn::without_secrets;
use crate::app::config::AppConfig;
use crate::grpc::listener::Address;
use crate::grpc::server::Config as FaceConfig;
use crate::grpc::web::check_origin;

/// Where the server listens unless told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:50051";

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {error}", shown(&.path.to_string_lossy(), false))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not what it should be.
    #[error("the configuration is wrong:\n{}", lines(.0))]
    Problems(Vec<Problem>),
    /// A value makes no sense.
    #[error("{}: {}", shown(&without_secrets(.key), false), shown(&without_secrets(.problem), true))]
    Value {
        /// The key.
        key: String,
        /// What is wrong, and the way out.
        problem: String,
    },
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

/// Everything that is set, with the defaults where nothing is.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `127.0.0.1:50051` or `unix:/path`.
    pub listen: String,
    /// A second address that answers `grpc.health.v1` in plain text and nothing else, for probes
    /// that speak no TLS.
    pub health_listen: Option<String>,
    /// Where the store, the owner token and nothing else lives.
    pub data_dir: Option<PathBuf>,
    /// The agent that a new session gets unless another is named.
    pub default_agent: Option<String>,
    /// Directory trees that agents may see, by name.
    pub workspaces: BTreeMap<String, Workspace>,
    /// Agents, by name.
    pub agents: BTreeMap<String, Agent>,
    /// Bounds and delays of the application layer.
    pub app: AppConfig,
    /// Bounds and delays of the face.
    pub face: FaceConfig,
    /// How long a stop may take once its runs have had their time.
    pub close_within: Duration,
    /// Values of `limits` above their ranges are taken.
    pub beyond_ranges: bool,
    /// The store's page cache.
    pub cache_bytes: u64,
    /// Reads of the store at a time, each on a thread.
    pub blocking_threads: usize,
    /// One JSON object a line instead of text.
    pub log_json: bool,
    /// A `tracing` filter.
    pub log_filter: String,
    /// Who may call beside the owner.
    pub identity: IdentityConfig,
    /// Who may do what.
    pub policy: PolicyConfig,
    /// Where checkpoints of the audit trail go; without it into the data directory.
    pub checkpoints_file: Option<PathBuf>,
    /// How often they are written.
    pub checkpoint_every: Duration,
    /// TLS of the listener; without it the listener takes plaintext on loopback only.
    pub tls: TlsConfig,
    /// Where the values come from that are not defaults, by key.
    pub(crate) sources: BTreeMap<String, Source>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: DEFAULT_LISTEN.to_owned(),
            health_listen: None,
            checkpoints_file: None,
            checkpoint_every: Duration::from_secs(60),
            data_dir: None,
            default_agent: None,
            workspaces: BTreeMap::new(),
            agents: BTreeMap::new(),
            app: AppConfig::default(),
            face: FaceConfig::default(),
            close_within: Duration::from_secs(5),
            beyond_ranges: false,
            cache_bytes: 256 * 1024 * 1024,
            blocking_threads: 32,
            log_json: false,
            log_filter: "info".to_owned(),
            identity: IdentityConfig::default(),
            policy: PolicyConfig::default(),
            tls: TlsConfig::default(),
            sources: BTreeMap::new(),
        }
    }
}

/// A directory tree that agents may see.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    /// Its root on this host.
    pub root: PathBuf,
    /// Engines may write into it.
    pub writable: bool,
    /// Agents that may work in it beside those that have it for their own.
    pub agents: Vec<String>,
}

/// An agent that is to be served.
#[derive(Debug, Clone)]
pub struct Served {
    /// Its name.
    pub name: AgentName,
    /// What drives it.
    pub kind: EngineKind,
    /// The workspace that it sees, if it sees one.
    pub workspace: Option<(WorkspaceName, Workspace)>,
    /// Others that its sessions may work in.
    pub further: Vec<WorkspaceName>,
}

/// What drives an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// Searches and reads a workspace; no model.
    Demo,
    /// Plays the scenario in its prompt.
    Scripted,
    /// The same in a process of its own, in a workspace.
    ScriptedProcess,
}

/// An agent.
#[derive(Debug, Clone, Default)]
pub struct Agent {
    /// What drives it; one of the words that are declared.
    pub engine: Option<String>,
    /// The workspace it sees, for engines that see one.
    pub workspace: Option<String>,
    /// It is not served where the system does not keep its processes in their workspace.
    pub require_sandbox: bool,
    /// Tools that it goes without after data; `all` stands for every one.
    pub withhold_after_untrusted: Vec<String>,
    /// What it is told to do with data where nobody said.
    pub on_file: Option<String>,
}

impl Agent {
    /// Whether it reads files for its runs.
    pub(crate) fn reads_a_workspace(&self) -> bool {
        self.kind() == Some(EngineKind::Demo)
    }

    fn kind(&self) -> Option<EngineKind> {
        match self.engine.as_deref()? {
            "demo" => Some(EngineKind::Demo),
            "scripted" => Some(EngineKind::Scripted),
            "scripted-process" => Some(EngineKind::ScriptedProcess),
            _ => None,
        }
    }
}

impl Settings {
    /// Where a key's value comes from; nothing if nobody set it.
    #[must_use]
    pub fn source(&self, key: &str) -> Option<&Source> {
        self.sources.get(key)
    }

    /// The agents to serve: those configured, or the two built-in ones over the workspace that the
    /// command line names, else over the first one that is configured, else over `here`. A workspace
    /// without a name of its own has that of its agent.
    ///
    /// # Errors
    /// When a name is malformed, when an agent names a workspace that is not configured, or when
    /// the command line names one although agents are configured.
    pub fn agents(&self, flag: Option<&Path>, here: &Path) -> Result<Vec<Served>, ConfigError> {
        if self.agents.is_empty() {
            return self.built_in(flag, here);
        }
        if flag.is_some() {
            return Err(value(
                "--workspace",
                "is for the built-in agents, and [agents] replaces them; leave it out, or name \
                 the directory in [workspaces]",
            ));
        }
        let agents = self
            .agents
            .iter()
            .map(|(name, agent)| self.agent(name, agent));
        agents.collect()
    }

    /// The workspaces that are configured, with where they are.
    ///
    /// # Errors
    /// When a name is malformed.
    pub fn named_workspaces(&self) -> Result<BTreeMap<WorkspaceName, Workspace>, ConfigError> {
        let rooted = self.workspaces.iter().filter(|(_, space)| space.has_root());
        let named = rooted.map(|(name, space)| {
            let name = workspace_name(&format!("workspaces.{name}.root"), name)?;
            Ok((name, space.clone()))
        });
        named.collect()
    }

    fn built_in(&self, flag: Option<&Path>, here: &Path) -> Result<Vec<Served>, ConfigError> {
        let demo = agent_name("agents", "demo")?;
        let unnamed = |root: &Path| {
            // What is said of it beside its root holds wherever that comes from.
            let said = self.workspaces.get(demo.as_str());
            let space = Workspace {
                root: root.to_owned(),
                ..said.cloned().unwrap_or_default()
            };
            workspace_name("agents.demo", demo.as_str()).map(|name| (name, space))
        };
        let mut rooted = self.workspaces.iter().filter(|(_, space)| space.has_root());
        let workspace = match (flag, rooted.next()) {
            (Some(flag), _) => unnamed(flag)?,
            (None, Some((name, space))) => (workspace_name(name, name)?, space.clone()),
            (None, None) => unnamed(here)?,
        };
        Ok(vec![
            Served {
                name: demo.clone(),
                kind: EngineKind::Demo,
                further: self.further("demo", Some(&workspace.0))?,
                workspace: Some(workspace),
            },
            Served {
                name: agent_name("agents", "scripted")?,
                kind: EngineKind::Scripted,
                workspace: None,
                further: self.further("scripted", None)?,
            },
        ])
    }

    fn agent(&self, name: &str, agent: &Agent) -> Result<Served, ConfigError> {
        let engine = format!("agents.{name}.engine");
        let kind = agent
            .kind()
            .ok_or_else(|| value(engine, "is missing; use demo, scripted or scripted-process"))?;
        let workspace = self.workspace_of(name, agent, kind)?;
        let own = workspace.as_ref().map(|(name, _)| name);
        Ok(Served {
            further: self.further(name, own)?,
            workspace,
            name: agent_name(&format!("agents.{name}"), name)?,
            kind,
        })
    }

    fn workspace_of(
        &self,
        name: &str,
        agent: &Agent,
        kind: EngineKind,
    ) -> Result<Option<(WorkspaceName, Workspace)>, ConfigError> {
        let key = format!("agents.{name}.workspace");
        let Some(workspace) = &agent.workspace else {
            return match kind {
                EngineKind::Scripted => Ok(None),
                EngineKind::Demo | EngineKind::ScriptedProcess => Err(value(
                    key,
                    "is missing: this engine works in a workspace; name one",
                )),
            };
        };
        if let Some(found) = self.workspaces.get(workspace) {
            let name = workspace_name(&key, workspace)?;
            return Ok(Some((name, found.clone())));
        }
        let known: Vec<&str> = self.workspaces.keys().map(String::as_str).collect();
        let known = match &known[..] {
            [] => "there are none".to_owned(),
            known => format!("there are: {}", known.join(", ")),
        };
        let problem = format!("{workspace:?} is not in [workspaces]; {known}");
        Err(value(key, problem))
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

    /// Everything that is wrong with an agent.
    fn wrong_with(&self, name: &str, agent: &Agent) -> Vec<ConfigError> {
        let named = agent_name(&format!("agents.{name}"), name).err();
        // The engine of one that has none, or a wrong one, is told by its value; its workspace is
        // looked at all the same.
        let engine = match agent.kind() {
            Some(_) => None,
            None => self.agent(name, agent).err(),
        };
        let kind = agent.kind().unwrap_or(EngineKind::Scripted);
        let workspace = self.workspace_of(name, agent, kind).err();
        [engine, workspace, named].into_iter().flatten().collect()
    }

    /// What is wrong with values that are right each for itself.
    fn together(&self, problems: &mut Vec<Problem>) {
        let mut tell = |error: ConfigError| {
            let (key, what) = match error {
                ConfigError::Value { key, problem } => (key, problem),
                other => (String::new(), other.to_string()),
            };
            let source = self.sources.get(&key).cloned();
            let source = source.unwrap_or(Source::Together);
            problems.push(Problem::new(source, key, what));
        };
        if let Err(error) = self.listen.parse::<Address>() {
            tell(value("listen", error.to_string()));
        }
        let probes = self.health_listen.as_deref().map(str::parse::<Address>);
        if let Some(Err(error)) = probes {
            tell(value("health_listen", error.to_string()));
        }
        if let Err(error) = EnvFilter::try_new(&self.log_filter) {
            let what = format!("{:?} is no filter: {error}", self.log_filter);
            tell(value("log.filter", what));
        }
        if let Err(error) = self.tls.settings() {
            tell(error);
        }
        let loopback = self.listen.parse::<Address>();
        let loopback = loopback.is_ok_and(|address| address.lacks(false, false).is_none());
        let identity = &self.identity;
        let wrong = [
            identity.registered().1,
            identity.certified().1,
            identity.issuers().1,
            identity.claimed().1,
        ];
        let forwarded = identity.forwarding(loopback).1;
        for error in wrong.into_iter().flatten().chain(forwarded) {
            tell(error);
        }
        for origin in &self.face.web_origins {
            if let Err(what) = check_origin(origin) {
                tell(value("edge.web_origins", what));
            }
        }
        let mut names = Vec::new();
        for (name, agent) in &self.agents {
            // One that is wrong in itself is an agent all the same.
            names.extend(AgentName::parse(name));
            for error in self.wrong_with(name, agent) {
                tell(error);
            }
        }
        if self.agents.is_empty() {
            names.extend(
                ["demo", "scripted"]
                    .map(AgentName::parse)
                    .into_iter()
                    .flatten(),
            );
        }
        let spaces = self.wrong_with_spaces(&names);
        for error in spaces.into_iter().chain(self.wrong_with_data()) {
            tell(error);
        }
        if let Err(error) = self.default_agent(&names) {
            tell(error);
        }
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

fn workspace_name(key: &str, name: &str) -> Result<WorkspaceName, ConfigError> {
    WorkspaceName::parse(name).map_err(|error| value(key, format!("{name:?}: {error}")))
}

fn value(key: impl Into<String>, problem: impl Into<String>) -> ConfigError {
    ConfigError::Value {
        key: key.into(),
        problem: problem.into(),
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod mentions;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
