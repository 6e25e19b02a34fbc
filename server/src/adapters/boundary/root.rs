//! The folder itself, and how a path becomes a descriptor beneath it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::Stat;
use rustix::io::Errno;

use super::file::OpenFile;
use super::hidden::Hidden;
use super::list::Kind;
use super::refusal::Refusal;
use super::step::{self, Mount};

/// The longest path, in bytes, as the operating system has it.
const PATH_BYTES: usize = 4096;
/// The most steps of a path.
const STEPS: usize = 256;
/// How often a path is resolved anew because a link took the place of a folder meanwhile.
const TRIES: usize = 4;

/// What a file or folder is, whatever it is called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl Identity {
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "other systems have other widths; it is compared, never counted"
    )]
    pub(super) fn of(about: &Stat) -> Self {
        Self {
            device: about.st_dev as u64,
            inode: about.st_ino as u64,
        }
    }
}

/// What a workspace is given for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// To look at.
    ReadOnly,
    /// To work in.
    Writable,
}

/// A workspace folder. Clones are the same folder, and cost nothing.
///
/// Its descriptor ([`AsFd`]) is what a ruleset for child processes is to be made of, so that both
/// speak of the same folder whatever became of its path.
#[derive(Clone, Debug)]
pub struct Boundary {
    pub(super) root: Arc<Dir>,
    pub(super) path: Arc<Path>,
    access: Access,
    mount: Mount,
    hidden: Arc<Hidden>,
}

/// What a path that a person typed stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its real path from the folder: without links, `.` and `..`; empty for the folder itself.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
}

