//! Every kind of escape that is known, tried, and what is promised besides.

mod escapes;
mod kinds;
mod races;
mod removal;
mod walks;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::*;

/// What no test may ever read.
const SECRET: &str = "SECRET";

/// A workspace beside what must not be read from it.
struct Scene {
    /// Holds both: `in` and `out`.
    _both: TempDir,
    inside: PathBuf,
    outside: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let both = tempfile::tempdir().expect("a folder");
        let at = both.path().canonicalize().expect("a path");
        let scene = Self {
            _both: both,
            inside: at.join("in"),
            outside: at.join("out"),
        };
        fs::create_dir(&scene.inside).expect("made");
        fs::create_dir(&scene.outside).expect("made");
        fs::write(scene.outside.join("secret.txt"), SECRET).expect("written");
        scene.write("a.txt", "inside");
        scene.write("folder/b.txt", "deeper inside");
        scene
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.inside.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn link(&self, to: impl AsRef<Path>, name: &str) {
        symlink(to, self.inside.join(name)).expect("linked");
    }

    fn boundary(&self) -> Boundary {
        Boundary::open(&self.inside, Access::ReadOnly).expect("a folder")
    }

    /// Reads a file, as text.
    fn read(&self, path: impl AsRef<Path>) -> Result<String, Refusal> {
        read(&self.boundary(), path)
    }
}

fn read(boundary: &Boundary, path: impl AsRef<Path>) -> Result<String, Refusal> {
    let bytes = boundary.file(path.as_ref())?.whole(1024, &running())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn running() -> AtomicBool {
    AtomicBool::new(false)
}

/// Everything there is, within wide bounds.
fn walked(boundary: &Boundary) -> Vec<PathBuf> {
    let walked = boundary.walk(WIDE, &Everything, &running());
    let files = walked.expect("a walk").files;
    files.into_iter().map(|file| file.path).collect()
}

const WIDE: Limits = Limits {
    files: 100,
    folders: 100,
    entries: 1000,
    depth: 32,
};

struct Everything;

impl Taste for Everything {
    fn enters(&self, _: &std::ffi::OsStr) -> bool {
        true
    }

    fn takes(&self, _: &std::ffi::OsStr) -> bool {
        true
    }
}
