//! Where the repository is, what its head is, and what its refs name.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::GitError;
use super::objects::Objects;
use super::oid::Oid;
use crate::adapters::boundary::{Boundary, Found, Kind, Refusal};

/// The largest of the small files: `HEAD`, a loose ref, `config`.
const SMALL_BYTES: u64 = 64 * 1024;
/// The largest `packed-refs`: some hundred thousand refs.
const PACKED_REFS_BYTES: u64 = 32 * 1024 * 1024;
/// How often a ref may name another.
const REF_STEPS: usize = 5;

/// A repository inside a boundary. It reads and never writes; no hook, filter or configuration of it
/// takes effect.
pub struct Git {
    pub(super) boundary: Boundary,
    /// What is this worktree's own: `HEAD` and the index.
    pub(super) own: PathBuf,
    /// What all worktrees share: refs and objects.
    pub(super) common: PathBuf,
    pub(super) objects: Objects,
    /// The folder is the repository itself.
    pub(super) is_bare: bool,
}

/// What is checked out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The branch; none where a commit is checked out by itself.
    pub branch: Option<String>,
    /// The commit; none before the first.
    pub commit: Option<Oid>,
}

impl Git {
    /// Finds the repository whose worktree the folder is, or which it is itself.
    ///
    /// # Errors
    /// When there is none, it lies elsewhere, or uses what is not read here.
    pub fn open(boundary: &Boundary, stop: &AtomicBool) -> Result<Self, GitError> {
        let mut is_bare = false;
        let found = match boundary.typed(".git") {
            Ok(found) => found,
            Err(Refusal::Missing) => {
                is_bare = true;
                bare(boundary)?
            }
            Err(Refusal::Outside | Refusal::Mounted) => return Err(GitError::Elsewhere),
            Err(refusal) => return Err(refusal.into()),
        };
        let own = match found.kind {
            Kind::Folder => found.path,
            Kind::File => pointed_at(boundary, stop)?,
            _ => return Err(GitError::NoRepository),
        };
        let common = match small(boundary, &own.join("commondir"), stop)? {
            Some(text) => inside(boundary, &own.join(text.trim()))?,
            None => own.clone(),
        };
        let config = small(boundary, &common.join("config"), stop)?;
        if let Some(unknown) = config.as_deref().and_then(unsupported) {
            return Err(GitError::Unsupported(unknown));
        }
        let objects = Objects::open(boundary, &common.join("objects"), stop)?;
        Ok(Self {
            boundary: boundary.clone(),
            own,
            common,
            objects,
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
    fn resolve(&self, name: &str, stop: &AtomicBool) -> Result<Option<Oid>, GitError> {
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
        let path = self.common.join("packed-refs");
        let bytes = match self.boundary.file(&path) {
            Ok(file) => file.whole(PACKED_REFS_BYTES, stop)?,
            Err(Refusal::Missing) => return Ok(None),
            Err(refusal) => return Err(refusal.into()),
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut named = text.lines().filter_map(|line| line.split_once(' '));
        let found = named.find(|(_, packed)| *packed == name);
        found
            .map(|(oid, _)| Oid::parse(oid).ok_or(GitError::Damaged("packed-refs")))
            .transpose()
    }
}

/// The folder itself, if it is a repository without a worktree.
fn bare(boundary: &Boundary) -> Result<Found, GitError> {
    let is = |name: &str, kind: Kind| boundary.typed(name).is_ok_and(|found| found.kind == kind);
    if is("HEAD", Kind::File) && is("objects", Kind::Folder) && is("refs", Kind::Folder) {
        return Ok(boundary.typed("")?);
    }
    Err(GitError::NoRepository)
}

/// Where a `.git` file points.
fn pointed_at(boundary: &Boundary, stop: &AtomicBool) -> Result<PathBuf, GitError> {
    let text = small(boundary, Path::new(".git"), stop)?.unwrap_or_default();
    let at = text.trim().strip_prefix("gitdir: ");
    inside(boundary, Path::new(at.ok_or(GitError::NoRepository)?))
}

/// A folder of the repository, which must lie inside.
fn inside(boundary: &Boundary, path: &Path) -> Result<PathBuf, GitError> {
    match boundary.typed(path.to_str().unwrap_or_default()) {
        Ok(Found {
            path,
            kind: Kind::Folder,
        }) => Ok(path),
        Ok(_) => Err(GitError::NoRepository),
        Err(Refusal::Outside | Refusal::Mounted | Refusal::Missing) => Err(GitError::Elsewhere),
        Err(refusal) => Err(refusal.into()),
    }
}

/// A small text file, if it is there.
fn small(boundary: &Boundary, path: &Path, stop: &AtomicBool) -> Result<Option<String>, GitError> {
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
