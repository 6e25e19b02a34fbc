//! What is staged: how the index differs from the tree of the head.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use super::GitError;
use super::index::Index;
use super::objects::{OBJECT_BYTES, Sort};
use super::oid::{OID_BYTES, Oid};
use super::repository::Git;
use super::status::{Change, Changes, folders};
use crate::adapters::boundary::Refusal;

/// The most trees that are read.
const TREES: usize = 20_000;
/// The most files in them.
const FILES: usize = 500_000;

pub(super) const FOLDER: u32 = 0o40_000;
const DAMAGED: GitError = GitError::Damaged("tree");

/// What a tree holds, where it is not the same as in the index.
#[derive(Default)]
struct Held {
    files: HashMap<Vec<u8>, (u32, Oid)>,
    /// Folders that are as they were; nothing in them was read.
    same: HashSet<Vec<u8>>,
}

impl Git {
    /// What was added, changed or deleted in the index since the tree.
    pub(super) fn staged(
        &self,
        tree: Option<Oid>,
        index: &Index,
        stop: &AtomicBool,
    ) -> Result<Changes, GitError> {
        let mut held = Held::default();
        if let Some(tree) = tree {
            self.hold(tree, index, &mut held, stop)?;
        }
        let mut changes = Changes::default();
        for known in index.files.iter().filter(|known| !known.conflicted) {
            if is_same(&known.path, &held.same) {
                continue;
            }
            match held.files.remove(&known.path) {
                None => changes.add(&known.path, Change::Added),
                Some(before) if before != (known.mode, known.oid) => {
                    changes.add(&known.path, Change::Modified);
                }
                Some(_) => {}
            }
        }
        let conflicted = index.files.iter().filter(|known| known.conflicted);
        for known in conflicted {
            held.files.remove(&known.path);
        }
        let mut gone: Vec<_> = held.files.into_keys().collect();
        gone.sort_unstable();
        for path in gone {
            changes.add(&path, Change::Deleted);
        }
        Ok(changes)
    }

    fn hold(
        &self,
        tree: Oid,
        index: &Index,
        held: &mut Held,
        stop: &AtomicBool,
    ) -> Result<(), GitError> {
        let mut waiting = vec![(Vec::new(), tree)];
        let mut read = 0;
        while let Some((path, tree)) = waiting.pop() {
            if index.trees.get(&path) == Some(&tree) {
                held.same.insert(path);
                continue;
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Refusal::Stopped.into());
            }
            read += 1;
            if read > TREES || held.files.len() > FILES || waiting.len() > FILES {
                return Err(GitError::TooLarge("tree"));
            }
            let content = self.objects.content(tree, Sort::Tree, OBJECT_BYTES, stop)?;
            let mut content = content.as_deref().ok_or(GitError::Absent("tree"))?;
            while !content.is_empty() {
                let (mode, name, oid) = item(&mut content).ok_or(DAMAGED)?;
                let path = match path.as_slice() {
                    [] => name.to_vec(),
                    path => [path, name].join(&b'/'),
                };
                if mode == FOLDER {
                    waiting.push((path, oid));
                } else {
                    held.files.insert(path, (mode, oid));
                }
            }
        }
        Ok(())
    }
}

/// An item of a tree: `mode name\0` and 20 bytes.
pub(super) fn item<'a>(content: &mut &'a [u8]) -> Option<(u32, &'a [u8], Oid)> {
    let space = content.iter().position(|byte| *byte == b' ')?;
    let mode = std::str::from_utf8(&content[..space]).ok()?;
    let mode = u32::from_str_radix(mode, 8).ok()?;
    let rest = &content[space + 1..];
    let end = rest.iter().position(|byte| *byte == 0)?;
    let oid = Oid::take(rest.get(end + 1..)?)?;
    *content = &rest[end + 1 + OID_BYTES..];
    Some((mode, &rest[..end], oid))
}

/// Whether a path lies in a folder that is as it was.
fn is_same(path: &[u8], same: &HashSet<Vec<u8>>) -> bool {
    same.contains(&b""[..]) || folders(path).any(|folder| same.contains(folder))
}
