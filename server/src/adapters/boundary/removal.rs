//! Removes a folder with all that is in it, whoever filled it: however deep it goes, it takes neither
//! stack nor descriptors for that, and a folder that its maker closed is opened.
//!
//! What lies deeper than one step below the folder is moved up into it and removed there. So there is
//! nothing to come back from: a program that nests a hundred thousand folders costs time and nothing
//! else, where a recursion would end the process.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, chmod, fchmod, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::refusal::Refusal;
use super::step;

/// Names that are read of a folder at a time.
const NAMES: usize = 1024;
/// Names that are removed or moved at most. Somebody may be at it meanwhile, and faster.
const STEPS: u64 = 50_000_000;
/// What the owner of a folder needs to empty it.
const OPEN: Mode = Mode::RWXU;

/// Removes a folder, given by its name in another, with all that is in it. No link is followed, and no
/// mount is entered. Blocks.
///
/// # Errors
/// When there is none, or something of it cannot be removed.
pub fn remove_all(parent: impl AsFd, name: &OsStr) -> Result<(), Refusal> {
    if remove_some(parent, name, STEPS)? {
        return Ok(());
    }
    Err(Refusal::Unreadable("there is no end of it".to_owned()))
}

/// The same, but of at most so many names: false where there are more, and it is to be gone on with.
/// Blocks.
///
/// # Errors
/// When there is none, or something of it cannot be removed.
pub fn remove_some(parent: impl AsFd, name: &OsStr, most: u64) -> Result<bool, Refusal> {
    let mut removal = Removal {
        top: opened(&parent, name)?,
        moved: 0,
        left: most,
    };
    loop {
        let names = some(&removal.top)?;
        if names.is_empty() {
            unlinkat(parent, name, AtFlags::REMOVEDIR)?;
            return Ok(true);
        }
        for name in names {
            match removal.remove(&name) {
                // Nobody else stops it.
                Err(Refusal::Stopped) => return Ok(false),
                removed => removed?,
            }
        }
    }
}

struct Removal {
    top: OwnedFd,
    /// The last number that something was moved to.
    moved: u64,
    left: u64,
}

impl Removal {
    /// Removes something that lies in the folder itself. What is too deep lies there afterwards.
    fn remove(&mut self, name: &OsStr) -> Result<(), Refusal> {
        if self.is_gone_from(None, name)? {
            return Ok(());
        }
        let inner = opened(&self.top, name)?;
        loop {
            let names = some(&inner)?;
            if names.is_empty() {
                return Ok(unlinkat(&self.top, name, AtFlags::REMOVEDIR)?);
            }
            for name in names {
                if !self.is_gone_from(Some(&inner), &name)? {
                    self.move_up(&inner, &name)?;
                }
            }
        }
    }

    /// Removes a name, unless it is a folder with something in it.
    fn is_gone_from(&mut self, folder: Option<&OwnedFd>, name: &OsStr) -> Result<bool, Refusal> {
        let left = self.left.checked_sub(1);
        self.left = left.ok_or(Refusal::Stopped)?;
        let folder = folder.unwrap_or(&self.top);
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(true),
            // Of a folder the systems say the one or the other.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        match unlinkat(folder, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves a folder up, under a name that nothing has: an empty folder that has it is replaced.
    fn move_up(&mut self, from: &OwnedFd, name: &OsStr) -> Result<(), Refusal> {
        // Only what its maker closed cannot be moved.
        drop(opened(from, name)?);
        loop {
            self.moved += 1;
            let number = self.moved.to_string();
            match renameat(from, name, &self.top, number) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Opens a folder, and makes it one that can be emptied.
fn opened(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let folder = match step::folder(&parent, name) {
        Err(Errno::ACCESS) => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = openat(&parent, name, flags, Mode::empty())?;
            // The folder that was found and no other: its name may be a link's by now.
            chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), OPEN)?;
            step::folder(&parent, name)?
        }
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(fstat(&folder)?.st_mode);
    if !mode.contains(OPEN) {
        fchmod(&folder, OPEN)?;
    }
    Ok(folder)
}

/// Some of the names in a folder; none where it is empty.
fn some(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    // Opened anew: a descriptor has one place in its listing.
    let mut listed = Dir::new(step::folder(folder, ".".as_ref())?)?;
    let mut names = Vec::new();
    while names.len() < NAMES
        && let Some(entry) = listed.read()
    {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
