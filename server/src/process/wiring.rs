//! Makes the configured agents, and keeps the store tidy while the server runs.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::ids::{AgentName, WorkspaceName};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::ports::engine::{Engine, EngineDescription, EngineError};

use super::backup::Backups;
use super::{Options, ProcessError};
use crate::adapters::artifacts::FolderArtifacts;
use crate::adapters::boundary::{Boundary, Grounds};
use crate::adapters::checkpoints::{CHECKPOINTS_FILE, Checkpoints, Signer};
use crate::adapters::engine::apart::{ApartEngine, Manned, Room, Rooms};
use crate::adapters::engine::demo::DemoEngine;
use crate::adapters::engine::scripted::{SCRIPTED_VERB, ScriptedEngine};
use crate::adapters::git;
use crate::adapters::process_host::{self, ProcessHost, Program, Reach};
use crate::adapters::sled::SledStore;
use crate::app::agents::AgentCatalog;
use crate::app::{App, Ports};
use crate::config::{EngineKind, Served, Settings};

/// What the configured agents are made of.
pub(super) struct Parts<'a> {
    pub(super) config: &'a Settings,
    pub(super) data_dir: &'a Path,
    pub(super) ports: &'a Ports,
    pub(super) grounds: &'a Grounds,
    pub(super) host: &'a ProcessHost,
}

/// The agents to serve, as they are configured.
pub(super) fn served(config: &Settings, options: &Options) -> Result<Vec<Served>, ProcessError> {
    let here = std::env::current_dir().map_err(|error| ProcessError::Directory {
        path: PathBuf::from("."),
        error,
    })?;
    Ok(config.agents(options.workspace.as_deref(), &here)?)
}

impl Parts<'_> {
    /// The agents, and a line about each for the start.
    pub(super) fn agents(
        &self,
        served: Vec<Served>,
    ) -> Result<(AgentCatalog, Vec<String>), ProcessError> {
        let names: Vec<AgentName> = served.iter().map(|agent| agent.name.clone()).collect();
        let default = self.config.default_agent(&names)?;
        let (mut catalog, mut lines) = (None, Vec::new());
        for agent in served {
            let space = agent.workspace.map(|(space, _)| space);
            let name = agent.name;
            let (engine, about) = self.engine(&name, agent.kind, space.as_ref())?;
            if agent.kind == EngineKind::ScriptedProcess {
                self.apart_from(&name, space.iter().chain(&agent.further))?;
                tell_of_sockets(&name, self.host.reach());
            }
            required(self.config, &name, &*engine)?;
            let mark = if name == default { " (default)" } else { "" };
            lines.push(format!("{name}{mark}: {about}"));
            let agents = match catalog {
                None => AgentCatalog::new(default.clone(), name.clone(), engine),
                Some(catalog) => AgentCatalog::with(catalog, name.clone(), engine),
            };
            let spaces = space.into_iter().chain(agent.further).collect();
            let (withholds, on_file) = self.config.with_data(&name);
            let agents = agents.working_in(&name, spaces);
            catalog = Some(agents.careful_with_data(&name, withholds, on_file));
        }
        let none = || failed(&default, &"no agent is configured");
        Ok((catalog.ok_or_else(none)?, lines))
    }

    fn engine(
        &self,
        name: &AgentName,
        kind: EngineKind,
        space: Option<&WorkspaceName>,
    ) -> Result<(Arc<dyn Engine>, String), ProcessError> {
        let own = || {
            let space = space.ok_or_else(|| failed(name, &"its workspace is missing"))?;
            let found = self.grounds.workspace(space).cloned();
            found.map_err(|error| failed(name, &error))
        };
        match kind {
            EngineKind::Scripted => Ok(self.scripted()),
            EngineKind::Demo => Ok(self.demo(own()?)),
            EngineKind::ScriptedProcess => Ok(self.apart(own()?)),
        }
    }

    fn scripted(&self) -> (Arc<dyn Engine>, String) {
        let (clock, spawner) = (self.ports.clock.clone(), self.ports.spawner.clone());
        let about = "plays the scenario in its prompt (docs/scripted-engine.md)";
        let engine = ScriptedEngine::new(clock, spawner);
        (Arc::new(engine), about.to_owned())
    }

    fn demo(&self, own: Boundary) -> (Arc<dyn Engine>, String) {
        let (clock, spawner) = (self.ports.clock.clone(), self.ports.spawner.clone());
        let about = format!("searches and reads {}; no model", own.path().display());
        let engine = DemoEngine::new(own, clock, spawner).on(self.grounds.clone());
        (Arc::new(engine), about)
    }

    /// No ruleset can take the server's data out of a workspace that processes are kept in.
    fn apart_from<'s>(
        &self,
        name: &AgentName,
        spaces: impl Iterator<Item = &'s WorkspaceName>,
    ) -> Result<(), ProcessError> {
        for space in spaces {
            let found = self.grounds.workspace(space);
            let found = found.map_err(|error| failed(name, &error))?;
            let apart = process_host::apart(found, self.data_dir);
            apart.map_err(|error| failed(name, &error))?;
        }
        Ok(())
    }

    /// An agent in processes of its own.
    fn apart(&self, own: Boundary) -> (Arc<dyn Engine>, String) {
        let manned = Manned {
            description: EngineDescription {
                name: "scripted-process".to_owned(),
                ..ScriptedEngine::description()
            },
            program: Program::Own,
            arguments: vec![SCRIPTED_VERB.to_owned()],
        };
        let root = own.path().display().to_string();
        let rooms = rooms(own, self.grounds.clone());
        let spawner = self.ports.spawner.clone();
        let engine = ApartEngine::new(manned, rooms, self.host.clone(), spawner);
        let about = match self.host.reach() {
            Reach::Whole | Reach::Files => {
                format!("plays scenarios in processes that are kept in {root}")
            }
            Reach::Nothing => format!(
                "plays scenarios in processes in {root}; this system has no Landlock that keeps \
                 files (Linux 6.2), or no filters of calls (seccomp), so that NOTHING keeps them there: they can read the owner token"
            ),
        };
        (Arc::new(engine), about)
    }
}

