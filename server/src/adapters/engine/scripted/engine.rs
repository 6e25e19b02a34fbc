//! The engine itself: what it says it can do, and how a session's connection is opened.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::capabilities::{Capabilities, Steering};
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::ports::clock::{Clock, Spawner};
use sessionplane_core::ports::engine::{
    Engine, EngineConnection, EngineDescription, EngineError, OpenSession,
};

use super::play::Player;
use crate::adapters::engine::link::connect;
use crate::adapters::engine::memory::Memory;

/// An engine that does what its prompt says. See `docs/scripted-engine.md`.
///
/// It waits on the given clock only and keeps no transcript of its own.
pub struct ScriptedEngine {
    description: EngineDescription,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
}

impl ScriptedEngine {
    /// An engine that can be steered between turns, takes follow-ups, and reports progress and
    /// usage.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, spawner: Arc<dyn Spawner>) -> Self {
        let description = EngineDescription {
            name: "scripted".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: Capabilities {
                steering: Some(Steering {
                    after_tools: true,
                    preempts_text: false,
                }),
                follow_up: true,
                tool_progress: true,
                usage: true,
                ..Capabilities::default()
            },
            settings: RunSettings {
                model: Some("scripted".to_owned()),
                thinking_level: None,
            },
        };
        Self {
            description,
            clock,
            spawner,
        }
    }

    /// The same engine, which says of itself that it can do this and no more.
    #[must_use]
    pub fn claiming(mut self, capabilities: Capabilities) -> Self {
        self.description.capabilities = capabilities;
        self
    }
}

#[async_trait]
impl Engine for ScriptedEngine {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    async fn open(&self, open: OpenSession) -> Result<EngineConnection, EngineError> {
        let (memory, revalidation) = Memory::read(&open).await?;
        let engine = |link| Player::new(link, memory).run();
        Ok(connect(
            &*self.spawner,
            self.clock.clone(),
            revalidation,
            engine,
        ))
    }
}
