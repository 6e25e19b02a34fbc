//! Plays a tool call that does something outside of the engine. What it may reach, the system decides.

use std::fs::File;
use std::io::{self, Read as _};
use std::process::Stdio;

use sessionplane_core::ports::engine::EngineEvent;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;

use super::scenario::Deed;
use crate::adapters::engine::link::{Halt, Link};

/// Why it is not played by an engine that shares its process with others.
pub(super) const MISSING: &str = "`read-file`, `write-file` and `sh` are for an agent in a process of \
     its own: engine = \"scripted-process\"";
/// How much of a file, or of what a command says, the tool gives back.
const MOST_BYTES: u64 = 64 * 1024;

/// The name of the tool that does it.
pub(super) fn name(deed: &Deed) -> &'static str {
    match deed {
        Deed::ReadFile { .. } => "read-file",
        Deed::WriteFile { .. } => "write-file",
        Deed::Shell { .. } => "sh",
    }
}

/// Starts the tool, does what it is to do, and tells what came of it. What a command started and left
/// goes on: it is not for the engine to see to it.
pub(super) async fn play(link: &mut Link, call: String, deed: Deed) -> Result<(), Halt> {
    let name = name(&deed);
    let input = match &deed {
        Deed::ReadFile { path } | Deed::WriteFile { path, .. } => {
            serde_json::json!({ "path": path })
        }
        Deed::Shell { command } => serde_json::json!({ "command": command }),
    };
    let started = EngineEvent::ToolStarted {
        call: call.clone(),
        name: name.to_owned(),
        input_json: input.to_string(),
    };
    link.emit(started).await?;
    let (output, failed) = match link.until(done(deed)).await? {
        Ok(output) => output,
        Err(error) => (format!("{name}: {error}"), true),
    };
    let finished = EngineEvent::ToolFinished {
        call,
        output,
        failed,
    };
    link.emit(finished).await
}

/// What came of it, and whether it failed.
async fn done(deed: Deed) -> io::Result<(String, bool)> {
    match deed {
        Deed::ReadFile { path } => {
            let mut bytes = Vec::new();
            File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
            Ok((String::from_utf8_lossy(&bytes).into_owned(), false))
        }
        Deed::WriteFile { path, text } => {
            std::fs::write(path, text)?;
            Ok(("ok".to_owned(), false))
        }
        Deed::Shell { command } => shell(&command).await,
    }
}

/// Both outputs are one pipe, so that what they say comes in the order in which it was said.
async fn shell(command: &str) -> io::Result<(String, bool)> {
    let (output, errors) = io::pipe()?;
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(errors.try_clone()?)
        .stderr(errors)
        .spawn()?;
    let mut said = Vec::new();
    let output = Receiver::from_owned_fd(output.into())?;
    output.take(MOST_BYTES).read_to_end(&mut said).await?;
    let status = child.wait().await?;
    Ok((
        String::from_utf8_lossy(&said).into_owned(),
        !status.success(),
    ))
}
