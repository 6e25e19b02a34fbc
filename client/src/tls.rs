//! TLS of a connection: whom it trusts, what it shows, and what is wrong in words. Values only;
//! nothing here connects.

mod certificate;

use std::env;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustls::AlertDescription;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// The environment variable with the path of the authorities that are trusted.
pub(crate) const CA_VARIABLE: &str = "SESSIONPLANE_TLS_CA";
/// The environment variable with the path of the client's own certificate.
pub(crate) const CERT_VARIABLE: &str = "SESSIONPLANE_TLS_CERT";
/// The environment variable with the path of its private key.
pub(crate) const KEY_VARIABLE: &str = "SESSIONPLANE_TLS_KEY";
/// Part of what a server says to who speaks plaintext to its TLS port.
const SPEAKS_TLS: &str = "this port speaks TLS";

/// What precedes the name of an alert in the words of rustls.
const HEARD: &str = "received fatal alert: ";
/// What a server says of its client's certificate. A client hears it after its own part of the
/// handshake, and its peer reads nothing before.
const JUDGEMENTS: [AlertDescription; 8] = [
    AlertDescription::CertificateRequired,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::DecryptError,
];

/// Whom a client trusts and what it shows where the address begins with `https://`.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// The authorities whose servers are believed (PEM), and no others; none: those of the system,
    /// or where it has none, those of Mozilla.
    ca: Option<Vec<u8>>,
    /// The client's own certificate and key (PEM), for a server that asks for one.
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why a file of TLS is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// It cannot be read.
    #[error("cannot read the {what} {}: {source}", path.display())]
    Unreadable {
        /// What it is to be.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{} holds no {what}; it must be PEM", path.display())]
    Other {
        /// What it is to be.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// One of a pair is missing.
    #[error("a client certificate and its key go together: {CERT_VARIABLE} and {KEY_VARIABLE}")]
    Half,
}

impl TlsOptions {
    /// Trusts the authorities in this file, and no others.
    ///
    /// # Errors
    /// When it cannot be read or holds no certificate.
    pub fn ca_file(mut self, path: &Path) -> Result<Self, TlsFileError> {
        self.ca = Some(certificates("certificate of an authority", path)?);
        Ok(self)
    }

    /// Shows this certificate to a server that asks for one.
    ///
    /// # Errors
    /// When a file cannot be read or is not what it should be.
    pub fn identity_files(mut self, cert: &Path, key: &Path) -> Result<Self, TlsFileError> {
        let cert = certificates("client certificate", cert)?;
        let what = "private key";
        let bytes = read(what, key)?;
        if PrivateKeyDer::from_pem_slice(&bytes).is_err() {
            let path = key.to_owned();
            return Err(TlsFileError::Other { what, path });
        }
        self.identity = Some((cert, bytes));
        Ok(self)
    }

    /// What the environment says: `SESSIONPLANE_TLS_CA`, and `SESSIONPLANE_TLS_CERT` with
    /// `SESSIONPLANE_TLS_KEY`.
    ///
    /// # Errors
    /// When a file that it names is of no use.
    pub fn from_env() -> Result<Self, TlsFileError> {
        Self::from_files(
            variable(CA_VARIABLE).as_deref(),
            variable(CERT_VARIABLE).as_deref(),
            variable(KEY_VARIABLE).as_deref(),
        )
    }

    /// The files that are named.
    pub(crate) fn from_files(
        ca: Option<&Path>,
        cert: Option<&Path>,
        key: Option<&Path>,
    ) -> Result<Self, TlsFileError> {
        let mut options = Self::default();
        if let Some(path) = ca {
            options = options.ca_file(path)?;
        }
        match (cert, key) {
            (Some(cert), Some(key)) => options.identity_files(cert, key),
            (None, None) => Ok(options),
            _ => Err(TlsFileError::Half),
        }
    }

    /// The transport's form of it, with the system's authorities where none are given; `mozilla`:
    /// with those that are compiled in.
    pub(crate) fn config(&self, mozilla: bool) -> ClientTlsConfig {
        let config = ClientTlsConfig::new();
        let config = match &self.ca {
            Some(ca) => config.ca_certificate(Certificate::from_pem(ca)),
            None if mozilla => config.with_webpki_roots(),
            None => config.with_native_roots(),
        };
        match &self.identity {
            Some((cert, key)) => config.identity(Identity::from_pem(cert, key)),
            None => config,
        }
    }
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsFileError> {
    let bytes = read(what, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(bytes),
        _ => {
            let path = path.to_owned();
            Err(TlsFileError::Other { what, path })
        }
    }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsFileError> {
    fs::read(path).map_err(|source| TlsFileError::Unreadable {
        what,
        path: path.to_owned(),
        source,
    })
}

/// What is wrong between this client and its peer as far as TLS goes, if it is that: what, and the
/// way out. `connected`: a connection was made. Then it is told only if the peer cannot have read
/// anything that was sent.
pub(crate) fn problem(cause: &(dyn Error + 'static), connected: bool) -> Option<String> {
    let within = cause
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    let tls = match within {
        Some(within) => within.downcast_ref::<rustls::Error>(),
        None => cause.downcast_ref::<rustls::Error>(),
    };
    match tls {
        Some(error) if !connected => Some(in_words(error)),
        Some(_broke_later) => None,
        None => said(&cause.to_string()),
    }
}

/// The same of a connection that was made: there only the text is left of what broke it.
fn said(text: &str) -> Option<String> {
    if text.contains(SPEAKS_TLS) {
        return Some(format!("{SPEAKS_TLS}: use an https:// address"));
    }
    // The text ends with the alert's name: that of one may begin with that of another.
    let told = |alert: &&AlertDescription| text.ends_with(&format!("{HEARD}{alert:?}"));
    let alert = JUDGEMENTS.iter().find(told)?;
    Some(in_words(&rustls::Error::AlertReceived(*alert)))
}

fn in_words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(wrong) => certificate::wrong(wrong),
        rustls::Error::InvalidMessage(_) => {
            "what answers there does not speak TLS: use an http:// address, or the port that does"
                .to_owned()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => format!(
            "the server lets in only clients that show a certificate: {CERT_VARIABLE} and \
             {KEY_VARIABLE} (sessionctl: --tls-cert and --tls-key)"
        ),
        rustls::Error::AlertReceived(AlertDescription::CertificateExpired) => format!(
            "this client's certificate has expired, or is not valid yet by the server's clock; \
             renew it: {CERT_VARIABLE} and {KEY_VARIABLE}"
        ),
        rustls::Error::AlertReceived(alert) if JUDGEMENTS.contains(alert) => format!(
            "the server does not accept this client's certificate ({alert:?}): it must be of an \
             authority in the server's tls.client_ca_file; {CERT_VARIABLE} and {KEY_VARIABLE} name \
             it (sessionctl: --tls-cert and --tls-key)"
        ),
        rustls::Error::AlertReceived(alert) => {
            format!("the server refused the TLS connection: {alert:?}")
        }
        rustls::Error::PeerIncompatible(what) => format!(
            "the server's TLS has nothing in common with this client's, which speaks 1.2 and 1.3 \
             ({what:?})"
        ),
        other => format!("TLS failed: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c61_tls_options_never_print_a_key_and_files_that_are_no_good_say_so() {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (cert, key) = (directory.path().join("c"), directory.path().join("k"));
        fs::write(&cert, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let options = TlsOptions::from_files(Some(&cert), Some(&cert), Some(&key)).unwrap();
        let printed = format!("{options:?}");
        assert_eq!(printed, "TlsOptions { ca: true, identity: true }");

        for (ca, cert, key, says) in [
            (
                Some(&key),
                None,
                None,
                "holds no certificate of an authority",
            ),
            (None, Some(&cert), Some(&cert), "holds no private key"),
            (None, Some(&cert), None, "go together"),
            (None, None, Some(&key), "go together"),
        ] {
            let path = |path: Option<&PathBuf>| path.cloned();
            let (ca, cert, key) = (path(ca), path(cert), path(key));
            let error = TlsOptions::from_files(ca.as_deref(), cert.as_deref(), key.as_deref());
            let error = error.unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let absent = directory.path().join("absent");
        let error = TlsOptions::default().ca_file(&absent).unwrap_err();
        assert!(error.to_string().contains("absent"), "{error}");
    }
    #[test]
    fn c54_what_a_server_thinks_of_a_certificate_is_known_by_the_words_that_are_left_of_it() {
        let heard = |alert| said(&rustls::Error::AlertReceived(alert).to_string());
        for alert in JUDGEMENTS {
            let words = heard(alert).unwrap();
            assert!(words.contains(CERT_VARIABLE), "{alert:?}: {words}");
        }
        let other = AlertDescription::CertificateUnobtainable;
        for alert in [AlertDescription::InternalError, other] {
            assert_eq!(heard(alert), None);
        }
        assert!(said("GOAWAY: this port speaks TLS: use an").is_some());
        assert_eq!(said("connection closed"), None);
    }
}
