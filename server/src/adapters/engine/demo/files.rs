//! The folder: which files there are, and their text. All reading of the outside world is here, and
//! goes through one boundary.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::lines::Lines;
use super::reader;
use super::taste::{People, is_secret_path};
use super::withheld::told_of;
use crate::adapters::boundary::{self, Boundary, Kind, Limits, OpenFile, Refusal, Spot};
use crate::adapters::git::{Git, GitError};

/// The largest file that is searched, in bytes.
pub(super) const MOST_FILE_BYTES: u64 = 512 * 1024;

/// Of so many bytes of a text at most one is not as it should be.
const FEW: usize = 4;

/// How the backups and exports of a store begin, under whatever name.
const STORE: &[u8] = br#"{"export":"sessionplane-store""#;

/// How much is listed at most.
const LISTED: Limits = Limits {
    files: 20_000,
    folders: 5_000,
    entries: 200_000,
    depth: 32,
};

/// A listed file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Listed {
    /// Its path from the folder's root, with `/`.
    pub(super) path: String,
    /// Its size.
    pub(super) bytes: u64,
}

/// What the folder holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Listing {
    /// The files, in order of their paths.
    pub(super) files: Vec<Listed>,
    /// There are more than were listed.
    pub(super) cut: bool,
    /// Files besides whose names are no text.
    pub(super) unnamed: usize,
}

/// Why the agent does not read something.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("such a file commonly holds secrets, and I read none")]
    Secret,
    #[error("that is git's own; ask me for the branch, the changes or the log")]
    Git,
    #[error("it is a backup or an export of a Sessionplane store, with everybody's sessions")]
    Store,
    #[error("it is a link to something that is not there")]
    Dangling,
    #[error("it is no text")]
    NoText,
}

/// Some lines of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Page {
    /// The file's real path.
    pub(super) path: String,
    /// The number of the first line, from 1.
    pub(super) from: usize,
    /// The lines, long ones cut.
    pub(super) lines: Vec<String>,
    /// How many lines the file has; none where it was not read to its end.
    pub(super) total: Option<usize>,
    /// Its size in bytes.
    pub(super) bytes: u64,
}

/// A folder that can only be read. Its clones read the same folder.
#[derive(Clone)]
pub(super) struct Folder {
    boundary: Boundary,
    /// The workspace around it, and its path from there.
    around: Option<(Boundary, PathBuf)>,
}

impl Folder {
    pub(super) fn new(boundary: Boundary) -> Self {
        Self {
            boundary,
            around: None,
        }
    }

    /// A folder beneath a workspace.
    pub(super) fn beneath(spot: Spot) -> Self {
        Self {
            boundary: spot.boundary,
            around: Some((spot.workspace, spot.path)),
        }
    }

    /// Its repository: its own, or one around it within the workspace. Blocks.
    pub(super) fn git(&self, stop: &AtomicBool) -> Result<Git, GitError> {
        match (Git::open(&self.boundary, stop), &self.around) {
            (Err(GitError::NoRepository | GitError::Elsewhere), Some((workspace, at))) => {
                Git::beneath(workspace, at, stop)
            }
            (opened, _) => opened,
        }
    }

    #[cfg(test)]
    pub(super) fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// Lists the files that people wrote. Blocks; ends with what it has once `stop` is set.
    pub(super) fn list(&self, stop: &AtomicBool) -> Result<Listing, Refusal> {
        self.list_at_most(LISTED, stop)
    }

    fn list_at_most(&self, most: Limits, stop: &AtomicBool) -> Result<Listing, Refusal> {
        let walked = self.boundary.walk(most, &People, stop)?;
        let mut listing = Listing {
            cut: walked.cut,
            ..Listing::default()
        };
        for file in walked.files {
            // What cannot be named in a text cannot be asked for either.
            let Some(path) = file.path.to_str() else {
                listing.unnamed += 1;
                continue;
            };
            listing.files.push(Listed {
                path: path.to_owned(),
                bytes: file.bytes,
            });
        }
        Ok(listing)
    }

    /// A file's text, for a search. Blocks; gives up once `stop` is set. `None` for what is no text,
    /// too large, a secret, or not in the folder. The secrets of tokens are not in it: also a search
    /// that finds nothing of them must not tell whether a guess was good.
    pub(super) fn read(&self, path: &str, stop: &AtomicBool) -> Option<String> {
        let file = self.open(path).ok()?;
        let bytes = file.whole(MOST_FILE_BYTES, stop).ok()?;
        if bytes.contains(&0) {
            return None;
        }
        text_of(bytes).map(told_of)
    }

    /// Some lines of a file that a person named, however large it is.
    pub(super) fn page(&self, path: &str, lines: Lines, stop: &AtomicBool) -> Result<Page, Unread> {
        reader::page(&self.open(path)?, lines, stop)
    }

