//! Where a value comes from, and what is wrong with one.

use std::fmt;
use std::path::PathBuf;

use super::shown::shown;
use crate::adapters::authn::without_secrets;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The file.
    File {
        /// Its path.
        path: PathBuf,
        /// The line in it, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// The command line: the flag, with its dashes.
    Flag(String),
    /// Several values together.
    Together,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => {
                write!(f, "{}:{line}", shown(&path.to_string_lossy(), false))
            }
            Self::Variable(name) => f.write_str(&shown(name, false)),
            Self::Flag(flag) => f.write_str(flag),
            Self::Together => f.write_str("configuration"),
        }
    }
}

/// Something that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub source: Source,
    /// The key; empty where the file as such cannot be read.
    pub key: String,
    /// What is wrong, the limit and the way out.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(source: Source, key: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            source,
            key: key.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source)?;
        if !self.key.is_empty() {
            write!(f, "{} ", shown(&without_secrets(&self.key), false))?;
        }
        // C61: it quotes what somebody wrote, which may be a token in a wrong place.
        f.write_str(&shown(&without_secrets(&self.what), true))
    }
}
