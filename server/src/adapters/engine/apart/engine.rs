//! The engine as the control plane has it: it opens a process for each connection.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::place::Place;
use sessionplane_core::ports::clock::Spawner;
use sessionplane_core::ports::engine::{
    Engine, EngineConnection, EngineDescription, EngineError, OpenSession,
};

use super::halves::{Commands, Output};
use super::wire::{self, Opening};
use crate::adapters::boundary::Boundary;
use crate::adapters::engine::memory::Memory;
use crate::adapters::process_host::{Order, ProcessHost, Program, Reach, Started};

/// Where a session's process works.
#[derive(Clone, Debug)]
pub struct Room {
    /// Its folder.
    pub folder: Boundary,
    /// What it must reach beside that, to be able to work there.
    pub beside: Vec<Boundary>,
}

/// Finds the room of a session's place: none stands for the agent's own. May block.
pub type Rooms = Arc<dyn Fn(Option<&Place>) -> Result<Room, EngineError> + Send + Sync>;

/// What runs in the process.
#[derive(Clone, Debug)]
pub struct Manned {
    /// What the engine says of itself. A sandbox that it claims is required at each start.
    pub description: EngineDescription,
    /// The program.
    pub program: Program,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// An engine in processes of its own, one for each connection.
pub struct ApartEngine {
    manned: Manned,
    rooms: Rooms,
    host: ProcessHost,
    spawner: Arc<dyn Spawner>,
}

impl ApartEngine {
    /// An engine whose processes the host starts, in the folders that `rooms` finds. It claims as much
    /// of a sandbox as this system gives.
    #[must_use]
    pub fn new(
        mut manned: Manned,
        rooms: Rooms,
        host: ProcessHost,
        spawner: Arc<dyn Spawner>,
    ) -> Self {
        manned.description.capabilities.sandbox = level(host.reach());
        Self {
            manned,
            rooms,
            host,
            spawner,
        }
    }

    async fn start(&self, open: &OpenSession) -> Result<Started, EngineError> {
        let claimed = self.manned.description.capabilities.sandbox;
        let (rooms, place) = (self.rooms.clone(), open.place.clone());
        let room = self.host.blocking(move || rooms(place.as_ref())).await;
        let Room { folder, beside } = room.map_err(|error| EngineError(error.to_string()))??;
        let order = Order {
            session: open.session,
            program: self.manned.program.clone(),
            arguments: self.manned.arguments.clone(),
            environment: Vec::new(),
            folder,
            beside,
            reads: Vec::new(),
            require_ruleset: claimed == SandboxLevel::Enforced,
        };
        let started = self.host.start(order, &*self.spawner).await;
        started.map_err(|error| EngineError(error.to_string()))
    }
}

/// What this system keeps a program in with.
fn level(reach: Reach) -> SandboxLevel {
    if reach.holds_files() {
        SandboxLevel::Enforced
    } else {
        SandboxLevel::None
    }
}

#[async_trait]
impl Engine for ApartEngine {
    fn describe(&self) -> &EngineDescription {
        &self.manned.description
    }

    async fn open(&self, open: OpenSession) -> Result<EngineConnection, EngineError> {
        let (memory, revalidation) = Memory::read(&open).await?;
        let opening = wire::line(&Opening::of(&memory, &open.settings));
        let opening = opening.map_err(|error| EngineError(error.to_string()))?;
        let Started {
            input,
            output,
            hold,
            ..
        } = self.start(&open).await?;
        Ok(EngineConnection {
            commands: Box::new(Commands::to(input, opening, hold, &*self.spawner)),
            output: Box::new(Output(output)),
            revalidation,
        })
    }
}
