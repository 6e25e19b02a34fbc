//! The engine itself: plays broken plans.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sessionplane_core::domain::capabilities::Capabilities;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::interaction::InteractionKind;
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::domain::settings::{Model, ModelPolicy};
use sessionplane_core::ports::clock::{Clock, Spawner};
use sessionplane_core::ports::engine::{
    Engine, EngineConnection, EngineDescription, EngineError, EngineEvent, OpenSession,
    Revalidation, StopReason,
};

use super::asides;
use super::condense;
use super::mangle::{hit, mangle};
use super::options::{AbortManner, FollowUpManner, HostileOptions};
use super::plan::{self, Beat, Labels};
use crate::adapters::engine::link::{Halt, Link, Prompt, Work, cannot_compact, connect};

/// How often it says something while it ignores an abort.
const MURMUR: Duration = Duration::from_millis(100);
/// How long it waits for an answer to a question that may stay open for longer.
const PATIENCE: Duration = Duration::from_millis(250);

/// An engine that cannot be steered, says that it takes follow-ups, and breaks every habit that its
/// options name. For tests.
pub struct HostileEngine {
    description: EngineDescription,
    options: HostileOptions,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
}

impl HostileEngine {
    /// An engine that these options determine.
    #[must_use]
    pub fn new(options: HostileOptions, clock: Arc<dyn Clock>, spawner: Arc<dyn Spawner>) -> Self {
        let description = EngineDescription {
            name: "hostile".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: Capabilities {
                steering: None,
                follow_up: true,
                tool_progress: true,
                usage: true,
                interactions: if options.asks > 0 {
                    InteractionKind::ALL.into()
                } else {
                    BTreeSet::new()
                },
                manual_compaction: options.between_runs,
                model_selection: options.between_runs,
                thinking: options.between_runs,
                navigate: options.between_runs,
                ..Capabilities::default()
            },
            models: if options.between_runs {
                models()
            } else {
                ModelPolicy::default()
            },
            commands: Vec::new(),
        };
        Self {
            description,
            options,
            clock,
            spawner,
        }
    }
}

#[async_trait]
impl Engine for HostileEngine {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    async fn open(&self, open: OpenSession) -> Result<EngineConnection, EngineError> {
        // It forgets every conversation, and says so where there is one.
        let revalidation = match open.leaf {
            None => Revalidation::Current,
            Some(_) => Revalidation::Replaced,
        };
        let options = self.options;
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(&open.session.to_bytes());
        seed[16..24].copy_from_slice(&options.seed.to_be_bytes());
        let leaf = open.leaf.map_or(0, |leaf| leaf.seq);
        seed[24..].copy_from_slice(&leaf.to_be_bytes());
        let engine = move |link| {
            let player = Player {
                link,
                session: open.session,
                options,
                chance: StdRng::from_seed(seed),
                labels: Labels::new(options.labels),
            };
            player.run()
        };
        Ok(connect(
            &*self.spawner,
            self.clock.clone(),
            revalidation,
            engine,
        ))
    }
}

/// One that it uses unless told otherwise, and one with levels.
fn models() -> ModelPolicy {
    let model = |spec: &str, levels: &[&str]| Model {
        spec: spec.to_owned(),
        thinking_levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        default_level: levels.first().map(|level| (*level).to_owned()),
    };
    ModelPolicy {
        models: vec![model("blunt", &[]), model("devious", &["low", "high"])],
        default: RunSettings {
            model: Some("blunt".to_owned()),
            thinking_level: None,
        },
    }
}

struct Player {
    link: Link,
    session: SessionId,
    options: HostileOptions,
    chance: StdRng,
    labels: Labels,
}

/// The engine leaves for good.
struct Left;

impl Player {
    async fn run(mut self) {
        while let Some(work) = self.link.next_work().await {
            let done = match work {
                Work::Prompt(prompt) => self.perform(&prompt).await,
                Work::Compact { .. } => self.condense().await,
            };
            if done.is_err() {
                return;
            }
        }
    }

    async fn condense(&mut self) -> Result<(), Left> {
        if !self.options.between_runs {
            let cannot = self.link.compacted(Err(cannot_compact())).await;
            return cannot.map(|_| ()).map_err(|_| Left);
        }
        let (beats, leaves) = condense::draw(&mut self.chance, &mut self.labels, self.session);
        for beat in beats {
            match self.say(beat).await {
                Ok(()) => {}
                Err(Halt::Gone) => return Err(Left),
                Err(Halt::Aborted) => return self.condense_on().await,
            }
        }
        self.link.ignore_aborts();
        if leaves { Err(Left) } else { Ok(()) }
    }

