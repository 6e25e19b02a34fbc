//! The questions that are open where somebody is, and which one a line answers. Values only.

use std::collections::BTreeMap;

use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::InteractionId;
use sessionplane_core::domain::interaction::{Interaction, Shape};
use sessionplane_core::domain::view::SessionView;

use crate::cli::answering::from_text;
use crate::watch::WatchItem;

/// What is open, as far as was told. A run may have a few open only.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: BTreeMap<InteractionId, Interaction>,
    /// The newest that the run has asked.
    newest: Option<InteractionId>,
}

impl Questions {
    /// Keeps in mind what an item tells; the questions that no event will show.
    pub(super) fn note(&mut self, item: &WatchItem) -> Vec<Interaction> {
        match item {
            WatchItem::Snapshot(state) => return self.replace(&state.view),
            WatchItem::Event(envelope) => match &envelope.event.body {
                EventBody::InteractionRequested { interaction } => {
                    self.newest = self.newest.max(Some(interaction.id));
                    self.open.insert(interaction.id, (**interaction).clone());
                }
                EventBody::InteractionResolved { id, .. } => {
                    self.open.remove(id);
                }
                EventBody::RunSettled { .. } => *self = Self::default(),
                _ => {}
            },
            _ => {}
        }
        Vec::new()
    }

    fn replace(&mut self, view: &SessionView) -> Vec<Interaction> {
        let open = view.open_interactions().map(|it| (it.id, it.clone()));
        let before = std::mem::replace(&mut self.open, open.collect());
        self.newest = view.interactions.keys().copied().max();
        let new = self.open.values().filter(|it| !before.contains_key(&it.id));
        new.cloned().collect()
    }

    /// The command that gives an answer.
    ///
    /// The first word names a question if the run has asked one of that name, open or not: what is
    /// meant must not depend on who else has just answered another one. But where one question is
    /// open and the whole text is one of its choices, it is that.
    ///
    /// # Errors
    /// Why there is none, for a person.
    pub(super) fn answer(&self, text: &str) -> Result<Command, String> {
        let mut open = self.open.values();
        let only = open.next().filter(|_| open.next().is_none());
        if let Some(question) = only.filter(|it| has_choices(it))
            && let Ok(command) = respond(question, text)
        {
            return Ok(command);
        }
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let question = match (self.named(word), only) {
            (Some(id), _) => self.open.get(&id),
            (None, Some(only)) => return respond(only, text),
            (None, None) if self.open.is_empty() => return Err("no question is open".to_owned()),
            (None, None) => return Err(self.several()),
        };
        match question {
            Some(_) if rest.trim().is_empty() => Err(format!(
                "{word} is a question; write: /answer {word} ANSWER"
            )),
            Some(question) => respond(question, rest.trim()),
            None if self.open.is_empty() => Err(format!("{word} is not open")),
            None => Err(format!("{word} is not open; {}", self.several())),
        }
    }

    /// The question of the run that a word names.
    fn named(&self, word: &str) -> Option<InteractionId> {
        if let Ok(id) = word.parse() {
            return Some(id);
        }
        let newest = self.newest?;
        let ordinal = word.strip_prefix('q')?.parse().ok()?;
        let asked = (1..=newest.ordinal).contains(&ordinal) && word == format!("q{ordinal}");
        asked.then_some(InteractionId { ordinal, ..newest })
    }

    fn several(&self) -> String {
        let open = self.open.values().map(|it| {
            let title = &it.question.title;
            format!("\n  /answer q{} ...   {title}", it.id.ordinal)
        });
        open.fold("say which one is answered:".to_owned(), |all, one| {
            all + &one
        })
    }
}

fn has_choices(asked: &Interaction) -> bool {
    matches!(asked.question.shape, Shape::Approval(_) | Shape::Select(_))
}

