//! Questions of a run, and how they ended.

use serde_json::{Value, json};
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, Interaction, InteractionAnswer, Question, Resolution, Shape,
};

use super::field::{origin, text, time};

/// A question, as it stands.
pub(crate) fn interaction(interaction: &Interaction) -> Value {
    json!({
        "id": text(interaction.id),
        "question": question(&interaction.question),
        "asked_at": time(interaction.asked_at),
        "deadline": interaction.deadline.map(time),
        "resolution": interaction.resolution.as_ref().map(resolution),
    })
}

/// How a question ended.
pub(crate) fn resolution(resolution: &Resolution) -> Value {
    json!({
        "time": time(resolution.at),
        "cause": resolution.cause.as_str(),
        "answer": resolution.answer.as_ref().map(answer),
        "origin": resolution.origin.as_ref().map(origin),
    })
}

/// A question; what an answer must look like is in the field that its kind names.
fn question(question: &Question) -> Value {
    let mut object = json!({
        "title": question.title,
        "details": question.details,
        "default_answer": question.default.as_ref().map(answer),
    });
    object[question.kind().as_str()] = match &question.shape {
        Shape::Approval(it) | Shape::Select(it) => json!({ "choices": choices(it) }),
        Shape::Confirm => json!({}),
        Shape::Input { secret } => json!({ "secret": secret }),
        Shape::Form(fields) => json!({ "fields": fields.iter().map(field).collect::<Vec<_>>() }),
    };
    object
}

fn choices(choices: &[Choice]) -> Value {
    let choice = |it: &Choice| json!({ "id": it.id, "label": it.label });
    choices.iter().map(choice).collect()
}

fn field(field: &FormField) -> Value {
    let choices = match &field.kind {
        FieldKind::Select(it) => choices(it),
        FieldKind::Text | FieldKind::Number | FieldKind::Boolean => json!([]),
    };
    json!({
        "name": field.name,
        "label": field.label,
        "choices": choices,
        "required": field.required,
        "kind": match &field.kind {
            FieldKind::Text => "text",
            FieldKind::Number => "number",
            FieldKind::Boolean => "boolean",
            FieldKind::Select(_) => "select",
        },
    })
}

fn answer(answer: &InteractionAnswer) -> Value {
    match answer {
        InteractionAnswer::Choice(id) => json!({ "choice": id }),
        InteractionAnswer::Confirmed(yes) => json!({ "confirmed": yes }),
        InteractionAnswer::Text(text) => json!({ "text": text }),
        InteractionAnswer::Fields(fields) => json!({ "form": { "fields": fields } }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sessionplane_core::domain::interaction::ResolutionCause;
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn asked(shape: Shape, default: Option<InteractionAnswer>) -> Value {
        let asked = interaction(&Interaction {
            id: "01K00000000000000000000002-q1".parse().unwrap(),
            question: Question {
                title: "Go on?".to_owned(),
                details: String::new(),
                shape,
                default,
            },
            asked_at: Timestamp::default(),
            deadline: None,
            resolution: None,
        });
        asked["question"].clone()
    }

    #[test]
    fn c25_a_question_of_each_kind_has_the_shape_of_the_proto() {
        let one = || {
            vec![Choice {
                id: "a".to_owned(),
                label: "All".to_owned(),
            }]
        };
        let choices = json!([{ "id": "a", "label": "All" }]);
        let field = |name: &str, kind| FormField {
            name: name.to_owned(),
            label: name.to_owned(),
            kind,
            required: true,
        };
        let fields = vec![
            field("zone", FieldKind::Select(one())),
            field("copies", FieldKind::Number),
        ];
        let form = json!({ "fields": [
            { "name": "zone", "label": "zone", "kind": "select", "choices": choices,
              "required": true },
            { "name": "copies", "label": "copies", "kind": "number", "choices": [],
              "required": true },
        ]});
        for (shape, name, body) in [
            (
                Shape::Approval(one()),
                "approval",
                json!({ "choices": choices }),
            ),
            (
                Shape::Select(one()),
                "select",
                json!({ "choices": choices }),
            ),
            (Shape::Confirm, "confirm", json!({})),
            (
                Shape::Input { secret: true },
                "input",
                json!({ "secret": true }),
            ),
            (Shape::Form(fields), "form", form),
        ] {
            let expected = json!({
                "title": "Go on?",
                "details": "",
                "default_answer": null,
                name: body,
            });
            assert_eq!(asked(shape, None), expected);
        }
    }

    #[test]
    fn c25_a_resolution_has_the_shape_of_the_proto() {
        let fields = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
        for (given, expected) in [
            (
                InteractionAnswer::Choice("a".to_owned()),
                json!({ "choice": "a" }),
            ),
            (
                InteractionAnswer::Confirmed(true),
                json!({ "confirmed": true }),
            ),
            (
                InteractionAnswer::Text("north".to_owned()),
                json!({ "text": "north" }),
            ),
            (
                InteractionAnswer::Fields(fields),
                json!({ "form": { "fields": { "zone": "a" } } }),
            ),
        ] {
            let question = asked(Shape::Confirm, Some(given.clone()));
            assert_eq!(question["default_answer"], expected);
            let told = resolution(&Resolution {
                at: Timestamp::default(),
                cause: ResolutionCause::Answered,
                answer: Some(given),
                origin: None,
            });
            let expected = json!({
                "time": "1970-01-01T00:00:00.000Z",
                "cause": "answered",
                "answer": expected,
                "origin": null,
            });
            assert_eq!(told, expected);
        }
    }
}
