//! A model of an engine. The obedient one does what the port asks; the hostile one repeats,
//! reorders, loses, invents, spends its queue, dies, and obeys an abort late or never.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::{EntryId, InputId};
use sessionplane_core::domain::interaction::Question;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{Effect, EngineTag, Input};
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineCommand, EngineEvent, Revalidation, StopReason};

use super::facts;
use super::questions::some_question;
use super::rng::Rng;

/// What is left of the engine's plan.
#[derive(Clone, Debug)]
enum Act {
    Open,
    Say(EngineEvent),
    /// The model is about to be called: a handed steer is shown here.
    Boundary,
    /// The end of a prompt, by its number.
    Stop(u32, StopReason),
    Die,
    /// Nothing for so many milliseconds.
    Wait(u64),
    /// It goes on once it was told of this question.
    Await(String),
}

/// One connection.
#[derive(Clone, Debug)]
pub(crate) struct EngineModel {
    hostile: bool,
    tag: Option<EngineTag>,
    plan: VecDeque<Act>,
    steer: Option<InputId>,
    /// The number of the last prompt.
    prompt: u32,
    /// Questions that it was told of and has not gone on with.
    told: BTreeSet<String>,
    next_at: Timestamp,
    names: u32,
}

impl EngineModel {
    pub(crate) fn new(hostile: bool) -> Self {
        Self {
            hostile,
            tag: None,
            plan: VecDeque::new(),
            steer: None,
            prompt: 0,
            told: BTreeSet::new(),
            next_at: Timestamp::default(),
            names: 0,
        }
    }

