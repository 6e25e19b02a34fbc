//! Texts that a dispatch added to a run.

use sessionplane::v1 as wire;
use sessionplane_core::domain::event::PendingInput;
use sessionplane_core::domain::input::{DiscardCause, InputFate, InputKind, UndeliveredInput};

use super::origin;

/// An input that waits.
pub(crate) fn pending(input: &PendingInput) -> wire::PendingInput {
    wire::PendingInput {
        input_id: input.id.to_string(),
        kind: kind(input.kind).into(),
        text: input.preview.clone(),
        omitted_bytes: input.bytes.saturating_sub(input.preview.len() as u64),
        origin: Some(origin::to_wire(&input.origin)),
        handed: input.handed,
    }
}

/// An input that was never shown.
pub(crate) fn undelivered(input: &UndeliveredInput) -> wire::UndeliveredInput {
    wire::UndeliveredInput {
        input_id: input.id.to_string(),
        kind: kind(input.kind).into(),
        cause: cause(input.cause).into(),
        text: input.text.as_deref().unwrap_or_default().to_owned(),
    }
}

/// What has become of an input.
pub(crate) fn fate(fate: InputFate) -> wire::InputFate {
    match fate {
        InputFate::Pending => wire::InputFate::Pending,
        InputFate::Delivered(_) => wire::InputFate::Delivered,
        InputFate::Discarded(_) => wire::InputFate::Discarded,
    }
}

/// Why an input was not shown.
pub(crate) fn cause(cause: DiscardCause) -> wire::DiscardCause {
    match cause {
        DiscardCause::Aborted => wire::DiscardCause::Aborted,
        DiscardCause::Failed => wire::DiscardCause::Failed,
        DiscardCause::Interrupted => wire::DiscardCause::Interrupted,
        DiscardCause::Lost => wire::DiscardCause::Lost,
    }
}

fn kind(kind: InputKind) -> wire::InputKind {
    match kind {
        InputKind::Steer => wire::InputKind::Steer,
        InputKind::FollowUp => wire::InputKind::FollowUp,
    }
}
