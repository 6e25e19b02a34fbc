//! Power losses: the server runs over a layer (`power.c`, preloaded) that notes what no sync has made
//! durable, and what it replaced. Once the server is dead, that is taken back.
//!
//! What must never enter: what a server or a client says.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rand::RngExt as _;
use rand::rngs::StdRng;

const MAGIC: u32 = 0x5257_4f50;
const HEAD: usize = 48;

/// The layer, built once.
fn library() -> &'static Path {
    static BUILT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, library) = BUILT.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let library = directory.path().join("power.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/power.c");
        let built = Command::new("cc")
            .args([
                "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o",
            ])
            .arg(&library)
            .arg(source)
            .arg("-ldl")
            .status()
            .expect("a C compiler, which Rust links with too");
        assert!(built.success(), "power.c does not build");
        (directory, library)
    });
    library
}

/// The power supply of a data directory.
pub(crate) struct Power {
    root: PathBuf,
    journal: PathBuf,
}

/// What a loss took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Loss {
    /// Changes that were taken back.
    pub(crate) taken: usize,
    /// Changes that no sync had made durable, and that were spared.
    pub(crate) spared: usize,
    /// Syncs that were asked for.
    pub(crate) syncs: usize,
}

impl Power {
    /// For a data directory below `home`.
    pub(crate) fn of(home: &Path, root: PathBuf) -> Self {
        let journal = home.join("power");
        fs::create_dir(&journal).unwrap();
        Self {
            root,
            journal: journal.join("journal"),
        }
    }

    /// What a process is started with.
    pub(crate) fn environment(&self) -> [(&'static str, &Path); 3] {
        [
            ("LD_PRELOAD", library()),
            ("POWER_ROOT", &self.root),
            ("POWER_JOURNAL", &self.journal),
        ]
    }

    /// Takes back what no sync made durable: all of it, or all after some place in it. The process
    /// must be gone.
    pub(crate) fn lose(&self, rng: &mut StdRng) -> Loss {
        let notes = match fs::read(&self.journal) {
            Ok(bytes) => parse(&bytes),
            // Nothing has run yet. Later the layer has made one, or there was no layer.
            Err(_) if !self.root.exists() => Vec::new(),
            Err(error) => panic!("the process did not run over the layer: {error}"),
        };
        let mut synced: BTreeMap<u64, usize> = BTreeMap::new();
        for note in notes.iter().filter(|note| note.kind == 's') {
            synced.insert(note.inode, note.sequence);
        }
        let at_risk: Vec<&Note> = notes
            .iter()
            .filter(|note| note.kind != 's')
            .filter(|note| synced.get(&note.inode).is_none_or(|at| *at < note.sequence))
            .collect();
        let spared = if rng.random_bool(0.5) {
            0
        } else {
            rng.random_range(0..=at_risk.len())
        };
        let mut files = None;
        for note in at_risk[spared..].iter().rev() {
            self.undo(note, &mut files);
        }
        self.forget();
        Loss {
            taken: at_risk.len() - spared,
            spared,
            syncs: notes.iter().filter(|note| note.kind == 's').count(),
        }
    }

    /// What is there now is durable.
    fn forget(&self) {
        let kept = self.journal.parent().unwrap();
        for entry in fs::read_dir(kept).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }

    fn undo(&self, note: &Note, files: &mut Option<BTreeMap<u64, PathBuf>>) {
        if note.kind == 'w' {
            let files = files.get_or_insert_with(|| by_inode(&self.root));
            // One that lost its name for good has nothing to take back.
            let Some(path) = files.get(&note.inode) else {
                return;
            };
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(note.length).unwrap();
            file.write_all_at(&note.data, note.offset).unwrap();
            return;
        }
        *files = None;
        match note.kind {
            'c' => match fs::symlink_metadata(&note.first) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(&note.first).unwrap(),
                Ok(_) => fs::remove_file(&note.first).unwrap(),
                Err(_) => {}
            },
            'r' if !note.first.exists() && note.second.exists() => {
                fs::rename(&note.second, &note.first).unwrap();
            }
            'u' if !note.first.exists() => fs::hard_link(&note.second, &note.first).unwrap(),
            'r' | 'u' => {}
            kind => panic!("{kind:?} is no note"),
        }
    }
}