    /// When it has something to say.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        let waits = |act: &Act| matches!(act, Act::Await(ask) if !self.told.contains(ask));
        let busy = self.tag.is_some() && self.plan.front().is_some_and(|act| !waits(act));
        busy.then_some(self.next_at)
    }

    /// The shell did this.
    pub(crate) fn take(&mut self, effect: &Effect, now: Timestamp, rng: &mut Rng) {
        match effect {
            Effect::OpenEngine(tag) => {
                *self = Self {
                    tag: Some(*tag),
                    names: self.names,
                    ..Self::new(self.hostile)
                };
                self.plan.push_back(Act::Open);
                self.next_at = now.after(Duration::from_millis(rng.below(40)));
            }
            Effect::Tell(tag, command) if self.tag == Some(*tag) => {
                self.next_at = self.next_at.max(now);
                self.told(command, rng);
            }
            Effect::DropEngine(tag) if self.tag == Some(*tag) => self.dropped(rng),
            _ => {}
        }
    }

    /// What is on its way may still arrive.
    fn dropped(&mut self, rng: &mut Rng) {
        self.plan
            .truncate(usize::try_from(rng.below(3)).unwrap_or(0));
        self.plan.push_back(Act::Die);
    }

    fn told(&mut self, command: &EngineCommand, rng: &mut Rng) {
        match command {
            EngineCommand::Prompt { number, input, .. } => {
                self.prompt = *number;
                let shown = input.map(|input| EngineEvent::InputShown { input });
                self.plan.extend(shown.map(Act::Say));
                for _ in 0..=rng.below(2) {
                    self.turn(rng);
                }
                self.end(rng);
            }
            EngineCommand::Steer { input, .. } => self.steer = Some(*input),
            EngineCommand::Abort => self.abort(rng),
            EngineCommand::Compact { .. } => self.compact(rng),
            EngineCommand::Answer { ask, .. } => {
                self.told.insert(ask.clone());
            }
        }
    }

    fn turn(&mut self, rng: &mut Rng) {
        self.plan.push_back(Act::Boundary);
        self.plan.push_back(Act::Say(EngineEvent::TurnStarted));
        if rng.one_in(4) {
            self.plan.push_back(Act::Wait(20));
        }
        if !rng.one_in(5) {
            self.message(rng);
        }
        if rng.one_in(2) {
            self.tool(rng);
        }
        if rng.one_in(5) {
            self.ask(rng);
        }
        if rng.one_in(12) {
            let say = |event| Act::Say(event);
            self.plan.push_back(say(EngineEvent::CompactionStarted));
            self.plan.push_back(Act::Wait(rng.below(200)));
            let end = summary(rng);
            self.plan
                .push_back(say(EngineEvent::CompactionFinished(end)));
        }
        self.plan.push_back(Act::Say(EngineEvent::TurnFinished));
    }

    fn name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what}{}", self.names)
    }

    fn message(&mut self, rng: &mut Rng) {
        let message = self.name("m");
        let mut say = |event| self.plan.push_back(Act::Say(event));
        say(EngineEvent::MessageStarted {
            message: message.clone(),
        });
        for piece in 0..rng.below(4) {
            say(EngineEvent::MessageDelta {
                message: message.clone(),
                channel: if piece == 0 {
                    OutputChannel::Thinking
                } else {
                    OutputChannel::Text
                },
                text: format!("piece {piece} "),
            });
        }
        let tokens = rng.below(100);
        say(EngineEvent::MessageFinished {
            message,
            text: rng.one_in(3).then(|| "the whole".to_owned()),
            usage: Usage {
                output_tokens: rng.one_in(2).then_some(tokens),
                ..Usage::default()
            },
        });
    }

    fn tool(&mut self, rng: &mut Rng) {
        let call = self.name("c");
        let mut say = |event| self.plan.push_back(Act::Say(event));
        say(EngineEvent::ToolStarted {
            call: call.clone(),
            name: "shell".to_owned(),
            input_json: "{}".to_owned(),
        });
        for line in 0..rng.below(30) {
            say(EngineEvent::ToolProgress {
                call: call.clone(),
                output: format!("line {line}"),
            });
        }
        say(EngineEvent::ToolFinished {
            call,
            output: "done".to_owned(),
            failed: rng.one_in(5),
        });
    }

    /// Asks up to three questions at once, and goes on once it was told of each.
    fn ask(&mut self, rng: &mut Rng) {
        let asks: Vec<String> = (0..=rng.below(3)).map(|_| self.name("q")).collect();
        for ask in &asks {
            let timeout = rng.one_in(3).then(|| rng.below(5_000));
            // No two are alike, so that the answer to one is not taken for that to another.
            let question = Question {
                title: format!("{ask}?"),
                ..some_question(rng)
            };
            self.plan.push_back(Act::Say(EngineEvent::Asked {
                ask: ask.clone(),
                question,
                timeout: timeout.map(Duration::from_millis),
            }));
        }
        for ask in asks {
            if rng.one_in(6) {
                self.plan.push_back(Act::Wait(rng.below(400)));
                self.plan
                    .push_back(Act::Say(EngineEvent::AskWithdrawn { ask }));
            } else {
                self.plan.push_back(Act::Await(ask));
            }
        }
    }

    /// On request, outside of a run.
    fn compact(&mut self, rng: &mut Rng) {
        self.plan.push_back(Act::Wait(rng.below(300)));
        if self.hostile && rng.one_in(4) {
            // It has no business to say any of this.
            self.turn(rng);
        }
        let end = match rng.below(8) {
            0 => Act::Die,
            1 => self.stop(StopReason::Completed),
            2 if self.hostile => return,
            _ => Act::Say(EngineEvent::CompactionFinished(summary(rng))),
        };
        self.plan.push_back(end);
    }

    fn end(&mut self, rng: &mut Rng) {
        let end = match rng.below(12) {
            0 => self.stop(StopReason::Failed(Failure {
                code: "rate_limited".to_owned(),
                details: "try again later".to_owned(),
                retryable: true,
            })),
            1 => Act::Die,
            2 if self.hostile => self.stop(StopReason::Aborted),
            // Never: only an abort ends it.
            3 if self.hostile => return,
            _ => self.stop(StopReason::Completed),
        };
        self.plan.push_back(end);
    }

    fn stop(&self, reason: StopReason) -> Act {
        Act::Stop(self.prompt, reason)
    }

    fn abort(&mut self, rng: &mut Rng) {
        if self.hostile && rng.one_in(3) {
            // Spends its queue and obeys late, or not at all.
            self.plan.push_back(Act::Wait(2_000 + rng.below(6_000)));
        } else {
            self.plan.clear();
            if let Some(input) = self.steer.take() {
                let back = EngineEvent::InputTakenBack { input };
                self.plan.push_back(Act::Say(back));
            }
        }
        self.plan.push_back(self.stop(StopReason::Aborted));
    }

    /// The next report, if this moment brings one.
    pub(crate) fn speak(&mut self, now: Timestamp, rng: &mut Rng) -> Option<Input> {
        let mut tag = self.tag?;
        if self.hostile && rng.one_in(12) {
            self.mischief(tag, rng);
        }
        let act = self.plan.pop_front()?;
        self.next_at = now.after(Duration::from_millis(rng.below(15)));
        let event = match act {
            Act::Open if rng.one_in(15) => return Some(self.gone(tag)),
            Act::Open => {
                let revalidation = match rng.below(6) {
                    0 => Revalidation::Rebuilt,
                    1 => Revalidation::Replaced,
                    _ => Revalidation::Current,
                };
                return Some(Input::EngineOpened { tag, revalidation });
            }
            Act::Die => return Some(self.gone(tag)),
            Act::Await(ask) if self.told.remove(&ask) => return None,
            waits @ Act::Await(_) => {
                self.plan.push_front(waits);
                return None;
            }
            Act::Wait(millis) => {
                self.next_at = now.after(Duration::from_millis(millis));
                return None;
            }
            Act::Say(event) => event,
            Act::Boundary => EngineEvent::InputShown {
                input: self.steer.take()?,
            },
            Act::Stop(prompt, reason) => EngineEvent::Stopped { prompt, reason },
        };
        if self.hostile && rng.one_in(40) {
            tag = stale(tag, rng);
        }
        let artifact = None;
        Some(Input::Engine {
            tag,
            event,
            artifact,
        })
    }

    fn gone(&mut self, tag: EngineTag) -> Input {
        self.tag = None;
        let reason = "exit status 1".to_owned();
        Input::EngineGone { tag, reason }
    }

    /// What it was handed is never shown nor given back.
    fn forgets(&mut self) {
        self.steer = None;
    }

    fn mischief(&mut self, tag: EngineTag, rng: &mut Rng) {
        let input = InputId {
            run: tag.run.unwrap_or(facts::run_id(0)),
            ordinal: 1 + u32::try_from(rng.below(4)).unwrap_or(0),
        };
        match rng.below(11) {
            0 => {
                let again = self.plan.front().cloned();
                self.plan.extend(again);
            }
            1 => {
                if let Some(first @ Act::Say(_)) = self.plan.front().cloned() {
                    self.plan.push_front(first);
                }
            }
            2 if self.plan.len() > 1 => self.plan.swap(0, 1),
            3 => drop(self.plan.pop_front()),
            4 => self.plan.push_front(Act::Die),
            5 => {
                // Of this prompt, or once more of the one before it.
                let before = u32::try_from(rng.below(2)).unwrap_or(0);
                let prompt = self.prompt.saturating_sub(before);
                self.plan
                    .push_front(Act::Stop(prompt, StopReason::Completed));
            }
            6 => self
                .plan
                .push_front(Act::Say(EngineEvent::InputShown { input })),
            7 => self
                .plan
                .push_front(Act::Say(EngineEvent::InputTakenBack { input })),
            8 => self.forgets(),
            9 => self
                .plan
                .push_front(Act::Say(EngineEvent::CompactionStarted)),
            10 => self
                .plan
                .push_front(Act::Say(EngineEvent::CompactionFinished(summary(rng)))),
            _ => {}
        }
    }
}