impl AsFd for Boundary {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

impl Boundary {
    /// Opens a folder. Its path is looked up now and never again.
    ///
    /// # Errors
    /// When there is no such folder, or it cannot be opened.
    pub fn open(path: &Path, access: Access) -> io::Result<Self> {
        let root = Dir::open_ambient_dir(path, ambient_authority())?;
        // Only a name for people; what is read is read through the descriptor.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(Self {
            mount: step::mount(&root)?,
            root: Arc::new(root),
            path: path.into(),
            access,
            hidden: Arc::default(),
        })
    }

    /// The same folder without what lies in another: for the server's own data. It is hidden by
    /// what it is, so that no other name of it shows it, nor a hard link to a file in it, whenever
    /// that was made and wherever the other folder lies.
    ///
    /// # Errors
    /// When there is no such folder: then it could not be told what to hide.
    pub fn hiding(mut self, folder: &Path) -> io::Result<Self> {
        let folder = Dir::open_ambient_dir(folder, ambient_authority())?;
        let mut hidden = self.hidden.copied()?;
        hidden.add(folder.as_fd().try_clone_to_owned()?)?;
        self.hidden = Arc::new(hidden);
        Ok(self)
    }

    /// What the folder was called when it was opened, for people.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the folder is given for.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// The same folder, given to look at.
    #[must_use]
    pub fn only_to_read(mut self) -> Self {
        self.access = Access::ReadOnly;
        self
    }

    /// What the folder is, whatever it is called.
    ///
    /// # Errors
    /// When it was removed.
    pub fn identity(&self) -> Result<Identity, Refusal> {
        let (about, identity) = step::about(self)?;
        // A folder that was removed is empty for ever; that must not look like an empty folder.
        if about.st_nlink == 0 {
            return Err(Refusal::Gone);
        }
        Ok(identity)
    }

    /// Opens a regular file. Blocks, but for no pipe, device or lock. Links are followed as far as
    /// they stay inside.
    ///
    /// # Errors
    /// When it is not there, no regular file, not inside, hidden, or cannot be opened.
    pub fn file(&self, path: &Path) -> Result<OpenFile, Refusal> {
        self.real(path, |path| self.file_at(path))
    }

    /// What a text that a person typed stands for: a path from the folder, with or without `./`, or
    /// an absolute one that begins with the folder's own.
    ///
    /// # Errors
    /// As of [`Self::file`], but whatever it is.
    pub fn typed(&self, text: &str) -> Result<Found, Refusal> {
        let path = Path::new(text.trim());
        let path = path.strip_prefix(&*self.path).unwrap_or(path);
        self.real(path, |path| self.found_at(path))
    }

    pub(super) fn folder(&self, path: &Path) -> Result<(OwnedFd, PathBuf), Refusal> {
        self.real(path, |path| Ok((self.descend(path)?, path.to_owned())))
    }

    pub(super) fn hidden(&self) -> &Hidden {
        &self.hidden
    }

    /// The same boundary around another folder, which was opened beneath this one's.
    pub(super) fn around(&self, folder: OwnedFd, real: &Path) -> Self {
        Self {
            root: Arc::new(Dir::from_std_file(File::from(folder))),
            path: self.path.join(real).into(),
            ..self.clone()
        }
    }

    /// Takes a path that is free of links. Where one is met, the path is resolved within the
    /// folder and taken again: what it leads to must then be free of them.
    pub(super) fn real<T>(
        &self,
        path: &Path,
        take: impl Fn(&Path) -> Result<T, Miss>,
    ) -> Result<T, Refusal> {
        self.identity()?;
        let mut real = match plain(path)? {
            Some(plain) => plain,
            None => self.resolved(path)?,
        };
        for _ in 0..TRIES {
            match take(&real) {
                Ok(taken) => return Ok(taken),
                Err(Miss::Refused(refusal)) => return Err(refusal),
                Err(Miss::Link) => real = self.resolved(path)?,
            }
        }
        // Somebody puts links in the way as fast as they are resolved.
        Err(Refusal::Outside)
    }

    /// Resolves links, `.` and `..` within the folder.
    fn resolved(&self, path: &Path) -> Result<PathBuf, Refusal> {
        let real =
            self.root
                .canonicalize(path)
                .map_err(|error| match Errno::from_io_error(&error) {
                    Some(Errno::LOOP) => Refusal::Missing,
                    _ => error.into(),
                })?;
        plain(&real)?.ok_or(Refusal::Outside)
    }

    /// Opens a folder step by step; its path is plain.
    pub(super) fn descend(&self, path: &Path) -> Result<OwnedFd, Miss> {
        // Also the folder itself is opened anew: a descriptor has one place in its listing.
        let mut at = step::folder(self, ".".as_ref())?;
        for name in path {
            at = self.enter(&at, name)?;
        }
        Ok(at)
    }

    /// Opens a folder in another, and judges it.
    pub(super) fn enter(&self, parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Miss> {
        let folder = match step::folder(parent, name) {
            Ok(folder) => folder,
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(no_folder(parent, name)),
            Err(error) => return Err(error.into()),
        };
        self.judge(&folder)?;
        Ok(folder)
    }

    /// Whether what was opened may be read.
    pub(super) fn judge(&self, opened: impl AsFd) -> Result<Stat, Refusal> {
        let (about, _) = step::about(&opened)?;
        if self.hidden.hides(&about) {
            return Err(Refusal::Hidden);
        }
        let is_elsewhere = step::mount(&opened)? != self.mount;
        // Overlays give files the devices of what lies below them; folders have the overlay's own.
        let by_device = matches!(self.mount, Mount::Device(_));
        if is_elsewhere && (!by_device || Kind::of(&about) == Kind::Folder) {
            return Err(Refusal::Mounted);
        }
        Ok(about)
    }

    fn file_at(&self, path: &Path) -> Result<OpenFile, Miss> {
        let Some((parent, name)) = self.parent(path)? else {
            return Err(Refusal::NotAFile(Kind::Folder.as_str()).into());
        };
        let opened = step::file(&parent, &name)?;
        let about = self.judge(&opened)?;
        match Kind::of(&about) {
            Kind::File => {}
            kind => return Err(Refusal::NotAFile(kind.as_str()).into()),
        }
        let bytes = u64::try_from(about.st_size).unwrap_or_default();
        Ok(OpenFile::new(File::from(opened), path.to_owned(), bytes))
    }

    fn found_at(&self, path: &Path) -> Result<Found, Miss> {
        let kind = match self.parent(path)? {
            None => Kind::Folder,
            Some((parent, name)) => {
                let about = step::look(&parent, &name)?;
                if self.hidden.hides(&about) {
                    return Err(Refusal::Hidden.into());
                }
                Kind::of(&about)
            }
        };
        if kind == Kind::Link {
            return Err(Miss::Link);
        }
        Ok(Found {
            path: path.to_owned(),
            kind,
        })
    }

    /// The folder that something lies in, and its name; `None` for the folder itself.
    fn parent(&self, path: &Path) -> Result<Option<(OwnedFd, OsString)>, Miss> {
        let Some(name) = path.file_name() else {
            return Ok(None);
        };
        let parent = self.descend(path.parent().unwrap_or(Path::new("")))?;
        Ok(Some((parent, name.to_owned())))
    }
}

/// Why a plain path was not taken.
pub(super) enum Miss {
    /// There is a link on the way, or at its end.
    Link,
    /// It is refused.
    Refused(Refusal),
}

impl From<Refusal> for Miss {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Errno> for Miss {
    fn from(error: Errno) -> Self {
        match error {
            Errno::LOOP => Self::Link,
            error => Self::Refused(error.into()),
        }
    }
}

/// What stands in the place of a folder.
fn no_folder(parent: impl AsFd, name: &OsStr) -> Miss {
    match step::look(parent, name) {
        Ok(about) if Kind::of(&about) == Kind::Link => Miss::Link,
        Ok(_) => Refusal::NotAFolder.into(),
        Err(error) => error.into(),
    }
}

/// A path without its `.`; `None` where it goes upwards, which only the links on its way can tell the
/// meaning of.
pub(super) fn plain(path: &Path) -> Result<Option<PathBuf>, Refusal> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > PATH_BYTES || bytes.contains(&0) {
        return Err(Refusal::NoName);
    }
    let mut plain = PathBuf::new();
    let mut upwards = false;
    for (steps, part) in path.components().enumerate() {
        if steps == STEPS {
            return Err(Refusal::NoName);
        }
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => upwards = true,
            Component::RootDir | Component::Prefix(_) => return Err(Refusal::Outside),
        }
    }
    Ok((!upwards).then_some(plain))
}
