//! C19, C20: what an engine has said already is judged before it is given anything, wherever the
//! session's task holds it: in the burst it has taken, or in the channel.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::capabilities::{Capabilities, Steering};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::ids::{AgentName, InputId, SessionId};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::settings::ModelPolicy;
use sessionplane_core::ports::engine::{
    Engine, EngineCommand, EngineCommands, EngineConnection, EngineDescription, EngineError,
    EngineEvent, EngineOutput, OpenSession, Revalidation, StopReason,
};
use sessionplane_core::ports::lease_store::{HeldLease, LeaseStore};
use sessionplane_core::ports::repository::ReadError;
use sessionplane_server::adapters::memory::MemoryStore;
use sessionplane_server::app::App;
use sessionplane_server::app::agents::AgentCatalog;
use sessionplane_server::app::face::Faces as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::house::{owner, ports};
use crate::suite::desk::{Desk, within};
use crate::suite::world::{Pinned, World, quick};

/// More than the session's task takes in one go.
const MORE_THAN_A_BURST: usize = 100;
/// More than a test says, or is told, in one go.
const LINE: usize = 1024;

/// An engine that says what the test wants, and tells what it is told.
struct Puppet {
    described: EngineDescription,
    strings: Mutex<Option<Strings>>,
}

/// The engine's ends of both lines.
struct Strings {
    told: mpsc::Sender<EngineCommand>,
    says: mpsc::Receiver<EngineEvent>,
}

struct Ear(mpsc::Sender<EngineCommand>);
struct Mouth(mpsc::Receiver<EngineEvent>);

#[async_trait]
impl EngineCommands for Ear {
    async fn send(&mut self, command: EngineCommand) -> Result<(), EngineError> {
        let told = self.0.send(command).await;
        told.map_err(|_| EngineError("the test is over".to_owned()))
    }
}

#[async_trait]
impl EngineOutput for Mouth {
    async fn next(&mut self) -> Option<EngineEvent> {
        self.0.recv().await
    }
}

#[async_trait]
impl Engine for Puppet {
    fn describe(&self) -> &EngineDescription {
        &self.described
    }

    async fn open(&self, _: OpenSession) -> Result<EngineConnection, EngineError> {
        let mut strings = self.strings.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Strings { told, says }) = strings.take() else {
            return Err(EngineError("a puppet plays once".to_owned()));
        };
        Ok(EngineConnection {
            commands: Box::new(Ear(told)),
            output: Box::new(Mouth(says)),
            revalidation: Revalidation::Current,
        })
    }
}

/// Tokens that are minted only while the test lets them, so that it can keep the session's task
/// from its engine.
struct SlowMint {
    inner: Arc<MemoryStore>,
    may: Arc<Semaphore>,
}

#[async_trait]
impl LeaseStore for SlowMint {
    async fn mint(&self) -> Result<LeaseToken, ReadError> {
        let _may = self.may.acquire().await;
        self.inner.mint().await
    }

    async fn holder(&self, session: SessionId) -> Result<Option<LeaseToken>, ReadError> {
        self.inner.holder(session).await
    }

    async fn revoke(&self, session: SessionId) -> Result<(), ReadError> {
        self.inner.revoke(session).await
    }

    async fn orphaned(&self) -> Result<Vec<HeldLease>, ReadError> {
        self.inner.orphaned().await
    }

    async fn cut(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError> {
        self.inner.cut(session).await
    }
}

/// A session whose run is at work, and the test's ends of the engine's lines.
struct Stage {
    desk: Desk,
    told: mpsc::Receiver<EngineCommand>,
    says: mpsc::Sender<EngineEvent>,
    mint: Arc<SlowMint>,
    life: CancellationToken,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.life.cancel();
    }
}

impl Stage {
    async fn new(name: &str) -> Self {
        let (told_to, told) = mpsc::channel(LINE);
        let (says, says_from) = mpsc::channel(LINE);
        let puppet = Puppet {
            described: EngineDescription {
                name: "puppet".to_owned(),
                version: "0".to_owned(),
                capabilities: Capabilities {
                    steering: Some(Steering {
                        after_tools: true,
                        preempts_text: false,
                    }),
                    follow_up: true,
                    tool_progress: false,
                    usage: false,
                    ..Capabilities::default()
                },
                models: ModelPolicy::default(),
                commands: Vec::new(),
            },
            strings: Mutex::new(Some(Strings {
                told: told_to,
                says: says_from,
            })),
        };
        let store = Arc::new(MemoryStore::new());
        let mint = Arc::new(SlowMint {
            inner: store.clone(),
            may: Arc::new(Semaphore::new(1)),
        });
        let (ports, life) = ports(store, mint.clone());
        let agent = AgentName::parse("puppet").expect("an agent's name");
        let agents = AgentCatalog::new(agent.clone(), agent, Arc::new(puppet));
        let app = App::new(ports, agents, quick());
        let world: Arc<dyn World> = Arc::new(Pinned(Arc::new(app.as_caller(owner()))));
        let mut stage = Self {
            desk: Desk::new(&world, name),
            told,
            says,
            mint,
            life,
        };
        let run = stage.desk.invoke("go").await;
        let prompt = stage.told().await;
        assert!(matches!(prompt, EngineCommand::Prompt { input: None, .. }));
        drop(run);
        stage
    }

