//! Copies of a store's files, taken while it is open: what a killed process leaves behind.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// Copies a data directory.
pub(crate) fn take(from: &Path) -> TempDir {
    let to = TempDir::new().unwrap();
    copy(from, to.path());
    to
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
