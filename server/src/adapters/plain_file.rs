//! Files that somebody configured the path of: opened without waiting for anybody, and no larger than
//! they may be.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file to be read.
///
/// # Errors
/// When it cannot be, or is none: a pipe in its place could keep its reader for ever, and a device may
/// have no end.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let problem = "it is no regular file";
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

/// What a file holds, which is at most `most` bytes.
///
/// # Errors
/// When it cannot be opened or read, or is larger.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}
