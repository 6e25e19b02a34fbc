//! Texts that a dispatch added to a run: what they are and what becomes of them.

use std::sync::Arc;

use super::data::Data;
use super::ids::{EntryId, InputId};
use super::provenance::Origin;
use super::time::Timestamp;

/// How an input joins its run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InputKind {
    /// After the current turn's tool calls.
    Steer,
    /// When the run would otherwise stop.
    FollowUp,
}

impl InputKind {
    /// The kind as it stands in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::FollowUp => "follow_up",
        }
    }
}

/// Why an input was never shown to the model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DiscardCause {
    /// The run was aborted before it was handed over.
    Aborted,
    /// The run failed before it was handed over.
    Failed,
    /// A crash cut the run.
    Interrupted,
    /// It was handed to the engine, and the engine stopped without having shown it.
    Lost,
}

impl DiscardCause {
    /// The cause as it stands in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aborted => "aborted",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Lost => "lost",
        }
    }
}

/// What has become of an input. It leaves `Pending` exactly once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFate {
    /// Accepted and waiting.
    Pending,
    /// Shown by the engine, in this entry.
    Delivered(EntryId),
    /// Never shown.
    Discarded(DiscardCause),
}

/// The durable record of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputRecord {
    /// Its id: the run and its number within it.
    pub id: InputId,
    /// How it joins the run.
    pub kind: InputKind,
    /// The text.
    pub text: Arc<str>,
    /// What was given beside the text, or in its place.
    pub data: Option<Arc<Data>>,
    /// Who sent it.
    pub origin: Origin,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// What has become of it.
    pub fate: InputFate,
}

/// An input that never reached the model, as the run record lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndeliveredInput {
    /// Its id.
    pub id: InputId,
    /// How it would have joined the run.
    pub kind: InputKind,
    /// Why it did not.
    pub cause: DiscardCause,
    /// Its text, where somebody asked for the run's record; not stored twice and not in events.
    pub text: Option<Arc<str>>,
}
