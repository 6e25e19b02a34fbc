//! A line of an export.

use super::lines::{Header, Line};

/// A line that is read is written as what is read again.
pub(in crate::adapters::sled) fn line(bytes: &[u8]) {
    let _header_or_none = serde_json::from_slice::<Header>(bytes);
    if let Ok(line) = serde_json::from_slice::<Line>(bytes) {
        let written = serde_json::to_vec(&line).unwrap_or_default();
        assert_eq!(serde_json::from_slice::<Line>(&written).ok(), Some(line));
    }
}
