//! Making and removing things beneath a folder that was given to work in.
//!
//! Every step is one plain name beneath a descriptor that is held, as in reading; nothing that is
//! there already is ever written into: files are new ones, and get their final names by a rename.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Mode, OFlags, Stat, fstat, mkdirat, openat, renameat, symlinkat, unlinkat,
};

use super::refusal::Refusal;
use super::removal;
use super::root::{Access, Boundary, Miss};
use super::step;

/// What a new file is made with: it must be new, and is no link to something that is not there yet.
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A folder inside of a workspace that was given to work in, open for changes.
#[derive(Debug)]
pub struct Workplace<'a> {
    boundary: &'a Boundary,
    folder: OwnedFd,
}

/// What was made, as the file system has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Made {
    /// When its data and its inode were changed: seconds since 1970, and nanoseconds.
    pub times: [(i64, i64); 2],
    /// Device, inode, owner and group, each cut to 32 bits.
    pub numbers: [u32; 4],
    /// Its size in bytes.
    pub bytes: u64,
}

/// A file that says, for as long as this value lives, that somebody is at work.
#[derive(Debug)]
pub struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // Closing it would not do for as long as a process that is just being started has it, too.
        let _closed = self.0.unlock();
    }
}

impl Boundary {
    /// Opens a folder, given by a path without links, for changes in it.
    ///
    /// # Errors
    /// When the workspace is given for reading only, or as of [`Self::exactly`].
    pub fn work_in(&self, path: &Path) -> Result<Workplace<'_>, Refusal> {
        if self.access() != Access::Writable {
            return Err(Refusal::ReadOnly);
        }
        let folder = self.exactly(path)?.into_opened();
        Ok(Workplace {
            boundary: self,
            folder,
        })
    }
}

impl<'a> Workplace<'a> {
    /// Opens a folder in it.
    ///
    /// # Errors
    /// When there is none of that name, or it is a link, hidden or mounted.
    pub fn enter(&self, name: &OsStr) -> Result<Workplace<'a>, Refusal> {
        plain(name)?;
        match self.boundary.enter(&self.folder, name) {
            Ok(folder) => Ok(Workplace {
                boundary: self.boundary,
                folder,
            }),
            Err(Miss::Link) => Err(Refusal::NotAFolder),
            Err(Miss::Refused(refusal)) => Err(refusal),
        }
    }

    /// Makes a folder in it, and opens it.
    ///
    /// # Errors
    /// When something has that name, or it cannot be made.
    pub fn make(&self, name: &OsStr) -> Result<Workplace<'a>, Refusal> {
        plain(name)?;
        mkdirat(&self.folder, name, Mode::from_raw_mode(0o777))?;
        self.enter(name)
    }

    /// Opens a folder in it, which is made if there is none.
    ///
    /// # Errors
    /// As of [`Self::enter`] and [`Self::make`].
    pub fn enter_or_make(&self, name: &OsStr) -> Result<Workplace<'a>, Refusal> {
        match self.make(name) {
            Err(Refusal::Exists) => self.enter(name),
            made => made,
        }
    }

    /// Writes a new file.
    ///
    /// # Errors
    /// When something has that name, or it cannot be written; then a part of it may be left.
    pub fn write(&self, name: &OsStr, content: &[u8], runs: bool) -> Result<Made, Refusal> {
        let file = self.file(name, content, runs)?;
        Ok(made(&fstat(&file)?))
    }

    /// Writes a new file that says that somebody is at work, until what is returned is dropped, also
    /// by the end of the process.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub fn hold(&self, name: &OsStr, content: &[u8]) -> Result<Held, Refusal> {
        let file = self.file(name, content, false)?;
        file.lock()?;
        Ok(Held(file))
    }

    fn file(&self, name: &OsStr, content: &[u8], runs: bool) -> Result<File, Refusal> {
        plain(name)?;
        let mode = if runs { 0o777 } else { 0o666 };
        let opened = openat(&self.folder, name, NEW, Mode::from_raw_mode(mode))?;
        let mut file = File::from(opened);
        file.write_all(content)?;
        Ok(file)
    }

    /// Makes a link. What it leads to is not asked: whoever follows it here does so within the folder.
    ///
    /// # Errors
    /// When something has that name, or it cannot be made.
    pub fn link(&self, name: &OsStr, target: &OsStr) -> Result<Made, Refusal> {
        plain(name)?;
        symlinkat(target, &self.folder, name)?;
        Ok(made(&step::look(&self.folder, name)?))
    }

    /// Gives a file in it another name there; what has that name is replaced.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), Refusal> {
        plain(from)?;
        plain(to)?;
        Ok(renameat(&self.folder, from, &self.folder, to)?)
    }

    /// Removes a file or a link in it.
    ///
    /// # Errors
    /// When there is none, or it cannot be removed.
    pub fn remove(&self, name: &OsStr) -> Result<(), Refusal> {
        plain(name)?;
        Ok(unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    /// Removes an empty folder in it.
    ///
    /// # Errors
    /// When there is none, or something is in it.
    pub fn remove_empty(&self, name: &OsStr) -> Result<(), Refusal> {
        plain(name)?;
        Ok(unlinkat(&self.folder, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a folder in it with all that is in that. No link is followed.
    ///
    /// # Errors
    /// When something of it cannot be removed.
    pub fn remove_all(&self, name: &OsStr) -> Result<(), Refusal> {
        plain(name)?;
        removal::remove_all(&self.folder, name)
    }

    /// Waits until all that was written to its file system is on the disk.
    ///
    /// # Errors
    /// When that fails.
    pub fn sync(&self) -> Result<(), Refusal> {
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(&self.folder)?;
        #[cfg(not(target_os = "linux"))]
        rustix::fs::sync();
        Ok(())
    }
}

/// A name with a slash would be a path of its own.
fn plain(name: &OsStr) -> Result<(), Refusal> {
    if Path::new(name).file_name() == Some(name) {
        Ok(())
    } else {
        Err(Refusal::NoName)
    }
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "other systems have other widths; they are compared, never counted"
)]
fn made(about: &Stat) -> Made {
    Made {
        times: [
            (about.st_ctime as i64, about.st_ctime_nsec as i64),
            (about.st_mtime as i64, about.st_mtime_nsec as i64),
        ],
        numbers: [
            about.st_dev as u32,
            about.st_ino as u32,
            about.st_uid as u32,
            about.st_gid as u32,
        ],
        bytes: u64::try_from(about.st_size).unwrap_or_default(),
    }
}
