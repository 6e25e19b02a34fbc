//! One step beneath a descriptor: a plain name, no link followed, no mount entered.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::list::Kind;
use super::refusal::Refusal;
use super::root::{Identity, Miss};

/// What a file is opened with: at once, whatever it is, and as nobody's terminal.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// What a folder is opened with.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a folder by its name in another.
pub(super) fn folder(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    open(parent, name, FOLDER)
}

/// The same on whatever is mounted there: for a folder that is looked into, and not read from.
pub(super) fn folder_on_any_mount(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    openat(parent, name, FOLDER, Mode::empty())
}

/// Opens whatever has this name, without waiting. It is looked at before, so that no device is
/// opened that was there all along, and must be looked at after.
pub(super) fn file(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Miss> {
    let about = look(&parent, name)?;
    match Kind::of(&about) {
        Kind::File => Ok(open(parent, name, FILE)?),
        Kind::Link => Err(Miss::Link),
        kind => Err(Refusal::NotAFile(kind.as_str()).into()),
    }
}

/// What has this name; a link is itself.
pub(super) fn look(parent: impl AsFd, name: &OsStr) -> Result<Stat, Errno> {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// What a descriptor is of.
pub(super) fn about(opened: impl AsFd) -> Result<(Stat, Identity), Errno> {
    let about = fstat(opened)?;
    let identity = Identity::of(&about);
    Ok((about, identity))
}

/// The kind of a file, as it stands in its mode.
pub(super) fn file_type(about: &Stat) -> FileType {
    FileType::from_raw_mode(about.st_mode)
}

fn open(parent: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    if let Some(opened) = beneath(&parent, name, flags) {
        return opened;
    }
    openat(parent, name, flags, Mode::empty())
}

/// The same with the kernel's own word for it; `None` where it has none.
#[cfg(target_os = "linux")]
fn beneath(parent: impl AsFd, name: &OsStr, flags: OFlags) -> Option<Result<OwnedFd, Errno>> {
    use rustix::fs::{ResolveFlags, openat2};
    static ABSENT: AtomicBool = AtomicBool::new(false);
    if ABSENT.load(Ordering::Relaxed) {
        return None;
    }
    #[cfg(test)]
    if OLD_KERNEL.get() {
        return None;
    }
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    match openat2(parent, name, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => {
            ABSENT.store(true, Ordering::Relaxed);
            None
        }
        // So do some sandboxes say that they do not know the call.
        Err(Errno::PERM) => None,
        opened => Some(opened),
    }
}

/// What tells one mount from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mount {
    /// The kernel's number of it.
    Number(u64),
    /// Its device, where the kernel has no number: before Linux 5.8, in some sandboxes, elsewhere.
    /// What is bound from the same device looks the same, and only folders are told apart by it.
    Device(u64),
}

/// The mount that a descriptor lies on.
pub(super) fn mount(opened: impl AsFd) -> Result<Mount, Errno> {
    #[cfg(target_os = "linux")]
    if let Some(number) = mount_number(&opened) {
        return Ok(Mount::Number(number));
    }
    let (_, identity) = about(opened)?;
    Ok(Mount::Device(identity.device))
}

#[cfg(target_os = "linux")]
fn mount_number(opened: impl AsFd) -> Option<u64> {
    use rustix::fs::{StatxFlags, statx};
    #[cfg(test)]
    if OLD_KERNEL.get() {
        return None;
    }
    let told = statx(opened, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    let mask = StatxFlags::from_bits_retain(told.stx_mask);
    mask.contains(StatxFlags::MNT_ID).then_some(told.stx_mnt_id)
}

#[cfg(test)]
thread_local! {
    /// For the test's own thread the kernel has no `openat2`, and no numbers for mounts.
    pub(super) static OLD_KERNEL: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// What opening does without a look before: for the test of what comes in between.
#[cfg(test)]
pub(super) fn opened_at_once(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    open(parent, name, FILE)
}
