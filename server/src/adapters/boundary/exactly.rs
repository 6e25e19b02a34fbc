//! What stands at a path itself, without any link on the way: for whoever compares names with what
//! is recorded of them.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::list::Kind;
use super::refusal::Refusal;
use super::root::{self, Boundary, Miss};
use super::step;

/// A folder that was reached without a link.
pub struct Folder<'a> {
    boundary: &'a Boundary,
    opened: OwnedFd,
}

/// What something is, a link itself and not its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last changed: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// Its owner may run it.
    pub executable: bool,
}

impl Boundary {
    /// Opens a folder, given by a path without links.
    ///
    /// # Errors
    /// When it is not there, no folder, or there is a link on the way.
    pub fn exactly(&self, path: &Path) -> Result<Folder<'_>, Refusal> {
        self.identity()?;
        let path = root::plain(path)?.ok_or(Refusal::Outside)?;
        match self.descend(&path) {
            Ok(opened) => Ok(Folder {
                boundary: self,
                opened,
            }),
            Err(Miss::Link) => Err(Refusal::NotAFolder),
            Err(Miss::Refused(refusal)) => Err(refusal),
        }
    }
}

impl Folder<'_> {
    /// The folder itself, for who works in it.
    pub(super) fn into_opened(self) -> OwnedFd {
        self.opened
    }

    /// What has a name in it.
    ///
    /// # Errors
    /// When nothing has, or it is hidden.
    pub fn about(&self, name: &OsStr) -> Result<About, Refusal> {
        // A name with a slash would be a path of its own.
        if Path::new(name).file_name() != Some(name) {
            return Err(Refusal::NoName);
        }
        let about = step::look(&self.opened, name)?;
        if self.boundary.hidden().hides(&about) {
            return Err(Refusal::Hidden);
        }
        Ok(About {
            kind: Kind::of(&about),
            bytes: u64::try_from(about.st_size).unwrap_or_default(),
            modified: (
                about.st_mtime,
                u32::try_from(about.st_mtime_nsec).unwrap_or_default(),
            ),
            executable: about.st_mode & 0o100 != 0,
        })
    }
}
