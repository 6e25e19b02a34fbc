//! Interactions: questions, answers and how they ended.

use sessionplane::store::v1 as form;
use sessionplane_core::domain::ids::InteractionId;
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, Interaction, InteractionAnswer, Question, Resolution,
    ResolutionCause, Shape,
};
use sessionplane_core::domain::time::Timestamp;

use super::{Stored, Unreadable, maybe, part, required, run_id, unknown};

impl Stored for Interaction {
    type Form = form::InteractionRecord;
    fn form(&self) -> Self::Form {
        form::InteractionRecord {
            run: self.id.run.to_bytes().to_vec(),
            ordinal: self.id.ordinal,
            question: Some(self.question.form()),
            asked_at_ms: self.asked_at.as_millis(),
            deadline_ms: self.deadline.map(Timestamp::as_millis),
            resolution: self.resolution.as_ref().map(Stored::form),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            id: InteractionId {
                run: run_id(&form.run)?,
                ordinal: form.ordinal,
            },
            question: part(form.question, "question")?,
            asked_at: Timestamp::from_millis(form.asked_at_ms),
            deadline: form.deadline_ms.map(Timestamp::from_millis),
            resolution: maybe(form.resolution)?,
        })
    }
}

impl Stored for Question {
    type Form = form::Question;
    fn form(&self) -> Self::Form {
        use form::question::Shape as Stored;
        let shape = match &self.shape {
            Shape::Approval(choices) => Stored::Approval(choices_form(choices)),
            Shape::Select(choices) => Stored::Select(choices_form(choices)),
            Shape::Confirm => Stored::Confirm(form::Confirm {}),
            Shape::Input { secret } => Stored::Input(form::TextInput { secret: *secret }),
            Shape::Form(fields) => Stored::Form(form::Form {
                fields: fields.iter().map(super::Stored::form).collect(),
            }),
        };
        form::Question {
            title: self.title.clone(),
            details: self.details.clone(),
            shape: Some(shape),
            default: self.default.as_ref().map(super::Stored::form),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        use form::question::Shape as Stored;
        let shape = match required(form.shape, "shape")? {
            Stored::Approval(choices) => Shape::Approval(choices_of(choices.choices)),
            Stored::Select(choices) => Shape::Select(choices_of(choices.choices)),
            Stored::Confirm(_) => Shape::Confirm,
            Stored::Input(input) => Shape::Input {
                secret: input.secret,
            },
            Stored::Form(form) => {
                let fields = form.fields.into_iter().map(super::Stored::read);
                Shape::Form(fields.collect::<Result<_, _>>()?)
            }
        };
        Ok(Self {
            title: form.title,
            details: form.details,
            shape,
            default: maybe(form.default)?,
        })
    }
}

fn choices_form(choices: &[Choice]) -> form::Choices {
    form::Choices {
        choices: choices.iter().map(choice_form).collect(),
    }
}

fn choice_form(choice: &Choice) -> form::Choice {
    form::Choice {
        id: choice.id.clone(),
        label: choice.label.clone(),
    }
}

fn choices_of(choices: Vec<form::Choice>) -> Vec<Choice> {
    let choice = |it: form::Choice| Choice {
        id: it.id,
        label: it.label,
    };
    choices.into_iter().map(choice).collect()
}

impl Stored for FormField {
    type Form = form::FormField;
    fn form(&self) -> Self::Form {
        let (kind, choices) = match &self.kind {
            FieldKind::Text => (form::FormFieldKind::Text, Vec::new()),
            FieldKind::Number => (form::FormFieldKind::Number, Vec::new()),
            FieldKind::Boolean => (form::FormFieldKind::Boolean, Vec::new()),
            FieldKind::Select(choices) => (
                form::FormFieldKind::Select,
                choices.iter().map(choice_form).collect(),
            ),
        };
        form::FormField {
            name: self.name.clone(),
            label: self.label.clone(),
            kind: kind.into(),
            choices,
            required: self.required,
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let kind = match form.kind() {
            form::FormFieldKind::Text => FieldKind::Text,
            form::FormFieldKind::Number => FieldKind::Number,
            form::FormFieldKind::Boolean => FieldKind::Boolean,
            form::FormFieldKind::Select => FieldKind::Select(choices_of(form.choices)),
            form::FormFieldKind::Unspecified => return Err(unknown("field.kind")),
        };
        Ok(Self {
            name: form.name,
            label: form.label,
            kind,
            required: form.required,
        })
    }
}

impl Stored for InteractionAnswer {
    type Form = form::Answer;
    fn form(&self) -> Self::Form {
        use form::answer::Answer;
        let answer = match self {
            Self::Choice(id) => Answer::Choice(id.clone()),
            Self::Confirmed(yes) => Answer::Confirmed(*yes),
            Self::Text(text) => Answer::Text(text.clone()),
            Self::Fields(fields) => Answer::Fields(form::Fields {
                fields: fields
                    .iter()
                    .map(|(name, text)| form::Field {
                        name: name.clone(),
                        text: text.clone(),
                    })
                    .collect(),
            }),
        };
        form::Answer {
            answer: Some(answer),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        use form::answer::Answer;
        Ok(match required(form.answer, "answer")? {
            Answer::Choice(id) => Self::Choice(id),
            Answer::Confirmed(yes) => Self::Confirmed(yes),
            Answer::Text(text) => Self::Text(text),
            Answer::Fields(fields) => Self::Fields(
                fields
                    .fields
                    .into_iter()
                    .map(|field| (field.name, field.text))
                    .collect(),
            ),
        })
    }
}

impl Stored for Resolution {
    type Form = form::Resolution;
    fn form(&self) -> Self::Form {
        let cause = match self.cause {
            ResolutionCause::Answered => form::ResolutionCause::Answered,
            ResolutionCause::Aborted => form::ResolutionCause::Aborted,
            ResolutionCause::Expired => form::ResolutionCause::Expired,
            ResolutionCause::EngineGone => form::ResolutionCause::EngineGone,
        };
        form::Resolution {
            at_ms: self.at.as_millis(),
            cause: cause.into(),
            answer: self.answer.as_ref().map(Stored::form),
            origin: self.origin.as_ref().map(Stored::form),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let cause = match form.cause() {
            form::ResolutionCause::Answered => ResolutionCause::Answered,
            form::ResolutionCause::Aborted => ResolutionCause::Aborted,
            form::ResolutionCause::Expired => ResolutionCause::Expired,
            form::ResolutionCause::EngineGone => ResolutionCause::EngineGone,
            form::ResolutionCause::Unspecified => return Err(unknown("resolution.cause")),
        };
        Ok(Self {
            at: Timestamp::from_millis(form.at_ms),
            cause,
            answer: maybe(form.answer)?,
            origin: maybe(form.origin)?,
        })
    }
}
