//! Engines with a wire that is tapped: what the control plane says to them is judged (T14 to T16).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sessionplane_core::domain::ids::{AgentName, InputId, InteractionId, SessionId};
use sessionplane_core::domain::input::InputFate;
use sessionplane_core::domain::interaction::InteractionAnswer;
use sessionplane_core::ports::clock::{Clock, Spawner};
use sessionplane_core::ports::engine::{
    Engine, EngineCommand, EngineCommands, EngineConnection, EngineDescription, EngineError,
    EngineEvent, EngineOutput, OpenSession,
};
use sessionplane_server::adapters::engine::hostile::{HostileEngine, HostileOptions};
use sessionplane_server::adapters::engine::scripted::ScriptedEngine;
use sessionplane_server::app::agents::AgentCatalog;

use crate::books::Books;
use crate::executor::{Executor, Process, lock};
use crate::log::Log;

/// What was said to engines. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Wire {
    log: Log,
    books: Books,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    /// Engines that are open.
    open: BTreeSet<(Process, SessionId)>,
    /// Openings so far.
    openings: u64,
    /// Answers by the name of their question.
    answers: BTreeMap<(u64, String), u64>,
    /// How often a question was answered, by its title.
    told: BTreeMap<InteractionId, u64>,
}

impl Wire {
    pub(crate) fn new(log: Log, books: Books) -> Self {
        Self {
            log,
            books,
            heard: Arc::default(),
        }
    }

    /// How often an engine was told an answer of a question.
    pub(crate) fn told(&self, id: InteractionId) -> u64 {
        lock(&self.heard).told.get(&id).copied().unwrap_or(0)
    }

    /// The agents of a start of the server: `scripted`, and as many hostile ones as are named.
    pub(crate) fn agents(
        &self,
        executor: &Executor,
        process: Process,
        hostile: &[u64],
    ) -> AgentCatalog {
        let (clock, spawner) = (executor.clock(), executor.spawner(process));
        let scripted = Arc::new(ScriptedEngine::new(clock.clone(), spawner.clone()));
        let first = name("scripted");
        let catalog = AgentCatalog::new(first.clone(), first, self.tap(scripted, process, true));
        hostile.iter().fold(catalog, |catalog, seed| {
            let engine = hostile_engine(*seed, &clock, &spawner);
            let tapped = self.tap(engine, process, false);
            catalog.with(name(&format!("hostile-{seed}")), tapped)
        })
    }

    /// Tells the books what the agents may use.
    pub(crate) fn declare(&self, agents: &AgentCatalog) {
        let mut books = self.books.read();
        for name in agents.names() {
            books.models.insert(name.clone(), agents.models(name));
        }
    }

    fn tap(&self, inner: Arc<dyn Engine>, process: Process, tame: bool) -> Arc<dyn Engine> {
        Arc::new(Tapped {
            inner,
            process,
            tame,
            wire: self.clone(),
        })
    }
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("an agent's name")
}

fn hostile_engine(
    seed: u64,
    clock: &Arc<dyn Clock>,
    spawner: &Arc<dyn Spawner>,
) -> Arc<dyn Engine> {
    let options = HostileOptions {
        between_runs: true,
        ..HostileOptions::wild(seed)
    };
    Arc::new(HostileEngine::new(options, clock.clone(), spawner.clone()))
}

struct Tapped {
    inner: Arc<dyn Engine>,
    process: Process,
    /// Its questions are named by their titles.
    tame: bool,
    wire: Wire,
}

#[async_trait]
impl Engine for Tapped {
    fn describe(&self) -> &EngineDescription {
        self.inner.describe()
    }

    async fn open(&self, open: OpenSession) -> Result<EngineConnection, EngineError> {
        let seat = (self.process, open.session);
        let (free, opening) = {
            let mut heard = lock(&self.wire.heard);
            heard.openings += 1;
            (heard.open.insert(seat), heard.openings)
        };
        self.wire.log.ensure(free, || {
            format!("{:?} has two engines at a time", open.session)
        });
        let placed = self.wire.books.place(open.session);
        self.wire.log.ensure(placed == open.place, || {
            let session = open.session;
            format!(
                "C45: {session} works at {placed:?}, and an engine is opened at {:?}",
                open.place
            )
        });
        let seat = Seat {
            wire: self.wire.clone(),
            seat,
        };
        let connection = self.inner.open(open).await?;
        let handed = Arc::default();
        let commands = Commands {
            inner: connection.commands,
            tame: self.tame,
            opening,
            prompts: 0,
            aborted: false,
            handed: Arc::clone(&handed),
            seat,
        };
        let output = Output {
            inner: connection.output,
            handed,
        };
        Ok(EngineConnection {
            commands: Box::new(commands),
            output: Box::new(output),
            revalidation: connection.revalidation,
        })
    }
}