    /// Opens a file. What it really is called decides, not what somebody calls it.
    fn open(&self, path: &str) -> Result<OpenFile, Unread> {
        let file = match self.boundary.file(Path::new(path)) {
            // A person may paste a whole path.
            Err(Refusal::Outside) => self.boundary.file(&self.boundary.typed(path)?.path),
            Err(Refusal::Missing) if self.is_link(path) => return Err(Unread::Dangling),
            file => file,
        }?;
        judge(file.path())?;
        let mut head = [0; STORE.len()];
        if file.read_at(&mut head, 0)? == head.len() && head == *STORE {
            return Err(Unread::Store);
        }
        Ok(file)
    }

    /// Whether there is something at exactly this path that can be shown, or else said why not: also
    /// what is not listed, such as a link. Blocks.
    pub(super) fn has(&self, path: &str) -> bool {
        match self.boundary.typed(path) {
            Ok(_) | Err(Refusal::Outside | Refusal::Hidden | Refusal::Mounted) => true,
            Err(Refusal::Missing) => self.is_link(path),
            Err(_) => false,
        }
    }

    fn is_link(&self, path: &str) -> bool {
        let path = Path::new(path);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        let about = |folder: boundary::Folder<'_>| folder.about(name);
        let about = self.boundary.exactly(parent).and_then(about);
        about.is_ok_and(|about| about.kind == Kind::Link)
    }
}

/// The text of a file. Also of one in an older encoding: what of it is no UTF-8 is replaced, as long
/// as that is little.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    let odd = match String::from_utf8(bytes) {
        Ok(text) => return Some(text),
        Err(odd) => odd.into_bytes(),
    };
    let text = String::from_utf8_lossy(&odd);
    let replaced = text.matches('\u{fffd}').count();
    (replaced <= text.len() / FEW).then(|| text.into_owned())
}

fn judge(path: &Path) -> Result<(), Unread> {
    let is_git = |part: &OsStr| part.eq_ignore_ascii_case(".git");
    if path.iter().any(is_git) {
        return Err(Unread::Git);
    }
    if is_secret_path(path) {
        return Err(Unread::Secret);
    }
    Ok(())
}

impl Listing {
    /// There is no file, as far as it was listed.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.cut
    }

    /// The folder that a word names: by its whole path, or by the end of it where only one fits
    /// best.
    pub(super) fn folder(&self, word: &str) -> Option<String> {
        let word = word.trim_matches('/').trim_start_matches("./");
        let folders = || self.files.iter().flat_map(|file| parents(&file.path));
        let ends = |folder: &&str| {
            folder
                .strip_suffix(word)
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        if word.is_empty() {
            return None;
        }
        folders()
            .filter(ends)
            .min_by_key(|folder| (folder.len(), *folder))
            .map(str::to_owned)
    }

    /// The files that a word names: by their path, or else the end of it.
    pub(super) fn named(&self, word: &str) -> Vec<&Listed> {
        let word = word.trim_start_matches("./").trim_start_matches('/');
        let ends = |file: &&Listed| {
            file.path
                .strip_suffix(word)
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        if let Some(exactly) = self.files.iter().find(|file| file.path == word) {
            return vec![exactly];
        }
        self.files.iter().filter(ends).collect()
    }

    /// The files that people call so: by their names, with or without what follows the dot, whatever
    /// the case. One at the top is meant before others.
    pub(super) fn called(&self, word: &str) -> Vec<&Listed> {
        let is_called = |file: &&Listed| {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            let stem = name.split('.').next().unwrap_or_default();
            name.eq_ignore_ascii_case(word) || stem.eq_ignore_ascii_case(word)
        };
        let mut all: Vec<_> = self.files.iter().filter(is_called).collect();
        // Who writes `Cart` means no `cart.test.js` where there is a `Cart.jsx`.
        let name = |file: &Listed| file.path.rsplit('/').next().unwrap_or_default().to_owned();
        if all.iter().any(|file| name(file).starts_with(word)) {
            all.retain(|file| name(file).starts_with(word));
        }
        let top: Vec<_> = all.iter().filter(|file| !file.path.contains('/')).collect();
        match top.as_slice() {
            [one] => vec![**one],
            _ => all,
        }
    }
}

/// The folders that a path lies in, outermost first.
pub(super) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// A path as it is written, with `/`.
pub(super) fn written(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(OsStr::to_string_lossy).collect();
    parts.join("/")
}

/// For tests of what is read.
#[cfg(test)]
pub(super) fn folder_at(at: &Path) -> Folder {
    use crate::adapters::boundary::Access;
    Folder::new(Boundary::open(at, Access::ReadOnly).expect("a folder"))
}

#[cfg(test)]
mod tests;
