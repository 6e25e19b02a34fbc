//! A small file beside the database that says how far the store had come when it was last opened.
//!
//! sled opens a database whose head is damaged as an empty one, without a word. The mark makes
//! that loss an error: it is written after the boot counter is on the disk, so a database that
//! counts less than its mark has lost records. What must never enter: anything that is needed to
//! read the store.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use super::convert::Meta;

/// The mark's name in the data directory.
const NAME: &str = "boots";
/// Its name until it is whole.
const STAGED: &str = "boots.new";

/// What the mark of a data directory says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    store_id: u128,
    boots: u32,
}

/// Reads the mark; none if there is none yet. One that says nothing is an error.
pub(super) fn read(path: &Path) -> io::Result<Option<Mark>> {
    let text = match fs::read(path.join(NAME)) {
        Ok(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mark = parse(&text).ok_or_else(|| {
        let problem =
            format!("the file {NAME} is not readable; without it the store can be opened");
        io::Error::new(io::ErrorKind::InvalidData, problem)
    })?;
    Ok(Some(mark))
}

fn parse(text: &str) -> Option<Mark> {
    let (id, boots) = text.strip_suffix('\n')?.split_once(' ')?;
    Some(Mark {
        store_id: u128::from_str_radix(id, 16).ok()?,
        boots: boots.parse().ok()?,
    })
}

impl Mark {
    /// Whether a database with this record may be the one that the mark was made for.
    pub(super) fn admits(self, found: Option<&Meta>) -> bool {
        found.is_some_and(|meta| meta.store_id == self.store_id && meta.boots >= self.boots)
    }
}

/// Writes the mark of an opening that is on the disk. The directory is synced by the caller.
pub(super) fn write(path: &Path, meta: &Meta) -> io::Result<()> {
    let mut staged = File::create(path.join(STAGED))?;
    writeln!(staged, "{:032x} {}", meta.store_id, meta.boots)?;
    staged.sync_all()?;
    fs::rename(path.join(STAGED), path.join(NAME))
}
