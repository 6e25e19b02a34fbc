//! Places in a session's event stream.

use sessionplane::v1 as wire;
use sessionplane_core::domain::position::Position;

/// A place as it is sent.
pub(crate) fn to_wire(position: Position) -> wire::Position {
    wire::Position {
        epoch: position.epoch,
        seq: position.seq,
    }
}

/// A place as a caller gave it back. Any two numbers are a place; whether it was ever reached is
/// for the session to say.
pub(crate) fn from_wire(position: wire::Position) -> Position {
    Position {
        epoch: position.epoch,
        seq: position.seq,
    }
}
