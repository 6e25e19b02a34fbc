//! What goes with a text, and what was given as data.

use sessionplane::v1 as wire;
use sessionplane_core::domain::data::{Content, Data, DataPart};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::given::{Given, GivenData};
use sessionplane_core::domain::provenance::Trust;

use super::entry;

/// What came with the text of `of`, for example `prompt`.
pub(crate) fn given(
    of: &str,
    typed: bool,
    trust: i32,
    data: Vec<wire::GivenData>,
) -> Result<Given, CallError> {
    Ok(Given {
        typed,
        at_most: at_most(of, trust)?,
        data: data.into_iter().map(part).collect(),
    })
}

fn part(data: wire::GivenData) -> GivenData {
    GivenData {
        name: data.name.into(),
        media_type: data.media_type.into(),
        content: data.content.into(),
    }
}

/// A value from a newer client is refused: a guess could trust a text too much.
fn at_most(of: &str, value: i32) -> Result<Option<Trust>, CallError> {
    match wire::Trust::try_from(value) {
        Ok(wire::Trust::Unspecified) => Ok(None),
        Ok(wire::Trust::Typed) => Ok(Some(Trust::Typed)),
        Ok(wire::Trust::Relayed) => Ok(Some(Trust::Relayed)),
        Ok(wire::Trust::Untrusted) => Ok(Some(Trust::Untrusted)),
        Err(_) => Err(CallError::invalid(
            format!("{of}.trust"),
            format!(
                "{value} is not known to this server; use 1 (TYPED), 2 (RELAYED) or 3 (UNTRUSTED)"
            ),
        )),
    }
}

/// What was given as data.
pub(crate) fn to_wire(data: &Data) -> wire::UserData {
    wire::UserData {
        parts: data.parts().iter().map(part_to_wire).collect(),
        boundary: data.boundary().to_string(),
        on_file: data.on_file().map(ToString::to_string),
    }
}

fn part_to_wire(part: &DataPart) -> wire::DataPart {
    let (head, tail) = match &part.content {
        Content::Whole(whole) => (whole.to_vec(), Vec::new()),
        Content::Cut { head, tail, .. } => (head.to_vec(), tail.to_vec()),
    };
    wire::DataPart {
        name: part.name.to_string(),
        media_type: part.media_type.to_string(),
        bytes: part.bytes,
        sha256: part.sha256.to_string(),
        head,
        tail,
        artifact: part.content.artifact().map(entry::artifact_ref),
    }
}
