//! Answers to questions as people write them. Values only; nothing is sent here.

use std::collections::BTreeMap;

use sessionplane_core::domain::ids::{IdError, InteractionId, SessionRef};
use sessionplane_core::domain::interaction::{
    Choice, FieldKind, FormField, InteractionAnswer, Question, Shape,
};

use super::session;

/// Who is answered: a question, or a session that has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Addressee {
    Question(InteractionId),
    Session(SessionRef),
}

impl Addressee {
    /// Reads a TARGET argument. No session has the shape of a question's id.
    ///
    /// # Errors
    /// When it is neither.
    pub(crate) fn parse(text: &str) -> Result<Self, IdError> {
        match text.parse() {
            Ok(question) => Ok(Self::Question(question)),
            Err(_) => session::parse(text).map(Self::Session),
        }
    }
}

/// Reads an answer as words of a command line: each field of a form is a word, every other answer
/// is all of them.
///
/// # Errors
/// What is wrong with it, for a person.
pub(crate) fn from_words(
    question: &Question,
    words: &[String],
) -> Result<InteractionAnswer, String> {
    match &question.shape {
        Shape::Form(fields) => checked(question, form(fields, words.iter().map(String::as_str))?),
        _ => single(question, &words.join(" ")),
    }
}

/// Reads an answer from a text of its own, which a file or a typed line holds: of a form, a field
/// is a line if there are several, else a word. A line end at the very end is not part of it.
///
/// # Errors
/// What is wrong with it, for a person.
pub(crate) fn from_text(question: &Question, text: &str) -> Result<InteractionAnswer, String> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    match &question.shape {
        Shape::Form(fields) if text.contains('\n') => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            checked(question, form(fields, lines)?)
        }
        Shape::Form(fields) => {
            checked(question, form(fields, fields_of(fields, text).into_iter())?)
        }
        _ => single(question, text),
    }
}

/// A text as an answer of each kind that it can be, for a question that nobody shows any more. A
/// choice is one by its id.
pub(crate) fn any_kind(text: &str) -> Vec<InteractionAnswer> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let mut answers = vec![
        InteractionAnswer::Choice(text.trim().to_owned()),
        InteractionAnswer::Text(text.to_owned()),
    ];
    answers.extend(yes(text.trim()).map(InteractionAnswer::Confirmed));
    let parts: Vec<_> = if text.contains('\n') {
        let lines = text.lines();
        lines.filter(|line| !line.trim().is_empty()).collect()
    } else {
        words_with_values(text)
    };
    answers.extend(form(&[], parts.into_iter()));
    answers
}

/// The fields of one line, of whose form nothing is known: every word with an `=` begins one.
fn words_with_values(line: &str) -> Vec<&str> {
    let begins = |at: usize| {
        let word = line[at..].split(' ').next().unwrap_or_default();
        word.contains('=')
    };
    parts(line, begins)
}

/// What an answer looks like, as an argument.
pub(crate) fn example(question: &Question) -> String {
    match &question.shape {
        Shape::Approval(choices) | Shape::Select(choices) => ids(choices),
        Shape::Confirm => "yes|no".to_owned(),
        Shape::Input { secret: true } => "--text-file -".to_owned(),
        Shape::Input { secret: false } => "\"...\"".to_owned(),
        Shape::Form(fields) => fields
            .iter()
            .map(|field| match &field.kind {
                FieldKind::Select(choices) => format!("{}={}", field.name, ids(choices)),
                FieldKind::Boolean => format!("{}=true|false", field.name),
                FieldKind::Text | FieldKind::Number => format!("{}=...", field.name),
            })
            .collect::<Vec<_>>()
            .join(" "),
    }
}

fn ids(choices: &[Choice]) -> String {
    let ids: Vec<_> = choices.iter().map(|choice| choice.id.as_str()).collect();
    ids.join("|")
}

