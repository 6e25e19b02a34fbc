//! The data directory: made for its owner alone, and never one that belongs to somebody else.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::ProcessError;
use crate::adapters::authn::{OWNER_FILE, TOKENS_FILE};
use crate::adapters::sled::create_private;

/// Where the store lives in the data directory.
pub(super) const STORE: &str = "store";

/// Makes a directory that nobody but its owner can enter. One that is there already is closed to
/// others if it is empty or ours; if it holds something else and others can enter it, then closing
/// it might lock out whoever uses it, so it is refused.
pub(super) fn prepare(path: &Path) -> Result<(), ProcessError> {
    let failed = |error| ProcessError::Directory {
        path: path.to_owned(),
        error,
    };
    if !path.exists() {
        return create_private(path).map_err(failed);
    }
    let found = fs::metadata(path).map_err(failed)?;
    if !found.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    let others_may = found.permissions().mode() & 0o077;
    if others_may == 0 {
        return Ok(());
    }
    if !is_empty(path).map_err(failed)? && !is_ours(path) {
        return Err(ProcessError::ForeignDirectory {
            path: path.to_owned(),
        });
    }
    fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed)
}

fn is_empty(path: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(path)?.next().is_none())
}

fn is_ours(path: &Path) -> bool {
    [STORE, OWNER_FILE, TOKENS_FILE]
        .into_iter()
        .any(|name| path.join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(mode: u32) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        directory
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn c54_a_directory_that_is_made_an_empty_one_and_ours_are_closed_to_others() {
        let within = directory(0o755);
        let made = within.path().join("a/b");
        prepare(&made).unwrap();
        assert_eq!(mode(&made), 0o700);

        let empty = directory(0o755);
        prepare(empty.path()).unwrap();
        assert_eq!(mode(empty.path()), 0o700);

        for name in [STORE, OWNER_FILE, TOKENS_FILE] {
            let ours = directory(0o750);
            fs::write(ours.path().join(name), "").unwrap();
            fs::write(ours.path().join("a-note"), "").unwrap();
            prepare(ours.path()).unwrap();
            assert_eq!(mode(ours.path()), 0o700);
        }
    }

    #[test]
    fn a_directory_of_somebody_else_is_left_as_it_is() {
        let shared = directory(0o755);
        fs::write(shared.path().join("thesis.tex"), "").unwrap();
        let error = prepare(shared.path()).unwrap_err().to_string();
        assert!(error.contains("--data-dir"), "{error}");
        assert_eq!(mode(shared.path()), 0o755);

        let private = directory(0o700);
        fs::write(private.path().join("thesis.tex"), "").unwrap();
        prepare(private.path()).unwrap();
        assert_eq!(mode(private.path()), 0o700);
    }
}
