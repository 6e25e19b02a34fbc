//! What a program decides about its connection. Values only; nothing here connects.

use std::env;
use std::path::Path;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::clock::bounded;
use crate::target::{DEFAULT_ADDRESS, Target, TargetError};
use crate::tls::{TlsFileError, TlsOptions};
use crate::token::{Token, TokenError};

/// The environment variable with the server's address.
pub(crate) const ADDRESS_VARIABLE: &str = "SESSIONPLANE_ADDRESS";
/// The environment variable with the caller's token.
pub(crate) const TOKEN_VARIABLE: &str = "SESSIONPLANE_TOKEN";
/// The environment variable with the path of a file that holds the caller's token.
pub(crate) const TOKEN_FILE_VARIABLE: &str = "SESSIONPLANE_TOKEN_FILE";

/// How to reach a server, and how patiently. A time of more than a year counts as a year.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server.
    pub target: Target,
    /// The caller's secret; none for a server that asks for none.
    pub token: Option<Token>,
    /// Send the token unencrypted over a network. Without it a token goes only to an `https://`
    /// address, a loopback address or a unix socket.
    pub insecure_send_token_in_plaintext: bool,
    /// Whom to trust and what to show, where the target begins with `https://`.
    pub tls: TlsOptions,
    /// Longest time to establish a connection.
    pub connect_timeout: Duration,
    /// Longest time for the answer of a call that names no deadline, all its attempts included.
    /// For a stream: for its first message.
    pub deadline: Duration,
    /// A connection on which calls wait is probed after so much silence. Servers refuse less
    /// than 30 s.
    pub keepalive_interval: Duration,
    /// A connection is given up when a probe is not answered for so long.
    pub keepalive_timeout: Duration,
    /// How a call is repeated when its outcome is unknown or the server was unavailable.
    pub retry: Backoff,
}

/// Why no client could be made. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is none.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The environment variable with the address holds none.
    #[error("SESSIONPLANE_ADDRESS: {0}")]
    AddressVariable(TargetError),
    /// The token is none, or cannot be read.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token would leave the machine unencrypted.
    #[error(
        "the token is not sent to {0}: the connection is not encrypted and leaves this machine; \
         use an https:// address, a loopback address or a unix socket, or set \
         insecure_send_token_in_plaintext"
    )]
    TokenInPlaintext(Target),
    /// A file of TLS is of no use.
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    /// The transport does not take the address.
    #[error("cannot use the address {target}: {problem}")]
    Transport {
        /// The address.
        target: Target,
        /// What is wrong.
        problem: String,
    },
}

impl ClientOptions {
    /// Options for a server, without a token and with the default patience.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            token: None,
            insecure_send_token_in_plaintext: false,
            tls: TlsOptions::default(),
            connect_timeout: Duration::from_secs(5),
            deadline: Duration::from_secs(30),
            keepalive_interval: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(20),
            retry: Backoff::CALLS,
        }
    }

    /// Options from `SESSIONPLANE_ADDRESS` (default `http://127.0.0.1:50051`) and
    /// `SESSIONPLANE_TOKEN`, or else the file that `SESSIONPLANE_TOKEN_FILE` names; for `https://`
    /// also `SESSIONPLANE_TLS_CA`, and `SESSIONPLANE_TLS_CERT` with `SESSIONPLANE_TLS_KEY`.
    ///
    /// # Errors
    /// When one of them is set to what it cannot be.
    pub fn from_env() -> Result<Self, ConnectError> {
        let target = match target_from_env()? {
            Some(target) => target,
            None => DEFAULT_ADDRESS.parse()?,
        };
        let mut options = Self::new(target);
        options.token = token_from_env()?;
        if options.target.is_tls() {
            options.tls = TlsOptions::from_env()?;
        }
        Ok(options)
    }

    /// The same options with no time longer than can be waited for.
    pub(crate) fn bounded(mut self) -> Self {
        for time in [
            &mut self.connect_timeout,
            &mut self.deadline,
            &mut self.keepalive_interval,
            &mut self.keepalive_timeout,
        ] {
            *time = bounded(*time);
        }
        self
    }

    /// Sets the token.
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// The token, if it may travel to the target.
    pub(crate) fn sendable_token(&self) -> Result<Option<&Token>, ConnectError> {
        let kept = self.target.is_local() || self.target.is_tls();
        let safe = kept || self.insecure_send_token_in_plaintext;
        if self.token.is_some() && !safe {
            return Err(ConnectError::TokenInPlaintext(self.target.clone()));
        }
        Ok(self.token.as_ref())
    }
}

/// The address that the environment gives; an empty variable gives none.
pub(crate) fn target_from_env() -> Result<Option<Target>, ConnectError> {
    let Some(text) = env::var_os(ADDRESS_VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let target = text.to_string_lossy().parse();
    target.map(Some).map_err(ConnectError::AddressVariable)
}

/// The token that the environment gives.
pub(crate) fn token_from_env() -> Result<Option<Token>, TokenError> {
    if let Ok(text) = env::var(TOKEN_VARIABLE) {
        return Token::parse(&text).map(Some);
    }
    match env::var_os(TOKEN_FILE_VARIABLE) {
        Some(path) => Token::from_file(Path::new(&path)).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(address: &str) -> ClientOptions {
        ClientOptions::new(address.parse().unwrap()).token(Token::parse("sp_secret").unwrap())
    }

    #[test]
    fn a_token_is_not_sent_unencrypted_over_a_network() {
        let remote = options("http://10.0.0.5:50051");
        assert!(matches!(
            remote.sendable_token(),
            Err(ConnectError::TokenInPlaintext(_))
        ));
        assert!(
            options("http://127.0.0.1:1")
                .sendable_token()
                .unwrap()
                .is_some()
        );
        for kept in ["unix:/s", "https://10.0.0.5:50051", "https://example.com"] {
            assert!(options(kept).sendable_token().unwrap().is_some(), "{kept}");
        }
    }

    #[test]
    fn a_program_may_insist_by_name() {
        let mut insecure = options("http://10.0.0.5:50051");
        insecure.insecure_send_token_in_plaintext = true;
        assert!(insecure.sendable_token().unwrap().is_some());
    }
}
