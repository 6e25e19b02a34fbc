//! What differs between the head, the index and the worktree.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::GitError;
use super::index::{Index, Known, LINK, SUBMODULE};
use super::layout::Head;
use super::oid::Oid;
use super::repository::Git;
use crate::adapters::boundary::{About, Boundary, Folder, Kind, Limits, Refusal, Taste};

/// How many paths of a sort are told; the rest is counted.
const TOLD: usize = 200;
/// The largest file that is compared byte by byte, and how much of all of them.
const COMPARED_BYTES: u64 = 16 * 1024 * 1024;
const ALL_COMPARED_BYTES: u64 = 256 * 1024 * 1024;
/// How far files are looked for that git does not know.
const UNKNOWN: Limits = Limits {
    files: 100_000,
    folders: 20_000,
    entries: 400_000,
    depth: 64,
};

/// What became of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// It is new.
    Added,
    /// Its content or kind is another.
    Modified,
    /// It is gone.
    Deleted,
}

/// Files that changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// The first 200 of them.
    pub told: BTreeMap<String, Change>,
    /// How many there are.
    pub count: usize,
}

impl Changes {
    pub(super) fn add(&mut self, path: &[u8], change: Change) {
        self.count += 1;
        if self.told.len() < TOLD {
            self.told.insert(told(path), change);
        }
    }
}

/// The status of a worktree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// What is checked out.
    pub head: Head,
    /// What the next commit would change.
    pub staged: Changes,
    /// What was changed since, and is not staged.
    pub unstaged: Changes,
    /// What git does not know and does not ignore; whole folders end with `/`. The first 200.
    pub unknown: BTreeSet<String>,
    /// How many of those there are.
    pub unknown_count: usize,
    /// What is in conflict.
    pub conflicted: BTreeSet<String>,
    /// Files that may have changed and were not compared: links, and what is too large, too much
    /// together, or cannot be read.
    pub unsure: usize,
    /// Not everything was looked at for what git does not know.
    pub cut: bool,
}

impl Git {
    /// Compares head, index and worktree. Ignore rules outside of the folder, filters and line-end
    /// settings are not known here: `git status` may tell less. Blocks.
    ///
    /// # Errors
    /// When one of them cannot be read, or there is no worktree.
    pub fn status(&self, stop: &AtomicBool) -> Result<Status, GitError> {
        if self.layout.is_bare {
            return Err(GitError::Bare);
        }
        let files = self.files.as_ref().ok_or(GitError::Above)?;
        let head = self.head(stop)?;
        let index = self.index(stop)?;
        let tree = match head.commit {
            Some(oid) => {
                let commit = self.commit(oid, stop)?;
                Some(commit.ok_or(GitError::Absent("last commit"))?.tree)
            }
            None => None,
        };
        let staged = self.staged(tree, &index, stop)?;
        let mut compare = Compare {
            boundary: files,
            stop,
            at: None,
            written: index.written,
            left: ALL_COMPARED_BYTES,
            unstaged: Changes::default(),
            unsure: 0,
        };
        for known in index.files.iter().filter(|known| !known.conflicted) {
            if stop.load(Ordering::Relaxed) {
                return Err(Refusal::Stopped.into());
            }
            compare.one(known)?;
        }
        let (unstaged, unsure) = (compare.unstaged, compare.unsure);
        let mut status = Status {
            head,
            staged,
            unstaged,
            unknown: BTreeSet::new(),
            unknown_count: 0,
            conflicted: conflicted(&index),
            unsure,
            cut: false,
        };
        status.add_unknown(files, &index, stop)?;
        Ok(status)
    }
}

impl Status {
    fn add_unknown(
        &mut self,
        files: &Boundary,
        index: &Index,
        stop: &AtomicBool,
    ) -> Result<(), GitError> {
        let all = &index.files;
        let known: Vec<&[u8]> = all.iter().map(|known| &*known.path).collect();
        let submodules = all.iter().filter(|known| known.kind() == SUBMODULE);
        let submodules: Vec<&[u8]> = submodules.map(|known| &*known.path).collect();
        let walked = files.walk(UNKNOWN, &Everything, stop)?;
        self.cut = walked.cut;
        let mut unknown = BTreeSet::new();
        for file in walked.files {
            let path = file.path.as_os_str().as_bytes();
            let within = folders(path).any(|folder| submodules.contains(&folder));
            if within || known.binary_search(&path).is_ok() {
                continue;
            }
            let whole = folders(path).find(|folder| !holds_known(&known, folder));
            unknown.insert(whole.map_or_else(|| told(path), |folder| told(folder) + "/"));
        }
        self.unknown_count = unknown.len();
        self.unknown = unknown.into_iter().take(TOLD).collect();
        Ok(())
    }
}

