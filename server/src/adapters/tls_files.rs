//! The certificate of the listener and its key, as files: read at the start, and again whenever
//! what is in them changes. A pair that is no good leaves the old one in use.
//!
//! What must never enter: a private key in a log line, an error or a debug text.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, crypto};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::clock::Clock;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use x509_parser::extensions::GeneralName;

use super::plain_file;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A certificate that ends sooner is warned about every day.
const WARN_BEFORE: Duration = Duration::from_secs(21 * 24 * 60 * 60);

/// Where the files are, and what they are for.
#[derive(Clone, Debug)]
pub struct TlsPaths {
    /// The certificate and those between it and its authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities of client certificates, and whether a client must show one.
    pub clients: Option<(PathBuf, bool)>,
    /// What is spoken inside of TLS.
    pub alpn: Vec<Vec<u8>>,
}

/// Why the files are of no use.
#[derive(Debug, thiserror::Error)]
#[error("{key} {}: {problem}", .path.display())]
pub struct TlsError {
    /// The key of the configuration.
    key: &'static str,
    path: PathBuf,
    /// What is wrong, and the way out.
    problem: String,
}

impl TlsError {
    /// The key of the configuration that names the file.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.key
    }
}

/// The files, and what was made of them last.
pub struct TlsFiles {
    paths: TlsPaths,
    clock: Arc<dyn Clock>,
    current: Arc<ArcSwap<ServerConfig>>,
    seen: Seen,
}

/// What the files held.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    digest: [u8; 32],
    expires: Timestamp,
}

/// When a certificate is good.
#[derive(Clone, Copy)]
struct Validity {
    begins: Timestamp,
    ends: Timestamp,
}

/// The files' contents.
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    clients: Option<Vec<u8>>,
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// When one cannot be read, is not what it should be, or does not fit the others.
    pub fn open(paths: TlsPaths, clock: Arc<dyn Clock>) -> Result<Self, TlsError> {
        let contents = Contents::read(&paths)?;
        let (config, Validity { ends: expires, .. }) = build(&paths, &contents)?;
        warn_of_readers(&paths.key);
        let digest = contents.digest();
        Ok(Self {
            paths,
            clock,
            current: Arc::new(ArcSwap::from_pointee(config)),
            seen: Seen { digest, expires },
        })
    }

    /// The TLS configuration as it is at any time.
    #[must_use]
    pub fn current(&self) -> Arc<ArcSwap<ServerConfig>> {
        self.current.clone()
    }

    /// When the certificate ends.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        self.seen.expires
    }

    /// The names and the addresses that the certificate is for; none where they cannot be read.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let read = read("tls.cert_file", &self.paths.cert);
        let certificates =
            read.and_then(|pem| certificates("tls.cert_file", &self.paths.cert, &pem));
        let certificates = certificates.unwrap_or_default();
        certificates.first().map(names_of).unwrap_or_default()
    }

    /// Follows the files for as long as it is polled; `hurry` makes it look at once.
    pub async fn follow(mut self, hurry: Arc<Notify>) {
        let mut refused = None;
        let mut warn_at = Timestamp::default();
        loop {
            warn_at = self.warn_of_the_end(warn_at);
            let asked = tokio::select! {
                () = self.clock.sleep(LOOK_EVERY) => false,
                () = hurry.notified() => true,
            };
            let paths = self.paths.clone();
            // A file system that hangs must not hang the server.
            let read = tokio::task::spawn_blocking(move || Contents::read(&paths)).await;
            let Ok(read) = read else { continue };
            let found = read.as_ref().ok().map(Contents::digest);
            if found == Some(self.seen.digest) {
                if asked {
                    tracing::info!("the TLS files are as they were");
                }
                refused = None;
                continue;
            }
            let told = refused == Some(found);
            match read.and_then(|contents| self.take(&contents)) {
                Ok(()) => (refused, warn_at) = (None, Timestamp::default()),
                // Told once for each state of the files, and whenever somebody asks.
                Err(_) if told && !asked => {}
                Err(error) => {
                    refused = Some(found);
                    tracing::error!(
                        %error,
                        "the new TLS files are not used; the old certificate stays in use, and \
                         ends {}", in_words(self.clock.now(), self.seen.expires)
                    );
                }
            }
        }
    }

    fn take(&mut self, contents: &Contents) -> Result<(), TlsError> {
        let (config, validity) = build(&self.paths, contents)?;
        self.refuse_worse(validity)?;
        let expires = validity.ends;
        self.current.store(Arc::new(config));
        let digest = contents.digest();
        self.seen = Seen { digest, expires };
        warn_of_readers(&self.paths.key);
        let ends = in_words(self.clock.now(), expires);
        tracing::info!(
            ends,
            "the TLS files were read again: new connections use them"
        );
        Ok(())
    }

    /// Nobody would accept it, and everybody accepts the one in use.
    fn refuse_worse(&self, new: Validity) -> Result<(), TlsError> {
        let now = self.clock.now();
        let problem = if self.seen.expires <= now {
            return Ok(());
        } else if new.ends <= now {
            format!("its certificate has ended {}", in_words(now, new.ends))
        } else if new.begins > now {
            let seconds = new.begins.since(now).as_secs();
            format!("its certificate is not valid yet, but in {seconds} s; it is taken then")
        } else {
            return Ok(());
        };
        Err(wrong("tls.cert_file", &self.paths.cert, problem))
    }

    /// Warns of a certificate that ends soon; gives the time of the next warning.
    fn warn_of_the_end(&self, at: Timestamp) -> Timestamp {
        let now = self.clock.now();
        if now < at || self.seen.expires.since(now) > WARN_BEFORE {
            return at;
        }
        let (file, ends) = (self.paths.cert.display(), in_words(now, self.seen.expires));
        tracing::warn!(
            %file,
            "the TLS certificate ends {ends}; put a new one in its place, it is read while the \
             server runs"
        );
        now.after(DAY)
    }
}

