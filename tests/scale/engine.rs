//! The storage engine alone: this test's own binary, started again, opens a directory and says what
//! that took.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const OPEN: &str = "SESSIONPLANE_OPEN_ALONE";
/// As the server opens it.
const CACHE_BYTES: u64 = 256 * 1024 * 1024;

/// What an opening took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) time: Duration,
    /// Memory that is no file's, in bytes.
    pub(crate) memory: usize,
}

/// The memory of a process that is no file's, in bytes.
pub(crate) fn anonymous(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kib = status.lines().find_map(|line| {
        let kib = line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB")?;
        kib.parse::<usize>().ok()
    });
    kib.expect("a process has a size") * 1024
}

/// Opens a store by the engine alone, in another process.
pub(crate) fn open(path: &Path) -> Opening {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["engine::opens_what_it_is_told_to", "--exact", "--nocapture"])
        .env(OPEN, path)
        .env("MIMALLOC_PURGE_DELAY", "0")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let found = said.lines().find_map(|line| line.split_once("opened in "));
    let (_, words) = found.unwrap_or_else(|| panic!("it did not open: {said}"));
    let words: Vec<u64> = words.split(' ').map(|word| word.parse().unwrap()).collect();
    Opening {
        time: Duration::from_micros(words[0]),
        memory: usize::try_from(words[1]).unwrap(),
    }
}

#[test]
fn opens_what_it_is_told_to() {
    let Some(path) = std::env::var_os(OPEN).map(PathBuf::from) else {
        return;
    };
    let begun = Instant::now();
    let db = sled::Config::new()
        .path(path)
        .cache_capacity(CACHE_BYTES)
        .flush_every_ms(None)
        .open()
        .unwrap();
    let taken = begun.elapsed().as_micros();
    println!("opened in {taken} {}", anonymous(std::process::id()));
    drop(db);
}
