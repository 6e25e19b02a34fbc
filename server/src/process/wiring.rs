//! Makes the configured agents, and keeps the store tidy while the server runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::ids::AgentName;
use sessionplane_core::domain::place::Directory;
use sessionplane_core::ports::engine::{Engine, EngineDescription, EngineError};

use super::backup::Backups;
use super::{Options, ProcessError};
use crate::adapters::artifacts::FolderArtifacts;
use crate::adapters::boundary::{Access, Boundary};
use crate::adapters::engine::apart::{ApartEngine, Manned, Rooms};
use crate::adapters::engine::demo::DemoEngine;
use crate::adapters::engine::scripted::{SCRIPTED_VERB, ScriptedEngine};
use crate::adapters::process_host::{self, ProcessHost, Program};
use crate::adapters::sled::SledStore;
use crate::app::agents::AgentCatalog;
use crate::app::{App, Ports};
use crate::config::{EngineKind, Settings};

/// How often old request bindings are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// Bindings that one pass forgets at most; the next pass goes on.
const SWEEP_AT_MOST: usize = 1000;

/// The agents to serve, and a line about each for the start.
pub(super) fn agents(
    config: &Settings,
    options: &Options,
    data_dir: &Path,
    ports: &Ports,
    host: &ProcessHost,
) -> Result<(AgentCatalog, Vec<String>), ProcessError> {
    let here = std::env::current_dir().map_err(|error| ProcessError::Directory {
        path: PathBuf::from("."),
        error,
    })?;
    let configured = config.agents(options.workspace.as_deref(), &here)?;
    let names: Vec<AgentName> = configured.iter().map(|(name, ..)| name.clone()).collect();
    let default = config.default_agent(&names)?;
    let (mut catalog, mut lines) = (None, Vec::new());
    for (name, kind, root) in configured {
        let (engine, about) = match (kind, &root) {
            (EngineKind::ScriptedProcess, Some(root)) => apart(&name, root, data_dir, ports, host)?,
            _ => engine(&name, kind, root, data_dir, ports)?,
        };
        required(config, &name, &*engine)?;
        let mark = if name == default { " (default)" } else { "" };
        lines.push(format!("{name}{mark}: {about}"));
        catalog = Some(match catalog {
            None => AgentCatalog::new(default.clone(), name, engine),
            Some(catalog) => AgentCatalog::with(catalog, name, engine),
        });
    }
    let none = || ProcessError::Agent {
        agent: default.to_string(),
        problem: "no agent is configured".to_owned(),
    };
    Ok((catalog.ok_or_else(none)?, lines))
}

fn engine(
    name: &AgentName,
    kind: EngineKind,
    root: Option<PathBuf>,
    data_dir: &Path,
    ports: &Ports,
) -> Result<(Arc<dyn Engine>, String), ProcessError> {
    let (clock, spawner) = (ports.clock.clone(), ports.spawner.clone());
    match (kind, root) {
        (EngineKind::Scripted, _) => {
            let engine = Arc::new(ScriptedEngine::new(clock, spawner));
            Ok((
                engine,
                "plays the scenario in its prompt (docs/scripted-engine.md)".to_owned(),
            ))
        }
        (EngineKind::Demo, Some(root)) => {
            let failed = |problem: String| ProcessError::Agent {
                agent: name.to_string(),
                problem,
            };
            let engine = DemoEngine::in_folder(&root, clock, spawner).map_err(|error| {
                failed(format!(
                    "its workspace {} cannot be read: {error}",
                    root.display()
                ))
            })?;
            // The owner token and the store are nobody's reading matter.
            let engine = engine.hiding(data_dir).map_err(|error| {
                failed(format!(
                    "the data directory cannot be kept from it: {error}"
                ))
            })?;
            Ok((
                Arc::new(engine),
                format!("searches and reads {}; no model", root.display()),
            ))
        }
        (EngineKind::Demo | EngineKind::ScriptedProcess, _) => {
            let problem = "its workspace is missing".to_owned();
            Err(ProcessError::Agent {
                agent: name.to_string(),
                problem,
            })
        }
    }
}

/// An agent in processes of its own.
fn apart(
    name: &AgentName,
    root: &Path,
    data_dir: &Path,
    ports: &Ports,
    host: &ProcessHost,
) -> Result<(Arc<dyn Engine>, String), ProcessError> {
    let failed = |problem: String| ProcessError::Agent {
        agent: name.to_string(),
        problem,
    };
    let unusable = |error| {
        let root = root.display();
        failed(format!("its workspace {root} cannot be worked in: {error}"))
    };
    let folder = Boundary::open(root, Access::ReadOnly).map_err(unusable)?;
    let apart = process_host::apart(&folder, data_dir);
    apart.map_err(|error| failed(error.to_string()))?;
    let manned = Manned {
        description: EngineDescription {
            name: "scripted-process".to_owned(),
            ..ScriptedEngine::description()
        },
        program: Program::Own,
        arguments: vec![SCRIPTED_VERB.to_owned()],
    };
    let engine = ApartEngine::new(manned, only(folder), host.clone(), ports.spawner.clone());
    let sandbox = engine.describe().capabilities.sandbox;
    let root = root.display();
    let about = match sandbox {
        SandboxLevel::Enforced => format!("plays scenarios in processes that are kept in {root}"),
        _ => format!(
            "plays scenarios in processes in {root}; this system has no Landlock, so that NOTHING \
             keeps them there: they can read the owner token"
        ),
    };
    Ok((Arc::new(engine), about))
}

/// The folder of every session: the agent's workspace, until a session has a place in it.
fn only(folder: Boundary) -> Rooms {
    Arc::new(move |place| match place {
        Some(place) if place.directory != Directory::root() => {
            let problem = format!("the directory {} cannot be opened", place.directory);
            Err(EngineError(problem))
        }
        _ => Ok(folder.clone()),
    })
}

/// C53: policy may refuse where nothing holds an agent in.
fn required(config: &Settings, name: &AgentName, engine: &dyn Engine) -> Result<(), ProcessError> {
    let is_required = config
        .agents
        .get(name.as_str())
        .is_some_and(|agent| agent.require_sandbox);
    if is_required && engine.describe().capabilities.sandbox == SandboxLevel::None {
        return Err(ProcessError::Agent {
            agent: name.to_string(),
            problem:
                "this system has no Landlock of the third edition (Linux 6.2) that would keep \
                      its processes in their workspace, and require_sandbox is set; run it on \
                      another system, or set that to false"
                    .to_owned(),
        });
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

/// Forgets request bindings whose time is over, for as long as it is polled.
pub(super) async fn sweep_bindings(app: App) {
    loop {
        match app.sweep_bindings(SWEEP_AT_MOST).await {
            // There may be more: a busy server binds faster than one pass an interval forgets.
            Ok(SWEEP_AT_MOST) => continue,
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "forgot old request bindings"),
            Err(error) => {
                tracing::warn!(%error, "request bindings could not be swept; trying again later");
            }
        }
        app.sleep(SWEEP_EVERY).await;
    }
}
