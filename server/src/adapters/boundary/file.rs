//! A regular file that was opened, and reading it within bounds.

use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::refusal::Refusal;

/// How much is read before it is asked whether anybody still waits for it, in bytes.
const PART_BYTES: u64 = 64 * 1024;

/// A regular file inside a boundary, open for reading.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl OpenFile {
    pub(super) fn new(file: File, path: PathBuf, bytes: u64) -> Self {
        Self { file, path, bytes }
    }

    /// Its real path from the boundary's folder: without links, `.` and `..`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size in bytes when it was opened. It may grow or shrink.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether somebody is at work who said so by this file ([`super::Workplace::hold`]).
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn is_held(&self) -> Result<bool, Refusal> {
        match self.file.try_lock_shared() {
            Ok(()) => {
                self.file.unlock()?;
                Ok(false)
            }
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// The whole of it.
    ///
    /// # Errors
    /// When it has more than `most` bytes, also if it grows to it meanwhile, when it cannot be read,
    /// or once `stop` is set.
    pub fn whole(self, most: u64, stop: &AtomicBool) -> Result<Vec<u8>, Refusal> {
        if self.bytes > most {
            return Err(Refusal::TooLarge { most });
        }
        let bytes = self.head(most.saturating_add(1), stop)?;
        if bytes.len() as u64 > most {
            return Err(Refusal::TooLarge { most });
        }
        Ok(bytes)
    }

    /// Its first bytes, at most so many, from where it was read to before.
    ///
    /// # Errors
    /// When it cannot be read, or once `stop` is set.
    pub fn head(&self, most: u64, stop: &AtomicBool) -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::new();
        let mut left = most;
        while left > 0 {
            if stop.load(Ordering::Relaxed) {
                return Err(Refusal::Stopped);
            }
            let part = left.min(PART_BYTES);
            let read = (&self.file).take(part).read_to_end(&mut bytes)? as u64;
            left -= read;
            if read < part {
                break;
            }
        }
        Ok(bytes)
    }

    /// Fills `buffer` from a place in the file; returns how much there was.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<usize, Refusal> {
        let mut filled = 0;
        while filled < buffer.len() {
            let read = self
                .file
                .read_at(&mut buffer[filled..], at + filled as u64)?;
            if read == 0 {
                break;
            }
            filled += read;
        }
        Ok(filled)
    }
}
