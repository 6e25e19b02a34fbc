//! What is kept from everybody who reads a folder: other folders, whatever they are called, and the
//! files in them, also where a hard link gives them a name elsewhere.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{Dir, Stat};
use rustix::io::Errno;

use super::list::Kind;
use super::root::Identity;
use super::step;

/// How much of a hidden folder is looked at, in entries, and how deep. Of one that holds more it
/// cannot be told whether a file is in it, and so everything that may be is hidden.
const ENTRIES: usize = 50_000;
const DEPTH: usize = 16;

/// Folders that are hidden.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    folders: Vec<(Identity, OwnedFd)>,
}

/// The files of the hidden folders as of now; `None` where they could not all be told.
pub(super) struct Files(Option<HashSet<Identity>>);

impl Hidden {
    /// The same folders once more.
    pub(super) fn copied(&self) -> io::Result<Self> {
        let copy = |(identity, folder): &(Identity, OwnedFd)| Ok((*identity, folder.try_clone()?));
        let folders = self.folders.iter().map(copy).collect::<io::Result<_>>()?;
        Ok(Self { folders })
    }

    /// Hides another folder.
    pub(super) fn add(&mut self, folder: OwnedFd) -> Result<(), Errno> {
        let (_, identity) = step::about(&folder)?;
        self.folders.push((identity, folder));
        Ok(())
    }

    /// Whether something is hidden, by what it is just now. A file that has one name costs nothing:
    /// it lies where it was found, and nowhere else.
    pub(super) fn hides(&self, about: &Stat) -> bool {
        self.hides_knowing(about, &mut None)
    }

    /// The same for many things one after another: the files are looked up once, if at all.
    pub(super) fn hides_knowing(&self, about: &Stat, files: &mut Option<Files>) -> bool {
        let identity = Identity::of(about);
        if self.folders.iter().any(|(folder, _)| *folder == identity) {
            return true;
        }
        let has_other_names = Kind::of(about) == Kind::File && about.st_nlink > 1;
        if self.folders.is_empty() || !has_other_names {
            return false;
        }
        let files = files.get_or_insert_with(|| self.files());
        files
            .0
            .as_ref()
            .is_none_or(|files| files.contains(&identity))
    }

    fn files(&self) -> Files {
        let (mut files, mut left) = (HashSet::new(), ENTRIES);
        let mut folders = self.folders.iter();
        let told = folders.try_for_each(|(_, folder)| gather(folder, DEPTH, &mut left, &mut files));
        Files(told.ok().map(|()| files))
    }
}

/// There may be files that were not seen.
struct Untold;

impl From<Errno> for Untold {
    fn from(_: Errno) -> Self {
        Self
    }
}

/// Gathers the files with several names that lie in a folder and below.
fn gather(
    folder: &OwnedFd,
    depth: usize,
    left: &mut usize,
    files: &mut HashSet<Identity>,
) -> Result<(), Untold> {
    // Opened anew: a descriptor has one place in its listing, and may be one that lists nothing.
    let mut entries = Dir::new(step::folder_on_any_mount(folder, ".".as_ref())?)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        *left = left.checked_sub(1).ok_or(Untold)?;
        let about = match step::look(folder, name) {
            Ok(about) => about,
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        match Kind::of(&about) {
            Kind::File if about.st_nlink > 1 => {
                files.insert(Identity::of(&about));
            }
            Kind::Folder => {
                let depth = depth.checked_sub(1).ok_or(Untold)?;
                match step::folder_on_any_mount(folder, name) {
                    Ok(inner) => gather(&inner, depth, left, files)?,
                    // Gone meanwhile; or not ours, such as `lost+found`: nothing was written there.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            _ => {}
        }
    }
    Ok(())
}
