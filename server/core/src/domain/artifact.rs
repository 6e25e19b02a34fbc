//! Contents too large for an entry or an event, named by an opaque id.

use super::ids::ArtifactId;
use super::provenance::Digest;

/// An artifact as records and events name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArtifactRef {
    /// Its id. Never a path.
    pub id: ArtifactId,
    /// Its length, in bytes.
    pub bytes: u64,
    /// The SHA-256 of the whole. None where a server named it that noted none: then its length is
    /// all that can be compared.
    pub sha256: Option<Digest>,
}

impl ArtifactRef {
    /// Whether a content of this length and this SHA-256 is the one that is named.
    #[must_use]
    pub fn names(&self, bytes: u64, sha256: Digest) -> bool {
        self.bytes == bytes && self.sha256.is_none_or(|named| named == sha256)
    }
}
