//! Questions that a run is suspended on, and answers to them.

use std::collections::BTreeMap;

use sessionplane::v1 as wire;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, Interaction, InteractionAnswer, InteractionKind, Question,
    Resolution, ResolutionCause, Shape,
};
use wire::interaction_answer::Answer;
use wire::question::Shape as WireShape;

use super::{origin, time};

/// An interaction.
pub(crate) fn to_wire(interaction: &Interaction) -> wire::Interaction {
    wire::Interaction {
        id: interaction.id.to_string(),
        question: Some(question(&interaction.question)),
        asked_at: Some(time::timestamp(interaction.asked_at)),
        deadline: interaction.deadline.map(time::timestamp),
        resolution: interaction.resolution.as_ref().map(resolution),
    }
}

/// The kind of a question.
pub(crate) fn kind(kind: InteractionKind) -> wire::InteractionKind {
    match kind {
        InteractionKind::Approval => wire::InteractionKind::Approval,
        InteractionKind::Select => wire::InteractionKind::Select,
        InteractionKind::Confirm => wire::InteractionKind::Confirm,
        InteractionKind::Input => wire::InteractionKind::Input,
        InteractionKind::Form => wire::InteractionKind::Form,
    }
}

/// How an interaction ended.
pub(crate) fn resolution(resolution: &Resolution) -> wire::Resolution {
    let cause = match resolution.cause {
        ResolutionCause::Answered => wire::ResolutionCause::Answered,
        ResolutionCause::Aborted => wire::ResolutionCause::Aborted,
        ResolutionCause::Expired => wire::ResolutionCause::Expired,
        ResolutionCause::EngineGone => wire::ResolutionCause::EngineGone,
    };
    wire::Resolution {
        time: Some(time::timestamp(resolution.at)),
        cause: cause.into(),
        answer: resolution.answer.as_ref().map(answer_to_wire),
        origin: resolution.origin.as_ref().map(origin::to_wire),
    }
}

fn question(question: &Question) -> wire::Question {
    let shape = match &question.shape {
        Shape::Approval(it) => WireShape::Approval(choices(it)),
        Shape::Select(it) => WireShape::Select(choices(it)),
        Shape::Confirm => WireShape::Confirm(wire::ConfirmShape {}),
        Shape::Input { secret } => WireShape::Input(wire::InputShape { secret: *secret }),
        Shape::Form(fields) => WireShape::Form(wire::FormShape {
            fields: fields.iter().map(field).collect(),
        }),
    };
    wire::Question {
        title: question.title.clone(),
        details: question.details.clone(),
        shape: Some(shape),
        default_answer: question.default.as_ref().map(answer_to_wire),
    }
}

fn choices(choices: &[Choice]) -> wire::Choices {
    wire::Choices {
        choices: choices.iter().map(choice).collect(),
    }
}

fn choice(choice: &Choice) -> wire::Choice {
    wire::Choice {
        id: choice.id.clone(),
        label: choice.label.clone(),
    }
}

fn field(field: &FormField) -> wire::FormField {
    let (kind, choices) = match &field.kind {
        FieldKind::Text => (wire::FormFieldKind::Text, &[][..]),
        FieldKind::Number => (wire::FormFieldKind::Number, &[][..]),
        FieldKind::Boolean => (wire::FormFieldKind::Boolean, &[][..]),
        FieldKind::Select(choices) => (wire::FormFieldKind::Select, choices.as_slice()),
    };
    wire::FormField {
        name: field.name.clone(),
        label: field.label.clone(),
        kind: kind.into(),
        choices: choices.iter().map(choice).collect(),
        required: field.required,
    }
}

fn answer_to_wire(answer: &InteractionAnswer) -> wire::InteractionAnswer {
    let answer = match answer {
        InteractionAnswer::Choice(id) => Answer::Choice(id.clone()),
        InteractionAnswer::Confirmed(yes) => Answer::Confirmed(*yes),
        InteractionAnswer::Text(text) => Answer::Text(text.clone()),
        InteractionAnswer::Fields(fields) => Answer::Form(wire::FormAnswer {
            fields: fields.clone().into_iter().collect(),
        }),
    };
    wire::InteractionAnswer {
        answer: Some(answer),
    }
}

/// An answer, in the request field `respond.answer`. Whether it fits the question is judged by who
/// knows the question.
pub(crate) fn answer(
    answer: Option<wire::InteractionAnswer>,
) -> Result<InteractionAnswer, CallError> {
    let Some(answer) = answer.and_then(|answer| answer.answer) else {
        return Err(CallError::invalid(
            "respond.answer",
            "exactly one of `choice`, `confirmed`, `text` and `form` must be set",
        ));
    };
    Ok(match answer {
        Answer::Choice(id) => InteractionAnswer::Choice(id),
        Answer::Confirmed(yes) => InteractionAnswer::Confirmed(yes),
        Answer::Text(text) => InteractionAnswer::Text(text),
        Answer::Form(form) => {
            let fields: BTreeMap<String, String> = form.fields.into_iter().collect();
            InteractionAnswer::Fields(fields)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c25_an_answer_survives_the_way_there_and_back() {
        let fields = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        for it in [
            InteractionAnswer::Choice("allow".to_owned()),
            InteractionAnswer::Confirmed(false),
            InteractionAnswer::Text(String::new()),
            InteractionAnswer::Fields(fields),
        ] {
            assert_eq!(answer(Some(answer_to_wire(&it))), Ok(it));
        }
    }

    #[test]
    fn an_unset_answer_is_refused_by_field() {
        for unset in [None, Some(wire::InteractionAnswer { answer: None })] {
            let error = answer(unset).unwrap_err();
            assert_eq!(error.violations[0].field, "respond.answer");
        }
    }
}
