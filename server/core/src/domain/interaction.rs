//! Questions that a run is suspended on: what is asked, what may be answered, and how it ended.
//!
//! An interaction is answered once, by whoever comes first. Texts that wait in the run's queue
//! never answer one.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::ids::InteractionId;
use super::limits::{
    MAX_ANSWER_BYTES, MAX_CHOICES, MAX_DETAIL_BYTES, MAX_FIELDS, MAX_LABEL_BYTES,
    MAX_LISTED_INTERACTIONS, MAX_QUESTION_BYTES,
};
use super::provenance::Origin;
use super::time::Timestamp;

/// What a choice or a field keeps alive besides its texts, roughly.
const PART_BYTES: usize = 64;

/// The kinds of questions there are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InteractionKind {
    /// May the agent do this?
    Approval,
    /// Which of these?
    Select,
    /// Yes or no?
    Confirm,
    /// A free text.
    Input,
    /// Several fields at once.
    Form,
}

impl InteractionKind {
    /// Every kind there is.
    pub const ALL: [Self; 5] = [
        Self::Approval,
        Self::Select,
        Self::Confirm,
        Self::Input,
        Self::Form,
    ];

    /// The kind as it stands in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Select => "select",
            Self::Confirm => "confirm",
            Self::Input => "input",
            Self::Form => "form",
        }
    }
}

/// One thing to choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// What an answer names it by, unique within its question.
    pub id: String,
    /// What a person reads.
    pub label: String,
}

/// What a field of a form takes. Answers are texts whatever the kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// Any text.
    Text,
    /// A decimal number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// The id of one of these.
    Select(Vec<Choice>),
}

/// One field of a form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormField {
    /// What an answer names it by, unique within its form.
    pub name: String,
    /// What a person reads.
    pub label: String,
    /// What it takes.
    pub kind: FieldKind,
    /// An answer without it is refused.
    pub required: bool,
}

/// What an answer must look like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One of these, each of which allows or denies something.
    Approval(Vec<Choice>),
    /// One of these.
    Select(Vec<Choice>),
    /// Yes or no.
    Confirm,
    /// A text.
    Input {
        /// The answer is kept out of records, events and logs; only the engine sees it.
        secret: bool,
    },
    /// A text for each of these.
    Form(Vec<FormField>),
}

/// A question as an engine asks it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// The question in one line.
    pub title: String,
    /// What a person needs to know to answer: the command to approve, for example.
    pub details: String,
    /// What an answer must look like.
    pub shape: Shape,
    /// What the engine is told when the deadline passes; without one it is told that nobody
    /// answered.
    pub default: Option<InteractionAnswer>,
}

/// An answer.
#[derive(Clone, PartialEq, Eq)]
pub enum InteractionAnswer {
    /// To an approval or a select: the id of the choice.
    Choice(String),
    /// To a confirm.
    Confirmed(bool),
    /// To an input.
    Text(String),
    /// To a form: texts by the names of the fields.
    Fields(BTreeMap<String, String>),
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

/// An answer may be a secret: a debug line must not be where it comes out.
impl fmt::Debug for InteractionAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Choice(id) => f.debug_tuple("Choice").field(id).finish(),
            Self::Confirmed(yes) => f.debug_tuple("Confirmed").field(yes).finish(),
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Fields(fields) => f.debug_list().entries(fields.keys()).finish(),
        }
    }
}

/// How an interaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ResolutionCause {
    /// Somebody answered.
    Answered,
    /// The run was aborted.
    Aborted,
    /// Its deadline passed.
    Expired,
    /// The engine no longer waits for it: it withdrew the question, or is gone.
    EngineGone,
}

impl ResolutionCause {
    /// The cause as it stands in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Aborted => "aborted",
            Self::Expired => "expired",
            Self::EngineGone => "engine_gone",
        }
    }
}

/// When and how an interaction ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolution {
    /// When it was decided; later than every end before it in the same run, see [`end_after`].
    pub at: Timestamp,
    /// How.
    pub cause: ResolutionCause,
    /// What the engine was told: the answer, or the default. Absent where it was told that nobody
    /// answered, and where the answer is a secret.
    pub answer: Option<InteractionAnswer>,
    /// Who answered, if somebody did.
    pub origin: Option<Origin>,
}

/// The durable record of an interaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interaction {
    /// Its id.
    pub id: InteractionId,
    /// What is asked.
    pub question: Question,
    /// When.
    pub asked_at: Timestamp,
    /// When nobody needs to answer any more.
    pub deadline: Option<Timestamp>,
    /// How it ended; absent while it is open.
    pub resolution: Option<Resolution>,
}

/// The time of an end that comes after the one at `last` in its run: now, but a millisecond later at
/// least. The clock may stand still or step back, and who folds events and who reads the rows must
/// agree on which ends are the newest.
#[must_use]
pub fn end_after(last: Option<Timestamp>, now: Timestamp) -> Timestamp {
    last.map_or(now, |last| now.max(last.after(Duration::from_millis(1))))
}

/// Drops what nobody needs to read of what one run asked: all but the open ones, of which there are
/// few, and the [`MAX_LISTED_INTERACTIONS`] that ended last, those included. Says which one goes, if
/// one does.
#[must_use]
pub fn surplus(asked: &BTreeMap<InteractionId, Interaction>) -> Option<InteractionId> {
    if asked.len() <= MAX_LISTED_INTERACTIONS {
        return None;
    }
    asked
        .values()
        .filter_map(|it| Some((it.resolution.as_ref()?.at, it.id)))
        .min()
        .map(|(_, id)| id)
}

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

impl Question {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> InteractionKind {
        match self.shape {
            Shape::Approval(_) => InteractionKind::Approval,
            Shape::Select(_) => InteractionKind::Select,
            Shape::Confirm => InteractionKind::Confirm,
            Shape::Input { .. } => InteractionKind::Input,
            Shape::Form(_) => InteractionKind::Form,
        }
    }

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

    /// The answer as it may be kept and shown: a secret one is neither.
    #[must_use]
    pub fn showable(&self, answer: &InteractionAnswer) -> Option<InteractionAnswer> {
        let secret = matches!(self.shape, Shape::Input { secret: true });
        (!secret).then(|| answer.clone())
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

fn field_takes(field: &FormField, text: &str) -> Result<(), String> {
    let name = &field.name;
    match &field.kind {
        FieldKind::Text => Ok(()),
        FieldKind::Number if text.trim().parse::<f64>().is_ok_and(f64::is_finite) => Ok(()),
        FieldKind::Number => Err(format!("the field {name:?} takes a decimal number")),
        FieldKind::Boolean if matches!(text, "true" | "false") => Ok(()),
        FieldKind::Boolean => Err(format!("the field {name:?} takes true or false")),
        FieldKind::Select(choices) => {
            known_choice(choices, text).map_err(|problem| format!("the field {name:?}: {problem}"))
        }
    }
}
