//! TLS of the listener: `[tls]`.

use std::path::PathBuf;

use serde::Deserialize;

use super::{ConfigError, value};

/// TLS of the listener. With it a TCP address takes TLS only; a unix socket stays as it is. The
/// files are read again when they change and at SIGHUP.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The server's certificate and those between it and its authority, in this order (PEM).
    pub cert_file: PathBuf,
    /// Its private key (PEM). Only the server's user may be able to read it.
    pub key_file: PathBuf,
    /// The authorities whose client certificates are accepted (PEM).
    pub client_ca_file: Option<PathBuf>,
    /// Whether clients show a certificate: `none`, `request` (who shows one must show a good one)
    /// or `require`. Default: `none`. A certificate does not replace a token.
    #[serde(default)]
    pub client_auth: ClientAuth,
}

/// Whether clients show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// They are not asked.
    #[default]
    None,
    /// They may.
    Request,
    /// They must.
    Require,
}

impl TlsConfig {
    /// Whether the parts fit together.
    ///
    /// # Errors
    /// When client certificates are asked for without an authority, or the other way round.
    pub fn check(&self) -> Result<(), ConfigError> {
        match (self.client_auth, &self.client_ca_file) {
            (ClientAuth::None, Some(_)) => Err(value(
                "tls.client_ca_file",
                "has no use without tls.client_auth; set it to \"request\" or \"require\", or \
                 leave the file out",
            )),
            (ClientAuth::Request | ClientAuth::Require, None) => Err(value(
                "tls.client_auth",
                "needs tls.client_ca_file: the authority whose client certificates are accepted",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c54_client_certificates_need_their_authority_and_the_other_way_round() {
        let read = |more: &str| {
            let text = format!("cert_file = \"c\"\nkey_file = \"k\"\n{more}");
            toml::from_str::<TlsConfig>(&text).unwrap().check()
        };
        read("").unwrap();
        for auth in ["request", "require"] {
            let auth = format!("client_auth = \"{auth}\"\n");
            read(&format!("{auth}client_ca_file = \"a\"")).unwrap();
            let error = read(&auth).unwrap_err().to_string();
            assert!(error.contains("client_ca_file"), "{error}");
        }
        let error = read("client_ca_file = \"a\"").unwrap_err().to_string();
        assert!(error.contains("client_auth"), "{error}");
        assert!(toml::from_str::<TlsConfig>("cert_file = \"c\"").is_err());
    }
}
