//! Contents too large for an entry or an event, named by an opaque id.

use super::ids::ArtifactId;

/// An artifact as records and events name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArtifactRef {
    /// Its id. Never a path.
    pub id: ArtifactId,
    /// Its length, in bytes.
    pub bytes: u64,
}
