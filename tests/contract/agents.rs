//! Agents that a world has besides the scripted one.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sessionplane_core::domain::capabilities::Capabilities;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::interaction::{Question, Shape};
use sessionplane_core::domain::settings::ModelPolicy;
use sessionplane_core::ports::engine::{
    Engine, EngineCommand, EngineCommands, EngineConnection, EngineDescription, EngineError,
    EngineEvent, EngineOutput, MAX_WAITING_COMMANDS, OpenSession, Revalidation,
};

/// Begins a message and then neither ends nor hears anything.
pub(crate) struct Deaf(EngineDescription);

/// Cannot be opened.
pub(crate) struct Absent(EngineDescription);

/// Says how many of its kind there are in the session, and then neither ends nor hears anything.
/// Takes a moment to go, unless another comes meanwhile.
pub(crate) struct Lingering {
    description: EngineDescription,
    crowd: Arc<Crowd>,
}

#[derive(Default)]
struct Crowd {
    /// How many were opened, and how many are there.
    counts: Mutex<(u64, u64)>,
    came: Condvar,
}

/// Asks more than anybody could be told of, and takes no command at all.
pub(crate) struct Jammed(EngineDescription);

fn describe(name: &str) -> EngineDescription {
    EngineDescription {
        name: name.to_owned(),
        version: "0".to_owned(),
        capabilities: Capabilities {
            steering: None,
            follow_up: true,
            manual_compaction: true,
            tool_progress: false,
            usage: false,
            ..Capabilities::default()
        },
        models: ModelPolicy::default(),
        commands: Vec::new(),
    }
}

impl Deaf {
    pub(crate) fn new() -> Self {
        Self(describe("deaf"))
    }
}

impl Jammed {
    pub(crate) fn new() -> Self {
        Self(describe("jammed"))
    }
}

impl Lingering {
    pub(crate) fn new() -> Self {
        Self {
            description: describe("lingering"),
            crowd: Arc::default(),
        }
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

struct Stuck;

#[async_trait]
impl EngineCommands for Stuck {
    async fn send(&mut self, _: EngineCommand) -> Result<(), EngineError> {
        std::future::pending().await
    }
}

struct Lines(VecDeque<EngineEvent>);

/// The lines of one of a crowd.
struct OneOf {
    lines: Lines,
    crowd: Arc<Crowd>,
}

#[async_trait]
impl EngineOutput for OneOf {
    async fn next(&mut self) -> Option<EngineEvent> {
        self.lines.next().await
    }
}

impl Drop for OneOf {
    fn drop(&mut self) {
        // In place, so that what else this thread would do is done by another.
        tokio::task::block_in_place(|| {
            let counts = self.crowd.counts.lock().expect("no panic");
            let opened = counts.0;
            let left = self.crowd.came.wait_timeout_while(
                counts,
                Duration::from_millis(300),
                |(now, _)| *now == opened,
            );
            left.expect("no panic").0.1 -= 1;
        });
    }
}

#[async_trait]
impl EngineOutput for Lines {
    async fn next(&mut self) -> Option<EngineEvent> {
        match self.0.pop_front() {
            Some(line) => Some(line),
            None => std::future::pending().await,
        }
    }
}

/// A message that begins with a text.
fn beginning(text: String) -> Lines {
    let message = "m1".to_owned();
    Lines(VecDeque::from([
        EngineEvent::TurnStarted,
        EngineEvent::MessageStarted {
            message: message.clone(),
        },
        EngineEvent::MessageDelta {
            message,
            channel: OutputChannel::Text,
            text,
        },
    ]))
}

#[async_trait]
impl Engine for Lingering {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    async fn open(&self, _: OpenSession) -> Result<EngineConnection, EngineError> {
        let crowd = self.crowd.clone();
        let here = {
            let mut counts = crowd.counts.lock().expect("no panic");
            counts.0 += 1;
            counts.1 += 1;
            counts.1
        };
        crowd.came.notify_all();
        let lines = beginning(format!("{here} of us"));
        Ok(EngineConnection {
            commands: Box::new(Swallow),
            output: Box::new(OneOf { lines, crowd }),
            revalidation: Revalidation::Current,
        })
    }
}

#[async_trait]
impl Engine for Deaf {
    fn describe(&self) -> &EngineDescription {
        &self.0
    }

    async fn open(&self, _: OpenSession) -> Result<EngineConnection, EngineError> {
        let lines = beginning("half a sen".to_owned());
        Ok(EngineConnection {
            commands: Box::new(Swallow),
            output: Box::new(lines),
            revalidation: Revalidation::Current,
        })
    }
}

#[async_trait]
impl Engine for Jammed {
    fn describe(&self) -> &EngineDescription {
        &self.0
    }

    async fn open(&self, _: OpenSession) -> Result<EngineConnection, EngineError> {
        let ask = |number: usize| EngineEvent::Asked {
            ask: format!("q{number}"),
            question: Question {
                title: "Why?".to_owned(),
                details: String::new(),
                shape: Shape::Confirm,
                default: None,
            },
            timeout: None,
        };
        // One command is on its way to it, and as many wait as may.
        let asks = (0..MAX_WAITING_COMMANDS + 2).map(ask);
        Ok(EngineConnection {
            commands: Box::new(Stuck),
            output: Box::new(Lines(asks.collect())),
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
