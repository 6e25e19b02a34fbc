//! Finding the server and the token: where they are looked for, and what may be sent where.

use std::env;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::Globals;
use super::exit::{Exit, Stop};
use crate::options::{
    ClientOptions, ConnectError, TOKEN_FILE_VARIABLE, TOKEN_VARIABLE, target_from_env,
    token_from_env,
};
use crate::target::{DEFAULT_ADDRESS, Target};
use crate::tls::{CA_VARIABLE, CERT_VARIABLE, KEY_VARIABLE, TlsOptions, variable};
use crate::token::{Token, TokenError};

/// The owner's token in a server's data directory.
const OWNER_TOKEN: &str = "owner.token";

/// Longest wait for an answer, unless the command line says otherwise: a person is waiting.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// How to connect, and where the token came from, in words.
pub(crate) struct Found {
    pub(crate) options: ClientOptions,
    pub(crate) token: String,
}

/// The connection's options as the command line, the environment and this machine give them.
///
/// # Errors
/// When the address makes no sense, or a token that was named cannot be read.
pub(crate) fn find(globals: &Globals) -> Result<Found, Stop> {
    let target = target(globals)?;
    let (token, words) = token(globals, &target)?;
    let mut options = ClientOptions::new(target);
    options.insecure_send_token_in_plaintext = globals.insecure_send_token;
    options.deadline = globals.timeout.unwrap_or(PATIENCE);
    if options.target.is_tls() {
        options.tls = tls(globals)?;
    }
    options.token = token;
    Ok(Found {
        options,
        token: words,
    })
}

/// The flag wins; the variable is not even read then.
fn target(globals: &Globals) -> Result<Target, Stop> {
    if let Some(target) = &globals.address {
        return Ok(target.clone());
    }
    let target = match target_from_env() {
        Ok(Some(target)) => return Ok(target),
        Ok(None) => DEFAULT_ADDRESS.parse().map_err(ConnectError::Target),
        Err(error) => Err(error),
    };
    target.map_err(|error| refusal(&error))
}

/// What the command line says of TLS, else the environment.
fn tls(globals: &Globals) -> Result<TlsOptions, Stop> {
    let named = |flag: &Option<PathBuf>, name: &str| flag.clone().or_else(|| variable(name));
    let ca = named(&globals.tls_ca, CA_VARIABLE);
    // A pair is of one source: half of the one and half of the other is none.
    let (cert, key) = match (&globals.tls_cert, &globals.tls_key) {
        (None, None) => (variable(CERT_VARIABLE), variable(KEY_VARIABLE)),
        (cert, key) => (cert.clone(), key.clone()),
    };
    let options = TlsOptions::from_files(ca.as_deref(), cert.as_deref(), key.as_deref());
    options.map_err(|error| Stop::usage(error.to_string()))
}

/// The token, if there is one, and where it came from.
fn token(globals: &Globals, target: &Target) -> Result<(Option<Token>, String), Stop> {
    let (named, source) = match &globals.token_file {
        Some(path) => {
            let source = format!("--token-file {}", path.display());
            (Token::from_file(path).map(Some), source)
        }
        None => (token_from_env(), source_in_env()),
    };
    let named = named.map_err(|error| match error {
        TokenError::Malformed => Stop::usage(format!("{source}: {error}")),
        TokenError::TooLong { .. } | TokenError::Unreadable { .. } => {
            Stop::usage(error.to_string())
        }
    })?;
    if named.is_some() {
        return Ok((named, came_from(&source)));
    }
    let mut places = vec!["--token-file".to_owned(), TOKEN_VARIABLE.to_owned()];
    // The owner's token of this machine is no business of another one.
    if let Some(path) = owner_token_file(globals).filter(|_| target.is_local()) {
        let place = path.display().to_string();
        match Token::from_file(&path) {
            Ok(token) => return Ok((Some(token), came_from(&place))),
            Err(TokenError::Unreadable { source, .. }) if source.kind() == NotFound => {
                places.push(place);
            }
            Err(error) => {
                let words = format!("the owner's token in {place} is of no use: {error}");
                return Ok((None, words));
            }
        }
    }
    let places = places.join(", ");
    Ok((None, format!("no token was found in {places}")))
}

fn came_from(source: &str) -> String {
    format!("the token came from {source}")
}

/// Which variable a token of the environment comes from.
fn source_in_env() -> String {
    match env::var_os(TOKEN_FILE_VARIABLE).filter(|_| env::var_os(TOKEN_VARIABLE).is_none()) {
        Some(path) => {
            let path = PathBuf::from(path);
            format!("{} ({TOKEN_FILE_VARIABLE})", path.display())
        }
        None => TOKEN_VARIABLE.to_owned(),
    }
}

/// Where `sessiond` and this program look for the data directory, unless a flag says it.
const DATA_DIR_VARIABLE: &str = "SESSIONPLANE_DATA_DIR";

/// Where the owner's token would be.
fn owner_token_file(globals: &Globals) -> Option<PathBuf> {
    let environment = |name: &str| env::var_os(name).map(PathBuf::from);
    let given = globals.data_dir.clone().or_else(|| {
        let set = environment(DATA_DIR_VARIABLE);
        set.filter(|path| !path.as_os_str().is_empty())
    });
    let directory = given.or_else(|| {
        default_data_dir(
            environment("XDG_STATE_HOME").as_deref(),
            environment("HOME").as_deref(),
        )
    });
    Some(directory?.join(OWNER_TOKEN))
}

/// Where a server keeps its data unless told otherwise. `sessiond` takes a relative path as well.
fn default_data_dir(state_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let state = match state_home.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => path.to_owned(),
        None => home?.join(".local/state"),
    };
    Some(state.join("sessionplane"))
}

/// A connection that was not made, in words.
pub(crate) fn refusal(error: &ConnectError) -> Stop {
    let words = match error {
        ConnectError::TokenInPlaintext(target) => format!(
            "the token is not sent to {target}: the connection is not encrypted and leaves this \
             machine\n  \
             use an https:// address, or a tunnel that begins on this machine, or\n  \
             insist: --insecure-send-token"
        ),
        other => other.to_string(),
    };
    Stop::failed(Exit::Usage, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_follows_the_state_home() {
        let (state, home) = (Path::new("/state"), Path::new("/home/ada"));
        let dir = |state, home| default_data_dir(state, home);
        assert_eq!(
            dir(Some(state), Some(home)),
            Some("/state/sessionplane".into())
        );
        let fallback = Some(PathBuf::from("/home/ada/.local/state/sessionplane"));
        assert_eq!(dir(None, Some(home)), fallback);
        assert_eq!(dir(Some(Path::new("")), Some(home)), fallback);
        let relative = Some(PathBuf::from("relative/sessionplane"));
        assert_eq!(dir(Some(Path::new("relative")), Some(home)), relative);
        assert_eq!(dir(None, None), None);
    }
}
