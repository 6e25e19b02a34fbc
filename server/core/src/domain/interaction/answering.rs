//! Whether an answer fits its question.

use std::collections::BTreeMap;

use super::{Choice, FieldKind, FormField, InteractionAnswer, Question, Shape};
use crate::domain::limits::MAX_ANSWER_BYTES;

impl Question {
    /// Whether an answer fits the question.
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub fn check(&self, answer: &InteractionAnswer) -> Result<(), String> {
        match (&self.shape, answer) {
            (Shape::Approval(choices) | Shape::Select(choices), InteractionAnswer::Choice(id)) => {
                known_choice(choices, id)
            }
            (Shape::Confirm, InteractionAnswer::Confirmed(_)) => Ok(()),
            (Shape::Input { .. }, InteractionAnswer::Text(text)) => short(text),
            (Shape::Form(fields), InteractionAnswer::Fields(given)) => form(fields, given),
            (_, _) => Err(format!(
                "a question of kind {} takes {}",
                self.kind().as_str(),
                self.expects()
            )),
        }
    }

    fn expects(&self) -> &'static str {
        match self.shape {
            Shape::Approval(_) | Shape::Select(_) => "the id of a choice",
            Shape::Confirm => "yes or no",
            Shape::Input { .. } => "a text",
            Shape::Form(_) => "fields by name",
        }
    }
}

fn known_choice(choices: &[Choice], id: &str) -> Result<(), String> {
    if choices.iter().any(|choice| choice.id == id) {
        return Ok(());
    }
    let ids: Vec<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
    Err(format!(
        "there is no such choice; there are: {}",
        ids.join(", ")
    ))
}

fn short(text: &str) -> Result<(), String> {
    if text.len() <= MAX_ANSWER_BYTES {
        return Ok(());
    }
    Err(format!(
        "the answer has {} bytes; the limit is {MAX_ANSWER_BYTES} bytes",
        text.len()
    ))
}

fn form(fields: &[FormField], given: &BTreeMap<String, String>) -> Result<(), String> {
    let bytes: usize = given
        .iter()
        .map(|(name, text)| name.len() + text.len())
        .sum();
    if bytes > MAX_ANSWER_BYTES {
        return Err(format!(
            "the answer has {bytes} bytes; the limit is {MAX_ANSWER_BYTES} bytes"
        ));
    }
    if let Some(name) = given
        .keys()
        .find(|name| fields.iter().all(|it| it.name != **name))
    {
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        return Err(format!(
            "there is no field {name:?}; there are: {}",
            names.join(", ")
        ));
    }
    fields
        .iter()
        .try_for_each(|field| match given.get(&field.name) {
            Some(text) => field_takes(field, text),
            None if field.required => Err(format!("the field {:?} is required", field.name)),
            None => Ok(()),
        })
}

/// Digits, with a sign and with a part after the point if need be: what every agent reads alike.
fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.strip_prefix('-').unwrap_or(text);
    match number.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part),
        None => digits(number),
    }
}

fn field_takes(field: &FormField, text: &str) -> Result<(), String> {
    let name = &field.name;
    match &field.kind {
        FieldKind::Text => Ok(()),
        FieldKind::Number if is_decimal(text) => Ok(()),
        FieldKind::Number => Err(format!(
            "the field {name:?} takes a decimal number, such as 12 or -0.5"
        )),
        FieldKind::Boolean if matches!(text, "true" | "false") => Ok(()),
        FieldKind::Boolean => Err(format!("the field {name:?} takes true or false")),
        FieldKind::Select(choices) => {
            known_choice(choices, text).map_err(|problem| format!("the field {name:?}: {problem}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c25_a_number_is_digits_a_sign_and_a_point() {
        let question = Question {
            title: "how many?".to_owned(),
            details: String::new(),
            shape: Shape::Form(vec![FormField {
                name: "copies".to_owned(),
                label: String::new(),
                kind: FieldKind::Number,
                required: true,
            }]),
            default: None,
        };
        let judged = |text: &str| {
            let fields = BTreeMap::from([("copies".to_owned(), text.to_owned())]);
            question.check(&InteractionAnswer::Fields(fields))
        };
        for number in ["0", "12", "-0.5", "007", "12345678901234567890.25"] {
            assert_eq!(judged(number), Ok(()), "{number}");
        }
        for other in [
            "", "-", ".5", "5.", "+1", " 1", "1 ", "1e5", "1_000", "0x10", "inf", "NaN", "1.2.3",
            "--1", "\u{661}",
        ] {
            let refused = judged(other).unwrap_err();
            assert!(refused.contains("copies"), "{other:?}: {refused}");
        }
    }
}
