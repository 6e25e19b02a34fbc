//! Where policies are read from: files that are configured, and every `.cedar` file of a directory.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::set::PolicyProblem;
use super::{DEFAULT_NAME, DEFAULT_SET};
use crate::adapters::plain_file;

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Files that are read at most.
const MAX_FILES: usize = 64;

/// Where the policies are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyPaths {
    /// Files of policies.
    pub files: Vec<PathBuf>,
    /// A directory, of which every file that ends in `.cedar` is one.
    pub dir: Option<PathBuf>,
    /// Whether the default set holds beside them.
    pub default_set: bool,
}

/// A text of policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySource {
    /// What it is called where one of its policies is told of.
    pub name: String,
    /// The policies.
    pub text: String,
}

/// Why policies are of no use.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A file or the directory cannot be read.
    #[error("the policy file {} cannot be read: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There are more files than are read.
    #[error("there are {0} policy files; {MAX_FILES} at most: put several policies into one")]
    TooMany(usize),
    /// Policies are wrong: everything that is, in the order of the files.
    #[error("{}", told(.0))]
    Wrong(Vec<PolicyProblem>),
}

fn told(problems: &[PolicyProblem]) -> String {
    let problems = problems.iter().map(|problem| format!("\n  {problem}"));
    format!("the policies are wrong:{}", problems.collect::<String>())
}

impl PolicySource {
    /// The set that ships with the server.
    #[must_use]
    pub fn default_set() -> Self {
        Self {
            name: DEFAULT_NAME.to_owned(),
            text: DEFAULT_SET.to_owned(),
        }
    }

    /// A file.
    ///
    /// # Errors
    /// When it cannot be read, or is no text.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let read = plain_file::read(path, MAX_FILE_BYTES);
        let text = read.and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))
        });
        let text = text.map_err(|error| PolicyError::Read {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self {
            name: path.display().to_string(),
            text,
        })
    }
}

impl PolicyPaths {
    /// Whether there is anything that may change.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.files.is_empty() && self.dir.is_none()
    }

    /// Everything that is to hold, the default set first.
    ///
    /// # Errors
    /// When a file cannot be read, or there are too many.
    pub fn read(&self) -> Result<Vec<PolicySource>, PolicyError> {
        let mut paths = self.files.clone();
        if let Some(dir) = &self.dir {
            paths.extend(policies_of(dir)?);
        }
        if paths.len() > MAX_FILES {
            return Err(PolicyError::TooMany(paths.len()));
        }
        let default = self.default_set.then(PolicySource::default_set).map(Ok);
        let files = paths.iter().map(|path| PolicySource::read(path));
        default.into_iter().chain(files).collect()
    }
}

/// The files of a directory that hold policies, in the order of their names.
fn policies_of(dir: &Path) -> Result<Vec<PathBuf>, PolicyError> {
    let failed = |error| PolicyError::Read {
        path: dir.to_owned(),
        error,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // What editors leave beside a file does not end so.
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.extension().is_some_and(|end| end == "cedar") && !hidden {
            found.push(path);
        }
        if found.len() > MAX_FILES {
            break;
        }
    }
    found.sort();
    Ok(found)
}

/// What tells one reading from another.
pub(super) fn digest(sources: &[PolicySource]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in sources.iter().flat_map(|one| [&one.name, &one.text]) {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}
