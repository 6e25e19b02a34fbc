//! Places in a session's stream.

use sessionplane::v1;
use sessionplane_core::domain::position::Position;

use super::field::{Malformed, required};

/// A place that must be told.
pub(crate) fn read(
    field: &'static str,
    position: Option<v1::Position>,
) -> Result<Position, Malformed> {
    let v1::Position { epoch, seq } = required(field, position)?;
    Ok(Position { epoch, seq })
}

/// A place to give back.
pub(crate) fn write(position: Position) -> v1::Position {
    v1::Position {
        epoch: position.epoch,
        seq: position.seq,
    }
}
