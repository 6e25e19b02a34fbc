//! Questions that a run is suspended on: what is asked, what may be answered, and how it ended.
//!
//! An interaction is answered once, by whoever comes first. Texts that wait in the run's queue
//! never answer one.

mod answering;
mod size;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::ids::InteractionId;
use super::limits::MAX_LISTED_INTERACTIONS;
use super::provenance::Origin;
use super::time::Timestamp;

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
    /// A decimal number: digits, a `-` before and a `.` with digits after them allowed.
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

    /// The answer as it may be kept and shown: a secret one is neither.
    #[must_use]
    pub fn showable(&self, answer: &InteractionAnswer) -> Option<InteractionAnswer> {
        let secret = matches!(self.shape, Shape::Input { secret: true });
        (!secret).then(|| answer.clone())
    }
}
