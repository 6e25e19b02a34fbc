//! What lies in one folder.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Dir, FileType, Stat};

use super::refusal::Refusal;
use super::root::Boundary;
use super::step;

/// What something in a folder is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A regular file.
    File,
    /// A symbolic link, wherever it leads.
    Link,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Nothing of these.
    Unknown,
}

impl Kind {
    pub(super) fn of(about: &Stat) -> Self {
        match step::file_type(about) {
            FileType::Directory => Self::Folder,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Self::Device,
            FileType::Unknown => Self::Unknown,
        }
    }

    /// The kind as a sentence names it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "a folder",
            Self::File => "a file",
            Self::Link => "a link",
            Self::Pipe => "a pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Unknown => "of an unknown kind",
        }
    }
}

/// Something in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name: any bytes but `/` and NUL.
    pub name: OsString,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes, of a file.
    pub bytes: u64,
}

/// What a folder holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// What is in it, by name. What is hidden is left out.
    pub entries: Vec<Entry>,
    /// There is more.
    pub cut: bool,
}

impl Boundary {
    /// Lists a folder, at most so many of its entries. Blocks.
    ///
    /// # Errors
    /// When there is no such folder inside, it cannot be read, or once `stop` is set.
    pub fn list(&self, path: &Path, most: usize, stop: &AtomicBool) -> Result<Listed, Refusal> {
        let (folder, _) = self.folder(path)?;
        let mut listed = Listed::default();
        self.each(folder, stop, |entry| {
            if listed.entries.len() == most {
                listed.cut = true;
                return false;
            }
            listed.entries.push(entry);
            true
        })?;
        listed.entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// Goes through a folder until `each` says no.
    pub(super) fn each(
        &self,
        folder: OwnedFd,
        stop: &AtomicBool,
        mut each: impl FnMut(Entry) -> bool,
    ) -> Result<(), Refusal> {
        let mut entries = Dir::new(folder)?;
        let mut hidden_files = None;
        while let Some(entry) = entries.read() {
            if stop.load(Ordering::Relaxed) {
                return Err(Refusal::Stopped);
            }
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            // It may be gone by now.
            let Ok(about) = step::look(entries.fd()?, name) else {
                continue;
            };
            if self.hidden().hides_knowing(&about, &mut hidden_files) {
                continue;
            }
            let kind = Kind::of(&about);
            let bytes = match kind {
                Kind::File => u64::try_from(about.st_size).unwrap_or_default(),
                _ => 0,
            };
            let name = name.to_owned();
            if !each(Entry { name, kind, bytes }) {
                break;
            }
        }
        Ok(())
    }
}
