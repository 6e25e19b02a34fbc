//! Processes that were left by a server that is gone, or by a supervisor that was killed: found by
//! their notes and their marks, killed, and waited for.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::note::Notes;
use super::tree::{self, Seen, Which};
use crate::adapters::boundary::{Refusal, remove_some};

/// How long it is looked whether what was killed is gone.
const WITHIN: Duration = Duration::from_secs(10);
/// How many names are removed of one folder at a start.
const NAMES: u64 = 50_000_000;
/// How long between two looks. No event tells of the end of a process that is not a child.
const BETWEEN: Duration = Duration::from_millis(10);

/// What does not die.
#[derive(Debug)]
pub(super) enum Alive {
    /// A process that cannot be killed: a device does not answer it, or it is another user's.
    Process(i32),
    /// The system did not tell.
    Unknown(io::Error),
}

impl From<io::Error> for Alive {
    fn from(error: io::Error) -> Self {
        Self::Unknown(error)
    }
}

/// Kills all that a note tells of, and waits until it is gone. Blocks, for ten seconds and one look at
/// most, however many processes there are to be looked at. Returns how many were meant.
///
/// # Errors
/// When one is alive after that.
#[expect(
    clippy::disallowed_methods,
    reason = "it bounds what it waits for of the system, on whose clock that ends"
)]
pub(super) fn end(mark: &str, noted: &[Which]) -> Result<usize, Alive> {
    let find = || living(mark, noted);
    let (began, mut most) = (Instant::now(), 0);
    while began.elapsed() < WITHIN {
        let killed = tree::strike(&find)?;
        most = most.max(killed);
        if killed == 0 {
            tree::reap(&tree::all()?);
            return Ok(most);
        }
        std::thread::sleep(BETWEEN);
    }
    let left = find()?.first().map(|seen| seen.which.pid);
    left.map_or(Ok(most), |pid| Err(Alive::Process(pid)))
}

/// The noted processes, those that bear the mark or that lost their supervisor, whosever it was, and all
/// beneath them. Never this process.
fn living(mark: &str, noted: &[Which]) -> io::Result<Vec<Seen>> {
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let all = tree::all()?;
    let is_meant = |seen: &&Seen| {
        seen.which.pid != us && (noted.contains(&seen.which) || tree::bears(seen.which.pid, mark))
    };
    let mut found: Vec<Seen> = all.iter().filter(is_meant).copied().collect();
    found.extend(tree::fallen(&all));
    let roots: Vec<i32> = found.iter().map(|seen| seen.which.pid).collect();
    found.extend(tree::beneath(&all, &roots));
    found.retain(|seen| !seen.ended && seen.which.pid != us);
    found.sort_unstable_by_key(|seen| seen.which.pid);
    found.dedup();
    Ok(found)
}

/// Ends all that is noted, and removes the notes. Blocks. Returns how many processes were alive.
///
/// # Errors
/// When something does not die, or the notes cannot be read: what they tell of may be alive.
pub(super) fn end_all(notes: &Notes, temporary: &Path) -> Result<usize, Alive> {
    let boot = tree::boot();
    let mut ended = 0;
    for (mark, note) in notes.all()? {
        if note.is_none() {
            tracing::warn!(
                mark,
                "a note of processes is damaged, or its server ended before it was written; they are \
                 looked for by the mark"
            );
        }
        let noted_boot = note.as_ref().and_then(|note| note.boot.as_ref());
        let noted = match (noted_boot, &boot) {
            (Some(noted), Some(boot)) if noted != boot => None,
            (Some(_), Some(_)) => note.as_ref().map(|note| &*note.processes),
            // In another boot the numbers could be others'. The mark cannot.
            _ => Some(&[][..]),
        };
        if let Some(noted) = noted {
            ended += end(&mark, noted)?;
        }
        let folder = note.map_or_else(|| folder_of(temporary, &mark), |note| note.temporary);
        // What a program filled without end is left where it is.
        if remove_temporary(&folder, NAMES) == Removed::Some {
            tracing::warn!(folder = %folder.display(), "a temporary folder has no end, and is left");
        }
        notes.remove(&mark)?;
    }
    Ok(ended)
}

/// The folder that the program with this mark has for itself.
pub(super) fn folder_of(temporary: &Path, mark: &str) -> PathBuf {
    temporary.join(format!("sessionplane-{mark}"))
}

/// How a removal stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Removed {
    /// It is not there any more.
    All,
    /// There is more of it.
    Some,
    /// It cannot be removed, which was told.
    Never,
}

/// Removes so many names at most of the folder that a program had for itself, whatever it filled that
/// with. Blocks.
pub(super) fn remove_temporary(folder: &Path, most: u64) -> Removed {
    let (Some(around), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Removed::Never;
    };
    let around = File::open(around).map_err(Refusal::from);
    match around.and_then(|around| remove_some(around, name, most)) {
        Ok(true) | Err(Refusal::Missing) => Removed::All,
        Ok(false) => Removed::Some,
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "a temporary folder is left");
            Removed::Never
        }
    }
}
