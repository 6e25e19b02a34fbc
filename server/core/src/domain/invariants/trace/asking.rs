//! What the engine is told of its questions: each once, and what is stored of that very question.

use std::collections::{BTreeMap, BTreeSet};

use super::durable::Durable;
use crate::domain::command::Command;
use crate::domain::ids::InteractionId;
use crate::domain::interaction::{Interaction, InteractionAnswer, Question, ResolutionCause};
use crate::domain::invariants::{Held, ensure};
use crate::domain::lease::LeaseToken;
use crate::domain::lifecycle::{EngineTag, Input};
use crate::ports::engine::EngineEvent;

/// What was asked under one name. Engines may use a name again.
#[derive(Clone, Debug, Default)]
struct Asked {
    questions: Vec<Question>,
    /// How often it was asked and not told of.
    untold: u32,
    /// The engine stopped waiting for it: what was answered may never be told.
    over: bool,
}

/// Who asked what, and who answered, since the session is served.
#[derive(Clone, Debug, Default)]
pub(super) struct Asking {
    asked: BTreeMap<(LeaseToken, String), Asked>,
    given: BTreeMap<InteractionId, Vec<InteractionAnswer>>,
    told: BTreeSet<InteractionId>,
}

impl Asking {
    pub(super) fn stepping(&mut self, input: &Input) {
        match input {
            Input::Engine { tag, event, .. } => self.reported(tag.token, event),
            Input::Dispatch { facts, .. } => {
                if let Command::Respond {
                    interaction,
                    answer,
                } = &facts.command
                {
                    let given = self.given.entry(*interaction).or_default();
                    given.push(answer.clone());
                }
            }
            _ => {}
        }
    }

    fn reported(&mut self, token: LeaseToken, event: &EngineEvent) {
        match event {
            EngineEvent::Asked { ask, question, .. } => {
                let asked = self.asked.entry((token, ask.clone())).or_default();
                asked.questions.push(question.clone());
                asked.untold += 1;
            }
            EngineEvent::AskWithdrawn { ask } => {
                let asked = self.asked.entry((token, ask.clone())).or_default();
                asked.over = true;
            }
            EngineEvent::Stopped { .. } => {
                for asked in self.asked.values_mut() {
                    asked.over = true;
                }
            }
            _ => {}
        }
    }

    /// The engine is told of a question: what is stored as its end, once that is.
    pub(super) fn answering(
        &mut self,
        tag: EngineTag,
        ask: &str,
        answer: Option<&InteractionAnswer>,
        durable: &Durable,
    ) -> Held {
        let key = (tag.token, ask.to_owned());
        let asked = self.asked.get(&key).filter(|asked| asked.untold > 0);
        ensure(asked.is_some(), "T23", || {
            format!("{ask:?} is answered twice, or was never asked")
        })?;
        let Some(asked) = asked else { return Ok(()) };
        let mut ends = tag
            .run
            .into_iter()
            .flat_map(|run| durable.interactions_of(run))
            .filter(|it| asked.questions.contains(&it.question) && !self.told.contains(&it.id));
        let end = if let Some(answer) = answer {
            let end = ends.find(|it| self.says(it, answer)).map(|it| it.id);
            ensure(end.is_some(), "T23", || {
                format!("{ask:?} is told {answer:?}, which is not stored as its answer")
            })?;
            end
        } else {
            let lost = ends.find(|it| !asked.over && says_something(it));
            ensure(lost.is_none(), "T23", || {
                format!("{ask:?} is told that nobody answered, and stored is {lost:?}")
            })?;
            None
        };
        self.told.extend(end);
        if let Some(asked) = self.asked.get_mut(&key) {
            asked.untold -= 1;
        }
        Ok(())
    }

    /// Whether this is how it ended. What is stored of a secret says nothing: it must be what
    /// somebody gave, or the default.
    fn says(&self, it: &Interaction, answer: &InteractionAnswer) -> bool {
        let Some(end) = &it.resolution else {
            return false;
        };
        let given = match end.cause {
            ResolutionCause::Answered => {
                let given = self.given.get(&it.id);
                given.is_some_and(|given| given.contains(answer))
            }
            ResolutionCause::Expired => it.question.default.as_ref() == Some(answer),
            ResolutionCause::Aborted | ResolutionCause::EngineGone => false,
        };
        given && end.answer == it.question.showable(answer)
    }
}

fn says_something(it: &Interaction) -> bool {
    it.resolution.as_ref().is_some_and(|end| match end.cause {
        ResolutionCause::Answered => true,
        ResolutionCause::Expired => it.question.default.is_some(),
        ResolutionCause::Aborted | ResolutionCause::EngineGone => false,
    })
}
