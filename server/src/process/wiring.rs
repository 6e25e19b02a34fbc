//! Makes the configured agents, and keeps the store tidy while the server runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::ids::AgentName;
use sessionplane_core::ports::engine::Engine;

use super::backup::Backups;
use super::{Options, ProcessError};
use crate::adapters::artifacts::FolderArtifacts;
use crate::adapters::boundary::{Access, Boundary};
use crate::adapters::engine::demo::DemoEngine;
use crate::adapters::engine::scripted::ScriptedEngine;
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
) -> Result<(AgentCatalog, Vec<String>), ProcessError> {
    let configured = configured(config, options)?;
    let names: Vec<AgentName> = configured.iter().map(|(name, ..)| name.clone()).collect();
    let default = config.default_agent(&names)?;
    let (mut catalog, mut lines) = (None, Vec::new());
    for (name, kind, root) in configured {
        let (engine, about) = engine(&name, kind, root, data_dir, ports)?;
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

/// Each agent that is configured, with its engine and its workspace.
fn configured(
    config: &Settings,
    options: &Options,
) -> Result<Vec<(AgentName, EngineKind, Option<PathBuf>)>, ProcessError> {
    let here = std::env::current_dir().map_err(|error| ProcessError::Directory {
        path: PathBuf::from("."),
        error,
    })?;
    Ok(config.agents(options.workspace.as_deref(), &here)?)
}

/// What keeps the agents from being made that can be seen beforehand.
pub(super) fn unusable(config: &Settings, options: &Options) -> Vec<ProcessError> {
    let agents = match configured(config, options) {
        Ok(agents) => agents,
        Err(error) => return vec![error],
    };
    let unreadable = agents.into_iter().filter_map(|(name, _, root)| {
        let root = root?;
        let error = Boundary::open(&root, Access::ReadOnly).err()?;
        Some(unreadable(&name, &root, &error))
    });
    unreadable.collect()
}

fn unreadable(name: &AgentName, root: &Path, error: &std::io::Error) -> ProcessError {
    ProcessError::Agent {
        agent: name.to_string(),
        problem: format!("its workspace {} cannot be read: {error}", root.display()),
    }
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
            let engine = DemoEngine::in_folder(&root, clock, spawner)
                .map_err(|error| unreadable(name, &root, &error))?;
            // The owner token and the store are nobody's reading matter.
            let engine = engine
                .hiding(data_dir)
                .map_err(|error| ProcessError::Agent {
                    agent: name.to_string(),
                    problem: format!("the data directory cannot be kept from it: {error}"),
                })?;
            Ok((
                Arc::new(engine),
                format!("searches and reads {}; no model", root.display()),
            ))
        }
        (EngineKind::Demo, None) => {
            let problem = "its workspace is missing".to_owned();
            Err(ProcessError::Agent {
                agent: name.to_string(),
                problem,
            })
        }
    }
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
