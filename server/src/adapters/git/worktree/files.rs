//! Writes the files of a commit into a new worktree, and the index of what was written.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use gix_validate::path::component;
use gix_validate::path::component::{Mode, Options};

use super::WorktreeError;
use super::staged::{Staged, index_of};
use crate::adapters::boundary::{Made, Refusal, Workplace};
use crate::adapters::git::GitError;
use crate::adapters::git::index::{LINK, SUBMODULE};
use crate::adapters::git::objects::{BLOB_BYTES, OBJECT_BYTES, Sort};
use crate::adapters::git::oid::Oid;
use crate::adapters::git::repository::Git;
use crate::adapters::git::trees::{FOLDER, item};

/// The most files of a worktree, and the most bytes of all of them.
const FILES: usize = 500_000;
const BYTES: u64 = 16 * 1024 * 1024 * 1024;
/// How deep its folders are: each that is open is a descriptor.
const DEPTH: usize = 64;
/// The longest path that a link leads to, in bytes.
const LINK_BYTES: usize = 4096;

const FILE: u32 = 0o100_000;
const KIND: u32 = 0o170_000;
const DAMAGED: GitError = GitError::Damaged("tree");

/// What no worktree may hold, on this system or on one that shares its files.
const NAMES: Options = Options {
    protect_windows: false,
    protect_hfs: true,
    protect_ntfs: true,
};

impl Git {
    /// Refuses a commit that has more than a worktree may have, before anything of it is written: a few
    /// small trees may stand for any number of files.
    pub(super) fn judge_size(&self, commit: Oid, stop: &AtomicBool) -> Result<(), WorktreeError> {
        let commit = self.commit(commit, stop)?;
        let tree = commit.ok_or(GitError::Absent("commit"))?.tree;
        let mut counter = Counter {
            git: self,
            stop,
            known: HashMap::new(),
        };
        let size = counter.count(tree, DEPTH)?;
        let most = FILES as u64;
        for (count, what) in [(size.files, "files"), (size.folders, "folders")] {
            if count > most {
                return Err(WorktreeError::TooLarge(most, what));
            }
        }
        Ok(())
    }

    /// Writes what a commit holds into an empty folder, and returns the index of it. Files are
    /// written as they were committed: no filter and no line-end setting takes effect.
    pub(super) fn check_out(
        &self,
        commit: Oid,
        into: &Workplace<'_>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, WorktreeError> {
        let commit = self.commit(commit, stop)?;
        let tree = commit.ok_or(GitError::Absent("commit"))?.tree;
        let mut writer = Writer {
            git: self,
            stop,
            staged: Vec::new(),
            left: BYTES,
            path: Vec::new(),
        };
        writer.tree(tree, into, DEPTH)?;
        Ok(index_of(writer.staged))
    }
}

/// How many files and folders a tree stands for.
#[derive(Clone, Copy, Default)]
struct Size {
    files: u64,
    folders: u64,
}

struct Counter<'a> {
    git: &'a Git,
    stop: &'a AtomicBool,
    /// Trees that were counted: each is read once, however often it is used.
    known: HashMap<Oid, Size>,
}

impl Counter<'_> {
    fn count(&mut self, tree: Oid, depth: usize) -> Result<Size, WorktreeError> {
        if let Some(size) = self.known.get(&tree) {
            return Ok(*size);
        }
        let depth = depth.checked_sub(1);
        let depth = depth.ok_or(GitError::TooLarge("depth of folders"))?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(GitError::Refused(Refusal::Stopped).into());
        }
        if self.known.len() == FILES {
            return Err(WorktreeError::TooLarge(FILES as u64, "folders"));
        }
        let objects = &self.git.objects;
        let content = objects.content(tree, Sort::Tree, OBJECT_BYTES, self.stop)?;
        let content = content.ok_or(GitError::Absent("tree"))?;
        let (mut content, mut size) = (content.as_slice(), Size::default());
        while !content.is_empty() {
            let (mode, _, oid) = item(&mut content).ok_or(DAMAGED)?;
            if mode == FOLDER {
                let inner = self.count(oid, depth)?;
                size.files = size.files.saturating_add(inner.files);
                size.folders = size.folders.saturating_add(inner.folders).saturating_add(1);
            } else {
                size.files = size.files.saturating_add(1);
            }
        }
        self.known.insert(tree, size);
        Ok(size)
    }
}

