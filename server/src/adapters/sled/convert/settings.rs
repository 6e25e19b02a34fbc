//! What holds at a place of the conversation, and contents that lie elsewhere.

use sessionplane::store::v1 as form;
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::entry::PathMarks;
use sessionplane_core::domain::ids::ArtifactId;
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::domain::settings::SettingsOverride;

use super::{Stored, Unreadable, bytes};

impl Stored for PathMarks {
    type Form = form::PathMarks;
    fn form(&self) -> Self::Form {
        form::PathMarks {
            settings: self.settings,
            compaction: self.compaction,
            said: self.said,
            untrusted: self.untrusted,
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            settings: form.settings,
            compaction: form.compaction,
            said: form.said,
            untrusted: form.untrusted,
        })
    }
}

impl Stored for SettingsOverride {
    type Form = form::SettingsOverride;
    fn form(&self) -> Self::Form {
        form::SettingsOverride {
            model: self.model.clone(),
            thinking_level: self.thinking_level.clone(),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            model: form.model,
            thinking_level: form.thinking_level,
        })
    }
}

impl Stored for ArtifactRef {
    type Form = form::ArtifactRef;
    fn form(&self) -> Self::Form {
        form::ArtifactRef {
            id: self.id.to_bytes().to_vec(),
            bytes: self.bytes,
            sha256: self.sha256.map(|digest| digest.0.to_vec()),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let sha256 = form
            .sha256
            .map(|digest| bytes(&digest, "artifact's digest"));
        Ok(Self {
            id: ArtifactId::from_bytes(bytes(&form.id, "artifact")?),
            bytes: form.bytes,
            sha256: sha256.transpose()?.map(Digest),
        })
    }
}
