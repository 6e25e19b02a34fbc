//! Questions and answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, InteractionAnswer, Question, Shape,
};

/// An answer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::adapters::engine::apart) enum ToldAnswer {
    Choice(String),
    Confirmed(bool),
    Text(String),
    Fields(BTreeMap<String, String>),
}

impl From<InteractionAnswer> for ToldAnswer {
    fn from(answer: InteractionAnswer) -> Self {
        match answer {
            InteractionAnswer::Choice(id) => Self::Choice(id),
            InteractionAnswer::Confirmed(yes) => Self::Confirmed(yes),
            InteractionAnswer::Text(text) => Self::Text(text),
            InteractionAnswer::Fields(fields) => Self::Fields(fields),
        }
    }
}

impl From<ToldAnswer> for InteractionAnswer {
    fn from(told: ToldAnswer) -> Self {
        match told {
            ToldAnswer::Choice(id) => Self::Choice(id),
            ToldAnswer::Confirmed(yes) => Self::Confirmed(yes),
            ToldAnswer::Text(text) => Self::Text(text),
            ToldAnswer::Fields(fields) => Self::Fields(fields),
        }
    }
}

/// A question.
#[derive(Serialize, Deserialize)]
pub(in crate::adapters::engine::apart) struct ToldQuestion {
    title: String,
    details: String,
    shape: ToldShape,
    default: Option<ToldAnswer>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToldShape {
    Approval(Vec<ToldChoice>),
    Select(Vec<ToldChoice>),
    Confirm,
    Input { secret: bool },
    Form(Vec<ToldField>),
}

#[derive(Serialize, Deserialize)]
struct ToldChoice {
    id: String,
    label: String,
}

#[derive(Serialize, Deserialize)]
struct ToldField {
    name: String,
    label: String,
    kind: ToldKind,
    required: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToldKind {
    Text,
    Number,
    Boolean,
    Select(Vec<ToldChoice>),
}

impl From<Question> for ToldQuestion {
    fn from(question: Question) -> Self {
        let shape = match question.shape {
            Shape::Approval(of) => ToldShape::Approval(choices(of)),
            Shape::Select(of) => ToldShape::Select(choices(of)),
            Shape::Confirm => ToldShape::Confirm,
            Shape::Input { secret } => ToldShape::Input { secret },
            Shape::Form(fields) => {
                ToldShape::Form(fields.into_iter().map(ToldField::from).collect())
            }
        };
        Self {
            title: question.title,
            details: question.details,
            shape,
            default: question.default.map(Into::into),
        }
    }
}

impl From<ToldQuestion> for Question {
    fn from(told: ToldQuestion) -> Self {
        let shape = match told.shape {
            ToldShape::Approval(of) => Shape::Approval(chosen(of)),
            ToldShape::Select(of) => Shape::Select(chosen(of)),
            ToldShape::Confirm => Shape::Confirm,
            ToldShape::Input { secret } => Shape::Input { secret },
            ToldShape::Form(fields) => {
                Shape::Form(fields.into_iter().map(FormField::from).collect())
            }
        };
        Self {
            title: told.title,
            details: told.details,
            shape,
            default: told.default.map(Into::into),
        }
    }
}

impl From<FormField> for ToldField {
    fn from(field: FormField) -> Self {
        let kind = match field.kind {
            FieldKind::Text => ToldKind::Text,
            FieldKind::Number => ToldKind::Number,
            FieldKind::Boolean => ToldKind::Boolean,
            FieldKind::Select(of) => ToldKind::Select(choices(of)),
        };
        Self {
            name: field.name,
            label: field.label,
            kind,
            required: field.required,
        }
    }
}

impl From<ToldField> for FormField {
    fn from(told: ToldField) -> Self {
        let kind = match told.kind {
            ToldKind::Text => FieldKind::Text,
            ToldKind::Number => FieldKind::Number,
            ToldKind::Boolean => FieldKind::Boolean,
            ToldKind::Select(of) => FieldKind::Select(chosen(of)),
        };
        Self {
            name: told.name,
            label: told.label,
            kind,
            required: told.required,
        }
    }
}

fn choices(of: Vec<Choice>) -> Vec<ToldChoice> {
    let told = |Choice { id, label }| ToldChoice { id, label };
    of.into_iter().map(told).collect()
}

fn chosen(of: Vec<ToldChoice>) -> Vec<Choice> {
    let choice = |ToldChoice { id, label }| Choice { id, label };
    of.into_iter().map(choice).collect()
}
