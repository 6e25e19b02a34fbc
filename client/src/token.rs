//! A bearer token that never prints itself.

use std::fmt;
use std::fs;
use std::io::Read as _;
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
    /// The file is longer than any token.
    #[error("the token file {} is longer than a token can be, 4096 bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
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

    /// Reads a token from a file; white space around it is dropped. The file may be one byte longer
    /// than the longest token: it may end with a newline.
    ///
    /// # Errors
    /// When the file cannot be read, is longer, or holds no token.
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let unreadable = |source| TokenError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let most = Self::MAX_BYTES + 1;
        let mut bytes = Vec::new();
        // One byte more tells a longer file; a file without an end is never read on.
        let file = fs::File::open(path).map_err(unreadable)?;
        let mut file = file.take(most as u64 + 1);
        file.read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > most {
            return Err(TokenError::TooLong {
                path: path.to_owned(),
            });
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| TokenError::Malformed)?;
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
    fn a_token_file_without_an_end_is_refused() {
        let error = Token::from_file(Path::new("/dev/zero")).unwrap_err();
        assert!(matches!(error, TokenError::TooLong { .. }), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long.token");
        let longest = "a".repeat(Token::MAX_BYTES);
        fs::write(&path, format!("{longest}\n")).unwrap();
        assert_eq!(
            Token::from_file(&path).unwrap(),
            Token::parse(&longest).unwrap()
        );
        fs::write(&path, format!("{longest}\nmore")).unwrap();
        assert!(matches!(
            Token::from_file(&path),
            Err(TokenError::TooLong { .. })
        ));
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