fn respond(question: &Interaction, text: &str) -> Result<Command, String> {
    let answer = from_text(&question.question, text)?;
    Ok(Command::Respond {
        interaction: question.id,
        answer,
    })
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::event::{Event, EventEnvelope};
    use sessionplane_core::domain::interaction::{
        Choice, InteractionAnswer, Question, Resolution, ResolutionCause,
    };
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn id(ordinal: u32) -> InteractionId {
        let id = format!("01K00000000000000000000002-q{ordinal}");
        id.parse().unwrap()
    }

    fn told(questions: &mut Questions, body: EventBody) {
        questions.note(&WatchItem::Event(EventEnvelope {
            session: "01K00000000000000000000001".parse().unwrap(),
            epoch: 1,
            seq: 7,
            event: Event {
                at: Timestamp::default(),
                run: Some(id(1).run),
                body,
            },
        }));
    }

    fn asked(shapes: impl IntoIterator<Item = Shape>) -> Questions {
        let mut questions = Questions::default();
        for (ordinal, shape) in (1..).zip(shapes) {
            let interaction = Box::new(Interaction {
                id: id(ordinal),
                question: Question {
                    title: "?".to_owned(),
                    details: String::new(),
                    shape,
                    default: None,
                },
                asked_at: Timestamp::default(),
                deadline: None,
                resolution: None,
            });
            told(
                &mut questions,
                EventBody::InteractionRequested { interaction },
            );
        }
        questions
    }

    fn resolved(questions: &mut Questions, ordinal: u32) {
        let resolution = Box::new(Resolution {
            at: Timestamp::default(),
            cause: ResolutionCause::Answered,
            answer: None,
            origin: None,
        });
        let id = id(ordinal);
        told(questions, EventBody::InteractionResolved { id, resolution });
    }

    const TEXT: Shape = Shape::Input { secret: false };

    fn text(ordinal: u32, text: &str) -> Command {
        Command::Respond {
            interaction: id(ordinal),
            answer: InteractionAnswer::Text(text.to_owned()),
        }
    }

    fn choice(ordinal: u32, choice: &str) -> Command {
        Command::Respond {
            interaction: id(ordinal),
            answer: InteractionAnswer::Choice(choice.to_owned()),
        }
    }

    fn quarters() -> Shape {
        let quarter = |n| Choice {
            id: format!("q{n}"),
            label: format!("quarter {n}"),
        };
        Shape::Select((1..5).map(quarter).collect())
    }

    #[test]
    fn c25_a_first_word_names_a_question_that_the_run_has_asked() {
        let one = asked([TEXT]);
        assert_eq!(one.answer("far north"), Ok(text(1, "far north")));
        assert_eq!(one.answer("q1 far north"), Ok(text(1, "far north")));
        assert_eq!(one.answer("q1 q1 was weak"), Ok(text(1, "q1 was weak")));
        assert_eq!(one.answer("q3 was weak"), Ok(text(1, "q3 was weak")));
        assert_eq!(one.answer("quite so"), Ok(text(1, "quite so")));
        let whole = format!("{} far north", id(1));
        assert_eq!(one.answer(&whole), Ok(text(1, "far north")));
        let bare = one.answer("q1").unwrap_err();
        assert!(bare.contains("/answer q1 ANSWER"), "{bare}");
        let two = asked([TEXT, TEXT]);
        assert_eq!(two.answer("q2 far north"), Ok(text(2, "far north")));
        let unnamed = two.answer("far north").unwrap_err();
        assert!(unnamed.contains("say which one"), "{unnamed}");
    }

    #[test]
    fn c25_a_choice_that_looks_like_a_question_is_a_choice_of_the_only_one_open() {
        let one = asked([quarters()]);
        assert_eq!(one.answer("q2"), Ok(choice(1, "q2")));
        assert_eq!(one.answer("q1"), Ok(choice(1, "q1")));
        assert_eq!(one.answer("quarter 3"), Ok(choice(1, "q3")));
        assert_eq!(one.answer("q1 q2"), Ok(choice(1, "q2")));
        let two = asked([quarters(), TEXT]);
        assert_eq!(two.answer("q1 q2"), Ok(choice(1, "q2")));
        assert!(two.answer("q2").is_err(), "which one is not said");
    }

    #[test]
    fn c25_an_answer_to_what_somebody_else_has_answered_goes_to_no_other_question() {
        let mut two = asked([TEXT, TEXT]);
        resolved(&mut two, 2);
        let refused = two.answer("q2 far north").unwrap_err();
        assert!(refused.starts_with("q2 is not open"), "{refused}");
        resolved(&mut two, 1);
        assert_eq!(two.answer("yes").unwrap_err(), "no question is open");
    }
}
