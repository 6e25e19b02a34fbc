//! The engine's end: a process whose standard streams are the line.

use std::io;
use std::os::fd::AsFd as _;

use sessionplane_core::ports::engine::{
    EngineCommand, EngineCommands, EngineConnection, EngineOutput,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;

use super::wire::{self, Opening, ToldCommand, ToldEvent};
use crate::adapters::process_host::{Lines, MAX_LINE_BYTES};

/// Serves one connection over the standard streams, until the engine is gone or the input has ended.
///
/// # Errors
/// When the streams are no pipes, or what comes over them is not ours.
pub(in crate::adapters::engine) async fn serve(
    open: impl FnOnce(Opening) -> Result<EngineConnection, String>,
) -> io::Result<()> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let mut input = Lines::new(pipe::Receiver::from_owned_fd(input)?, MAX_LINE_BYTES);
    let output = pipe::Sender::from_owned_fd(output)?;
    let Some(first) = input.next().await? else {
        return Ok(());
    };
    let opening = serde_json::from_slice(&first).map_err(io::Error::other)?;
    let connection = open(opening).map_err(io::Error::other)?;
    tokio::select! {
        heard = hear(input, connection.commands) => heard,
        told = tell(connection.output, output) => told,
    }
}

/// Ends with the input: nobody wants to hear any more then.
async fn hear(
    mut input: Lines<pipe::Receiver>,
    mut commands: Box<dyn EngineCommands>,
) -> io::Result<()> {
    while let Some(line) = input.next().await? {
        take(&line, commands.as_mut()).await?;
        // What came together is heard together.
        while let Some(line) = input.held_line() {
            take(&line, commands.as_mut()).await?;
        }
    }
    Ok(())
}

async fn take(line: &[u8], commands: &mut dyn EngineCommands) -> io::Result<()> {
    let told: ToldCommand = serde_json::from_slice(line).map_err(io::Error::other)?;
    let command = EngineCommand::try_from(told).map_err(io::Error::other)?;
    // An engine that is gone takes none; its output ends, and with it all of this.
    drop(commands.send(command).await);
    Ok(())
}

async fn tell(mut events: Box<dyn EngineOutput>, mut output: pipe::Sender) -> io::Result<()> {
    while let Some(event) = events.next().await {
        output
            .write_all(&wire::line(&ToldEvent::from(event))?)
            .await?;
    }
    Ok(())
}