struct Writer<'a> {
    git: &'a Git,
    stop: &'a AtomicBool,
    staged: Vec<Staged>,
    /// Bytes that may still be written.
    left: u64,
    /// The path of the folder that is being written, with a `/` behind each step.
    path: Vec<u8>,
}

impl Writer<'_> {
    fn tree(&mut self, tree: Oid, into: &Workplace<'_>, depth: usize) -> Result<(), WorktreeError> {
        let depth = depth.checked_sub(1);
        let depth = depth.ok_or(GitError::TooLarge("depth of folders"))?;
        let objects = &self.git.objects;
        let content = objects.content(tree, Sort::Tree, OBJECT_BYTES, self.stop)?;
        let content = content.ok_or(GitError::Absent("tree"))?;
        let mut content = content.as_slice();
        while !content.is_empty() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(GitError::Refused(Refusal::Stopped).into());
            }
            let (mode, name, oid) = item(&mut content).ok_or(DAMAGED)?;
            self.judge(mode, name)?;
            let before = self.path.len();
            self.path.extend_from_slice(name);
            let name = OsStr::from_bytes(name);
            if mode == FOLDER {
                self.path.push(b'/');
                let inner = into.make(name).map_err(|refusal| self.failed(refusal))?;
                self.tree(oid, &inner, depth)?;
            } else {
                self.one(mode, name, oid, into)?;
            }
            self.path.truncate(before);
        }
        Ok(())
    }

    /// Refuses names that would be another file's, such as git's own.
    fn judge(&self, mode: u32, name: &[u8]) -> Result<(), WorktreeError> {
        let kind = (mode & KIND == LINK).then_some(Mode::Symlink);
        match component(name.into(), kind, NAMES) {
            Ok(_) => Ok(()),
            Err(_) => Err(WorktreeError::BadPath(self.told(name))),
        }
    }

    fn one(
        &mut self,
        mode: u32,
        name: &OsStr,
        oid: Oid,
        into: &Workplace<'_>,
    ) -> Result<(), WorktreeError> {
        if self.staged.len() == FILES {
            return Err(GitError::TooLarge("number of files").into());
        }
        let runs = mode & 0o100 != 0;
        let (mode, made) = match mode & KIND {
            FILE => {
                let content = self.blob(oid)?;
                let made = into.write(name, &content, runs);
                (if runs { 0o100_755 } else { 0o100_644 }, made)
            }
            LINK => {
                let target = self.blob(oid)?;
                if target.len() > LINK_BYTES {
                    return Err(GitError::TooLarge("link").into());
                }
                (LINK, into.link(name, OsStr::from_bytes(&target)))
            }
            // A worktree of its own, that nobody has asked for.
            SUBMODULE => (SUBMODULE, into.make(name).map(|_| Made::default())),
            _ => return Err(DAMAGED.into()),
        };
        let made = made.map_err(|refusal| self.failed(refusal))?;
        self.staged.push(Staged {
            path: self.path.clone(),
            mode,
            oid,
            made,
        });
        Ok(())
    }

    fn blob(&mut self, oid: Oid) -> Result<Vec<u8>, WorktreeError> {
        let objects = &self.git.objects;
        let content = objects.content(oid, Sort::Other, BLOB_BYTES, self.stop)?;
        let content = content.ok_or(GitError::Absent("file"))?;
        if Oid::of_blob(&content) != oid {
            return Err(GitError::Damaged("file").into());
        }
        let left = self.left.checked_sub(content.len() as u64);
        self.left = left.ok_or(GitError::TooLarge("commit"))?;
        Ok(content)
    }

    fn failed(&self, refusal: Refusal) -> WorktreeError {
        match refusal {
            // Twice the same name, or two that are the same on this file system.
            Refusal::Exists | Refusal::NoName => WorktreeError::BadPath(self.told(b"")),
            refusal => WorktreeError::Failed("a file of it", refusal),
        }
    }

    fn told(&self, name: &[u8]) -> String {
        let path = [&self.path, name].concat();
        let path = String::from_utf8_lossy(&path);
        path.chars().take(200).collect()
    }
}
