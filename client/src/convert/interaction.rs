//! Questions that a run is suspended on, and answers to them.

use std::collections::BTreeMap;

use sessionplane::v1::{self, interaction_answer::Answer, question::Shape as Wire};
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, Interaction, InteractionAnswer, InteractionKind, Question,
    Resolution, ResolutionCause, Shape,
};

use super::field::{Malformed, id, required, time};
use super::origin;

/// An interaction; none if this client does not know what kind of question it is.
pub(crate) fn read(interaction: v1::Interaction) -> Result<Option<Interaction>, Malformed> {
    let question = required("interaction.question", interaction.question)?;
    let Some(question) = question_of(question) else {
        return Ok(None);
    };
    let deadline = match interaction.deadline {
        None => None,
        at => Some(time("interaction.deadline", at)?),
    };
    Ok(Some(Interaction {
        id: id("interaction.id", &interaction.id)?,
        question,
        asked_at: time("interaction.asked_at", interaction.asked_at)?,
        deadline,
        resolution: interaction.resolution.map(resolution).transpose()?,
    }))
}

/// How an interaction ended. A cause this client does not know is told as the engine's: nobody
/// needs to answer.
pub(crate) fn resolution(resolution: v1::Resolution) -> Result<Resolution, Malformed> {
    let cause = match resolution.cause() {
        v1::ResolutionCause::Answered => ResolutionCause::Answered,
        v1::ResolutionCause::Aborted => ResolutionCause::Aborted,
        v1::ResolutionCause::Expired => ResolutionCause::Expired,
        v1::ResolutionCause::EngineGone | v1::ResolutionCause::Unspecified => {
            ResolutionCause::EngineGone
        }
    };
    let origin = match resolution.origin {
        None => None,
        some => Some(origin::read("resolution.origin", some)?),
    };
    Ok(Resolution {
        at: time("resolution.time", resolution.time)?,
        cause,
        answer: resolution.answer.and_then(answer_of),
        origin,
    })
}

/// The kind of a question; none if this client does not know it.
pub(crate) fn kind(kind: v1::InteractionKind) -> Option<InteractionKind> {
    Some(match kind {
        v1::InteractionKind::Approval => InteractionKind::Approval,
        v1::InteractionKind::Select => InteractionKind::Select,
        v1::InteractionKind::Confirm => InteractionKind::Confirm,
        v1::InteractionKind::Input => InteractionKind::Input,
        v1::InteractionKind::Form => InteractionKind::Form,
        v1::InteractionKind::Unspecified => return None,
    })
}

fn question_of(question: v1::Question) -> Option<Question> {
    let shape = match question.shape? {
        Wire::Approval(it) => Shape::Approval(choices(it.choices)),
        Wire::Select(it) => Shape::Select(choices(it.choices)),
        Wire::Confirm(_) => Shape::Confirm,
        Wire::Input(input) => Shape::Input {
            secret: input.secret,
        },
        Wire::Form(form) => Shape::Form(form.fields.into_iter().map(field).collect()),
    };
    Some(Question {
        title: question.title,
        details: question.details,
        shape,
        default: question.default_answer.and_then(answer_of),
    })
}

fn choices(choices: Vec<v1::Choice>) -> Vec<Choice> {
    let choice = |it: v1::Choice| Choice {
        id: it.id,
        label: it.label,
    };
    choices.into_iter().map(choice).collect()
}

/// What this client does not know a field to take is taken for text.
fn field(field: v1::FormField) -> FormField {
    let kind = match field.kind() {
        v1::FormFieldKind::Number => FieldKind::Number,
        v1::FormFieldKind::Boolean => FieldKind::Boolean,
        v1::FormFieldKind::Select => FieldKind::Select(choices(field.choices)),
        v1::FormFieldKind::Text | v1::FormFieldKind::Unspecified => FieldKind::Text,
    };
    FormField {
        name: field.name,
        label: field.label,
        kind,
        required: field.required,
    }
}

fn answer_of(answer: v1::InteractionAnswer) -> Option<InteractionAnswer> {
    Some(match answer.answer? {
        Answer::Choice(id) => InteractionAnswer::Choice(id),
        Answer::Confirmed(yes) => InteractionAnswer::Confirmed(yes),
        Answer::Text(text) => InteractionAnswer::Text(text),
        Answer::Form(form) => {
            let fields: BTreeMap<String, String> = form.fields.into_iter().collect();
            InteractionAnswer::Fields(fields)
        }
    })
}

/// Writes an answer.
pub(crate) fn answer(answer: InteractionAnswer) -> v1::InteractionAnswer {
    let answer = match answer {
        InteractionAnswer::Choice(id) => Answer::Choice(id),
        InteractionAnswer::Confirmed(yes) => Answer::Confirmed(yes),
        InteractionAnswer::Text(text) => Answer::Text(text),
        InteractionAnswer::Fields(fields) => Answer::Form(v1::FormAnswer {
            fields: fields.into_iter().collect(),
        }),
    };
    v1::InteractionAnswer {
        answer: Some(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(shape: Option<Wire>) -> v1::Interaction {
        v1::Interaction {
            id: "01ARZ3NDEKTSV4RRFFQ69G5FAV-q1".to_owned(),
            question: Some(v1::Question {
                title: "Go on?".to_owned(),
                shape,
                ..Default::default()
            }),
            asked_at: Some(prost_types::Timestamp {
                seconds: 1,
                nanos: 0,
            }),
            ..Default::default()
        }
    }

    #[test]
    fn c64_a_question_of_an_unknown_kind_is_left_to_another_client() {
        assert_eq!(read(asked(None)), Ok(None));
        let known = read(asked(Some(Wire::Confirm(v1::ConfirmShape {}))));
        assert_eq!(known.unwrap().unwrap().question.shape, Shape::Confirm);
    }

    #[test]
    fn c25_an_answer_survives_the_way_there_and_back() {
        let fields = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        for it in [
            InteractionAnswer::Choice("allow".to_owned()),
            InteractionAnswer::Confirmed(true),
            InteractionAnswer::Text("x".to_owned()),
            InteractionAnswer::Fields(fields),
        ] {
            assert_eq!(answer_of(answer(it.clone())), Some(it));
        }
    }
}