/// Every answer but a form's.
fn single(question: &Question, text: &str) -> Result<InteractionAnswer, String> {
    let answer = match &question.shape {
        Shape::Approval(choices) => InteractionAnswer::Choice(approval(choices, text.trim())),
        Shape::Select(choices) => InteractionAnswer::Choice(choice(choices, text.trim())),
        Shape::Confirm => InteractionAnswer::Confirmed(yes(text.trim())?),
        Shape::Input { .. } | Shape::Form(_) => InteractionAnswer::Text(text.to_owned()),
    };
    checked(question, answer)
}

fn checked(question: &Question, answer: InteractionAnswer) -> Result<InteractionAnswer, String> {
    question.check(&answer).map(|()| answer)
}

/// The id of the choice that is meant: by its id, or by its whole label where only one has it.
fn choice(choices: &[Choice], text: &str) -> String {
    if choices.iter().all(|choice| choice.id != text) {
        let mut labelled = choices
            .iter()
            .filter(|choice| choice.label.eq_ignore_ascii_case(text));
        if let (Some(only), None) = (labelled.next(), labelled.next()) {
            return only.id.clone();
        }
    }
    text.to_owned()
}

/// A choice of an approval. Who says yes or no means the one choice that says so in another word;
/// where several do, or none, it is as good as no choice.
fn approval(choices: &[Choice], text: &str) -> String {
    const YES: [&str; 6] = ["yes", "allow", "approve", "accept", "ok", "proceed"];
    const NO: [&str; 6] = ["no", "deny", "reject", "decline", "refuse", "disallow"];
    let meant = choice(choices, text);
    if choices.iter().any(|choice| choice.id == meant) {
        return meant;
    }
    let words = match yes(text) {
        Ok(true) => YES,
        Ok(false) => NO,
        Err(_) => return meant,
    };
    let says = |choice: &&Choice| {
        let first = choice.id.split(['-', '_', ' ', '.']).next();
        first.is_some_and(|first| words.iter().any(|word| first.eq_ignore_ascii_case(word)))
    };
    let mut saying = choices.iter().filter(says);
    match (saying.next(), saying.next()) {
        (Some(only), None) => only.id.clone(),
        _ => meant,
    }
}

fn yes(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "y" | "true" => Ok(true),
        "no" | "n" | "false" => Ok(false),
        _ => Err("the answer is yes or no".to_owned()),
    }
}

fn form<'t>(
    fields: &[FormField],
    parts: impl Iterator<Item = &'t str>,
) -> Result<InteractionAnswer, String> {
    let mut given = BTreeMap::new();
    for part in parts {
        let Some((name, value)) = part.split_once('=') else {
            let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
            return Err(format!(
                "write NAME=VALUE for each field; there are: {}",
                names.join(", ")
            ));
        };
        let name = name.trim().to_owned();
        if given.contains_key(&name) {
            return Err(format!("the field {name:?} is given twice"));
        }
        given.insert(name, value.to_owned());
    }
    Ok(InteractionAnswer::Fields(given))
}

/// The fields of one line: each begins with a name that the form has, so that values may hold
/// spaces.
fn fields_of<'t>(fields: &[FormField], line: &'t str) -> Vec<&'t str> {
    let names = |at: usize| {
        let word = line[at..].split('=').next().unwrap_or_default();
        fields.iter().any(|field| field.name == word)
    };
    parts(line, |at| line[at..].contains('=') && names(at))
}

