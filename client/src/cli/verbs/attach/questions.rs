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
    /// A first word of the shape of a question's name names one, open or not, or is refused: what is
    /// meant must not depend on who else has just answered another one, and a mistyped name must
    /// not answer what was not meant. But where one question is open and the whole text is one of
    /// its choices, it is that.
    ///
    /// # Errors
    /// Why there is none, for a person.
    pub(super) fn answer(&self, text: &str) -> Result<Command, String> {
        let only = self.only();
        if let Some(question) = only.filter(|it| has_choices(it))
            && let Ok(command) = respond(question, text)
        {
            return Ok(command);
        }
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let question = match (self.named(word), only) {
            (Named::Asked(id), _) => self.open.get(&id),
            (Named::Never | Named::Nothing, _) if self.open.is_empty() => {
                return Err("no question is open".to_owned());
            }
            (Named::Never, Some(only)) => return Err(never(word, only)),
            (Named::Never, None) => {
                return Err(format!("there is no question {word}; {}", self.several()));
            }
            (Named::Nothing, Some(only)) => return respond(only, text),
            (Named::Nothing, None) => return Err(self.several()),
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

    /// The question whose answer is a secret, if that is what a text answers; and whether the text
    /// holds the secret.
    pub(super) fn secret(&self, text: Option<&str>) -> Option<(&Interaction, bool)> {
        let text = text.unwrap_or_default();
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (question, given) = match self.named(word) {
            Named::Asked(id) => (self.open.get(&id)?, !rest.trim().is_empty()),
            Named::Never => return None,
            Named::Nothing => (self.only()?, !text.is_empty()),
        };
        let is_secret = matches!(question.question.shape, Shape::Input { secret: true });
        is_secret.then_some((question, given))
    }

    /// The command that answers a question with a text that was asked for.
    ///
    /// # Errors
    /// Why there is none, for a person.
    pub(super) fn answer_to(&self, id: InteractionId, text: &str) -> Result<Command, String> {
        match self.open.get(&id) {
            Some(question) => respond(question, text),
            None => Err(format!(
                "q{} is not open any more; nothing was sent",
                id.ordinal
            )),
        }
    }

    /// The only open question.
    fn only(&self) -> Option<&Interaction> {
        let mut open = self.open.values();
        open.next().filter(|_| open.next().is_none())
    }

    /// The question of the run that a word names.
    fn named(&self, word: &str) -> Named {
        if let Ok(id) = word.parse() {
            return Named::Asked(id);
        }
        let ordinal = word
            .strip_prefix('q')
            .and_then(|digits| digits.parse().ok());
        let Some(ordinal) = ordinal.filter(|ordinal: &u32| word == format!("q{ordinal}")) else {
            return Named::Nothing;
        };
        match self.newest {
            Some(newest) if (1..=newest.ordinal).contains(&ordinal) => {
                Named::Asked(InteractionId { ordinal, ..newest })
            }
            _ => Named::Never,
        }
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

/// What the first word of an answer names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Named {
    /// A question that was asked, open or not.
    Asked(InteractionId),
    /// A question that was never asked.
    Never,
    /// No question: it is a part of the answer.
    Nothing,
}

/// An answer to a question that was never asked, while this one is open.
fn never(word: &str, only: &Interaction) -> String {
    let (ordinal, title) = (only.id.ordinal, &only.question.title);
    format!(
        "there is no question {word}; open is q{ordinal}: {title}\n  \
         an answer that begins with {word}: /answer q{ordinal} {word} ..."
    )
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
        assert_eq!(one.answer("q1 q3 was weak"), Ok(text(1, "q3 was weak")));
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
    fn c25_an_answer_to_a_question_that_was_never_asked_goes_to_no_other() {
        for questions in [asked([TEXT]), asked([quarters()])] {
            let refused = questions.answer("q9 far north").unwrap_err();
            assert!(refused.contains("no question q9"), "{refused}");
            assert!(refused.contains("/answer q1 q9 ..."), "{refused}");
        }
        let refused = asked([TEXT, TEXT]).answer("q9 far north").unwrap_err();
        assert!(refused.contains("no question q9; say which"), "{refused}");
        let nothing = Questions::default().answer("q9 far north").unwrap_err();
        assert_eq!(nothing, "no question is open");
        let q9 = Choice {
            id: "q9".to_owned(),
            label: "the ninth".to_owned(),
        };
        let one = asked([Shape::Select(vec![q9])]);
        assert_eq!(one.answer("q9"), Ok(choice(1, "q9")), "its choice");
    }

    #[test]
    fn c25_what_answers_a_secret_is_known_before_it_is_shown() {
        let secret = Shape::Input { secret: true };
        let one = asked([secret.clone()]);
        let meant = |questions: &Questions, text| {
            let secret = questions.secret(text);
            secret.map(|(question, given)| (question.id.ordinal, given))
        };
        assert_eq!(meant(&one, None), Some((1, false)));
        assert_eq!(meant(&one, Some("q1")), Some((1, false)));
        assert_eq!(meant(&one, Some("q1 hunter2")), Some((1, true)));
        assert_eq!(meant(&one, Some("hunter2 q1")), Some((1, true)));
        assert_eq!(meant(&one, Some("q9 hunter2")), None);
        let two = asked([TEXT, secret]);
        assert_eq!(meant(&two, Some("q2 hunter2")), Some((2, true)));
        assert_eq!(meant(&two, Some("q1 far north")), None);
        assert_eq!(meant(&two, Some("far north")), None);
        assert_eq!(two.answer_to(id(2), "hunter2"), Ok(text(2, "hunter2")));
        assert!(one.answer_to(id(2), "hunter2").is_err(), "it is not open");
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
