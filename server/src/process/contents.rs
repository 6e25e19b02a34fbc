//! The artifact folder, as the store's tools see it.

use sessionplane_core::domain::ids::ArtifactId;

use crate::adapters::artifacts::FolderArtifacts;
use crate::adapters::sled::tools::Contents;

/// Where artifacts live in the data directory.
pub(super) const ARTIFACTS: &str = "artifacts";

impl Contents for FolderArtifacts {
    fn content(&self, id: ArtifactId) -> Result<Option<Vec<u8>>, String> {
        self.whole(id).map_err(|error| error.to_string())
    }

    fn keep(&self, id: ArtifactId, content: Vec<u8>) -> Result<(), String> {
        let kept = Self::keep(self, id, &content);
        kept.map(drop).map_err(|error| error.to_string())
    }
}
