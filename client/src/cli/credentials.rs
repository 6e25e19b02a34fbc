//! Finding the token: where it is looked for, and what of it may be sent where.

use std::env;
use std::path::{Path, PathBuf};

use super::args::Globals;
use super::exit::{Exit, Stop};
use crate::options::{ClientOptions, ConnectError, TOKEN_VARIABLE, token_from_env};
use crate::token::Token;

/// The owner's token in a server's data directory.
const OWNER_TOKEN: &str = "owner.token";

/// The connection's options as the command line gives them.
///
/// # Errors
/// When a token that was named cannot be read.
pub(crate) fn options(globals: &Globals) -> Result<ClientOptions, Stop> {
    let mut options = ClientOptions::new(globals.address.clone());
    options.insecure_send_token_in_plaintext = globals.insecure_send_token;
    if let Some(timeout) = globals.timeout {
        options.deadline = timeout;
    }
    options.token = token(globals)?;
    Ok(options)
}

fn token(globals: &Globals) -> Result<Option<Token>, Stop> {
    let named = match &globals.token_file {
        Some(path) => Token::from_file(path).map(Some),
        None => token_from_env(),
    };
    let named = named.map_err(|error| Stop::usage(error.to_string()))?;
    if named.is_some() || !globals.address.is_local() {
        // The owner's token of this machine is no business of another one.
        return Ok(named);
    }
    Ok(owner_token_file(globals).and_then(|path| Token::from_file(&path).ok()))
}

/// Where the owner's token would be.
pub(crate) fn owner_token_file(globals: &Globals) -> Option<PathBuf> {
    let environment = |name: &str| env::var_os(name).map(PathBuf::from);
    let directory = globals.data_dir.clone().or_else(|| {
        default_data_dir(
            environment("XDG_STATE_HOME").as_deref(),
            environment("HOME").as_deref(),
        )
    });
    Some(directory?.join(OWNER_TOKEN))
}

/// Where a server keeps its data unless told otherwise.
fn default_data_dir(state_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let state = match state_home.filter(|path| path.is_absolute()) {
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
             connect through a tunnel or a TLS proxy on this machine, or\n  \
             insist: --insecure-send-token"
        ),
        other => other.to_string(),
    };
    Stop::failed(Exit::Usage, words)
}

/// Where a token was looked for, for a caller that the server does not know.
pub(crate) fn searched(globals: &Globals) -> String {
    let mut places = vec!["--token-file".to_owned(), TOKEN_VARIABLE.to_owned()];
    match owner_token_file(globals) {
        Some(path) if globals.address.is_local() => places.push(path.display().to_string()),
        _ => {}
    }
    places.join(", ")
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
        assert_eq!(dir(Some(Path::new("relative")), Some(home)), fallback);
        assert_eq!(dir(None, None), None);
    }
}
