//! The control plane's two halves of a connection to an engine in another process.

use async_trait::async_trait;
use sessionplane_core::ports::clock::{Spawner, TaskHandle};
use sessionplane_core::ports::engine::{
    EngineCommand, EngineCommands, EngineError, EngineEvent, EngineOutput, MAX_WAITING_COMMANDS,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::wire::{self, ToldCommand, ToldEvent};
use crate::adapters::engine::link::cut;
use crate::adapters::process_host::{Hold, Lines};

/// The command half. Dropping it ends the process's input, and holds the process no longer.
pub(super) struct Commands {
    queue: mpsc::Sender<EngineCommand>,
    #[allow(dead_code, reason = "held for its drop, which ends the input")]
    writer: Box<dyn TaskHandle>,
    #[allow(dead_code, reason = "held for its drop, which ends the process")]
    hold: Hold,
}

impl Commands {
    /// Writes the first line, and then what is handed over.
    pub(super) fn to(
        input: pipe::Sender,
        first: Vec<u8>,
        hold: Hold,
        spawner: &dyn Spawner,
    ) -> Self {
        let (queue, commands) = mpsc::channel(MAX_WAITING_COMMANDS);
        let writing = async move {
            if let Err(error) = write(input, first, commands).await {
                tracing::debug!(%error, "an agent takes no more commands");
            }
        };
        Self {
            queue,
            writer: spawner.spawn("engine-input", Box::pin(writing)),
            hold,
        }
    }
}

/// Writes what waits at once, so that what was handed over together is heard together.
async fn write(
    mut input: pipe::Sender,
    first: Vec<u8>,
    mut commands: mpsc::Receiver<EngineCommand>,
) -> std::io::Result<()> {
    input.write_all(&first).await?;
    let mut waiting = Vec::new();
    while commands.recv_many(&mut waiting, MAX_WAITING_COMMANDS).await > 0 {
        let mut lines = Vec::new();
        for command in waiting.drain(..) {
            lines.extend(wire::line(&ToldCommand::from(command))?);
        }
        input.write_all(&lines).await?;
    }
    Ok(())
}

#[async_trait]
impl EngineCommands for Commands {
    async fn send(&mut self, command: EngineCommand) -> Result<(), EngineError> {
        self.queue.try_send(command).map_err(|error| {
            EngineError(match error {
                mpsc::error::TrySendError::Closed(_) => "the agent's process is gone".to_owned(),
                mpsc::error::TrySendError::Full(_) => {
                    format!("the agent left {MAX_WAITING_COMMANDS} commands untaken")
                }
            })
        })
    }
}

/// The output half.
pub(super) struct Output(pub(super) Lines<pipe::Receiver>);

#[async_trait]
impl EngineOutput for Output {
    async fn next(&mut self) -> Option<EngineEvent> {
        loop {
            let line = match self.0.next().await {
                Ok(line) => line?,
                Err(error) => {
                    tracing::warn!(%error, "an agent's output cannot be read");
                    return None;
                }
            };
            if let Some(mut event) = read(&line) {
                cut(&mut event);
                return Some(event);
            }
        }
    }
}

/// What a line reports; nothing where it makes no sense. Its text is not logged: it may be anything.
pub(super) fn read(line: &[u8]) -> Option<EngineEvent> {
    let told = serde_json::from_slice::<ToldEvent>(line);
    match told.map(EngineEvent::try_from) {
        Ok(Ok(event)) => Some(event),
        Ok(Err(error)) => {
            tracing::warn!(%error, "an agent's report names something that cannot be");
            None
        }
        Err(error) => {
            let (class, at) = (error.classify(), error.column());
            tracing::warn!(?class, at, "an agent's line makes no sense");
            None
        }
    }
}
