//! Questions in words, and how to answer them.

use sessionplane_core::domain::ids::{InteractionId, SessionRef};
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, Interaction, InteractionAnswer, Resolution, Shape,
};

use super::WIDTH;
use super::time::{age, rfc3339};
use crate::cli::answering::example;
use crate::cli::hint::word;
use crate::cli::program::PROGRAM;
use crate::cli::screen::Piece;
use crate::cli::visible;
use crate::cli::wrap::wrapped;

/// Where an answer is typed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Desk {
    /// At a shell, by who knows the question only.
    #[default]
    Anywhere,
    /// At a shell, by who knows this session.
    Shell(SessionRef),
    /// Where the question is shown.
    Here,
}

/// A question as it is shown beside a conversation.
pub(crate) fn asked(interaction: &Interaction, desk: &Desk) -> Piece {
    Piece::Question(format!(
        "{}\n",
        question_lines(interaction, desk).join("\n")
    ))
}

/// A question with its choices and its deadline, and how to answer it. Nothing of it is cut: what is
/// approved must have been seen.
pub(crate) fn question_lines(interaction: &Interaction, desk: &Desk) -> Vec<String> {
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
        let way = broken(&visible::line(&way(interaction, desk)), desk);
        lines.extend(way.lines().map(str::to_owned));
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

fn way(interaction: &Interaction, desk: &Desk) -> String {
    let (id, question) = (interaction.id, &interaction.question);
    let secret = matches!(question.shape, Shape::Input { secret: true });
    match desk {
        Desk::Here if secret => format!(
            "  answer: /answer q{} (then type it, unseen), or {PROGRAM} answer {id} {}",
            id.ordinal,
            example(question)
        ),
        Desk::Here => format!("  answer: /answer q{} {}", id.ordinal, example(question)),
        Desk::Anywhere => format!("  answer: {PROGRAM} answer {id} {}", example(question)),
        Desk::Shell(session) => {
            let which = which(session, id);
            format!("  answer: {PROGRAM} answer {which} {}", example(question))
        }
    }
}

/// A question of a session, as the words that `answer` takes. Who has to write an id writes that of the
/// question, which is enough.
pub(crate) fn which(session: &SessionRef, id: InteractionId) -> String {
    match session {
        SessionRef::Id(_) => id.to_string(),
        session => format!("{} q{}", word(session), id.ordinal),
    }
}

/// A way to answer in lines that a terminal need not break in the midst of a word. At a shell each goes
/// on in the next one, so that it can be pasted.
fn broken(way: &str, desk: &Desk) -> String {
    // Where it is indented further, and ends with what makes it go on.
    let room = WIDTH - 4;
    // Within quotes a line that goes on is another text.
    if way.contains('\'') {
        return way.to_owned();
    }
    let lines = wrapped(way, 0, room, "      ");
    match desk {
        Desk::Here => lines,
        Desk::Anywhere | Desk::Shell(_) => lines.replace('\n', " \\\n"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing::asking;

    #[test]
    fn c25_a_long_way_to_answer_is_broken_between_words_and_can_be_pasted() {
        let mut asked = asking(1, &[1]).questions.remove(0);
        let field = |number: u32| FormField {
            name: format!("field-number-{number}"),
            label: String::new(),
            kind: FieldKind::Text,
            required: true,
        };
        asked.question.shape = Shape::Form((1..=6).map(field).collect());
        let desk = Desk::Shell(SessionRef::Name("web".parse().unwrap()));
        let lines = question_lines(&asked, &desk);
        let at = lines.iter().position(|line| line.starts_with("  answer:"));
        let way = &lines[at.unwrap()..];
        assert!(way.len() > 1 && way.iter().all(|line| line.len() <= WIDTH - 2));
        let (last, before) = way.split_last().unwrap();
        assert!(before.iter().all(|line| line.ends_with(" \\")), "{way:?}");
        assert!(last.ends_with("field-number-6=..."), "{way:?}");
        let words = way.join(" ").replace('\\', " ");
        let words: Vec<_> = words.split_whitespace().collect();
        assert_eq!(words[..5], ["answer:", "sessionctl", "answer", "web", "q1"]);
        assert_eq!(words.len(), 11);
        let here = question_lines(&asked, &Desk::Here).join("\n");
        assert!(
            here.contains("/answer q1 ") && !here.contains('\\'),
            "{here}"
        );
        let id = asked.id;
        assert_eq!(
            which(&SessionRef::Id(asking(1, &[]).id), id),
            id.to_string()
        );
    }
}