impl Contents {
    fn read(paths: &TlsPaths) -> Result<Self, TlsError> {
        let clients = paths.clients.as_ref();
        Ok(Self {
            cert: read("tls.cert_file", &paths.cert)?,
            key: read("tls.key_file", &paths.key)?,
            clients: clients
                .map(|(path, _)| read("tls.client_ca_file", path))
                .transpose()?,
        })
    }

    fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for part in [&self.cert, &self.key].into_iter().chain(&self.clients) {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let read = plain_file::read(path, MAX_FILE_BYTES);
    read.map_err(|error| wrong(key, path, format!("cannot be read: {error}")))
}

/// What the files make, and when the certificate is good.
fn build(paths: &TlsPaths, contents: &Contents) -> Result<(ServerConfig, Validity), TlsError> {
    let chain = certificates("tls.cert_file", &paths.cert, &contents.cert)?;
    let validity = chain.first().and_then(validity_of).ok_or_else(|| {
        let problem = "its first certificate is none that can be read";
        wrong("tls.cert_file", &paths.cert, problem)
    })?;
    let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|_says_no_more| {
        let problem = "holds no private key; it must be PEM: PKCS#8, PKCS#1 or SEC1, not encrypted";
        wrong("tls.key_file", &paths.key, problem)
    })?;
    let provider = Arc::new(crypto::ring::default_provider());
    let unfit = |error: rustls::Error| {
        let problem = match error {
            rustls::Error::InconsistentKeys(_) => {
                "is not the key of the certificate in tls.cert_file; the two must be a pair"
                    .to_owned()
            }
            other => format!("cannot be used with tls.cert_file: {other}"),
        };
        wrong("tls.key_file", &paths.key, problem)
    };
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unfit)?;
    let builder = match (&paths.clients, &contents.clients) {
        (Some((path, required)), Some(bytes)) => {
            let verifier = verifier(path, bytes, *required, provider)?;
            builder.with_client_cert_verifier(verifier)
        }
        _ => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(unfit)?;
    config.alpn_protocols.clone_from(&paths.alpn);
    Ok((config, validity))
}

fn verifier(
    path: &Path,
    bytes: &[u8],
    required: bool,
    provider: Arc<crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let unfit = |problem: String| wrong("tls.client_ca_file", path, problem);
    let mut roots = RootCertStore::empty();
    for authority in certificates("tls.client_ca_file", path, bytes)? {
        let added = roots.add(authority);
        added.map_err(|error| unfit(format!("holds no authority that can be used: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if required {
        builder
    } else {
        builder.allow_unauthenticated()
    };
    builder.build().map_err(|error| unfit(error.to_string()))
}

fn certificates(
    key: &'static str,
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(wrong(
            key,
            path,
            "holds no certificate; it must be PEM, whole",
        )),
    }
}

/// When a certificate is good. What is before 1970 counts as 1970.
fn validity_of(certificate: &CertificateDer<'_>) -> Option<Validity> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let at = |seconds: i64| {
        let seconds = u64::try_from(seconds).unwrap_or(0);
        Timestamp::from_millis(seconds.saturating_mul(1000))
    };
    Some(Validity {
        begins: at(parsed.validity().not_before.timestamp()),
        ends: at(parsed.validity().not_after.timestamp()),
    })
}

/// The names of a certificate's `subjectAltName`, in its order.
fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else {
        return Vec::new();
    };
    let extension = parsed.subject_alternative_name().ok().flatten();
    let names = extension
        .iter()
        .flat_map(|found| &found.value.general_names);
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    };
    names.filter_map(name).collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let sixteen = || <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| sixteen()).ok()
}

fn warn_of_readers(key: &Path) {
    let mode = std::fs::metadata(key).map_or(0, |found| found.permissions().mode() & 0o777);
    if mode & 0o007 != 0 {
        tracing::warn!(
            file = %key.display(),
            "every user of this machine can read the TLS key (mode {mode:o}); chmod 600 it, or 640 with \
             a group of the server's user"
        );
    }
}

/// How far an end is away.
fn in_words(now: Timestamp, end: Timestamp) -> String {
    let left = end.since(now);
    if left.is_zero() {
        let past = now.since(end).as_secs() / DAY.as_secs();
        return format!("{past} day(s) ago: clients refuse it");
    }
    format!("in {} day(s)", left.as_secs() / DAY.as_secs())
}

fn wrong(key: &'static str, path: &Path, problem: impl Into<String>) -> TlsError {
    TlsError {
        key,
        path: path.to_owned(),
        problem: problem.into(),
    }
}

#[cfg(test)]
#[path = "tls_files/tests.rs"]
mod tests;