/// One change, or one sync.
#[derive(Debug)]
struct Note {
    kind: char,
    /// Its place in the journal, to which notes are added under one lock.
    sequence: usize,
    /// Of the file whose content it is about, or of the directory whose names.
    inode: u64,
    offset: u64,
    /// Of the file, before.
    length: u64,
    first: PathBuf,
    second: PathBuf,
    data: Vec<u8>,
}

fn parse(mut bytes: &[u8]) -> Vec<Note> {
    let mut notes = Vec::new();
    while bytes.len() >= HEAD {
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(word(0), MAGIC, "the journal is torn");
        let lengths = [word(32), word(36), word(40)].map(|length| length as usize);
        let end = HEAD + lengths.iter().sum::<usize>();
        if bytes.len() < end {
            // What it was about to note was not done.
            break;
        }
        let (first, rest) = bytes[HEAD..end].split_at(lengths[0]);
        let (second, data) = rest.split_at(lengths[1]);
        let path = |bytes: &[u8]| PathBuf::from(std::str::from_utf8(bytes).unwrap());
        notes.push(Note {
            kind: char::from_u32(word(4)).unwrap(),
            sequence: notes.len(),
            inode: long(8),
            offset: long(16),
            length: long(24),
            first: path(first),
            second: path(second),
            data: data.to_vec(),
        });
        bytes = &bytes[end..];
    }
    notes
}

fn by_inode(root: &Path) -> BTreeMap<u64, PathBuf> {
    let mut found = BTreeMap::new();
    let mut rooms = vec![root.to_owned()];
    while let Some(room) = rooms.pop() {
        let Ok(entries) = fs::read_dir(&room) else {
            continue;
        };
        for entry in entries {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                rooms.push(entry.path());
            } else {
                found.insert(metadata.ino(), entry.path());
            }
        }
    }
    found
}

/// The counter-test: the layer takes what was not synced, and nothing else.
#[test]
fn c39_a_power_loss_takes_what_was_not_synced_and_nothing_else() {
    // A shell is a process like another: `sync FILE` is an fsync of it.
    let script = "
        put() { dd of=\"$POWER_ROOT/$1\" status=none \"${@:2}\"; }
        printf one | put kept && sync \"$POWER_ROOT/kept\" \"$POWER_ROOT\"
        printf two | put kept oflag=append conv=notrunc
        printf x | put unnamed && sync \"$POWER_ROOT/unnamed\"
        printf gone | put unsynced
        mv \"$POWER_ROOT/before\" \"$POWER_ROOT/after\"
        rm \"$POWER_ROOT/removed\"
        printf short | put long
    ";
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("data");
    fs::create_dir(&root).unwrap();
    for name in ["before", "removed", "long"] {
        fs::write(root.join(name), "as it was before").unwrap();
    }
    let power = Power::of(home.path(), root.clone());
    let ran = Command::new("bash")
        .args(["-ec", script])
        .envs(power.environment())
        .status()
        .unwrap();
    assert!(ran.success());
    assert_eq!(fs::read(root.join("kept")).unwrap(), b"onetwo");
    // Some seed takes all of it.
    let loss = power.lose(&mut all());
    assert!(
        loss.taken >= 6 && loss.spared == 0 && loss.syncs == 3,
        "{loss:?}"
    );
    assert_eq!(fs::read(root.join("kept")).unwrap(), b"one");
    for name in ["before", "removed", "long"] {
        assert_eq!(
            fs::read(root.join(name)).unwrap(),
            b"as it was before",
            "{name}"
        );
    }
    for name in ["unnamed", "unsynced", "after"] {
        assert!(!root.join(name).exists(), "{name}");
    }
}

/// Choices that spare nothing.
fn all() -> StdRng {
    use rand::SeedableRng as _;
    let seed = (0..64).find(|seed| StdRng::seed_from_u64(*seed).random_bool(0.5));
    StdRng::seed_from_u64(seed.unwrap())
}
