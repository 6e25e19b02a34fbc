//! The directory of a store: that one process has it, what a start that was cut left in it, and
//! whether it is still where it was.
//!
//! What sled reads in its files must never enter, but for one thing: whether a snapshot is whole.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::open::{OpenError, failed_io};
use crate::adapters::plain_file;

/// The database in the directory.
pub(super) const DATABASE: &str = "db";
const LOCK: &str = "lock";
const SNAPSHOT: &str = "snap.";
/// How sled calls a snapshot in the making.
const UNFINISHED: &str = ".generating";
/// Before the name of a snapshot that is not used; no name of sled's begins so.
const ASIDE: &str = "aside.";
/// How long a directory that is gone may go unnoticed while rounds are written.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A file of the directory, at most so many bytes of it. What is no regular file is an error: a pipe
/// waits for its writer, and a device may have no end.
pub(super) fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open_regular(path: &Path) -> io::Result<File> {
    plain_file::open(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => {
            let name = path.display();
            let problem = format!("{name}: {error}; put what it was back, or remove it");
            io::Error::new(ErrorKind::InvalidInput, problem)
        }
        _ => error,
    })
}

/// What sled will read on its own: nothing of it may be anything but a regular file.
fn all_regular(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let of_sled = name.to_str().is_some_and(|name| {
            name.starts_with(SNAPSHOT) || [DATABASE, "conf", "acknowledged"].contains(&name)
        });
        if of_sled {
            open_regular(&path.join(name))?;
        }
    }
    Ok(())
}

/// The lock on a directory, for as long as the value lives.
pub(super) struct Lock(#[expect(dead_code, reason = "held, never read")] File);

/// Creates a directory that nobody but its owner can enter, with those above it, where there is none,
/// and makes each new name durable: it lies in the directory above. Without that, a power loss can
/// take everything that is synced below.
///
/// # Errors
/// What the operating system says.
pub fn create_private(path: &Path) -> io::Result<()> {
    create_levels(path, &mut |parent| File::open(parent)?.sync_all())
}

fn create_levels(path: &Path, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        // The root is there.
        None => return Ok(()),
    };
    let create = || DirBuilder::new().mode(0o700).create(path);
    let created = match create() {
        Err(error) if error.kind() == ErrorKind::NotFound && !parent.is_dir() => {
            create_levels(parent, sync)?;
            create()
        }
        created => created,
    };
    match created {
        Ok(()) => sync(parent),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates the directory if there is none, and takes it. sled's own lock comes too late: another
/// process that is starting may have files in the making.
pub(super) fn lock(path: &Path) -> Result<Lock, OpenError> {
    create_private(path).map_err(|error| failed_io(path, &error))?;
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags)
        .open(path.join(LOCK))
        .map_err(|error| failed_io(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(failed_io(path, &error)),
    }
}

/// Whether another process has a store's directory at this moment. One that is not there, or whose
/// lock cannot be looked at, nobody has. To see it the lock is shared for an instant, and nothing is
/// kept: a start that wants it just then tries again.
#[must_use]
pub fn in_use(path: &Path) -> Option<OpenError> {
    let lock = plain_file::open(&path.join(LOCK)).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(OpenError::InUse {
            path: path.to_owned(),
        }),
        _ => None,
    }
}

/// Puts in order what a cut start left, before sled opens. Needs the lock.
///
/// sled takes every `snap.*` for a snapshot, the one in the making too, and refuses to open where
/// the newest is not whole, although its log has everything. Only snapshots that are not whole are
/// set aside: with a damaged log, going on without a whole one would skip what is damaged in
/// silence.
pub(super) fn tidy(path: &Path, _: &Lock) -> io::Result<()> {
    all_regular(path)?;
    let database = path.join(DATABASE);
    match File::open(&database) {
        // A snapshot that sled now makes must not outlive the log that it stands for.
        Ok(file) if file.metadata()?.len() > 0 => file.sync_data()?,
        // sled writes its settings first. Without a database they may be cut, and say nothing.
        Ok(_) => remove_if_there(&path.join("conf"))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            remove_if_there(&path.join("conf"))?;
        }
        Err(error) => return Err(error),
    }
    let mut snapshots = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(SNAPSHOT)) else {
            continue;
        };
        if name.ends_with(UNFINISHED) {
            fs::remove_file(path.join(name))?;
            tracing::info!(file = name, "removed what a start that was cut left behind");
        } else {
            snapshots.push(name.to_owned());
        }
    }
    for name in &snapshots {
        if !is_whole(&fs::read(path.join(name))?) {
            return set_aside(path, &snapshots);
        }
    }
    Ok(())
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a snapshot is as sled wrote it: the state, 8 bytes of length, 4 bytes of checksum.
fn is_whole(snapshot: &[u8]) -> bool {
    snapshot.split_last_chunk().is_some_and(|(rest, sum)| {
        let state = rest.len().checked_sub(8).map(|end| &rest[..end]);
        state.is_some_and(|state| {
            !state.is_empty() && crc32fast::hash(state) == u32::from_le_bytes(*sum)
        })
    })
}

