//! What goes with a text, and what was given as data.

use sessionplane::v1;
use sessionplane_core::domain::data::{Content, Data, DataPart};
use sessionplane_core::domain::given::{Given, GivenData};
use sessionplane_core::domain::provenance::Trust;

use super::entry::artifact;
use super::field::Malformed;
use super::origin;

/// Writes the trust that a text is to have at most.
pub(crate) fn at_most(given: &Given) -> i32 {
    let trust = match given.at_most {
        None => v1::Trust::Unspecified,
        Some(Trust::Typed) => v1::Trust::Typed,
        Some(Trust::Relayed) => v1::Trust::Relayed,
        Some(Trust::Untrusted) => v1::Trust::Untrusted,
    };
    trust.into()
}

/// Writes data.
pub(crate) fn given(given: &Given) -> Vec<v1::GivenData> {
    let part = |part: &GivenData| v1::GivenData {
        name: part.name.to_string(),
        media_type: part.media_type.to_string(),
        content: part.content.to_vec(),
    };
    given.data.iter().map(part).collect()
}

/// Reads what was given as data.
pub(crate) fn read(data: v1::UserData) -> Result<Data, Malformed> {
    let parts = data.parts.into_iter().map(part);
    let parts = parts.collect::<Result<_, _>>()?;
    let kept = Data::kept(parts, data.on_file.map(Into::into), &data.boundary);
    kept.ok_or_else(|| Malformed {
        field: "entry.user.data.boundary",
        problem: "is none of these parts".to_owned(),
    })
}

fn part(part: v1::DataPart) -> Result<DataPart, Malformed> {
    Ok(DataPart {
        name: part.name.into(),
        media_type: part.media_type.into(),
        bytes: part.bytes,
        sha256: origin::digest("entry.user.data.sha256", &part.sha256)?,
        content: match artifact(part.artifact)? {
            None => Content::Whole(part.head.into()),
            Some(artifact) => Content::Cut {
                head: part.head.into(),
                tail: part.tail.into(),
                artifact,
            },
        },
    })
}
