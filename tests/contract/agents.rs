//! Agents that a world has besides the scripted one.

use std::collections::VecDeque;

use async_trait::async_trait;
use sessionplane_core::domain::capabilities::Capabilities;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::ports::engine::{
    Engine, EngineCommand, EngineCommands, EngineConnection, EngineDescription, EngineError,
    EngineEvent, EngineOutput, OpenSession, Revalidation,
};

/// Begins a message and then neither ends nor hears anything.
pub(crate) struct Deaf(EngineDescription);

/// Cannot be opened.
pub(crate) struct Absent(EngineDescription);

fn describe(name: &str) -> EngineDescription {
    EngineDescription {
        name: name.to_owned(),
        version: "0".to_owned(),
        capabilities: Capabilities {
            steering: None,
            follow_up: true,
            tool_progress: false,
            usage: false,
        },
        settings: RunSettings::default(),
    }
}

impl Deaf {
    pub(crate) fn new() -> Self {
        Self(describe("deaf"))
    }
}

impl Absent {
    pub(crate) fn new() -> Self {
        Self(describe("absent"))
    }
}

struct Swallow;

#[async_trait]
impl EngineCommands for Swallow {
    async fn send(&mut self, _: EngineCommand) -> Result<(), EngineError> {
        Ok(())
    }
}

struct Lines(VecDeque<EngineEvent>);

#[async_trait]
impl EngineOutput for Lines {
    async fn next(&mut self) -> Option<EngineEvent> {
        match self.0.pop_front() {
            Some(line) => Some(line),
            None => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Engine for Deaf {
    fn describe(&self) -> &EngineDescription {
        &self.0
    }

    async fn open(&self, _: OpenSession) -> Result<EngineConnection, EngineError> {
        let message = "m1".to_owned();
        let lines = VecDeque::from([
            EngineEvent::TurnStarted,
            EngineEvent::MessageStarted {
                message: message.clone(),
            },
            EngineEvent::MessageDelta {
                message,
                channel: OutputChannel::Text,
                text: "half a sen".to_owned(),
            },
        ]);
        Ok(EngineConnection {
            commands: Box::new(Swallow),
            output: Box::new(Lines(lines)),
            revalidation: Revalidation::Current,
        })
    }
}

#[async_trait]
impl Engine for Absent {
    fn describe(&self) -> &EngineDescription {
        &self.0
    }

    async fn open(&self, _: OpenSession) -> Result<EngineConnection, EngineError> {
        Err(EngineError("there is no such program".to_owned()))
    }
}
