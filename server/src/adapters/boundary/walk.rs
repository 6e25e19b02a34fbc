//! A bounded walk over everything in a folder that people wrote.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::ignored::{RULES_BYTES, Rules};
use super::list::{Entry, Kind};
use super::refusal::Refusal;
use super::root::Boundary;

/// How many `.gitignore` files are heeded in one walk.
const RULES: usize = 500;

/// How much is walked at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Files that are told.
    pub files: usize,
    /// Folders that are entered.
    pub folders: usize,
    /// What lies in them, of whatever kind.
    pub entries: usize,
    /// How deep folders are entered: 0 is the folder itself only.
    pub depth: usize,
}

/// Which names are wanted. It says so by their looks only; what is wanted is judged besides.
pub trait Taste {
    /// Whether a folder of this name is entered.
    fn enters(&self, name: &OsStr) -> bool;
    /// Whether a file of this name is told.
    fn takes(&self, name: &OsStr) -> bool;
}

/// A file that was met.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WalkedFile {
    /// Its path from the folder.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}

/// What was met.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Walked {
    /// The files, in order of their paths.
    pub files: Vec<WalkedFile>,
    /// There is more than was walked.
    pub cut: bool,
}

/// A folder on the way. Not opened before it is its turn: descriptors are few.
struct Inner {
    path: PathBuf,
    depth: usize,
    rules: Option<Arc<Rules>>,
}

impl Boundary {
    /// Walks the folder, near things first, so that a bound cuts off what is far. Left out are git's
    /// own files, what a `.gitignore` ignores, what is hidden or mounted, and all that is neither a
    /// regular file nor a folder: no link is followed. A folder that cannot be read is as good as
    /// empty. Blocks; ends early, with what it has, once `stop` is set.
    ///
    /// # Errors
    /// When the folder itself cannot be read.
    pub fn walk(
        &self,
        limits: Limits,
        taste: &dyn Taste,
        stop: &AtomicBool,
    ) -> Result<Walked, Refusal> {
        // Only the folder itself must be readable.
        self.list(Path::new(""), 0, &AtomicBool::new(false))?;
        let mut walk = Walk {
            boundary: self,
            taste,
            stop,
            left: limits,
            rules: RULES,
            walked: Walked::default(),
            waiting: VecDeque::new(),
        };
        let rules = walk.rules_at(Path::new(".git/info/exclude"), Path::new(""), None);
        walk.waiting.push_back(Inner {
            path: PathBuf::new(),
            depth: 0,
            rules,
        });
        walk.run();
        let mut walked = walk.walked;
        walked.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(walked)
    }
}

struct Walk<'a> {
    boundary: &'a Boundary,
    taste: &'a dyn Taste,
    stop: &'a AtomicBool,
    left: Limits,
    rules: usize,
    walked: Walked,
    waiting: VecDeque<Inner>,
}

impl Walk<'_> {
    fn run(&mut self) {
        while let Some(inner) = self.waiting.pop_front() {
            if !one_less(&mut self.left.folders) || !self.enter(inner) {
                self.walked.cut = true;
                return;
            }
        }
    }

    /// Goes through one folder. `false`: there is more than may be walked, or nobody waits.
    fn enter(&mut self, mut inner: Inner) -> bool {
        let Ok((folder, _)) = self.boundary.folder(&inner.path) else {
            return true;
        };
        inner.rules = self.rules_at(
            &inner.path.join(".gitignore"),
            &inner.path,
            inner.rules.take(),
        );
        let boundary = self.boundary;
        let mut more = true;
        let gone = boundary.each(folder, self.stop, |entry| {
            more = one_less(&mut self.left.entries) && self.meet(&inner, &entry);
            more
        });
        more && gone != Err(Refusal::Stopped)
    }

    /// Takes an entry, or not. `false`: no more files may be told.
    fn meet(&mut self, inner: &Inner, entry: &Entry) -> bool {
        let name = entry.name.as_os_str();
        // In a worktree it is a file, and where case means nothing it has other names.
        if name.eq_ignore_ascii_case(".git") {
            return true;
        }
        let path = inner.path.join(name);
        let is_folder = entry.kind == Kind::Folder;
        let wanted = match entry.kind {
            Kind::Folder => self.taste.enters(name),
            Kind::File => self.taste.takes(name),
            _ => false,
        };
        let rules = inner.rules.as_ref();
        if !wanted || rules.is_some_and(|rules| rules.ignores(&path, is_folder)) {
            return true;
        }
        if !is_folder {
            let bytes = entry.bytes;
            let room = one_less(&mut self.left.files);
            if room {
                self.walked.files.push(WalkedFile { path, bytes });
            }
            return room;
        }
        let depth = inner.depth + 1;
        // No more may wait than may still be entered.
        if depth > self.left.depth || self.waiting.len() >= self.left.folders {
            // It is left out, and the others go on.
            self.walked.cut = true;
        } else {
            let rules = inner.rules.clone();
            self.waiting.push_back(Inner { path, depth, rules });
        }
        true
    }

    /// The rules that a file states for a folder, over those around it.
    fn rules_at(
        &mut self,
        file: &Path,
        at: &Path,
        outer: Option<Arc<Rules>>,
    ) -> Option<Arc<Rules>> {
        if self.rules == 0 {
            return outer;
        }
        let text = self.boundary.file(file);
        let Ok(text) = text.and_then(|file| file.whole(RULES_BYTES, self.stop)) else {
            return outer;
        };
        self.rules -= 1;
        Rules::read(&text, at, outer)
    }
}

/// Takes one from what is left; `false`: nothing is.
fn one_less(left: &mut usize) -> bool {
    let rest = left.checked_sub(1);
    *left = rest.unwrap_or(0);
    rest.is_some()
}
