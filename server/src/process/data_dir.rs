//! The data directory: made for its owner alone, and never one that belongs to somebody else.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use super::ProcessError;
use super::contents::ARTIFACTS;
use crate::adapters::authn::{OWNER_FILE, TOKENS_FILE};
use crate::adapters::checkpoints::KEY_FILE;
use crate::adapters::process_host::NOTES;
use crate::adapters::secret::SECRET_FILE;
use crate::adapters::sled::{create_private, open_again};

/// Where the store lives in the data directory.
pub(super) const STORE: &str = "store";
/// The directories in it.
const WITHIN: [&str; 3] = [STORE, ARTIFACTS, NOTES];

/// Makes a directory that nobody but its owner can enter. One that is there already is closed to
/// others if it is empty or ours; if it holds something else and others can enter it, then closing
/// it might lock out whoever uses it, so it is refused.
pub(super) fn prepare(path: &Path) -> Result<(), ProcessError> {
    let failed = |error| ProcessError::Directory {
        path: path.to_owned(),
        error,
    };
    let Some(found) = found(path).map_err(failed)? else {
        return create_private(path).map_err(failed);
    };
    if !found.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    let mode = found.permissions().mode();
    let others_may = mode & 0o077;
    // One that its owner cannot enter is in nobody's use: an agent closed it.
    if others_may == 0 || mode & 0o500 != 0o500 {
        enter(path).map_err(failed)?;
    }
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

/// Lets this server into the directory and those in it again, if another program of this user closed them:
/// an agent that did is in nobody's way.
fn enter(path: &Path) -> io::Result<()> {
    open_again(path)?;
    for name in WITHIN {
        match absent(open_again(&path.join(name))) {
            // The directory is another user's: what follows says so.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            looked => drop(looked?),
        }
    }
    Ok(())
}

/// How often it is looked whether it was opened.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a start refuses once others may read it.
const PRIVATE: [&str; 4] = [OWNER_FILE, SECRET_FILE, KEY_FILE, TOKENS_FILE];

/// Closes the directory and its private files again whenever another program of this user opens them:
/// the system keeps an agent's processes from what is in a file, not from its mode. Never ends.
pub(super) async fn keep_closed(path: &Path) {
    let mut failed = false;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        failed = close_again(path, failed).await;
    }
}

/// One look. A failure is told unless it `failed` before as well; returned is whether something did.
pub(super) async fn close_again(path: &Path, failed: bool) -> bool {
    let path = path.to_owned();
    let closed = tokio::task::spawn_blocking(move || closed(&path, failed)).await;
    closed.unwrap_or(true)
}

/// The directory comes first: once it is closed, nobody else puts anything in the files' place.
fn closed(path: &Path, failed: bool) -> bool {
    let directory = restored(path, 0o700).map(|was| {
        if let Some(was) = was {
            let mode = format!("{was:o}");
            tracing::error!(path = %path.display(), mode, "another program of this user changed the mode \
                of the data directory; it is closed to others again");
        }
    });
    let mut files = PRIVATE.map(|name| path.join(name)).into_iter();
    let files = files.try_for_each(|file| {
        if let Some(was) = restored(&file, 0o600)? {
            tell_of_exposure(&file, was);
        }
        Ok(())
    });
    let result = directory.and(files).and_then(|()| enter(path));
    if let Err(error) = &result
        && !failed
    {
        tracing::error!(path = %path.display(), %error, "the data directory cannot be kept closed to others");
    }
    result.is_err()
}

fn tell_of_exposure(file: &Path, was: u32) {
    let (mode, others) = (format!("{was:o}"), was & 0o077);
    if others > 0 {
        tracing::error!(file = %file.display(), mode, "another program of this user opened this file to \
            others, who MAY HAVE READ it; it is closed again. Who has the owner token is the owner: to \
            have a new one, stop the server, delete owner.token and start it (docs/identity.md)");
    } else {
        tracing::warn!(file = %file.display(), mode, "another program of this user changed its mode; it is \
            as it was");
    }
}

/// Gives what is ours the mode that it must have; returns the other one that it had.
fn restored(path: &Path, wanted: u32) -> io::Result<Option<u32>> {
    let Some(about) = absent(fs::symlink_metadata(path))? else {
        return Ok(None);
    };
    let mode = about.permissions().mode() & 0o777;
    let is_ours = about.uid() == rustix::process::geteuid().as_raw() && !about.is_symlink();
    if mode == wanted || !is_ours {
        return Ok(None);
    }
    let changed = fs::set_permissions(path, Permissions::from_mode(wanted));
    Ok(absent(changed)?.map(|()| mode))
}

/// Nothing, where it was not there or is not any more.
fn absent<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is at the path, through links. Whoever may not look is told so, and a link that leads nowhere
/// is no place to make a directory at: neither is taken for nothing.
fn found(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) if path.is_symlink() => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it is a link to something that is not there",
        )),
        Err(_) => Ok(None),
    }
}

/// Refuses a directory of another user: whatever is made in it by this one, its server cannot read.
/// One that is not there is nobody's. `command` is what its user is to do.
pub(super) fn belongs_to_us(path: &Path, command: &'static str) -> Result<(), ProcessError> {
    let us = rustix::process::geteuid().as_raw();
    let found = found(path).map_err(|error| ProcessError::Directory {
        path: path.to_owned(),
        error,
    })?;
    match found.map(|found| found.uid()) {
        Some(owner) if owner != us => Err(ProcessError::OfAnotherUser {
            path: path.to_owned(),
            owner,
            us,
            command,
        }),
        _ => Ok(()),
    }
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
    fn c57_a_start_enters_what_an_agent_closed() {
        let data = directory(0o700);
        let store = data.path().join(STORE);
        fs::create_dir(&store).unwrap();
        fs::set_permissions(&store, Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(data.path(), Permissions::from_mode(0o000)).unwrap();
        prepare(data.path()).unwrap();
        assert_eq!((mode(data.path()), mode(&store)), (0o700, 0o700));
    }

    #[test]
    fn a_directory_of_another_user_is_refused_with_the_way_out() {
        let mine = directory(0o700);
        belongs_to_us(mine.path(), "sessiond store").unwrap();
        belongs_to_us(&mine.path().join("not-yet"), "sessiond store").unwrap();
        // Root may give one away; to everybody else the root of all belongs to another.
        let given = directory(0o700);
        let (path, owner) = if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(given.path(), Some(65_532), None).unwrap();
            (given.path(), 65_532)
        } else {
            (Path::new("/"), 0)
        };
        let error = belongs_to_us(path, "sessiond store").unwrap_err();
        let way_out = format!("sudo -u '#{owner}' sessiond store ...");
        assert!(error.to_string().contains(&way_out), "{error}");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_told_as_one() {
        let within = directory(0o755);
        let link = within.path().join("link");
        std::os::unix::fs::symlink(within.path().join("gone"), &link).unwrap();
        let error = prepare(&link).unwrap_err().to_string();
        assert!(error.contains("link to something"), "{error}");
        std::os::unix::fs::symlink(within.path().join("a"), within.path().join("b")).unwrap();
        fs::create_dir(within.path().join("a")).unwrap();
        prepare(&within.path().join("b")).unwrap();
        assert_eq!(mode(&within.path().join("a")), 0o700);
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