    /// After an abort: comes to an end in its manner, and then with any end.
    async fn condense_on(&mut self) -> Result<(), Left> {
        self.link.ignore_aborts();
        let late = match self.options.abort {
            AbortManner::Prompt => Duration::ZERO,
            AbortManner::Late(delay) => delay,
            AbortManner::Never => Duration::MAX,
        };
        self.link.pause(late).await.map_err(|_| Left)?;
        let end = asides::compacted(&mut self.chance, &mut self.labels);
        self.link.emit(end).await.map_err(|_| Left)
    }

    async fn perform(&mut self, prompt: &Prompt) -> Result<(), Left> {
        let mut beats = self.draw(prompt).into_iter();
        match self.play(&mut beats).await? {
            Some(Halt::Gone) => Err(Left),
            Some(Halt::Aborted) => self.abort(prompt, beats).await,
            None => {
                self.link.ignore_aborts();
                Ok(())
            }
        }
    }

    fn draw(&mut self, prompt: &Prompt) -> Vec<Beat> {
        let (options, chance, labels) = (&self.options, &mut self.chance, &mut self.labels);
        let beats = plan::draw(chance, labels, prompt.number);
        let mut beats = asides::insert(beats, options, chance, labels);
        match (prompt.input, self.options.follow_up) {
            (Some(input), FollowUpManner::Shown) => {
                let shown = Beat {
                    pause: Duration::ZERO,
                    event: EngineEvent::InputShown { input },
                };
                beats.insert(0, shown);
            }
            (Some(_), FollowUpManner::Lost) => {
                self.link.forget_prompt();
                beats.drain(..beats.len() - 1);
            }
            (Some(_), FollowUpManner::Spent) => self.link.forget_prompt(),
            (None, _) => {}
        }
        mangle(beats, &self.options, &mut self.chance, &mut self.labels)
    }

    /// Plays until the plan is over, an abort is heard, or the engine dies.
    async fn play(&mut self, beats: &mut impl Iterator<Item = Beat>) -> Result<Option<Halt>, Left> {
        for beat in beats {
            if hit(&mut self.chance, self.options.dies) {
                return Err(Left);
            }
            let question = match &beat.event {
                EngineEvent::Asked { ask, timeout, .. } => timeout.map(|open| (ask.clone(), open)),
                _ => None,
            };
            if let Err(halt) = self.say(beat).await {
                return Ok(Some(halt));
            }
            let Some((ask, open)) = question else {
                continue;
            };
            if hit(&mut self.chance, self.options.ignores) {
                continue;
            }
            if let Err(halt) = self.wait(ask, open).await {
                return Ok(Some(halt));
            }
        }
        Ok(None)
    }

    /// Waits for an answer to anything that it asked. When nobody has told it anything for longer
    /// than the question may stay open, it takes the question back and goes on.
    async fn wait(&mut self, ask: String, open: Duration) -> Result<(), Halt> {
        let enough = self.link.timer(open.min(PATIENCE).saturating_mul(2));
        let answered = tokio::select! {
            biased;
            answered = self.link.wait_answer() => Some(answered?),
            () = enough => None,
        };
        match answered {
            Some(_) => Ok(()),
            None => self.link.emit(EngineEvent::AskWithdrawn { ask }).await,
        }
    }

    async fn say(&mut self, beat: Beat) -> Result<(), Halt> {
        self.link.pause(beat.pause).await?;
        self.link.emit(beat.event).await
    }

    async fn abort(
        &mut self,
        prompt: &Prompt,
        rest: impl Iterator<Item = Beat>,
    ) -> Result<(), Left> {
        self.link.ignore_aborts();
        let until = match self.options.abort {
            AbortManner::Prompt => None,
            AbortManner::Late(delay) => Some(delay),
            AbortManner::Never => Some(Duration::MAX),
        };
        if let Some(until) = until {
            self.talk_on(rest, until).await.map_err(|_| Left)?;
        }
        let stopped = self.link.stop(StopReason::Aborted).await;
        stopped.map_err(|_| Left)?;
        if hit(&mut self.chance, self.options.repeats) {
            let again = EngineEvent::Stopped {
                prompt: prompt.number,
                reason: StopReason::Aborted,
            };
            self.link.emit(again).await.map_err(|_| Left)?;
        }
        Ok(())
    }

    /// Goes on as if it had heard nothing, and then murmurs, without a stop.
    async fn talk_on(
        &mut self,
        rest: impl Iterator<Item = Beat>,
        until: Duration,
    ) -> Result<(), Halt> {
        let mut spent = Duration::ZERO;
        let mut rest = rest.filter(|beat| !matches!(beat.event, EngineEvent::Stopped { .. }));
        while spent < until {
            let beat = rest.next().unwrap_or_else(|| Beat {
                pause: MURMUR,
                event: EngineEvent::MessageDelta {
                    message: self.labels.next("murmur"),
                    channel: OutputChannel::Text,
                    text: "and on ".to_owned(),
                },
            });
            spent = spent.saturating_add(beat.pause);
            self.say(beat).await?;
        }
        Ok(())
    }
}
