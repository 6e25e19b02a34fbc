//! The folder: which files there are, and their text. All reading of the outside world is here, and
//! goes through one directory handle that no path leads out of.

use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cap_std::fs::{Dir, DirEntry, File, Metadata, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;

/// The largest file that is read, in bytes.
pub(super) const MOST_FILE_BYTES: u64 = 512 * 1024;

/// How much of a file is read before it is asked whether anybody still waits for it, in bytes.
const PART_BYTES: u64 = 64 * 1024;

/// Folders that hold what is made or fetched, not what people wrote.
const SKIPPED_FOLDERS: [&str; 7] = [
    "target",
    "node_modules",
    "__pycache__",
    "venv",
    "vendor",
    "dist",
    "coverage",
];
/// Folders with a dot that people do write in.
const DOTTED_FOLDERS: [&str; 3] = [".github", ".cargo", ".config"];
/// Files that tools write, or that hold no text worth a search.
const SKIPPED_ENDINGS: [&str; 11] = [
    ".lock",
    "-lock.json",
    "-lock.yaml",
    ".min.js",
    ".min.css",
    ".map",
    ".svg",
    ".pem",
    ".key",
    ".p12",
    ".log",
];

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
}

/// A folder that can only be read. Its clones read the same folder.
#[derive(Clone)]
pub(super) struct Folder {
    root: Arc<Dir>,
    hidden: Arc<Vec<PathBuf>>,
}

impl Folder {
    pub(super) fn new(root: Dir, hidden: Vec<PathBuf>) -> Self {
        Self {
            root: Arc::new(root),
            hidden: Arc::new(hidden),
        }
    }

    /// Lists the files. Blocks; leaves early once `stop` is set. Symbolic links are not followed.
    pub(super) fn list(&self, stop: &AtomicBool) -> io::Result<Listing> {
        self.list_at_most(Most::LISTED, stop)
    }

    fn list_at_most(&self, most: Most, stop: &AtomicBool) -> io::Result<Listing> {
        // Only the folder itself must be readable.
        self.root.entries()?;
        let mut listing = Listing::default();
        let mut left = most;
        let mut folders = vec![Inner {
            path: PathBuf::from("."),
            depth: 0,
        }];
        while let Some(inner) = folders.pop() {
            let room = one_less(&mut left.folders);
            if !room || !self.enter(&inner, &mut left, &mut listing, &mut folders, stop) {
                listing.cut = true;
                break;
            }
        }
        listing.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    /// Goes through one folder. `false`: there is more than may be listed, or nobody waits.
    fn enter(
        &self,
        inner: &Inner,
        left: &mut Most,
        listing: &mut Listing,
        folders: &mut Vec<Inner>,
        stop: &AtomicBool,
    ) -> bool {
        // A folder that cannot be read, or is gone by now, is as good as empty.
        let Ok(entries) = self.root.read_dir(&inner.path) else {
            return true;
        };
        for entry in entries.flatten() {
            if stop.load(Ordering::Relaxed) || !one_less(&mut left.entries) {
                return false;
            }
            match self.sort_out(inner, &entry) {
                Some(Entry::Folder(folder)) if folder.depth <= left.depth => folders.push(folder),
                // It is left out, and the others go on.
                Some(Entry::Folder(_)) => listing.cut = true,
                Some(Entry::File(file)) if one_less(&mut left.files) => listing.files.push(file),
                Some(Entry::File(_)) => return false,
                None => {}
            }
        }
        true
    }

    /// What an entry of a folder is to us; `None`: nothing that people wrote.
    fn sort_out(&self, inner: &Inner, entry: &DirEntry) -> Option<Entry> {
        let name = entry.file_name();
        let (name, kind) = (name.to_str()?, entry.file_type().ok()?);
        let path = match inner.depth {
            0 => PathBuf::from(name),
            _ => inner.path.join(name),
        };
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return None;
        }
        if kind.is_dir() && is_entered(name) {
            let depth = inner.depth + 1;
            return Some(Entry::Folder(Inner { path, depth }));
        }
        if !kind.is_file() || !is_read(name) {
            return None;
        }
        let about = entry.metadata().ok()?;
        Some(Entry::File(Listed {
            path: slashed(&path),
            bytes: about.len(),
        }))
    }

