//! Going through everything, page by page, in the order of keys.

use ::sled::IVec;
use sessionplane_core::ports::repository::ReadError;

use super::committer::Direct;
use super::frame::Source;
use super::keys::Key;
use super::round::failed;

/// Records of a page.
pub(super) const PAGE: usize = 256;

/// Some records, and where the next ones begin; nowhere after the last.
pub(super) struct Page {
    pub(super) records: Vec<(IVec, IVec)>,
    pub(super) next: Option<Key>,
}

/// A source of which everything can be read.
pub(super) trait Walk: Source {
    /// The records from `first` on.
    fn page(&self, first: &[u8]) -> Result<Page, ReadError>;
}

impl Walk for Direct<'_> {
    fn page(&self, first: &[u8]) -> Result<Page, ReadError> {
        let mut records = Vec::new();
        for record in self.0.range(first..) {
            let (key, value) = record.map_err(|error| failed(first, &error))?;
            if records.len() == PAGE {
                let next = Some(key.to_vec());
                return Ok(Page { records, next });
            }
            records.push((key, value));
        }
        Ok(Page {
            records,
            next: None,
        })
    }
}