/// All of them: an older one is from before the damaged one, and the log alone has everything.
fn set_aside(path: &Path, snapshots: &[String]) -> io::Result<()> {
    for name in snapshots {
        let aside = format!("{ASIDE}{name}");
        fs::rename(path.join(name), path.join(&aside))?;
        tracing::warn!(
            path = %path.display(),
            file = name,
            aside,
            "a snapshot of the database is damaged; it is set aside, and the log read alone"
        );
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "how often the disk is looked at, which no stored time depends on"
)]
fn now() -> Instant {
    Instant::now()
}

/// Watches that the database is still the file that its path names.
pub(super) struct Place {
    database: PathBuf,
    /// Device and inode.
    opened: (u64, u64),
    checked: Instant,
    _lock: Lock,
}

impl Place {
    /// `file` is the opened database.
    pub(super) fn of(path: &Path, file: &File, lock: Lock) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            database: std::path::absolute(path)?.join(DATABASE),
            opened: (metadata.dev(), metadata.ino()),
            checked: now(),
            _lock: lock,
        })
    }

    /// Fails once the directory was removed or replaced: what is written then is lost. Looks at
    /// the disk once a second, or at once when asked.
    pub(super) fn check(&mut self, at_once: bool) -> Result<(), String> {
        if !at_once && self.checked.elapsed() < CHECK_EVERY {
            return Ok(());
        }
        let look = || fs::metadata(&self.database).map(|found| (found.dev(), found.ino()));
        let found = match look() {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                enter_again(&self.database);
                look()
            }
            found => found,
        };
        match found {
            Ok(found) if found == self.opened => {
                self.checked = now();
                Ok(())
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(format!("look at {}: {error}", self.database.display()))
            }
            _ => Err(format!(
                "the data directory was removed or replaced while it was in use: {} is no longer \
                 the opened database",
                self.database.display()
            )),
        }
    }
}

/// What was closed above the database, to this server as well, is opened to it again. What cannot be
/// mended is told by the look that follows.
fn enter_again(database: &Path) {
    // The store's own directory and the data directory: nothing above is this server's.
    let mut above: Vec<_> = database.ancestors().skip(1).take(2).collect();
    above.reverse();
    for directory in above {
        if let Err(error) = open_again(directory) {
            let directory = directory.display();
            tracing::error!(%directory, %error, "this directory cannot be opened again");
        }
    }
}

/// Lets this user into a directory of its own again that another of its programs closed, and tells that.
/// Anything else is left as it is.
pub(crate) fn open_again(directory: &Path) -> io::Result<()> {
    let about = fs::symlink_metadata(directory)?;
    let mode = about.permissions().mode() & 0o777;
    let is_ours = about.is_dir() && about.uid() == rustix::process::geteuid().as_raw();
    if !is_ours || mode & 0o700 == 0o700 {
        return Ok(());
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    let (directory, was) = (directory.display(), format!("{mode:o}"));
    tracing::error!(%directory, was, "another program of this user closed this directory to the server; it \
        is open to it again");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c57_a_directory_that_was_closed_to_its_own_server_is_entered_again() {
        let data = tempfile::TempDir::new().unwrap();
        let store = data.path().join("store");
        fs::create_dir(&store).unwrap();
        for directory in [store.as_path(), data.path()] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o000)).unwrap();
        }
        enter_again(&store.join(DATABASE));
        for directory in [data.path(), store.as_path()] {
            let mode = fs::metadata(directory).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", directory.display());
        }
    }

    #[test]
    fn c39_every_level_that_is_created_is_made_durable_in_the_one_above() {
        let directory = tempfile::TempDir::new().unwrap();
        let deep = directory.path().join("a/b/c");
        let mut synced = Vec::new();
        let mut create = |path: &Path| {
            let mut sync = |parent: &Path| {
                synced.push(parent.to_owned());
                Ok(())
            };
            create_levels(path, &mut sync).unwrap();
            std::mem::take(&mut synced)
        };
        let levels = [
            directory.path().to_owned(),
            deep.join("../.."),
            deep.join(".."),
        ];
        let found = create(&deep);
        let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
            let real = paths.iter().map(|path| path.canonicalize().unwrap());
            real.collect()
        };
        assert_eq!(real(&found), real(&levels));
        assert_eq!(create(&deep), Vec::<PathBuf>::new(), "nothing is new");

        let file = directory.path().join("file");
        fs::write(&file, "x").unwrap();
        for wrong in [file.clone(), file.join("below")] {
            assert!(create_levels(&wrong, &mut |_| Ok(())).is_err());
        }
        assert!(create_levels(Path::new("/"), &mut |_| Ok(())).is_ok());
    }
}