/// Whether git knows any file in a folder.
fn holds_known(known: &[&[u8]], folder: &[u8]) -> bool {
    let prefix = [folder, b"/"].concat();
    let at = known.partition_point(|path| *path < prefix.as_slice());
    known.get(at).is_some_and(|path| path.starts_with(&prefix))
}

/// The folders that a path lies in, outermost first.
pub(super) fn folders(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    ends.map(|(at, _)| &path[..at])
}

/// A path as it is told.
fn told(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn conflicted(index: &Index) -> BTreeSet<String> {
    let conflicted = index.files.iter().filter(|known| known.conflicted);
    let paths = conflicted.map(|known| told(&known.path));
    paths
        .collect::<BTreeSet<_>>()
        .into_iter()
        .take(TOLD)
        .collect()
}

struct Everything;

impl Taste for Everything {
    fn enters(&self, _: &OsStr) -> bool {
        true
    }

    fn takes(&self, _: &OsStr) -> bool {
        true
    }
}

fn named(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

struct Compare<'a> {
    boundary: &'a Boundary,
    stop: &'a AtomicBool,
    /// The folder of the file before: files stand in order.
    at: Option<(Vec<u8>, Option<Folder<'a>>)>,
    written: (i64, u32),
    /// Bytes that may still be compared.
    left: u64,
    unstaged: Changes,
    unsure: usize,
}

impl Compare<'_> {
    fn one(&mut self, known: &Known) -> Result<(), GitError> {
        // A submodule has a worktree and an index of its own.
        if known.skipped || known.kind() == SUBMODULE {
            return Ok(());
        }
        let slash = known.path.iter().rposition(|byte| *byte == b'/');
        let (folder, name) = match slash {
            Some(at) => (&known.path[..at], &known.path[at + 1..]),
            None => (&[][..], known.path.as_slice()),
        };
        if self.at.as_ref().is_none_or(|(at, _)| at != folder) {
            let opened = self.boundary.exactly(named(folder)).ok();
            self.at = Some((folder.to_owned(), opened));
        }
        let folder = self.at.as_ref().and_then(|(_, folder)| folder.as_ref());
        let about = folder.map(|folder| folder.about(OsStr::from_bytes(name)));
        let change = match about {
            Some(Ok(about)) => self.changed(known, about)?,
            Some(Err(Refusal::Missing)) | None => Some(Change::Deleted),
            // It is there, but nobody's reading matter.
            Some(Err(_)) => None,
        };
        if let Some(change) = change {
            self.unstaged.add(&known.path, change);
        }
        Ok(())
    }

    fn changed(&mut self, known: &Known, about: About) -> Result<Option<Change>, GitError> {
        let is_link = known.kind() == LINK;
        match about.kind {
            Kind::Link if is_link => {}
            Kind::File if !is_link => {}
            Kind::Folder => return Ok(Some(Change::Deleted)),
            _ => return Ok(Some(Change::Modified)),
        }
        if !is_link && about.executable != (known.mode & 0o100 != 0) {
            return Ok(Some(Change::Modified));
        }
        let size = u32::try_from(about.bytes & u64::from(u32::MAX)).unwrap_or_default();
        if known.size != 0 && known.size != size {
            return Ok(Some(Change::Modified));
        }
        if known.size == size && self.is_untouched(known, about) {
            return Ok(None);
        }
        if is_link {
            self.unsure += 1;
            return Ok(None);
        }
        self.compared(known, about)
    }

    /// Whether a file was last changed when git last saw it, and not just when it looked.
    fn is_untouched(&self, known: &Known, about: About) -> bool {
        let (seconds, nanoseconds) = known.modified;
        let same = about.modified.0 == i64::from(seconds)
            && (nanoseconds == 0 || about.modified.1 == nanoseconds);
        same && about.modified < self.written
    }

    fn compared(&mut self, known: &Known, about: About) -> Result<Option<Change>, GitError> {
        if about.bytes > COMPARED_BYTES || about.bytes > self.left {
            self.unsure += 1;
            return Ok(None);
        }
        self.left -= about.bytes;
        let file = self.boundary.file(named(&known.path));
        let content = match file.and_then(|file| file.whole(COMPARED_BYTES, self.stop)) {
            Ok(content) => content,
            Err(Refusal::Stopped) => return Err(Refusal::Stopped.into()),
            Err(_) => {
                self.unsure += 1;
                return Ok(None);
            }
        };
        let same = Oid::of_blob(&content) == known.oid;
        Ok((!same).then_some(Change::Modified))
    }
}
