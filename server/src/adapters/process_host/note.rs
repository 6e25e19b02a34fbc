//! What was started, noted durably before it goes on: a later start of the server finds it by that.
//!
//! A note is a file named by the mark. Also one whose content is damaged so tells the mark.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tree::Which;
use crate::adapters::private_file;

/// Digits of a mark.
const DIGITS: usize = 32;
/// Where the notes lie in the data directory.
pub const NOTES: &str = "processes";
/// The largest note.
const BYTES: u64 = 64 * 1024;

/// What was started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    /// For which session, for people.
    pub(super) session: String,
    /// In which boot of the machine, where that is told.
    pub(super) boot: Option<String>,
    /// The supervisor and the program.
    pub(super) processes: Vec<Which>,
    /// The folder that it has for itself.
    pub(super) temporary: PathBuf,
}

/// The notes of a data directory.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    folder: PathBuf,
}

/// A mark that nobody guesses, as text.
pub(super) fn mark(random: u128) -> String {
    format!("{random:0DIGITS$x}")
}

impl Notes {
    /// The notes in a folder, which is made if it is missing.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        match fs::DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Its name must be there after a power loss, as the notes in it are.
        if let Some(parent) = folder.parent() {
            fs::File::open(parent)?.sync_all()?;
        }
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Begins a note: it is empty, and tells the mark of a program of which nothing runs yet. It
    /// outlives this process, not the machine: nothing of the program does, either. Blocks.
    ///
    /// # Errors
    /// When it cannot be made, or somebody has that mark.
    pub(super) fn begin(&self, mark: &str) -> io::Result<()> {
        let mut begun = fs::OpenOptions::new();
        begun.write(true).create_new(true).mode(0o600);
        begun.open(self.folder.join(mark)).map(drop)
    }

    /// Writes a note that was begun. It is on the disk when this returns. Blocks.
    ///
    /// # Errors
    /// When it is not on the disk.
    pub(super) fn write(&self, mark: &str, note: &Note) -> io::Result<()> {
        let line = serde_json::to_string(note).map_err(io::Error::other)?;
        private_file::replace(&self.folder.join(mark), &line)
    }

    /// Removes a note. One that comes back after a power loss tells of a process that is gone.
    ///
    /// # Errors
    /// When it is still there.
    pub(super) fn remove(&self, mark: &str) -> io::Result<()> {
        match fs::remove_file(self.folder.join(mark)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// All notes by their marks; without content where that is damaged, or was never written. What a
    /// write left that was cut is removed.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn all(&self) -> io::Result<Vec<(String, Option<Note>)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            match name.filter(|name| is_mark(name)) {
                Some(mark) => found.push((mark.to_owned(), read(&path))),
                None => fs::remove_file(&path)?,
            }
        }
        Ok(found)
    }
}

fn is_mark(name: &str) -> bool {
    name.len() == DIGITS && name.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn read(path: &Path) -> Option<Note> {
    let bytes = private_file::read(path, BYTES).ok().flatten()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c42_a_note_is_told_as_it_was_written_and_a_damaged_one_by_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::open(&folder.path().join(NOTES)).unwrap();
        let note = Note {
            session: "s".to_owned(),
            boot: Some("b".to_owned()),
            processes: vec![Which { pid: 7, began: 9 }],
            temporary: "/tmp/x".into(),
        };
        let (whole, damaged) = (mark(7), mark(u128::MAX));
        notes.begin(&whole).unwrap();
        notes.begin(&whole).unwrap_err();
        notes.write(&whole, &note).unwrap();
        notes.write(&damaged, &note).unwrap();
        let at = |name: &str| folder.path().join(NOTES).join(name);
        fs::write(at(&damaged), "{").unwrap();
        fs::write(at(".cut"), "").unwrap();
        let mut all = notes.all().unwrap();
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(all, [(whole.clone(), Some(note)), (damaged, None)]);
        assert!(!at(".cut").exists());
        notes.remove(&whole).unwrap();
        notes.remove(&whole).unwrap();
        assert_eq!(notes.all().unwrap().len(), 1);
    }
}
