//! A model of an engine. The obedient one does what the port asks; the hostile one repeats,
//! reorders, loses, invents, spends its queue, dies, and obeys an abort late or never.

use std::collections::VecDeque;
use std::time::Duration;

use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::InputId;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{Effect, EngineTag, Input};
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineCommand, EngineEvent, Revalidation, StopReason};

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
            next_at: Timestamp::default(),
            names: 0,
        }
    }

    /// When it has something to say.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        let busy = self.tag.is_some() && !self.plan.is_empty();
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
                if self.plan.is_empty() {
                    self.next_at = now;
                }
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
        Some(Input::Engine { tag, event })
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
            run: tag.run,
            ordinal: 1 + u32::try_from(rng.below(4)).unwrap_or(0),
        };
        match rng.below(9) {
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
            _ => {}
        }
    }
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
    use crate::driver::facts;

    #[test]
    fn every_mischief_is_done_sooner_or_later() {
        let (run, token) = (facts::run_id(1), LeaseToken(1));
        let generation = 1;
        let tag = EngineTag {
            run,
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