    async fn told(&mut self) -> EngineCommand {
        let told = within("a command", self.told.recv()).await;
        told.expect("the engine is open")
    }

    /// The session's task waits for a token from here on, while its engine goes on.
    async fn stall(&self) -> Stalled {
        let held = self.mint.may.clone().acquire_owned().await;
        let other = self.desk.clone();
        let busy = tokio::spawn(async move { other.busy("another").await });
        settle().await;
        Stalled {
            held: held.expect("it is never closed"),
            busy,
        }
    }

    fn say(&self, event: EngineEvent) {
        self.says
            .try_send(event)
            .expect("the engine is open, and the line is long enough");
    }

    /// Two steers are accepted and the first is handed over: their ids.
    async fn two_steers(&mut self) -> [InputId; 2] {
        let first = self.desk.steer("one").await;
        let second = self.desk.steer("two").await;
        let told = self.told().await;
        assert!(
            matches!(&told, EngineCommand::Steer { input, .. } if *input == first),
            "{told:?}"
        );
        [first, second]
    }

    /// The second steer continues the run, as a prompt, and is shown.
    async fn continues_with(mut self, second: InputId) {
        let told = self.told().await;
        assert!(
            matches!(&told, EngineCommand::Prompt { input: Some(input), .. } if *input == second),
            "it was handed to an engine that is known to have stopped: {told:?}"
        );
        let run = second.run;
        self.say(EngineEvent::InputShown { input: second });
        self.say(completed(2));
        let record = self.desk.settled(run).await;
        assert_eq!(record.undelivered, []);
        let shown = |entry: &&Entry| matches!(entry.body, EntryBody::User { .. });
        let entries = self.desk.entries().await;
        assert_eq!(entries.iter().filter(shown).count(), 3, "{entries:?}");
    }
}

/// The session's task, held.
struct Stalled {
    held: OwnedSemaphorePermit,
    busy: tokio::task::JoinHandle<InvokeEvent>,
}

impl Stalled {
    async fn goes_on(self) {
        drop(self.held);
        within("the answer", self.busy).await.expect("it is busy");
    }
}

/// Every task that can go on has gone on.
async fn settle() {
    for _ in 0..MORE_THAN_A_BURST {
        tokio::task::yield_now().await;
    }
}

// One thread: what is said between two awaits comes in one go.
/// The engine's end with its `prompt`th prompt.
fn completed(prompt: u32) -> EngineEvent {
    EngineEvent::Stopped {
        prompt,
        reason: StopReason::Completed,
    }
}

#[tokio::test]
async fn c19_b16_a_steer_is_not_lost_to_an_end_that_came_in_the_same_burst() {
    let mut stage = Stage::new("burst").await;
    let [first, second] = stage.two_steers().await;
    stage.say(EngineEvent::InputShown { input: first });
    stage.say(EngineEvent::TurnStarted);
    stage.say(EngineEvent::TurnFinished);
    stage.say(completed(1));
    stage.continues_with(second).await;
}

#[tokio::test]
async fn c19_b16_a_steer_is_not_lost_to_an_end_that_waits_in_the_channel() {
    let mut stage = Stage::new("channel").await;
    let [first, second] = stage.two_steers().await;
    let stalled = stage.stall().await;
    stage.say(EngineEvent::InputShown { input: first });
    for _ in 0..MORE_THAN_A_BURST {
        stage.say(EngineEvent::TurnStarted);
    }
    stage.say(completed(1));
    settle().await;
    stalled.goes_on().await;
    stage.continues_with(second).await;
}

// Time is the runtime's own, so that a deadline passes while the session's task is held.
#[tokio::test(start_paused = true)]
async fn c21_c20_what_waits_in_the_channel_at_the_deadline_of_an_abort_is_judged() {
    let mut stage = Stage::new("deadline").await;
    let [first, second] = stage.two_steers().await;
    stage.desk.abort().await;
    assert_eq!(stage.told().await, EngineCommand::Abort);
    let stalled = stage.stall().await;
    stage.say(EngineEvent::InputShown { input: first });
    tokio::time::sleep(2 * quick().limits.abort_grace).await;
    stalled.goes_on().await;
    let record = stage.desk.settled(first.run).await;
    let lost: Vec<_> = record.undelivered.iter().map(|input| input.id).collect();
    assert_eq!(lost, [second], "the first was shown before the deadline");
}
