//! What an export looks like: one JSON object a line, as `docs/store.md` states. The last line holds
//! the SHA-256 of all lines before it, so that an export that was cut or changed is told.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The version of the lines' form.
pub(super) const VERSION: u32 = 1;
/// What the first line calls itself.
pub(super) const NAME: &str = "sessionplane-store";
/// Longest line, in bytes: a value of the greatest length, as text, and its key.
pub(super) const MAX_LINE: u64 = 512 * 1024 * 1024;
/// Bytes of a content in one line.
pub(super) const CONTENT_PART: usize = 256 * 1024;

/// The first line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// [`NAME`].
    pub(super) export: String,
    /// [`VERSION`].
    pub(super) version: u32,
    /// The format of the store that it is of.
    pub(super) store_format: u32,
    /// That store, as 32 hexadecimal digits.
    pub(super) store_id: String,
    /// How often that store was opened.
    pub(super) boots: u32,
    /// `all`, or `chosen` where it has only some sessions.
    pub(super) scope: Scope,
}

/// What an export has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Scope {
    All,
    Chosen,
}

/// Any line after the first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum Line {
    /// A record, with its pieces put together.
    Record {
        /// What it is, for people.
        record: String,
        /// Its key.
        #[serde(with = "text")]
        key: Vec<u8>,
        /// Its payload.
        #[serde(with = "text")]
        value: Vec<u8>,
    },
    /// A part of a content. Parts of one follow each other.
    Content {
        /// Which.
        artifact: String,
        /// The length of the whole.
        bytes: u64,
        /// Where this part begins.
        offset: u64,
        /// The part.
        #[serde(with = "text")]
        data: Vec<u8>,
    },
    /// A content that an entry names, and that could not be read.
    Missing {
        /// Which.
        artifact: String,
        /// Why.
        missing: String,
    },
    /// Why a server that was asked for a backup gives none, or no more of it.
    Refused {
        /// For a person.
        refused: String,
    },
    /// The last line.
    Trailer(Trailer),
}

/// The last line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trailer {
    /// Records before it.
    pub(super) records: u64,
    /// Contents before it.
    pub(super) artifacts: u64,
    /// Contents that could not be read.
    pub(super) missing: u64,
    /// The SHA-256 of all lines before it, each with its line feed.
    pub(super) sha256: String,
}

/// Hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

mod text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}
