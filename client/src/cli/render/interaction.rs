//! Questions in words, and how to answer them.

use sessionplane_core::domain::ids::InteractionId;
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, Interaction, InteractionAnswer, Resolution, Shape,
};

use super::WIDTH;
use super::time::{age, rfc3339};
use crate::cli::answering::example;
use crate::cli::program::PROGRAM;
use crate::cli::screen::Piece;
use crate::cli::visible;

/// Where an answer is typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Desk {
    /// At a shell.
    #[default]
    Shell,
    /// Where the question is shown.
    Here,
}

/// A question as it is shown beside a conversation.
pub(crate) fn asked(interaction: &Interaction, desk: Desk) -> Piece {
    Piece::Question(format!(
        "{}\n",
        question_lines(interaction, desk).join("\n")
    ))
}

/// A question with its choices and its deadline, and how to answer it. Nothing of it is cut: what is
/// approved must have been seen.
pub(crate) fn question_lines(interaction: &Interaction, desk: Desk) -> Vec<String> {
    let question = &interaction.question;
    let mut lines = vec![format!("? {}", visible::line(&question.title))];
    lines.extend(question.details.trim_end().lines().map(indented));
    match &question.shape {
        Shape::Approval(choices) | Shape::Select(choices) => {
            lines.extend(choices.iter().map(choice_line));
        }
        Shape::Form(fields) => lines.extend(fields.iter().map(field_line)),
        Shape::Confirm => lines.push(indented("yes or no")),
        Shape::Input { secret: true } => lines.push(indented("a secret text")),
        Shape::Input { secret: false } => lines.push(indented("a text")),
    }
    lines.extend(fate(interaction));
    if interaction.resolution.is_none() {
        lines.push(visible::line(&way(interaction, desk)).into_owned());
    }
    lines
}

/// Until when it may be answered and what happens then, or how it ended.
fn fate(interaction: &Interaction) -> Option<String> {
    if let Some(resolution) = &interaction.resolution {
        return Some(format!("  {}", resolution_words(resolution)));
    }
    let deadline = interaction.deadline?;
    let within = age(deadline.since(interaction.asked_at));
    let then = match interaction.question.default.as_ref() {
        Some(default) => format!("then {}", answer_words(default)),
        None => "then nobody has answered".to_owned(),
    };
    let line = format!("  within {within}, until {}; {then}", rfc3339(deadline));
    Some(visible::clipped(&line, WIDTH))
}

fn way(interaction: &Interaction, desk: Desk) -> String {
    let (id, question) = (interaction.id, &interaction.question);
    let secret = matches!(question.shape, Shape::Input { secret: true });
    match desk {
        Desk::Here if secret => format!(
            "  answer: /answer q{} (then type it, unseen), or {PROGRAM} answer {id} {}",
            id.ordinal,
            example(question)
        ),
        Desk::Here => format!("  answer: /answer q{} {}", id.ordinal, example(question)),
        Desk::Shell => {
            format!("  answer: {PROGRAM} answer {id} {}", example(question))
        }
    }
}

fn indented(line: &str) -> String {
    format!("    {}", visible::line(line))
}

fn choice_line(choice: &Choice) -> String {
    if choice.id == choice.label {
        return indented(&choice.id);
    }
    indented(&format!("{:<12}  {}", choice.id, choice.label))
}

fn field_line(field: &FormField) -> String {
    let kind = match &field.kind {
        FieldKind::Text => "text".to_owned(),
        FieldKind::Number => "number".to_owned(),
        FieldKind::Boolean => "true or false".to_owned(),
        FieldKind::Select(choices) => {
            let ids: Vec<_> = choices.iter().map(|choice| choice.id.as_str()).collect();
            ids.join(", ")
        }
    };
    let label = if field.label == field.name {
        String::new()
    } else {
        format!("  {}", field.label)
    };
    let optional = if field.required { "" } else { ", optional" };
    indented(&format!("{:<12}{label}  ({kind}{optional})", field.name))
}

/// How a question ended.
pub(crate) fn resolved(id: InteractionId, resolution: &Resolution) -> Piece {
    Piece::Aside(format!("? {id} {}\n", resolution_words(resolution)))
}

fn resolution_words(resolution: &Resolution) -> String {
    let by = resolution.origin.as_ref();
    let by = by.map_or_else(String::new, |origin| format!(" by {}", origin.principal));
    let answer = resolution.answer.as_ref().map(answer_words);
    let answer = answer.map_or_else(String::new, |answer| format!(": {answer}"));
    let words = format!("{}{by}{answer}", resolution.cause.as_str());
    visible::clipped(&words, WIDTH)
}

/// An answer in words.
pub(crate) fn answer_words(answer: &InteractionAnswer) -> String {
    match answer {
        InteractionAnswer::Choice(id) => id.clone(),
        InteractionAnswer::Confirmed(true) => "yes".to_owned(),
        InteractionAnswer::Confirmed(false) => "no".to_owned(),
        InteractionAnswer::Text(text) => text.clone(),
        InteractionAnswer::Fields(fields) => fields
            .iter()
            .map(|(name, text)| format!("{name}={text}"))
            .collect::<Vec<_>>()
            .join(" "),
    }
}
