//! The two halves that the control plane holds of a connection to an engine in this process.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::ports::clock::{Clock, Spawner, TaskHandle};
use sessionplane_core::ports::engine::{
    EngineCommand, EngineCommands, EngineConnection, EngineError, EngineEvent, EngineOutput,
    MAX_WAITING_COMMANDS, Revalidation,
};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::{Link, line};

/// Starts an engine's task and returns the two halves that the control plane holds. The command
/// half owns the task: dropping it ends the task at its next suspension point.
pub(in crate::adapters::engine) fn connect<F>(
    spawner: &dyn Spawner,
    clock: Arc<dyn Clock>,
    revalidation: Revalidation,
    engine: impl FnOnce(Link) -> F,
) -> EngineConnection
where
    F: Future<Output = ()> + Send + 'static,
{
    let (link, queue, output) = line(clock);
    let task = spawner.spawn("engine", Box::pin(engine(link)));
    EngineConnection {
        commands: Box::new(Commands { queue, _task: task }),
        output: Box::new(output),
        revalidation,
    }
}

/// The command half.
struct Commands {
    queue: mpsc::Sender<EngineCommand>,
    _task: Box<dyn TaskHandle>,
}

#[async_trait]
impl EngineCommands for Commands {
    async fn send(&mut self, command: EngineCommand) -> Result<(), EngineError> {
        self.queue.try_send(command).map_err(|error| {
            EngineError(match error {
                mpsc::error::TrySendError::Closed(_) => "the engine is gone".to_owned(),
                mpsc::error::TrySendError::Full(_) => {
                    format!("the engine left {MAX_WAITING_COMMANDS} commands untaken")
                }
            })
        })
    }
}

/// The output half.
pub(super) struct Output(pub(super) mpsc::Receiver<Unread>);

/// An event that waits to be read, and its share of the bytes that may wait.
pub(super) struct Unread {
    pub(super) event: EngineEvent,
    pub(super) share: OwnedSemaphorePermit,
}

#[async_trait]
impl EngineOutput for Output {
    async fn next(&mut self) -> Option<EngineEvent> {
        let Unread { event, share } = self.0.recv().await?;
        drop(share);
        Some(event)
    }
}
