//! A bearer token that never prints itself.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A caller's secret. Its debug form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The text cannot travel in a header.
    #[error("a token must be 1 to 4096 printable ASCII characters without spaces")]
    Malformed,
    /// The file cannot be read.
    #[error("cannot read the token file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Token {
    /// Longest token, in bytes.
    pub const MAX_BYTES: usize = 4096;

    /// Takes a token's text.
    ///
    /// # Errors
    /// When it is empty, too long or has characters that a header cannot carry.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let fits = (1..=Self::MAX_BYTES).contains(&text.len());
        if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Malformed);
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads a token from a file; white space around it is dropped.
    ///
    /// # Errors
    /// When the file cannot be read or holds no token.
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let text = fs::read_to_string(path).map_err(|source| TokenError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(text.trim())
    }

    /// The value of the `authorization` header.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c61_a_token_never_prints_itself() {
        let token = Token::parse("sp_secret").unwrap();
        assert_eq!(format!("{token:?}"), "Token(..)");
        let error = Token::parse("sp_secret\n").unwrap_err().to_string();
        assert!(!error.contains("secret"));
    }

    #[test]
    fn a_token_file_may_end_with_a_newline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("owner.token");
        fs::write(&path, "sp_abc\n").unwrap();
        assert_eq!(
            Token::from_file(&path).unwrap(),
            Token::parse("sp_abc").unwrap()
        );
        assert!(matches!(
            Token::from_file(&dir.path().join("absent")),
            Err(TokenError::Unreadable { .. })
        ));
    }
}
