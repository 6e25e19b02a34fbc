//! Where a repository's files are, what its head is, and what its refs name.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::GitError;
use super::oid::Oid;
use crate::adapters::boundary::{Boundary, Found, Identity, Kind, Refusal};

/// The largest of the small files: `HEAD`, a loose ref, `config`.
const SMALL_BYTES: u64 = 64 * 1024;
/// The largest `packed-refs`: some hundred thousand refs.
const PACKED_REFS_BYTES: u64 = 32 * 1024 * 1024;
/// How often a ref may name another.
const REF_STEPS: usize = 5;

/// Where the files of a repository are, inside of a boundary. All paths are from the boundary's
/// folder.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(super) boundary: Boundary,
    /// The top of the worktree; of a repository without one, the repository.
    pub(super) top: PathBuf,
    /// What is this worktree's own: `HEAD` and the index.
    pub(super) own: PathBuf,
    /// What all worktrees share: refs and objects.
    pub(super) common: PathBuf,
    /// It has no worktree.
    pub(super) is_bare: bool,
}

/// A `.git` file, or a `commondir`, that points at no folder.
const NO_POINTER: GitError = GitError::Damaged("`.git` file");

/// What is checked out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The branch; none where a commit is checked out by itself.
    pub branch: Option<String>,
    /// The commit; none before the first.
    pub commit: Option<Oid>,
}

impl Layout {
    /// What holds its data, whatever it is called: of all its worktrees the same.
    ///
    /// # Errors
    /// When it is not there any more.
    pub fn identity(&self) -> Result<Identity, GitError> {
        let (data, _) = self.boundary.beneath(&self.common)?;
        Ok(data.identity()?)
    }

    /// Finds the repository of a folder as git does: its own, or that of the nearest folder around
    /// it, up to the boundary's and no further.
    ///
    /// # Errors
    /// When there is none, or the nearest lies elsewhere or uses what is not read here: one further
    /// up would be another.
    pub fn around(boundary: &Boundary, from: &Path, stop: &AtomicBool) -> Result<Self, GitError> {
        for at in from.ancestors() {
            match Self::at(boundary, at, stop) {
                Err(GitError::NoRepository) => {}
                found => return found,
            }
        }
        Err(GitError::NoRepository)
    }

    /// Finds the repository whose worktree a folder is, or which it is itself.
    ///
    /// # Errors
    /// When there is none, it lies elsewhere, or uses what is not read here.
    pub fn at(boundary: &Boundary, top: &Path, stop: &AtomicBool) -> Result<Self, GitError> {
        let mut is_bare = false;
        let found = match typed(boundary, &top.join(".git")) {
            Ok(found) => found,
            Err(Refusal::Missing) => {
                is_bare = true;
                bare(boundary, top)?
            }
            Err(Refusal::Outside | Refusal::Mounted) => return Err(GitError::Elsewhere),
            Err(refusal) => return Err(refusal.into()),
        };
        let own = match found.kind {
            Kind::Folder => found.path,
            Kind::File => pointed_at(boundary, top, stop)?,
            _ => return Err(GitError::NoRepository),
        };
        // A folder that is only called so.
        if typed(boundary, &own.join("HEAD")) == Err(Refusal::Missing) {
            return Err(GitError::NoRepository);
        }
        let common = match small(boundary, &own.join("commondir"), stop)? {
            Some(text) => inside(boundary, &own.join(text.trim()))?,
            None => own.clone(),
        };
        let config = small(boundary, &common.join("config"), stop)?;
        if let Some(unknown) = config.as_deref().and_then(unsupported) {
            return Err(GitError::Unsupported(unknown));
        }
        Ok(Self {
            boundary: boundary.clone(),
            top: top.to_owned(),
            own,
            common,
            is_bare,
        })
    }

