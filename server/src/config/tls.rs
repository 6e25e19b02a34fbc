//! TLS of the listener: `[tls]`.

use std::path::PathBuf;

use super::{ConfigError, value};

/// Whether clients show a certificate, in the words that are declared.
pub(crate) const CLIENT_AUTH: &[&str] = &["none", "request", "require"];

/// What is set of TLS.
#[derive(Debug, Clone, Default)]
pub struct TlsConfig {
    /// The server's certificate and those between it and its authority.
    pub cert_file: Option<PathBuf>,
    /// Its private key.
    pub key_file: Option<PathBuf>,
    /// The authorities whose client certificates are accepted.
    pub client_ca_file: Option<PathBuf>,
    /// One of the words that are declared; none means the first.
    pub client_auth: Option<String>,
}

/// TLS as it is served. With it a TCP address takes TLS only; a unix socket stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// The server's certificate and those between it and its authority, in this order (PEM).
    pub cert_file: PathBuf,
    /// Its private key (PEM).
    pub key_file: PathBuf,
    /// The authorities whose client certificates are accepted, and whether clients must show one.
    pub clients: Option<(PathBuf, bool)>,
}

impl TlsConfig {
    /// What is served; nothing where nothing of it is set.
    ///
    /// # Errors
    /// When a part is missing that another one needs.
    pub fn settings(&self) -> Result<Option<TlsSettings>, ConfigError> {
        let clients = self.clients()?;
        match (&self.cert_file, &self.key_file) {
            (Some(cert_file), Some(key_file)) => Ok(Some(TlsSettings {
                cert_file: cert_file.clone(),
                key_file: key_file.clone(),
                clients,
            })),
            (Some(_), None) => Err(value(
                "tls.key_file",
                "is missing: tls.cert_file needs its key",
            )),
            (None, Some(_)) => Err(value(
                "tls.cert_file",
                "is missing: tls.key_file needs its certificate",
            )),
            (None, None) if clients.is_some() => Err(value(
                "tls.cert_file",
                "is missing: client certificates are asked for over TLS only",
            )),
            (None, None) => Ok(None),
        }
    }

    fn clients(&self) -> Result<Option<(PathBuf, bool)>, ConfigError> {
        let asked = self.client_auth.as_deref().filter(|asked| *asked != "none");
        match (asked, &self.client_ca_file) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(value(
                "tls.client_ca_file",
                "has no use without tls.client_auth; set it to \"request\" or \"require\", or \
                 leave the file out",
            )),
            (Some(_), None) => Err(value(
                "tls.client_auth",
                "needs tls.client_ca_file: the authority whose client certificates are accepted",
            )),
            (Some(asked), Some(file)) => Ok(Some((file.clone(), asked == "require"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: [Option<&str>; 4]) -> Result<Option<TlsSettings>, String> {
        let [cert_file, key_file, client_ca_file, client_auth] = parts;
        let config = TlsConfig {
            cert_file: cert_file.map(PathBuf::from),
            key_file: key_file.map(PathBuf::from),
            client_ca_file: client_ca_file.map(PathBuf::from),
            client_auth: client_auth.map(str::to_owned),
        };
        config.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn c54_parts_of_tls_need_each_other() {
        assert_eq!(read([None; 4]), Ok(None));
        let (c, k, a) = (Some("c"), Some("k"), Some("a"));
        let plain = read([c, k, None, None]).unwrap().unwrap();
        assert_eq!(plain.clients, None);
        assert_eq!(read([c, k, None, Some("none")]).unwrap(), Some(plain));
        for (auth, must) in [("request", false), ("require", true)] {
            let asked = read([c, k, a, Some(auth)]).unwrap().unwrap();
            assert_eq!(asked.clients, Some(("a".into(), must)));
        }
        for (parts, says) in [
            ([c, None, None, None], "tls.key_file"),
            ([None, k, None, None], "tls.cert_file"),
            ([c, k, a, None], "client_auth"),
            ([c, k, None, Some("require")], "client_ca_file"),
            ([None, None, a, Some("require")], "tls.cert_file"),
        ] {
            let error = read(parts).unwrap_err();
            assert!(error.contains(says), "{parts:?}: {error}");
        }
    }
}
