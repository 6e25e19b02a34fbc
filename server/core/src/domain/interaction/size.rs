//! How large questions and answers are, and how large they may be. What must never enter: whether an
//! answer fits its question.

use super::{
    Choice, FieldKind, FormField, Interaction, InteractionAnswer, Question, Resolution, Shape,
};
use crate::domain::limits::{
    MAX_CHOICES, MAX_DETAIL_BYTES, MAX_FIELDS, MAX_LABEL_BYTES, MAX_QUESTION_BYTES,
};

/// What a choice or a field keeps alive besides its texts, roughly.
const PART_BYTES: usize = 64;

impl Interaction {
    /// Roughly the bytes that it keeps alive: its texts, and a flat 64 for each choice and field.
    #[must_use]
    pub fn weight(&self) -> usize {
        let question = &self.question;
        let default = question.default.as_ref().map_or(0, kept_by);
        let end = self.resolution.as_ref().map_or(0, Resolution::weight);
        question.weight() + PART_BYTES * question.shape.parts() + default + end
    }
}

impl Resolution {
    /// Roughly the bytes that it keeps alive: its texts, and a flat 64 for each field.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.answer.as_ref().map_or(0, kept_by)
    }
}

fn kept_by(answer: &InteractionAnswer) -> usize {
    let parts = match answer {
        InteractionAnswer::Fields(fields) => fields.len(),
        InteractionAnswer::Choice(_)
        | InteractionAnswer::Text(_)
        | InteractionAnswer::Confirmed(_) => 0,
    };
    answer.weight() + PART_BYTES * parts
}

impl Shape {
    /// Its choices and fields, however deep.
    fn parts(&self) -> usize {
        match self {
            Self::Approval(choices) | Self::Select(choices) => choices.len(),
            Self::Confirm | Self::Input { .. } => 0,
            Self::Form(fields) => fields.iter().map(field_parts).sum(),
        }
    }
}

fn field_parts(field: &FormField) -> usize {
    match &field.kind {
        FieldKind::Select(choices) => 1 + choices.len(),
        FieldKind::Text | FieldKind::Number | FieldKind::Boolean => 1,
    }
}

impl InteractionAnswer {
    /// The sum of its texts, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Choice(text) | Self::Text(text) => text.len(),
            Self::Confirmed(_) => 0,
            Self::Fields(fields) => {
                let pair = |(name, text): (&String, &String)| name.len() + text.len();
                fields.iter().map(pair).sum()
            }
        }
    }
}

impl Question {
    /// The sum of its texts, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let shape = match &self.shape {
            Shape::Approval(choices) | Shape::Select(choices) => choices_weight(choices),
            Shape::Confirm | Shape::Input { .. } => 0,
            Shape::Form(fields) => fields.iter().map(field_weight).sum(),
        };
        self.title.len() + self.details.len() + shape
    }

    /// Whether it can be asked at all: its texts and counts are inside the bounds, its names are
    /// unique, and its default would be an answer.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let shape = match &self.shape {
            Shape::Approval(choices) | Shape::Select(choices) => choices_sound(choices),
            Shape::Confirm | Shape::Input { .. } => true,
            Shape::Form(fields) => fields_sound(fields),
        };
        let default = self
            .default
            .as_ref()
            .is_none_or(|it| self.check(it).is_ok());
        let bounded = self.title.len() <= MAX_DETAIL_BYTES && self.weight() <= MAX_QUESTION_BYTES;
        shape && default && bounded
    }
}

fn choices_weight(choices: &[Choice]) -> usize {
    choices.iter().map(|it| it.id.len() + it.label.len()).sum()
}

fn field_weight(field: &FormField) -> usize {
    let choices = match &field.kind {
        FieldKind::Select(choices) => choices_weight(choices),
        FieldKind::Text | FieldKind::Number | FieldKind::Boolean => 0,
    };
    field.name.len() + field.label.len() + choices
}

fn choices_sound(choices: &[Choice]) -> bool {
    let unique = choices.iter().enumerate().all(|(at, choice)| {
        !choice.id.is_empty() && choices[..at].iter().all(|earlier| earlier.id != choice.id)
    });
    let short = choices
        .iter()
        .all(|it| it.id.len() <= MAX_LABEL_BYTES && it.label.len() <= MAX_LABEL_BYTES);
    unique && short && (1..=MAX_CHOICES).contains(&choices.len())
}

fn fields_sound(fields: &[FormField]) -> bool {
    let unique = fields.iter().enumerate().all(|(at, field)| {
        !field.name.is_empty()
            && fields[..at]
                .iter()
                .all(|earlier| earlier.name != field.name)
    });
    let each = fields.iter().all(|field| {
        let choices = match &field.kind {
            FieldKind::Select(choices) => choices_sound(choices),
            FieldKind::Text | FieldKind::Number | FieldKind::Boolean => true,
        };
        choices && field.name.len() <= MAX_LABEL_BYTES && field.label.len() <= MAX_LABEL_BYTES
    });
    unique && each && (1..=MAX_FIELDS).contains(&fields.len())
}