    /// What is checked out.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn head(&self, stop: &AtomicBool) -> Result<Head, GitError> {
        let head = small(&self.boundary, &self.own.join("HEAD"), stop)?;
        let head = head.ok_or(GitError::NoRepository)?;
        match head.trim().strip_prefix("ref: ") {
            Some(name) => Ok(Head {
                branch: Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
                commit: self.resolve(name, stop)?,
            }),
            None => Ok(Head {
                branch: None,
                commit: Some(Oid::parse(head.trim()).ok_or(GitError::Damaged("HEAD"))?),
            }),
        }
    }

    /// What a ref names; nothing where there is no such ref.
    pub(super) fn resolve(&self, name: &str, stop: &AtomicBool) -> Result<Option<Oid>, GitError> {
        let mut name = name.to_owned();
        for _ in 0..REF_STEPS {
            // It becomes a path.
            if !name.starts_with("refs/") || name.split('/').any(|part| part == "..") {
                return Err(GitError::Damaged("ref"));
            }
            let Some(text) = small(&self.boundary, &self.common.join(&name), stop)? else {
                return self.packed(&name, stop);
            };
            match text.trim().strip_prefix("ref: ") {
                Some(other) => other.clone_into(&mut name),
                None => {
                    return Oid::parse(text.trim())
                        .map(Some)
                        .ok_or(GitError::Damaged("ref"));
                }
            }
        }
        Err(GitError::Damaged("ref"))
    }

    fn packed(&self, name: &str, stop: &AtomicBool) -> Result<Option<Oid>, GitError> {
        let text = self.packed_refs(stop)?;
        let mut named = text.lines().filter_map(|line| line.split_once(' '));
        let found = named.find(|(_, packed)| *packed == name);
        found
            .map(|(oid, _)| Oid::parse(oid).ok_or(GitError::Damaged("packed-refs")))
            .transpose()
    }

    /// The refs that stand in one file, a line for each; empty where there is none.
    pub(super) fn packed_refs(&self, stop: &AtomicBool) -> Result<String, GitError> {
        let path = self.common.join("packed-refs");
        match self.boundary.file(&path) {
            Ok(file) => {
                let bytes = file.whole(PACKED_REFS_BYTES, stop)?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Err(Refusal::Missing) => Ok(String::new()),
            Err(refusal) => Err(refusal.into()),
        }
    }
}

/// The folder itself, if it is a repository without a worktree.
fn bare(boundary: &Boundary, top: &Path) -> Result<Found, GitError> {
    let is = |name: &str, kind: Kind| {
        typed(boundary, &top.join(name)).is_ok_and(|found| found.kind == kind)
    };
    if is("HEAD", Kind::File) && is("objects", Kind::Folder) && is("refs", Kind::Folder) {
        return Ok(typed(boundary, top)?);
    }
    Err(GitError::NoRepository)
}

/// Where a `.git` file points.
fn pointed_at(boundary: &Boundary, top: &Path, stop: &AtomicBool) -> Result<PathBuf, GitError> {
    let text = small(boundary, &top.join(".git"), stop)?.unwrap_or_default();
    let at = text.trim().strip_prefix("gitdir: ");
    inside(boundary, &top.join(at.ok_or(NO_POINTER)?))
}

/// A folder of the repository, which must lie inside.
fn inside(boundary: &Boundary, path: &Path) -> Result<PathBuf, GitError> {
    match typed(boundary, path) {
        Ok(Found {
            path,
            kind: Kind::Folder,
        }) => Ok(path),
        Ok(_) => Err(NO_POINTER),
        Err(Refusal::Outside | Refusal::Mounted | Refusal::Missing) => Err(GitError::Elsewhere),
        Err(refusal) => Err(refusal.into()),
    }
}

/// What a path stands for. One that is no text is nobody's.
pub(super) fn typed(boundary: &Boundary, path: &Path) -> Result<Found, Refusal> {
    boundary.typed(path.to_str().ok_or(Refusal::NoName)?)
}

/// A small text file, if it is there.
pub(super) fn small(
    boundary: &Boundary,
    path: &Path,
    stop: &AtomicBool,
) -> Result<Option<String>, GitError> {
    match boundary.file(path) {
        Ok(file) => {
            let bytes = file.whole(SMALL_BYTES, stop)?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        // A ref may be the beginning of others' names, which are folders.
        Err(Refusal::Missing | Refusal::NotAFile("a folder") | Refusal::NotAFolder) => Ok(None),
        Err(refusal) => Err(refusal.into()),
    }
}

/// What a configuration asks for that is not read here.
fn unsupported(config: &str) -> Option<&'static str> {
    let mut settings = config.lines().filter_map(|line| line.split_once('='));
    settings.find_map(|(key, value)| {
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        match (key.as_str(), value.to_ascii_lowercase().as_str()) {
            ("objectformat", "sha1") | ("refstorage", "files") => None,
            ("objectformat", _) => Some("objects with names other than SHA-1"),
            ("refstorage", _) => Some("refs that are not files"),
            _ => None,
        }
    })
}