    /// A file's text. Blocks; gives up once `stop` is set. `None` for what is no text, too large,
    /// hidden, or not in the folder.
    pub(super) fn read(&self, path: &str, stop: &AtomicBool) -> Option<String> {
        let path = Path::new(path);
        // A path that is not plain could name a hidden file in other words.
        let plain = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let hidden = self.hidden.iter().any(|hidden| path.starts_with(hidden));
        if hidden || !(plain || self.hidden.is_empty()) {
            return None;
        }
        let mut file = self.open(path)?;
        let mut bytes = Vec::new();
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let mut part = file.take(PART_BYTES);
            let read = part.read_to_end(&mut bytes).ok()?;
            // A file may grow while it is read.
            if bytes.len() as u64 > MOST_FILE_BYTES {
                return None;
            }
            if read == 0 {
                break;
            }
            file = part.into_inner();
        }
        let text = String::from_utf8(bytes).ok()?;
        (!text.contains('\0')).then_some(text)
    }

    /// Opens a file, and nothing else: a pipe or a device could keep its reader for ever.
    fn open(&self, path: &Path) -> Option<File> {
        let readable = |about: &Metadata| about.is_file() && about.len() <= MOST_FILE_BYTES;
        if !readable(&self.root.metadata(path).ok()?) {
            return None;
        }
        self.open_at_once(path)
            .filter(|file| file.metadata().is_ok_and(|about| readable(&about)))
    }

    /// Opens whatever is there without waiting: it may have become a pipe that nobody writes to.
    fn open_at_once(&self, path: &Path) -> Option<File> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        self.root.open_with(path, &options).ok()
    }
}

/// How much is listed at most.
#[derive(Clone, Copy)]
struct Most {
    files: usize,
    /// Folders that are entered.
    folders: usize,
    /// What lies in them, of whatever kind.
    entries: usize,
    /// How deep folders are entered.
    depth: usize,
}

impl Most {
    const LISTED: Self = Self {
        files: 20_000,
        folders: 5_000,
        entries: 200_000,
        depth: 32,
    };
}

/// Takes one from what is left; `false`: nothing is.
fn one_less(left: &mut usize) -> bool {
    let rest = left.checked_sub(1);
    *left = rest.unwrap_or(0);
    rest.is_some()
}

/// An entry of a folder that people wrote.
enum Entry {
    File(Listed),
    Folder(Inner),
}

/// A folder on the way. Not opened before it is its turn: handles are few.
struct Inner {
    path: PathBuf,
    depth: usize,
}

fn is_entered(name: &str) -> bool {
    if name.starts_with('.') {
        return DOTTED_FOLDERS.contains(&name);
    }
    !SKIPPED_FOLDERS.contains(&name)
}

/// Whether a file is one that people write. Files that commonly hold secrets are not read.
fn is_read(name: &str) -> bool {
    let secret = name.starts_with(".env") || name.starts_with("id_") || name == ".netrc";
    // In a worktree, `.git` is a file.
    !secret && name != ".git" && !SKIPPED_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
    parts.join("/")
}

impl Listing {
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

    /// The files that a word names: by their path or the end of it.
    pub(super) fn named(&self, word: &str) -> Vec<&Listed> {
        let word = word.trim_start_matches("./").trim_start_matches('/');
        let ends = |file: &&Listed| {
            file.path
                .strip_suffix(word)
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        self.files.iter().filter(ends).collect()
    }
}

/// The folders that a path lies in, outermost first.
pub(super) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cap_std::ambient_authority;

    use super::*;

    fn folder(at: &Path, hidden: &[&str]) -> Folder {
        let root = Dir::open_ambient_dir(at, ambient_authority()).expect("a folder");
        Folder::new(root, hidden.iter().map(PathBuf::from).collect())
    }

    fn read(folder: &Folder, path: &str) -> Option<String> {
        folder.read(path, &AtomicBool::new(false))
    }

    fn paths(folder: &Folder) -> Vec<String> {
        let listing = folder.list(&AtomicBool::new(false)).expect("a listing");
        listing.files.into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn what_people_wrote_is_listed_and_nothing_else() {
        let at = tempfile::tempdir().expect("a folder");
        for path in [
            "src/a.rs",
            "b.md",
            "target/x.rs",
            ".git/config",
            "node_modules/m.js",
            "Cargo.lock",
            ".env",
            "data/token",
            ".github/ci.yml",
        ] {
            let path = at.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, "text").expect("written");
        }
        let folder = folder(at.path(), &["data"]);
        assert_eq!(paths(&folder), [".github/ci.yml", "b.md", "src/a.rs"]);
        for path in ["data/token", "./data/token", "src/../data/token"] {
            assert_eq!(read(&folder, path), None, "{path} was read");
        }
        assert_eq!(read(&folder, "b.md").as_deref(), Some("text"));
    }

