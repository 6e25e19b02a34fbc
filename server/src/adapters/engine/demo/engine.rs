//! The engine itself: what it says it can do, and how a session's connection is opened.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sessionplane_core::domain::capabilities::{Capabilities, SandboxLevel, Steering};
use sessionplane_core::domain::interaction::InteractionKind;
use sessionplane_core::domain::place::Place;
use sessionplane_core::domain::settings::ModelPolicy;
use sessionplane_core::ports::clock::{Clock, Spawner};
use sessionplane_core::ports::engine::{
    Engine, EngineConnection, EngineDescription, EngineError, EngineSlashCommand, OpenSession,
};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::files::Folder;
use super::run::Agent;
use super::voice::Voice;
use super::wish::COMMANDS;
use crate::adapters::boundary::{Access, Boundary, Grounds};
use crate::adapters::engine::link::connect;
use crate::adapters::engine::memory::Memory;

/// How slowly the agent goes, so that a person can watch and steer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// The delay before each piece of a message.
    pub delta: Duration,
    /// The least time of a tool.
    pub tool: Duration,
}

impl Pace {
    /// As fast as it can.
    pub const NONE: Self = Self {
        delta: Duration::ZERO,
        tool: Duration::ZERO,
    };
}

impl Default for Pace {
    /// An answer takes some seconds.
    fn default() -> Self {
        Self {
            delta: Duration::from_millis(10),
            tool: Duration::from_millis(250),
        }
    }
}

/// The agent of a fresh server. It answers questions about a folder by searching and reading it: that
/// of the session, or its own.
pub struct DemoEngine {
    description: EngineDescription,
    boundary: Boundary,
    grounds: Grounds,
    pace: Pace,
    jobs: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
}

impl DemoEngine {
    /// Most threads that read the folder at a time, for all sessions together. One that stalls, on a
    /// mount that does not answer, keeps its place until it comes back.
    pub const JOBS: usize = 4;

    /// An agent for the folder of a boundary. It reads nothing that lies outside.
    #[must_use]
    pub fn new(boundary: Boundary, clock: Arc<dyn Clock>, spawner: Arc<dyn Spawner>) -> Self {
        let description = EngineDescription {
            name: "demo".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: Capabilities {
                steering: Some(Steering {
                    after_tools: true,
                    preempts_text: false,
                }),
                follow_up: true,
                tool_progress: true,
                usage: false,
                navigate: true,
                interactions: [InteractionKind::Select].into(),
                sandbox: SandboxLevel::Confined,
                ..Capabilities::default()
            },
            models: ModelPolicy::default(),
            commands: commands(),
        };
        Self {
            description,
            boundary,
            grounds: Grounds::default(),
            pace: Pace::default(),
            jobs: Arc::new(Semaphore::new(Self::JOBS)),
            clock,
            spawner,
        }
    }

    /// An agent for the folder at a path, which is opened now and never looked up again.
    ///
    /// # Errors
    /// When there is no such folder, or it cannot be opened.
    pub fn in_folder(
        path: &Path,
        clock: Arc<dyn Clock>,
        spawner: Arc<dyn Spawner>,
    ) -> io::Result<Self> {
        let boundary = Boundary::open(path, Access::ReadOnly)?;
        Ok(Self::new(boundary, clock, spawner))
    }

    /// Neither lists nor reads what lies in this folder: for a data directory that lies inside the
    /// agent's own.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn hiding(mut self, folder: &Path) -> io::Result<Self> {
        self.boundary = self.boundary.hiding(folder)?;
        Ok(self)
    }

    /// Works where a session is told to, beneath these workspaces, and in its own folder where it is
    /// not told.
    #[must_use]
    pub fn on(mut self, grounds: Grounds) -> Self {
        self.grounds = grounds;
        self
    }

    /// The folder that a session is about.
    async fn folder(&self, place: Option<Place>) -> Result<Folder, EngineError> {
        let Some(place) = place else {
            return Ok(Folder::new(self.boundary.clone()));
        };
        let job = self.jobs.clone().acquire_owned().await;
        let grounds = self.grounds.clone();
        let found = spawn_blocking(move || {
            // The thread gives its place back, not who waits for it.
            let _job = job;
            grounds.saved(&place)
        });
        let ended = |_| EngineError("the server is ending".to_owned());
        let spot = found.await.map_err(ended)?;
        spot.map(Folder::beneath)
            .map_err(|error| EngineError(error.to_string()))
    }

    /// Goes at this pace.
    #[must_use]
    pub fn at_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }
}

/// What a composer may offer.
fn commands() -> Vec<EngineSlashCommand> {
    let command = |(name, _, description): &(&str, _, &str)| EngineSlashCommand {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
    };
    COMMANDS.iter().map(command).collect()
}

#[async_trait]
impl Engine for DemoEngine {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    async fn open(&self, open: OpenSession) -> Result<EngineConnection, EngineError> {
        let (memory, revalidation) = Memory::read(&open).await?;
        let folder = self.folder(open.place.clone()).await?;
        let (pace, jobs) = (self.pace, self.jobs.clone());
        let engine = move |link| Agent::new(Voice::new(link, pace, jobs), folder, memory).run();
        Ok(connect(
            &*self.spawner,
            self.clock.clone(),
            revalidation,
            engine,
        ))
    }
}