/// An engine that is open, until this is dropped.
struct Seat {
    wire: Wire,
    seat: (Process, SessionId),
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.wire.heard).open.remove(&self.seat);
    }
}

/// Inputs that the engine holds, and those that it has shown.
type Handed = Arc<Mutex<BTreeMap<InputId, bool>>>;

struct Commands {
    inner: Box<dyn EngineCommands>,
    tame: bool,
    opening: u64,
    prompts: u32,
    aborted: bool,
    handed: Handed,
    seat: Seat,
}

impl Commands {
    fn judge(&mut self, command: &EngineCommand) -> Result<(), String> {
        if self.aborted {
            return Err("T16: something is said after an abort".to_owned());
        }
        match command {
            EngineCommand::Prompt { number, input, .. } => {
                self.prompts += 1;
                if *number != self.prompts {
                    return Err(format!("T15: prompt {number}, not {}", self.prompts));
                }
                input.map_or(Ok(()), |input| self.hand(input))
            }
            EngineCommand::Steer { input, .. } => self.hand(*input),
            EngineCommand::Answer { ask, answer } => self.answer(ask, answer.as_ref()),
            EngineCommand::Abort => {
                self.aborted = true;
                Ok(())
            }
            EngineCommand::Compact { .. } => Ok(()),
        }
    }

    fn hand(&self, input: InputId) -> Result<(), String> {
        let stored = self.seat.wire.books.read().inputs.get(&input).cloned();
        if stored.is_none_or(|it| it.fate != InputFate::Pending) {
            return Err(format!("T14: {input} is handed over and does not wait"));
        }
        let before = lock(&self.handed).insert(input, false);
        before.map_or(Ok(()), |_| {
            Err(format!("T15: {input} is handed over twice"))
        })
    }

    /// C25: the engine hears of each question once, and what was accepted.
    fn answer(&self, ask: &str, answer: Option<&InteractionAnswer>) -> Result<(), String> {
        let wire = &self.seat.wire;
        let times = {
            let mut heard = lock(&wire.heard);
            let times = heard
                .answers
                .entry((self.opening, ask.to_owned()))
                .or_default();
            *times += 1;
            *times
        };
        if !self.tame {
            return Ok(());
        }
        if times > 1 {
            return Err(format!("C25: {ask} was answered {times} times"));
        }
        let session = self.seat.seat.1;
        let stored = {
            let books = wire.books.read();
            let of = |id: &InteractionId| {
                books
                    .runs
                    .get(&id.run)
                    .is_some_and(|run| run.session == session)
            };
            let mut all = books.interactions.values().rev();
            all.find(|it| it.question.title == ask && of(&it.id))
                .cloned()
        };
        let resolution = stored.as_ref().and_then(|it| it.resolution.as_ref());
        let (Some(stored), Some(resolution)) = (&stored, resolution) else {
            return answer.map_or(Ok(()), |_| {
                Err(format!("C39: {ask}: an answer before it is durable"))
            });
        };
        *lock(&wire.heard).told.entry(stored.id).or_default() += 1;
        let shown = answer.and_then(|it| stored.question.showable(it));
        if shown == resolution.answer {
            Ok(())
        } else {
            Err(format!(
                "C25: {ask}: {answer:?} is told, {resolution:?} is stored"
            ))
        }
    }
}

#[async_trait]
impl EngineCommands for Commands {
    async fn send(&mut self, command: EngineCommand) -> Result<(), EngineError> {
        let judged = self.judge(&command);
        let log = self.seat.wire.log.clone();
        log.tell("engine", (self.opening, &command));
        if let Err(problem) = judged {
            log.wrong(format!("{problem}: {command:?}"));
        }
        self.inner.send(command).await
    }
}

struct Output {
    inner: Box<dyn EngineOutput>,
    handed: Handed,
}

#[async_trait]
impl EngineOutput for Output {
    async fn next(&mut self) -> Option<EngineEvent> {
        let event = self.inner.next().await?;
        // What comes back may be handed over again.
        if let EngineEvent::InputTakenBack { input } = &event {
            lock(&self.handed).remove(input);
        }
        Some(event)
    }
}
