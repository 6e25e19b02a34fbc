//! What was given as data.

use sessionplane::store::v1 as form;
use sessionplane_core::domain::data::{Content, Data, DataPart};

use super::provenance::digest;
use super::{Stored, Unreadable, maybe, unknown};

impl Stored for Data {
    type Form = form::UserData;
    fn form(&self) -> Self::Form {
        form::UserData {
            parts: self.parts().iter().map(Stored::form).collect(),
            boundary: self.boundary().to_string(),
            on_file: self.on_file().map(ToString::to_string),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        let parts = form.parts.into_iter().map(Stored::read);
        let parts = parts.collect::<Result<_, _>>()?;
        Self::kept(parts, form.on_file.map(Into::into), &form.boundary)
            .ok_or_else(|| unknown("data.boundary"))
    }
}

impl Stored for DataPart {
    type Form = form::DataPart;
    fn form(&self) -> Self::Form {
        let (head, tail) = match &self.content {
            Content::Whole(whole) => (whole.to_vec(), Vec::new()),
            Content::Cut { head, tail, .. } => (head.to_vec(), tail.to_vec()),
        };
        form::DataPart {
            name: self.name.to_string(),
            media_type: self.media_type.to_string(),
            bytes: self.bytes,
            sha256: self.sha256.0.to_vec(),
            head,
            tail,
            artifact: self.content.artifact().map(Stored::form),
        }
    }
    fn read(form: Self::Form) -> Result<Self, Unreadable> {
        Ok(Self {
            name: form.name.into(),
            media_type: form.media_type.into(),
            bytes: form.bytes,
            sha256: digest(&form.sha256)?,
            content: match maybe(form.artifact)? {
                None => Content::Whole(form.head.into()),
                Some(artifact) => Content::Cut {
                    head: form.head.into(),
                    tail: form.tail.into(),
                    artifact,
                },
            },
        })
    }
}
