//! The engine itself: what it says it can do, and how a session's connection is opened.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::capabilities::{Capabilities, SandboxLevel, Steering};
use sessionplane_core::domain::interaction::InteractionKind;
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::domain::settings::{Model, ModelPolicy};
use sessionplane_core::ports::clock::{Clock, Spawner};
use sessionplane_core::ports::engine::{
    Engine, EngineConnection, EngineDescription, EngineError, EngineSlashCommand, OpenSession,
};

use super::play::{Player, RECALL};
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
    /// An engine that can do everything there is but preempt text.
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
                manual_compaction: true,
                model_selection: true,
                thinking: true,
                navigate: true,
                interactions: InteractionKind::ALL.into(),
                sandbox: SandboxLevel::Confined,
            },
            models: models(),
            commands: vec![EngineSlashCommand {
                name: RECALL.to_owned(),
                description: "say what was known when the run began".to_owned(),
            }],
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
        let engine = move |link| Player::new(link, memory, open.settings).run();
        Ok(connect(
            &*self.spawner,
            self.clock.clone(),
            revalidation,
            engine,
        ))
    }
}

/// One model without levels, which is the default, and one with three.
fn models() -> ModelPolicy {
    let levels = ["low", "medium", "high"].map(str::to_owned);
    ModelPolicy {
        models: vec![
            Model {
                spec: "scripted".to_owned(),
                thinking_levels: Vec::new(),
                default_level: None,
            },
            Model {
                spec: "scripted-thinking".to_owned(),
                thinking_levels: levels.into(),
                default_level: Some("medium".to_owned()),
            },
        ],
        default: RunSettings {
            model: Some("scripted".to_owned()),
            thinking_level: None,
        },
    }
}