/// How a compaction ends.
fn summary(rng: &mut Rng) -> Result<Compacted, Failure> {
    if rng.one_in(4) {
        return Err(Failure {
            code: "overloaded".to_owned(),
            details: "try again later".to_owned(),
            retryable: true,
        });
    }
    let session = facts::record().id;
    // Perhaps of no entry at all.
    let first_kept = rng.one_in(2).then(|| EntryId {
        session,
        seq: rng.below(60),
    });
    let said = rng.below(6);
    Ok(Compacted {
        summary: "in short ".repeat(usize::try_from(said).unwrap_or(0)),
        first_kept,
        tokens_before: Some(900),
        tokens_after: rng.one_in(2).then_some(90),
    })
}

/// A tag of another run, lease or opening.
fn stale(tag: EngineTag, rng: &mut Rng) -> EngineTag {
    match rng.below(2) {
        0 => EngineTag {
            token: LeaseToken(tag.token.0.saturating_sub(1)),
            ..tag
        },
        _ => EngineTag {
            generation: tag.generation + 1,
            ..tag
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mischief_is_done_sooner_or_later() {
        let (run, token) = (facts::run_id(1), LeaseToken(1));
        let generation = 1;
        let tag = EngineTag {
            run: Some(run),
            token,
            generation,
        };
        let input = InputId { run, ordinal: 1 };
        let (mut rng, mut forgot) = (Rng::new(1), false);
        for _ in 0..1000 {
            let mut engine = EngineModel::new(true);
            engine.steer = Some(input);
            engine.mischief(tag, &mut rng);
            forgot |= engine.steer.is_none();
        }
        assert!(forgot, "it never forgets what it was handed");
    }
}