/// A line, cut before each word that begins a part.
fn parts(line: &str, begins: impl Fn(usize) -> bool) -> Vec<&str> {
    let mut starts = vec![0];
    let spaces = line.match_indices(' ').map(|(at, _)| at + 1);
    starts.extend(spaces.filter(|at| begins(*at)));
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    let part = |(from, to): (&usize, usize)| line[*from..to].trim();
    starts
        .iter()
        .zip(ends)
        .map(part)
        .filter(|part| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(shape: Shape) -> Question {
        Question {
            title: "?".to_owned(),
            details: String::new(),
            shape,
            default: None,
        }
    }

    fn choices() -> Vec<Choice> {
        let choice = |id: &str, label: &str| Choice {
            id: id.to_owned(),
            label: label.to_owned(),
        };
        vec![choice("allow", "Allow it"), choice("deny", "Deny")]
    }

    fn form_of(kinds: Vec<(&str, FieldKind)>) -> Question {
        let field = |(name, kind): (&str, FieldKind)| FormField {
            name: name.to_owned(),
            label: name.to_owned(),
            kind,
            required: true,
        };
        question(Shape::Form(kinds.into_iter().map(field).collect()))
    }

    fn words(question: &Question, words: &[&str]) -> Result<InteractionAnswer, String> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        from_words(question, &words)
    }

    #[test]
    fn c25_an_answer_is_read_by_the_kind_of_its_question() {
        let approval = question(Shape::Approval(choices()));
        let allow = Ok(InteractionAnswer::Choice("allow".to_owned()));
        assert_eq!(words(&approval, &["allow"]), allow);
        assert_eq!(words(&approval, &["allow", "it"]), allow, "by its label");
        let refused = words(&approval, &["perhaps"]).unwrap_err();
        assert!(refused.contains("allow, deny"), "{refused}");
        let confirm = question(Shape::Confirm);
        assert_eq!(
            words(&confirm, &["Yes"]),
            Ok(InteractionAnswer::Confirmed(true))
        );
        assert!(words(&confirm, &["perhaps"]).is_err());
        let input = question(Shape::Input { secret: false });
        let text = InteractionAnswer::Text("two words".to_owned());
        assert_eq!(words(&input, &["two", "words"]), Ok(text.clone()));
        assert_eq!(from_text(&input, "two words\r\n"), Ok(text));
    }

    #[test]
    fn c25_yes_and_no_mean_the_one_choice_of_an_approval_that_says_so() {
        let approval = question(Shape::Approval(choices()));
        let chosen = |id: &str| Ok(InteractionAnswer::Choice(id.to_owned()));
        assert_eq!(words(&approval, &["yes"]), chosen("allow"));
        assert_eq!(words(&approval, &["N"]), chosen("deny"));
        let mut several = choices();
        several.push(Choice {
            id: "allow-always".to_owned(),
            label: "Always".to_owned(),
        });
        let several = question(Shape::Approval(several));
        assert!(words(&several, &["yes"]).is_err(), "which one?");
        assert_eq!(words(&several, &["no"]), chosen("deny"));
        assert_eq!(words(&several, &["allow-always"]), chosen("allow-always"));
        let select = question(Shape::Select(choices()));
        assert!(words(&select, &["yes"]).is_err(), "no approval");
    }

    #[test]
    fn c25_a_form_is_read_from_words_from_a_line_and_from_lines() {
        let form = form_of(vec![
            ("zone", FieldKind::Text),
            ("copies", FieldKind::Number),
        ]);
        let expected = InteractionAnswer::Fields(BTreeMap::from([
            ("zone".to_owned(), "far north".to_owned()),
            ("copies".to_owned(), "2".to_owned()),
        ]));
        assert_eq!(
            words(&form, &["zone=far north", "copies=2"]),
            Ok(expected.clone())
        );
        assert_eq!(
            from_text(&form, "zone=far north copies=2"),
            Ok(expected.clone())
        );
        assert_eq!(from_text(&form, "copies=2\nzone=far north\n"), Ok(expected));
        for (given, told) in [
            (&["zone"][..], "NAME=VALUE"),
            (&["zone=a", "zone=b"], "twice"),
            (&["zone=a"], "required"),
            (&["zone=a", "copies=many"], "number"),
            (&["zone=a", "copies=1", "hue=red"], "no field"),
        ] {
            let refused = words(&form, given).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn a_target_is_a_question_or_a_session() {
        let id = "01K00000000000000000000002-q1";
        assert_eq!(
            Addressee::parse(id),
            Ok(Addressee::Question(id.parse().unwrap()))
        );
        assert!(matches!(
            Addressee::parse("docs-q1"),
            Ok(Addressee::Session(_))
        ));
    }
}
