//! What a service manager is told (`sd_notify`): that the server takes calls, and that it stops.
//!
//! What must never enter: a wait for who should listen. Where nobody asked, nothing is said.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The environment variable with the manager's socket: a path, or `@NAME` for one without a file.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// The server takes calls.
pub(super) fn ready() {
    tell("READY=1");
}

/// The server stops; what it still does is bounded.
pub(super) fn stopping() {
    tell("STOPPING=1");
}

fn tell(state: &str) {
    let Some(socket) = std::env::var_os(SOCKET_VARIABLE).filter(|name| !name.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, state, "the service manager was not told");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    let sender = UnixDatagram::unbound()?;
    // A manager that reads nothing must not hold up the server.
    sender.set_nonblocking(true)?;
    sender
        .send_to_addr(state.as_bytes(), &address)
        .map(|_sent| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_told_by_the_path_of_its_socket_or_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("sessionplane-notify-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path).unwrap();
        let by_name = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&by_name).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        for (socket, state) in [(by_path, "READY=1"), (by_name, "STOPPING=1")] {
            let mut said = [0; 64];
            let length = socket.recv(&mut said).unwrap();
            assert_eq!(&said[..length], state.as_bytes());
        }
    }

    #[test]
    fn a_manager_that_is_gone_is_an_error_and_no_wait() {
        assert!(send(OsStr::new("/nonexistent/notify"), "READY=1").is_err());
    }
}
