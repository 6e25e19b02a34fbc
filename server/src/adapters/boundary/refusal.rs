//! Why something is not read, or not made.

use std::io;

use rustix::io::Errno;

/// Why a boundary refuses a path. Each says what to tell a person; none names a place outside.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The path leads out of the folder.
    #[error("it leads out of the folder")]
    Outside,
    /// Something else is mounted there.
    #[error("another file system is mounted there, which is no part of the folder")]
    Mounted,
    /// It is kept from agents, such as the server's own data.
    #[error("it is kept from agents")]
    Hidden,
    /// There is no such thing.
    #[error("there is no such file")]
    Missing,
    /// It is there, but no regular file: its kind.
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    /// It is there, but no folder.
    #[error("it is not a folder")]
    NotAFolder,
    /// It has more bytes than were asked for at most.
    #[error("it has more than {most} bytes")]
    TooLarge {
        /// The bound.
        most: u64,
    },
    /// No file can be called so: it is too long, too deep, or holds a NUL.
    #[error("no file can be called so")]
    NoName,
    /// The folder is given for reading only.
    #[error(
        "the workspace is given for reading only; let it be written where the server is started: \
         `--set workspaces.NAME.writable=true`, or `writable = true` in its part of the configuration"
    )]
    ReadOnly,
    /// Something has that name already.
    #[error("something is there already")]
    Exists,
    /// The folder itself was removed.
    #[error("the folder was removed")]
    Gone,
    /// Nobody waits for it any more.
    #[error("it is no longer waited for")]
    Stopped,
    /// The operating system says no: its own words.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotAFolder,
            Errno::XDEV => Self::Mounted,
            Errno::EXIST => Self::Exists,
            Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => Self::NoName,
            // A socket, and a device that is not there.
            Errno::NXIO | Errno::NODEV => Self::NotAFile("a socket or a device"),
            error => Self::Unreadable(io::Error::from(error).to_string()),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(raw) => Errno::from_raw_os_error(raw).into(),
            // The one that is not the operating system's: cap-std met a way out.
            None if error.kind() == io::ErrorKind::PermissionDenied => Self::Outside,
            None => Self::Unreadable(error.to_string()),
        }
    }
}
