//! A boundary around a folder that lies beneath another's: for a session that works in a part of a
//! workspace.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Dir;
use rustix::io::Errno;

use super::refusal::Refusal;
use super::root::{Boundary, Identity, Miss};
use super::step;

/// How much of a folder is gone through to tell how a name in it is really spelt, in entries.
const ENTRIES: usize = 100_000;

impl Boundary {
    /// The boundary around a folder beneath, and its real path from here: without links, `.` and
    /// `..`, and spelt as it is listed where case or composition mean nothing. It is opened step by
    /// step, and nothing is looked up by its path after that. What is hidden here is hidden there,
    /// and it is given for the same.
    ///
    /// # Errors
    /// When there is no such folder inside, it is hidden or mounted, or it cannot be entered.
    pub fn beneath(&self, path: &Path) -> Result<(Self, PathBuf), Refusal> {
        self.real(path, |path| {
            let (folder, real) = self.spelt(path)?;
            // To have it open is not to be let in.
            step::folder(&folder, ".".as_ref())?;
            Ok((self.around(folder, &real), real))
        })
    }

    /// Opens a folder step by step, and gathers how each is spelt.
    fn spelt(&self, path: &Path) -> Result<(OwnedFd, PathBuf), Miss> {
        let mut at = step::folder(self, ".".as_ref())?;
        let mut real = PathBuf::new();
        for name in path {
            let folder = self.enter(&at, name)?;
            let (_, identity) = step::about(&folder)?;
            real.push(spelling(&at, name, identity)?);
            at = folder;
        }
        Ok((at, real))
    }
}

/// How the name of a folder is spelt in the one that it lies in. Only where another case of the name
/// is the same folder, or the name has more than ASCII in it, is that looked up in the listing.
pub(super) fn spelling(
    parent: &OwnedFd,
    asked: &OsStr,
    folder: Identity,
) -> Result<OsString, Errno> {
    let other = other_case(asked);
    let has_one_case = other == asked || !is_also(parent, &other, folder);
    if asked.is_ascii() && has_one_case {
        return Ok(asked.to_owned());
    }
    let mut listed = Dir::new(step::folder(parent, ".".as_ref())?)?;
    let mut found = None;
    for _ in 0..ENTRIES {
        let Some(entry) = listed.read() else {
            break;
        };
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == asked {
            return Ok(asked.to_owned());
        }
        let may_be = entry.ino() == folder.inode || name.eq_ignore_ascii_case(asked);
        let is_step = name != "." && name != "..";
        if is_step && may_be && is_also(parent, name, folder) {
            found = Some(name.to_owned());
        }
    }
    Ok(found.unwrap_or_else(|| asked.to_owned()))
}

/// Whether a name is the same folder's.
fn is_also(parent: &OwnedFd, name: &OsStr, folder: Identity) -> bool {
    step::look(parent, name).is_ok_and(|about| Identity::of(&about) == folder)
}

/// The name with capitals for small letters, and the other way.
fn other_case(name: &OsStr) -> OsString {
    let turn = |byte: &u8| match byte {
        b'a'..=b'z' => byte.to_ascii_uppercase(),
        byte => byte.to_ascii_lowercase(),
    };
    let turned: Vec<u8> = name.as_bytes().iter().map(turn).collect();
    OsStr::from_bytes(&turned).to_owned()
}
