//! How the agent speaks: messages in small pieces, tool events, and file work off the runtime's
//! threads. All of it is heard at a pace that a person can watch, and ends at once at an abort.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::run::{Failure, code};
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::engine::Pace;
use crate::adapters::engine::link::{Halt, Link};

/// How many words are said in one delta.
const WORDS: usize = 2;

/// Why a run leaves its course.
pub(super) enum Stop {
    /// It was told to, or nobody is there.
    Halt(Halt),
    /// It cannot go on.
    Failed(Failure),
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

impl Stop {
    /// A failure of the folder.
    pub(super) fn folder(error: &std::io::Error) -> Self {
        Self::Failed(Failure {
            code: "folder_unreadable".to_owned(),
            details: format!("the folder cannot be read: {error}"),
            retryable: false,
        })
    }

    /// The reason as it is reported; `None` when nobody is there to hear it.
    pub(super) fn reason(self) -> Option<StopReason> {
        match self {
            Self::Halt(Halt::Aborted) => Some(StopReason::Aborted),
            Self::Halt(Halt::Gone) => None,
            Self::Failed(failure) => Some(StopReason::Failed(failure)),
        }
    }
}

/// The agent's voice.
pub(super) struct Voice {
    pub(super) link: Link,
    pub(super) pace: Pace,
    /// The numbers of the last message and call; ids are unique within a run and beyond.
    messages: u64,
    calls: u64,
}

impl Voice {
    pub(super) fn new(link: Link, pace: Pace) -> Self {
        Self {
            link,
            pace,
            messages: 0,
            calls: 0,
        }
    }

    /// Says a whole message, a few words at a time.
    pub(super) async fn say(&mut self, channel: OutputChannel, text: &str) -> Result<(), Stop> {
        self.messages += 1;
        let message = format!("m{}", self.messages);
        let started = EngineEvent::MessageStarted {
            message: message.clone(),
        };
        self.link.emit(started).await?;
        for piece in pieces(text) {
            self.link.pause(self.pace.delta).await?;
            let delta = EngineEvent::MessageDelta {
                message: message.clone(),
                channel,
                text: piece,
            };
            self.link.emit(delta).await?;
        }
        let text = match channel {
            OutputChannel::Text => text.to_owned(),
            OutputChannel::Thinking => String::new(),
        };
        let finished = EngineEvent::MessageFinished {
            message,
            text: Some(text),
            usage: Usage::default(),
        };
        Ok(self.link.emit(finished).await?)
    }

    /// Starts a tool; returns the call's id.
    pub(super) async fn call(
        &mut self,
        name: &str,
        input: &serde_json::Value,
    ) -> Result<String, Stop> {
        self.calls += 1;
        let call = format!("c{}", self.calls);
        let started = EngineEvent::ToolStarted {
            call: call.clone(),
            name: name.to_owned(),
            input_json: input.to_string(),
        };
        self.link.emit(started).await?;
        Ok(call)
    }

    /// Tells what a tool did so far.
    pub(super) async fn progress(&mut self, call: &str, output: String) -> Result<(), Stop> {
        let call = call.to_owned();
        let progress = EngineEvent::ToolProgress { call, output };
        Ok(self.link.emit(progress).await?)
    }

    /// Finishes a tool, not sooner than a person can follow.
    pub(super) async fn give_back(
        &mut self,
        call: String,
        output: String,
        failed: bool,
    ) -> Result<(), Stop> {
        self.link.pause(self.pace.tool).await?;
        let finished = EngineEvent::ToolFinished {
            call,
            output,
            failed,
        };
        Ok(self.link.emit(finished).await?)
    }

    /// Does file work on a thread that may block. The work is told to stop when it is no longer
    /// waited for.
    pub(super) async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Stop> {
        let stop = Arc::new(AtomicBool::new(false));
        let _tell = TellOnDrop(stop.clone());
        let job = tokio::task::spawn_blocking(move || work(&stop));
        self.link.until(job).await?.map_err(|error| {
            Stop::Failed(Failure {
                code: code::ENGINE_FAILED.to_owned(),
                details: format!("the file work broke off: {error}"),
                retryable: false,
            })
        })
    }
}

/// Sets its flag when it is dropped, however that comes.
struct TellOnDrop(Arc<AtomicBool>);

impl Drop for TellOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A text in pieces of a few words; lines are not cut apart from their ends.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut words = 0;
    for part in text.split_inclusive([' ', '\n']) {
        piece.push_str(part);
        words += usize::from(!part.trim().is_empty());
        if words >= WORDS || part.ends_with('\n') {
            pieces.push(std::mem::take(&mut piece));
            words = 0;
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_text() {
        let text = "one two  three\n\n    code line\nend \u{e9}";
        assert_eq!(pieces(text).concat(), text);
        assert!(pieces(text).len() > 4);
    }
}
