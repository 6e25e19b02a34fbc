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
