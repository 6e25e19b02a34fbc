//! Questions in words, and how to answer them.

use sessionplane_core::domain::ids::InteractionId;
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer, Resolution, Shape};

use crate::cli::screen::Piece;

/// A question as it is shown beside a conversation.
pub(crate) fn asked(interaction: &Interaction) -> Piece {
    let question = &interaction.question;
    let choices = match &question.shape {
        Shape::Approval(choices) | Shape::Select(choices) => choices
            .iter()
            .map(|choice| choice.id.as_str())
            .collect::<Vec<_>>()
            .join(" | "),
        Shape::Confirm => "yes | no".to_owned(),
        Shape::Input { secret: true } => "a secret text".to_owned(),
        Shape::Input { secret: false } => "a text".to_owned(),
        Shape::Form(fields) => fields
            .iter()
            .map(|field| format!("{}=...", field.name))
            .collect::<Vec<_>>()
            .join(" "),
    };
    Piece::Aside(format!(
        "? {} ({choices})  {}\n",
        question.title, interaction.id
    ))
}

/// How a question ended.
pub(crate) fn resolved(id: InteractionId, resolution: &Resolution) -> Piece {
    let by = resolution.origin.as_ref();
    let by = by.map_or_else(String::new, |origin| format!(" by {}", origin.principal));
    let answer = resolution.answer.as_ref().map(answer_words);
    let answer = answer.map_or_else(String::new, |answer| format!(": {answer}"));
    Piece::Aside(format!(
        "? {id} {}{by}{answer}\n",
        resolution.cause.as_str()
    ))
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
