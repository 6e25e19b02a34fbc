//! Where contents lie that are too large for an entry.
//!
//! Promises that the suite checks: what was put is on stable storage before its id is known to
//! anybody; an id says nothing of where the content lies; a content never changes.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::ids::ArtifactId;
use crate::domain::provenance::Digest;

/// Why an artifact could not be kept or read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArtifactError {
    /// An artifact of that id exists already, with another content.
    #[error("an artifact {0} exists already")]
    Exists(ArtifactId),
    /// The content is not what was put: the medium damaged it.
    #[error("the artifact {0} is damaged")]
    Damaged(ArtifactId),
    /// The store failed.
    #[error("the artifact store failed: {0}")]
    Store(String),
}

/// Keeps contents by id.
#[async_trait]
pub trait ArtifactStore: Send + Sync {
    /// Keeps a content under an id that its caller minted, syncs, then returns. Putting the same
    /// content again changes nothing. Gives the SHA-256 of the content, which whoever names it notes
    /// beside its id.
    async fn put(&self, id: ArtifactId, content: Arc<[u8]>) -> Result<Digest, ArtifactError>;

    /// Removes a content, syncs, then returns. Where there is none, nothing happens.
    async fn remove(&self, id: ArtifactId) -> Result<(), ArtifactError>;

    /// At most `max` bytes of a content from `offset`; empty at its end, nothing if there is no
    /// such artifact.
    async fn read(
        &self,
        id: ArtifactId,
        offset: u64,
        max: usize,
    ) -> Result<Option<Vec<u8>>, ArtifactError>;
}