/// The room of each session: where it works now (C53), or the agent's own folder where it has no place;
/// and the repository's data, where it works in a linked worktree.
fn rooms(own: Boundary, grounds: Grounds) -> Rooms {
    Arc::new(move |place| {
        let Some(place) = place else {
            return Ok(Room {
                folder: own.clone(),
                beside: Vec::new(),
            });
        };
        let spot = grounds.saved(place).map_err(|error| {
            EngineError(format!(
                "{error}; put it back, or move the session with ChangeDirectory"
            ))
        })?;
        // A start is not waited for without a bound, and what is read here is little.
        let stop = AtomicBool::new(false);
        Ok(Room {
            beside: git::beside(&spot.workspace, &spot.path, &stop),
            folder: spot.boundary,
        })
    })
}

fn failed(name: &AgentName, problem: &dyn Display) -> ProcessError {
    ProcessError::Agent {
        agent: name.to_string(),
        problem: problem.to_string(),
    }
}

/// C57: a system that keeps an agent from files may not keep it from all else.
fn tell_of_sockets(agent: &AgentName, reach: Reach) {
    if reach == Reach::Files {
        tracing::warn!(
            %agent,
            "its processes are kept from files outside of their workspace, but not from sockets of this \
             user's other programs (this system's Landlock is before its ninth edition): what those do \
             for this user, they do for the agent"
        );
    }
}

/// C57: the most trust that a token of this host gives, which is less where an agent could read it.
pub(super) fn local_trust(agents: &AgentCatalog) -> Trust {
    let held = |name: &&AgentName| {
        let engine = agents.engine(name);
        engine.is_ok_and(|engine| engine.describe().capabilities.sandbox == SandboxLevel::Enforced)
    };
    let Some(free) = agents.names().find(|name| !held(name)) else {
        tracing::info!("a person's token of this host can say of a text that it was typed");
        return Trust::Typed;
    };
    tracing::info!(
        agent = free.as_str(),
        "no token of this host says of a text that a person typed it, the owner's included: no \
         sandbox of the system keeps this agent from reading them"
    );
    Trust::Relayed
}

/// C53: policy may refuse where nothing holds an agent in.
fn required(config: &Settings, name: &AgentName, engine: &dyn Engine) -> Result<(), ProcessError> {
    let is_required = config
        .agents
        .get(name.as_str())
        .is_some_and(|agent| agent.require_sandbox);
    if is_required && engine.describe().capabilities.sandbox == SandboxLevel::None {
        return Err(failed(
            name,
            &"this system has no Landlock of the third edition (Linux 6.2), or no filters of calls \
             (seccomp), that would keep its processes in their workspace, and require_sandbox is set; \
             run it on another system, or set that to false",
        ));
    }
    Ok(())
}

/// Where backups are asked for; nothing where that cannot be.
pub(super) fn listen_for_backups(data_dir: &Path) -> Option<Backups> {
    let listening = Backups::listen(data_dir);
    let told = listening.inspect_err(|error| {
        tracing::warn!(%error, "no backups can be made while this server runs");
    });
    told.ok()
}

/// Answers requests for backups, for as long as it is polled.
pub(super) async fn backups(
    listening: Option<Backups>,
    store: &Arc<SledStore>,
    artifacts: &Arc<FolderArtifacts>,
) {
    match listening {
        Some(backups) => backups.serve(store, artifacts).await,
        None => std::future::pending().await,
    }
}

/// What writes checkpoints of the audit trail.
pub(super) fn checkpoints(
    store: &Arc<SledStore>,
    config: &Settings,
    data_dir: &Path,
) -> Result<Checkpoints, ProcessError> {
    let configured = config.checkpoints_file.clone();
    let path = configured.unwrap_or_else(|| data_dir.join(CHECKPOINTS_FILE));
    let signer = Signer::open(data_dir)?;
    Ok(Checkpoints::new(store.clone(), signer, path))
}

/// Writes them again and again.
pub(super) async fn write_checkpoints(checkpoints: &mut Checkpoints, app: &App, every: Duration) {
    loop {
        app.sleep(every).await;
        write_checkpoint(checkpoints, app).await;
    }
}

/// Writes those of the chains that have grown.
pub(super) async fn write_checkpoint(checkpoints: &mut Checkpoints, app: &App) {
    if let Err(error) = checkpoints.write(app.now()).await {
        tracing::error!(%error, "checkpoints of the audit trail could not be written; trying again later");
    }
}
