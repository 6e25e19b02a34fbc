//! The engine itself: what it says it can do, and how a session's connection is opened.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::capabilities::{Capabilities, SandboxLevel, Steering};
use sessionplane_core::domain::interaction::InteractionKind;
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::domain::settings::{Model, ModelPolicy};
use sessionplane_core::ports::clock::{Clock, Spawner};
use sessionplane_core::ports::engine::{
    Engine, EngineConnection, EngineDescription, EngineError, EngineSlashCommand, OpenSession,
    Revalidation,
};

use super::play::{Player, RECALL};
use crate::adapters::engine::apart::{Opening, serve};
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
        let description = Self::description();
        Self {
            description,
            clock,
            spawner,
        }
    }

    /// What it says of itself.
    #[must_use]
    pub fn description() -> EngineDescription {
        EngineDescription {
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

/// The word on the command line of a process that does so. Nobody types it.
pub const SCRIPTED_VERB: &str = "__engine-scripted";

/// Plays the language in this process, over its standard streams, until these end: the engine's end of
/// an agent that has a process of its own.
///
/// # Errors
/// When the streams are no pipes, or what comes over them is not ours.
pub async fn serve_scripted(clock: Arc<dyn Clock>, spawner: &dyn Spawner) -> io::Result<()> {
    let play = |opening: Opening| {
        let (memory, settings) = opening.taken().map_err(|error| error.to_string())?;
        let engine = |link| Player::new(link, memory, settings).with_hands().run();
        Ok(connect(spawner, clock, Revalidation::Current, engine))
    };
    serve(play).await
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
