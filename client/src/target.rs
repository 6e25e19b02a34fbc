//! Where a server is, and whether what is sent there can leave the machine.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The address that is used when none is given.
pub const DEFAULT_ADDRESS: &str = "http://127.0.0.1:50051";

/// A server's address: `https://HOST:PORT`, `http://HOST:PORT`, or `HOST:PORT` for short, or
/// `unix:/PATH`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    place: Place,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    Tcp { uri: String, host: String },
    Unix(PathBuf),
}

/// Why a text is not an address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("address {address:?} {problem}")]
pub struct TargetError {
    /// The text.
    pub address: String,
    /// What is wrong with it, and the way out.
    pub problem: &'static str,
}

impl Target {
    /// Whether what is sent there stays on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match &self.place {
            Place::Unix(_) => true,
            Place::Tcp { host, .. } => is_loopback(host),
        }
    }

    /// Whether what is sent there is encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(&self.place, Place::Tcp { uri, .. } if uri.starts_with("https://"))
    }

    /// The unix socket's path, if it is one.
    #[must_use]
    pub fn unix_path(&self) -> Option<&Path> {
        match &self.place {
            Place::Unix(path) => Some(path),
            Place::Tcp { .. } => None,
        }
    }
}

/// Only a literal loopback address counts, and `localhost` as the one name that stands for it:
/// what another name resolves to is for others to decide.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = |problem| TargetError {
            address: text.to_owned(),
            problem,
        };
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(wrong("names no socket; write unix:/path/to/socket"));
            }
            let place = Place::Unix(PathBuf::from(path));
            return Ok(Self { place });
        }
        let uri = match text {
            text if text.starts_with("http://") || text.starts_with("https://") => text.to_owned(),
            text if text.contains(':') && !text.contains("://") => format!("http://{text}"),
            _ => {
                return Err(wrong(
                    "must be https://HOST:PORT, http://HOST:PORT, HOST:PORT or unix:/PATH",
                ));
            }
        };
        Self::over_tcp(&uri).map_err(wrong)
    }
}

impl Target {
    /// Reads an address that begins with `http://` or `https://`; what is wrong with it otherwise.
    fn over_tcp(text: &str) -> Result<Self, &'static str> {
        let uri: http::Uri = text.parse().map_err(|_| "is not a URI")?;
        let authority = uri.authority().map_or("", http::uri::Authority::as_str);
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or("has no host")?.to_owned();
        if authority.contains('@') {
            return Err("must not hold credentials; give a token instead");
        }
        let names_port = authority.len() > host.len();
        if names_port && uri.port_u16().is_none_or(|port| port == 0) {
            return Err("has no port after its colon that can be: ports are 1 to 65535");
        }
        if uri.path() != "/" || uri.query().is_some() {
            return Err("must end after the port");
        }
        let uri = text.trim_end_matches('/').to_owned();
        let place = Place::Tcp { uri, host };
        Ok(Self { place })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp { uri, .. } => f.write_str(uri),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_sockets_are_local() {
        for local in [
            DEFAULT_ADDRESS,
            "http://127.9.9.9:1",
            "http://localhost:50051",
            "http://[::1]:50051",
            "http://[::ffff:127.0.0.1]:50051",
            "unix:/run/sessiond.sock",
            "unix:///run/sessiond.sock",
        ] {
            assert!(local.parse::<Target>().unwrap().is_local(), "{local}");
        }
        for remote in [
            "http://10.0.0.5:50051",
            "http://127.0.0.1.example.com:50051",
            "http://localhost.example.com:50051",
            "http://[::2]:50051",
            "http://0.0.0.0:50051",
        ] {
            assert!(!remote.parse::<Target>().unwrap().is_local(), "{remote}");
        }
    }

    #[test]
    fn what_is_not_an_address_says_why() {
        for bad in [
            "",
            "docs",
            "127.0.0.1:",
            "127.0.0.1:0",
            "127.0.0.1:99999",
            "http://127.0.0.1:65536",
            "http://[::1]:65536",
            "ftp://127.0.0.1:1",
            "https://",
            "https://example.com:0",
            "http://",
            "http://user:secret@127.0.0.1:1",
            "http://127.0.0.1:1/path",
            "unix:",
        ] {
            assert!(bad.parse::<Target>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_bare_host_and_port_is_an_http_address() {
        for (bare, whole) in [
            ("127.0.0.1:50061", "http://127.0.0.1:50061"),
            ("localhost:1", "http://localhost:1"),
            ("[::1]:65535", "http://[::1]:65535"),
        ] {
            let target = bare.parse::<Target>().unwrap();
            assert_eq!(target.to_string(), whole);
            assert!(target.is_local(), "{bare}");
        }
    }

    #[test]
    fn an_https_address_is_encrypted_and_local_only_on_this_machine() {
        for (text, local) in [
            ("https://127.0.0.1:50051", true),
            ("https://localhost:50051", true),
            ("https://example.com:50051", false),
            ("https://example.com", false),
        ] {
            let target = text.parse::<Target>().unwrap();
            assert!(target.is_tls(), "{text}");
            assert_eq!(target.is_local(), local, "{text}");
            assert_eq!(target.to_string(), text);
        }
        for text in ["http://127.0.0.1:1", "127.0.0.1:1", "unix:/s"] {
            assert!(!text.parse::<Target>().unwrap().is_tls(), "{text}");
        }
    }

    #[test]
    fn a_port_that_cannot_be_is_named_as_the_problem() {
        let refused = "127.0.0.1:65536".parse::<Target>().unwrap_err();
        assert!(refused.to_string().contains("1 to 65535"), "{refused}");
    }

    #[test]
    fn an_address_prints_as_it_was_given() {
        for text in [DEFAULT_ADDRESS, "unix:/run/s.sock"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
    }
}
