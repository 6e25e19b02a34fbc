//! A place in a session's event stream.

/// A place in a session's event stream: "everything up to and including `seq` of `epoch`".
///
/// Opaque to callers of the contract's traits: they get it, keep it and give it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position {
    /// The serving incarnation of the session that numbered the events.
    pub epoch: u64,
    /// The number of the last event considered; 0 is before the first.
    pub seq: u64,
}
