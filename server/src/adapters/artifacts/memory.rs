//! Contents in memory: what the suite and simulations use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::ports::artifact_store::{ArtifactError, ArtifactStore};
use sha2::{Digest as _, Sha256};

/// Contents in memory. Clones share them, as openings of one folder do.
#[derive(Clone, Default)]
pub struct MemoryArtifacts {
    contents: Arc<Mutex<HashMap<ArtifactId, Arc<[u8]>>>>,
}

#[async_trait]
impl ArtifactStore for MemoryArtifacts {
    async fn put(&self, id: ArtifactId, content: Arc<[u8]>) -> Result<Digest, ArtifactError> {
        let digest = Digest(Sha256::digest(&content).into());
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        match contents.get(&id) {
            Some(kept) if *kept != content => Err(ArtifactError::Exists(id)),
            Some(_) => Ok(digest),
            None => {
                contents.insert(id, content);
                Ok(digest)
            }
        }
    }

    async fn remove(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        contents.remove(&id);
        Ok(())
    }

    async fn read(
        &self,
        id: ArtifactId,
        offset: u64,
        max: usize,
    ) -> Result<Option<Vec<u8>>, ArtifactError> {
        let contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(contents.get(&id).map(|content| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let rest = content.get(from..).unwrap_or_default();
            rest[..max.min(rest.len())].to_vec()
        }))
    }
}
