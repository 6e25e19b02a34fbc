//! Where the server listens: a loopback address or a unix socket, and nothing else as long as it
//! does not have both TLS and configured identities.
//!
//! What must never enter: what is served.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use super::tls::Tls;

/// Longest path of a socket, in bytes: an address takes 107, and a socket is made beside its path
/// with the number of its process added.
const MAX_PATH_BYTES: usize = 107 - ".4194304".len();
/// How long a start waits for another one that looks at the same directory's sockets.
const OTHERS_START_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// An address to listen on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// An IP address and a port; port 0 takes a free one.
    Tcp(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

/// Why a text is not an address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not an address: use IP:PORT, localhost:PORT or unix:/PATH (another name is not looked \
     up: what it stands for may change)"
)]
pub struct AddressError(String);

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Others than this host would reach it.
    #[error(
        "refusing to listen on {address}: others than this host reach it, and {}; or listen on \
         127.0.0.1:{} or unix:/PATH", .guard.lacks(), .address.port()
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
        /// What there is, and what is missing.
        guard: Guard,
    },
    /// Another server listens there.
    #[error("another server listens on {0}; stop it, or choose another address with --listen")]
    InUse(Address),
    /// The path does not fit into a socket's address.
    #[error("{} has {} bytes; a socket's path can have {MAX_PATH_BYTES} at most", .0.display(), .0.as_os_str().len())]
    PathTooLong(PathBuf),
    /// Another server is being started there and does not get on.
    #[error("another server is being started on {0}; try again, or choose another address")]
    Starting(Address),
    /// Something that is not a socket is in the way; it is not ours to remove.
    #[error("{} is there and is not a socket; choose another path", .0.display())]
    NotASocket(PathBuf),
    /// The system refused.
    #[error("cannot listen on {address}: {error}")]
    Io {
        /// The address.
        address: Address,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let numeric = match text.rsplit_once(':') {
            Some((host, port)) if host.eq_ignore_ascii_case("localhost") => {
                format!("127.0.0.1:{port}")
            }
            _ => text.to_owned(),
        };
        let parsed = numeric.parse().map(Self::Tcp);
        parsed.map_err(|_| AddressError(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// What keeps strangers from a listener that they can reach.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// TLS of its TCP connections.
    pub tls: Option<Tls>,
    /// Whether principals are configured.
    pub identities: bool,
}

impl Guard {
    /// What has to be configured before others than this host may reach the server.
    fn lacks(&self) -> &'static str {
        lacks(self.tls.is_some(), self.identities).unwrap_or("nothing is missing")
    }
}

/// What has to be configured before others than this host may reach a server that has TLS, and
/// identities, or not; nothing if nothing has to.
fn lacks(tls: bool, identities: bool) -> Option<&'static str> {
    match (tls, identities) {
        (false, false) => Some(
            "neither TLS nor identities are configured: set [tls] cert_file and key_file, and \
             [identity.principals.NAME]",
        ),
        (false, true) => Some("TLS is not configured: set [tls] cert_file and key_file"),
        (true, false) => Some("no identities are configured: set [identity.principals.NAME]"),
        (true, true) => None,
    }
}

/// A bound listener. A unix socket's path is removed when it is dropped.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
    address: Address,
    tls: Option<Tls>,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// A connection that was accepted.
pub(crate) enum Accepted {
    Tcp(TcpStream),
    Tls(TcpStream, Tls),
    Unix(UnixStream),
}

impl Listener {
    /// Starts to listen where only this host can reach it, without TLS. A socket that a dead server
    /// left behind is replaced.
    pub async fn bind(address: &Address) -> Result<Self, BindError> {
        Self::guarded(address, Guard::default()).await
    }

    /// Starts to listen where `guard` keeps strangers out. A TCP address speaks TLS if there is
    /// any; a unix socket never does.
    pub async fn guarded(address: &Address, guard: Guard) -> Result<Self, BindError> {
        refuse_strangers(address, &guard)?;
        Self::bind_anywhere(address, guard.tls).await
    }

    /// Binds for what whoever asks is answered: health, and nothing else.
    pub async fn for_probes(address: &Address) -> Result<Self, BindError> {
        Self::bind_anywhere(address, None).await
    }

    /// Says what keeps [`Self::guarded`] from an address at this moment, and listens nowhere: nobody
    /// can connect meanwhile.
    ///
    /// # Errors
    /// What keeps it.
    pub async fn obstacle(address: &Address, guard: &Guard) -> Result<(), BindError> {
        refuse_strangers(address, guard)?;
        Self::obstacle_for_probes(address).await
    }