    #[cfg(unix)]
    #[test]
    fn b48_nothing_leads_out_of_the_folder() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().expect("a folder");
        fs::write(outside.path().join("secret.txt"), "secret").expect("written");
        let at = tempfile::tempdir().expect("a folder");
        symlink(outside.path(), at.path().join("folder")).expect("linked");
        symlink(
            outside.path().join("secret.txt"),
            at.path().join("file.txt"),
        )
        .expect("linked");
        let folder = folder(at.path(), &[]);
        assert_eq!(paths(&folder), [""; 0]);
        let absolute = outside.path().join("secret.txt");
        let upwards = format!(
            "../{}/secret.txt",
            outside
                .path()
                .file_name()
                .expect("a name")
                .to_str()
                .expect("text")
        );
        for path in [
            "file.txt",
            "folder/secret.txt",
            absolute.to_str().expect("text"),
            &upwards,
        ] {
            assert_eq!(read(&folder, path), None, "{path} was read");
        }
    }

    #[test]
    fn what_is_no_text_or_too_large_is_not_read() {
        let at = tempfile::tempdir().expect("a folder");
        let large = usize::try_from(MOST_FILE_BYTES).expect("fits") + 1;
        for (name, bytes) in [
            ("nul", b"a\0b".to_vec()),
            ("latin", b"caf\xe9".to_vec()),
            ("large", vec![b'a'; large]),
        ] {
            fs::write(at.path().join(name), bytes).expect("written");
        }
        let folder = folder(at.path(), &[]);
        assert_eq!(paths(&folder), ["large", "latin", "nul"]);
        for name in ["nul", "latin", "large", "missing"] {
            assert_eq!(read(&folder, name), None, "{name} was read");
        }
    }

    /// What is cut is told as cut, and a folder that just fits is not.
    #[test]
    fn a_listing_says_when_there_is_more() {
        let at = tempfile::tempdir().expect("a folder");
        for path in ["a.md", "b.md", "x.lock", "one/two/c.md"] {
            let path = at.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, "text").expect("written");
        }
        let folder = folder(at.path(), &[]);
        let fits = Most {
            files: 3,
            folders: 3,
            entries: 6,
            depth: 2,
        };
        for (most, files, cut) in [
            (fits, 3..=3, false),
            (Most { files: 2, ..fits }, 2..=2, true),
            (Most { folders: 2, ..fits }, 2..=2, true),
            (Most { entries: 5, ..fits }, 0..=3, true),
            (Most { depth: 1, ..fits }, 2..=2, true),
        ] {
            let listing = folder.list_at_most(most, &AtomicBool::new(false));
            let listing = listing.expect("a listing");
            assert_eq!(listing.cut, cut, "{listing:?}");
            assert!(files.contains(&listing.files.len()), "{listing:?}");
        }
    }

    #[test]
    fn what_nobody_waits_for_is_not_read() {
        let at = tempfile::tempdir().expect("a folder");
        fs::write(at.path().join("a.md"), "text").expect("written");
        let folder = folder(at.path(), &[]);
        let stopped = AtomicBool::new(true);
        assert_eq!(folder.read("a.md", &stopped), None);
        assert_eq!(folder.list(&stopped).expect("a listing").files, []);
    }

    /// The pipe takes the place of a file between the two looks at it.
    #[test]
    fn a_pipe_keeps_nobody_waiting() {
        let at = tempfile::tempdir().expect("a folder");
        let path = at.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        let folder = folder(at.path(), &[]);
        assert_eq!(read(&folder, "pipe"), None);
        let (done, opened) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || done.send(folder.open_at_once(Path::new("pipe"))));
        let file = opened.recv_timeout(std::time::Duration::from_secs(10));
        let file = file.expect("opening it does not wait").expect("opened");
        assert!(!file.metadata().expect("known").is_file());
    }

    #[test]
    fn a_place_is_found_by_the_end_of_its_path() {
        let file = |path: &str| Listed {
            path: path.to_owned(),
            bytes: 1,
        };
        let listing = Listing {
            files: ["server/core/src/a.rs", "server/src/a.rs", "x/b.rs"]
                .map(file)
                .to_vec(),
            cut: false,
        };
        assert_eq!(listing.folder("core").as_deref(), Some("server/core"));
        assert_eq!(
            listing.folder("server/core/").as_deref(),
            Some("server/core")
        );
        assert_eq!(listing.folder("src").as_deref(), Some("server/src"));
        assert_eq!(listing.folder("ore"), None);
        assert_eq!(listing.named("a.rs").len(), 2);
        assert_eq!(listing.named("core/src/a.rs").len(), 1);
    }
}
