//! The storage engine at an opening: how it is started, what its panics and errors mean, and which
//! names it leaves to us to sync.
//!
//! What must never enter: what the store's records have to say.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use ::sled::{Config, Db};

use super::open::{OpenError, damaged, failed_io};

/// How often, and how long apart, a directory that is in use is tried again: a second in all.
const LOCK_ATTEMPTS: usize = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Waits a moment for a holder that is just leaving: a lock lives until the last copy of its
/// descriptor is closed, and a child that another thread is starting has one until it runs.
pub(super) fn patiently<T>(
    mut attempt: impl FnMut() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    for _ in 0..LOCK_ATTEMPTS {
        match attempt() {
            Err(OpenError::InUse { .. }) => std::thread::sleep(LOCK_PAUSE),
            decided => return decided,
        }
    }
    attempt()
}

pub(super) fn start(path: &Path, cache_bytes: u64) -> ::sled::Result<Db> {
    Config::new()
        .path(path)
        .cache_capacity(cache_bytes)
        // The committer flushes, and nobody else: sled's own flusher would only hide a missing one.
        .flush_every_ms(None)
        .open()
}

/// Runs a part of the opening; a panic of sled becomes an error.
pub(super) fn guarded<T>(
    path: &Path,
    part: impl FnOnce() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        if let Some(problem) = text.and_then(exhausted) {
            return Err(failed_io(path, &problem));
        }
        let problem = "the storage engine gave up on its files (its message is above)";
        Err(damaged(path, problem.to_owned()))
    })
}

/// What the system lacked, where the storage engine gave up for that: nothing is wrong with its files.
fn exhausted(said: &str) -> Option<std::io::Error> {
    const LACKS: [(&str, &str); 3] = [
        ("code: 11,", "a thread that the storage engine needs"),
        ("code: 12,", "memory that the storage engine needs"),
        ("code: 24,", "a file that the storage engine needs to open"),
    ];
    let (_, lacked) = LACKS.iter().find(|(code, _)| said.contains(code))?;
    let problem = format!(
        "the system refused {lacked} ({said}); raise what this process may use, or lower \
         store.cache_mib"
    );
    Some(std::io::Error::new(
        std::io::ErrorKind::OutOfMemory,
        problem,
    ))
}

pub(super) fn sled_said(path: &Path, error: &::sled::Error) -> OpenError {
    match error {
        // sled gives the lock's refusal no kind of its own.
        ::sled::Error::Io(io) if io.to_string().starts_with("could not acquire lock") => {
            OpenError::InUse {
                path: path.to_owned(),
            }
        }
        ::sled::Error::Io(io) => failed_io(path, io),
        // Snapshots that are not whole are out of the way by now, so this is the log, or a snapshot
        // that does not fit it. The log alone may then lack something in its middle: not to be
        // tried unasked.
        ::sled::Error::Corruption { .. } => {
            let problem = format!(
                "{error}; if there is no copy, make one of what is there, move its `snap.*` files \
                 away and start: that reads the log alone and passes over what is damaged in it \
                 without a word"
            );
            damaged(path, problem)
        }
        other => match exhausted(&other.to_string()) {
            Some(problem) => failed_io(path, &problem),
            None => damaged(path, other.to_string()),
        },
    }
}

/// sled syncs neither its settings nor the directory entries of its files. Done at every opening:
/// the one that created them may have been cut before it came here.
pub(super) fn sync_names(path: &Path) -> std::io::Result<()> {
    File::open(path.join("conf"))?.sync_all()?;
    File::open(path)?.sync_all()?;
    // The directory's own name lies in its parent.
    match path.canonicalize()?.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b54_what_the_system_refuses_is_not_told_as_damage() {
        let path = Path::new("/data/store");
        let no_thread = std::io::Error::from_raw_os_error(11);
        let said = guarded::<()>(path, || panic!("cannot spawn: {no_thread:?}"));
        let Err(error @ OpenError::Io { .. }) = said else {
            panic!("{said:?}");
        };
        assert!(error.to_string().contains("a thread"), "{error}");
        let said = guarded::<()>(path, || panic!("a segment is missing"));
        assert!(matches!(said, Err(OpenError::Damaged { .. })), "{said:?}");
        let read_only = std::io::ErrorKind::ReadOnlyFilesystem.into();
        let said = failed_io(path, &read_only).to_string();
        assert!(said.contains("cp -a '/data' COPY"), "{said}");
    }
}
