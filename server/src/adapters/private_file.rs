//! Files that nobody but the server's own user may read: made whole or not at all, and refused where
//! somebody else could have read or made them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rand::TryRng as _;
use rand::rngs::SysRng;
use rustix::fs::OFlags;

/// Why what is there is not used.
#[derive(Debug)]
pub(super) enum Problem {
    /// What the system said.
    Io(io::Error),
    /// Others may have read it.
    Exposed { mode: u32 },
    /// Somebody else made it.
    Foreign { user: u32 },
    /// Something that is no file is in its place.
    NotAFile,
}

/// At most so many bytes of the file; nothing if there is none.
pub(super) fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, Problem> {
    // Opening a pipe must not wait for whoever would write into it.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
    {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Problem::Io(error)),
    };
    let metadata = file.metadata().map_err(Problem::Io)?;
    if !metadata.is_file() {
        return Err(Problem::NotAFile);
    }
    let user = metadata.uid();
    if user != rustix::process::geteuid().as_raw() {
        return Err(Problem::Foreign { user });
    }
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Problem::Exposed { mode });
    }
    let mut bytes = Vec::new();
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(Problem::Io)?;
    Ok(Some(bytes))
}

/// Writes one line beside the file's place and links it there, durably: it appears whole or not at
/// all. False where somebody else was first.
pub(super) fn create(path: &Path, line: &str) -> io::Result<bool> {
    let (beside, directory) = beside(path)?;
    let linked = write(&beside, line).and_then(|()| fs::hard_link(&beside, path));
    let removed = fs::remove_file(&beside);
    if !is_first(linked, removed, || path.exists())? {
        return Ok(false);
    }
    File::open(directory)?.sync_all()?;
    Ok(true)
}

/// Whether who linked a file was the first to do so. Whoever finds the file there may sweep away what
/// lies beside it, at any moment: before it is linked, and after.
fn is_first(
    linked: io::Result<()>,
    removed: io::Result<()>,
    is_there: impl FnOnce() -> bool,
) -> io::Result<bool> {
    match linked {
        Ok(()) => match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(true),
        },
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_there() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes one line beside the file and moves it there, durably: a reader finds the old file or the
/// new one, whole. Nobody else may be replacing it: what others left beside it is removed.
pub(super) fn replace(path: &Path, line: &str) -> io::Result<()> {
    sweep(path)?;
    let (beside, directory) = beside(path)?;
    let moved = write(&beside, line).and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        // What was written is of no use; what went wrong is told already.
        let _gone = fs::remove_file(&beside);
    }
    moved?;
    File::open(directory)?.sync_all()
}

/// Removes what a writer that was killed left beside a file: it holds what the file holds. Nobody may
/// be replacing the file; whoever would create it comes too late, if it is there.
pub(super) fn sweep(path: &Path) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let prefix = format!(".{}.", name.display());
    for entry in fs::read_dir(directory)? {
        let found = entry?.file_name();
        let digits = found.to_str().and_then(|found| found.strip_prefix(&prefix));
        let is_ours = |digits: &str| {
            digits.len() == RANDOM_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        };
        if digits.is_some_and(is_ours) {
            match fs::remove_file(directory.join(&found)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Hexadecimal digits at the end of the name of a file in the making.
const RANDOM_DIGITS: usize = 16;

/// A name that nobody else uses, in the directory of `path`.
fn beside(path: &Path) -> io::Result<(PathBuf, &Path)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut random = [0; 8];
    SysRng
        .try_fill_bytes(&mut random)
        .map_err(io::Error::other)?;
    let random = u64::from_be_bytes(random);
    let beside = directory.join(format!(".{}.{random:0RANDOM_DIGITS$x}", name.display()));
    Ok((beside, directory))
}

fn write(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_first_is_so_also_where_a_reader_has_swept_what_lay_beside() {
        let no = |kind: io::ErrorKind| Err(io::Error::from(kind));
        let gone = || no(io::ErrorKind::NotFound);
        let first = |linked, removed, there| is_first(linked, removed, || there).ok();
        assert_eq!(first(Ok(()), Ok(()), true), Some(true));
        assert_eq!(first(Ok(()), gone(), true), Some(true));
        assert_eq!(first(gone(), gone(), true), Some(false));
        let taken = no(io::ErrorKind::AlreadyExists);
        assert_eq!(first(taken, Ok(()), true), Some(false));
        // Nobody was first: the directory is gone, or may not be written.
        assert_eq!(first(gone(), gone(), false), None);
        assert_eq!(
            first(no(io::ErrorKind::PermissionDenied), gone(), false),
            None
        );
        assert_eq!(
            first(Ok(()), no(io::ErrorKind::PermissionDenied), true),
            None
        );
    }
}