    /// As [`Self::obstacle`], for [`Self::for_probes`].
    ///
    /// # Errors
    /// What keeps it.
    pub async fn obstacle_for_probes(address: &Address) -> Result<(), BindError> {
        match address {
            Address::Tcp(wanted) => {
                let socket = match wanted {
                    SocketAddr::V4(_) => TcpSocket::new_v4(),
                    SocketAddr::V6(_) => TcpSocket::new_v6(),
                };
                let bound = socket.and_then(|socket| {
                    // As a listener that is bound: what a dead server's connections leave is no
                    // obstacle.
                    socket.set_reuseaddr(true)?;
                    socket.bind(*wanted)
                });
                bound.map_err(|error| address.error(error))
            }
            Address::Unix(path) => {
                fits(path)?;
                let _alone = alone(address, path).await?;
                refuse_occupied(address, path)
            }
        }
    }

    async fn bind_anywhere(address: &Address, tls: Option<Tls>) -> Result<Self, BindError> {
        let (kind, address) = match address {
            Address::Tcp(wanted) => {
                let bound = TcpListener::bind(wanted).await;
                let listener = bound.map_err(|error| address.error(error))?;
                let local = listener
                    .local_addr()
                    .map_err(|error| address.error(error))?;
                (Kind::Tcp(listener), Address::Tcp(local))
            }
            Address::Unix(path) => {
                fits(path)?;
                // Two starts at once must not both find a dead socket and replace it.
                let _alone = alone(address, path).await?;
                refuse_occupied(address, path)?;
                let bound = bind_private(path).map_err(|error| address.error(error))?;
                (Kind::Unix(bound.0, bound.1), address.clone())
            }
        };
        let tls = tls.filter(|_| matches!(kind, Kind::Tcp(_)));
        Ok(Self { kind, address, tls })
    }

    /// Whether its connections speak TLS.
    #[must_use]
    pub fn speaks_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The address, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next connection. Cancel-safe.
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, _peer) = listener.accept().await?;
                // Only one that is gone already refuses it: whoever reads it will notice.
                let _gone = stream.set_nodelay(true);
                Ok(match &self.tls {
                    Some(tls) => Accepted::Tls(stream, tls.clone()),
                    None => Accepted::Tcp(stream),
                })
            }
            Kind::Unix(listener, _file) => {
                let (stream, _peer) = listener.accept().await?;
                Ok(Accepted::Unix(stream))
            }
        }
    }
}

/// Whether nobody but this host reaches an address. A loopback address of IPv4 that is written as
/// one of IPv6 is one.
fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

impl Address {
    /// What a server with or without TLS and identities lacks to listen here; nothing if nothing.
    #[must_use]
    pub fn lacks(&self, tls: bool, identities: bool) -> Option<&'static str> {
        match self {
            Self::Tcp(address) if !is_loopback(address) => lacks(tls, identities),
            _ => None,
        }
    }

    fn error(&self, error: io::Error) -> BindError {
        if error.kind() == io::ErrorKind::AddrInUse {
            return BindError::InUse(self.clone());
        }
        BindError::Io {
            address: self.clone(),
            error,
        }
    }
}

/// Refuses an address that others than this host reach, unless they are kept out.
fn refuse_strangers(address: &Address, guard: &Guard) -> Result<(), BindError> {
    let lacks = address.lacks(guard.tls.is_some(), guard.identities);
    match address {
        Address::Tcp(wanted) if lacks.is_some() => Err(BindError::NotLoopback {
            address: *wanted,
            guard: guard.clone(),
        }),
        _ => Ok(()),
    }
}

/// Refuses a path that is no socket's.
fn fits(path: &Path) -> Result<(), BindError> {
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(BindError::PathTooLong(path.to_owned()));
    }
    Ok(())
}

/// Waits until no other start looks at the sockets of this path's directory. Nobody else does as
/// long as the descriptor is kept.
async fn alone(address: &Address, path: &Path) -> Result<fs::File, BindError> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    let directory = fs::File::open(parent).map_err(|error| address.error(error))?;
    let locked = async {
        loop {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(LOOK_AGAIN).await,
                locked => return locked,
            }
        }
    };
    match timeout(OTHERS_START_WITHIN, locked).await {
        Ok(Ok(())) => Ok(directory),
        Ok(Err(error)) => Err(address.error(error.into())),
        Err(_elapsed) => Err(BindError::Starting(address.clone())),
    }
}

/// Only a socket that nobody answers may be replaced.
fn refuse_occupied(address: &Address, path: &Path) -> Result<(), BindError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(address.error(error)),
        Ok(found) if !found.file_type().is_socket() => Err(BindError::NotASocket(path.to_owned())),
        Ok(_socket) => match StdUnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(address.error(error)),
            Ok(_alive) => Err(BindError::InUse(address.clone())),
        },
    }
}

/// Binds beside `path`, closes the socket to others, and only then moves it there.
fn bind_private(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    if let Err(error) = fs::remove_file(&beside)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let listener = UnixListener::bind(&beside)?;
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o600))?;
    let inode = fs::symlink_metadata(&beside)?.ino();
    fs::rename(&beside, path)?;
    Ok((
        listener,
        SocketFile {
            path: path.to_owned(),
            inode,
        },
    ))
}

/// A socket's path, removed when dropped unless another server has replaced it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the socket was left behind");
        }
    }
}
