//! Inputs that wait in a run, and what becomes of inputs.

use sessionplane::v1;
use sessionplane_core::domain::event::PendingInput;
use sessionplane_core::domain::input::{DiscardCause, InputKind};

use super::field::{Malformed, id};
use super::origin;

/// An input that waits.
pub(crate) fn read(input: v1::PendingInput) -> Result<PendingInput, Malformed> {
    Ok(PendingInput {
        id: id("pending.input_id", &input.input_id)?,
        kind: kind(input.kind()),
        bytes: input.omitted_bytes.saturating_add(input.text.len() as u64),
        preview: input.text,
        origin: origin::read("pending.origin", input.origin)?,
        handed: input.handed,
    })
}

/// A kind this client does not know is taken for the one that promises less.
pub(crate) fn kind(kind: v1::InputKind) -> InputKind {
    match kind {
        v1::InputKind::Steer => InputKind::Steer,
        v1::InputKind::FollowUp | v1::InputKind::Unspecified => InputKind::FollowUp,
    }
}

/// A cause this client does not know is taken for the one that promises least: the model may have
/// read the input.
pub(crate) fn cause(cause: v1::DiscardCause) -> DiscardCause {
    match cause {
        v1::DiscardCause::Aborted => DiscardCause::Aborted,
        v1::DiscardCause::Failed => DiscardCause::Failed,
        v1::DiscardCause::Interrupted => DiscardCause::Interrupted,
        v1::DiscardCause::Lost | v1::DiscardCause::Unspecified => DiscardCause::Lost,
    }
}
