//! Where a session works: a directory beneath a workspace, and what version control says of it.
//!
//! Names only. What must never enter: a path of the host, or a look at the file system.

use std::fmt;
use std::sync::Arc;

use super::ids::{IdError, WorkspaceName};

/// Longest relative directory, in bytes.
pub const MAX_DIRECTORY_BYTES: usize = 1024;
/// Longest name of a branch that is kept, in bytes.
pub const MAX_BRANCH_BYTES: usize = 256;

/// A directory beneath a workspace: plain names joined by `/`, and `.` for the workspace itself.
///
/// It says where to look and promises nothing of what is there: whoever opens it does so beneath the
/// workspace, step by step.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Directory(Arc<str>);

impl Directory {
    /// The workspace itself.
    #[must_use]
    pub fn root() -> Self {
        Self(".".into())
    }

    /// Parses what a caller sent. Steps that lead nowhere (`.`, a doubled or a closing `/`) are left
    /// out, so that a directory has one spelling.
    ///
    /// # Errors
    /// When it is empty, too long, absolute, leads upwards, or has a NUL or another control character
    /// in it.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let refuse = |problem| {
            Err(IdError {
                what: "directory",
                problem,
            })
        };
        if text.is_empty() || text.len() > MAX_DIRECTORY_BYTES {
            return refuse("must be 1-1024 bytes; `.` is the workspace itself");
        }
        if text.starts_with('/') {
            return refuse("must be relative to its workspace, not begin with `/`");
        }
        if text.chars().any(char::is_control) {
            return refuse("must not have control characters in it");
        }
        let steps: Vec<&str> = text
            .split('/')
            .filter(|step| !matches!(*step, "" | "."))
            .collect();
        if steps.contains(&"..") {
            return refuse("must not lead upwards with `..`");
        }
        if steps.is_empty() {
            return Ok(Self::root());
        }
        Ok(Self(steps.join("/").into()))
    }

    /// The text: `.` for the workspace itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a session works.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The workspace.
    pub workspace: WorkspaceName,
    /// The directory beneath it.
    pub directory: Directory,
}

/// What version control said of a session's directory at the last boundary of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkout {
    /// The branch; none with a detached head.
    pub branch: Option<Arc<str>>,
    /// The commit, in hexadecimal; none before the first one.
    pub commit: Option<Arc<str>>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn c53_a_directory_never_leads_out_of_its_workspace() {
        for bad in [
            "", "/", "/etc", "..", "a/..", "a/../..", "../a", "a\0b", "a\nb",
        ] {
            assert!(Directory::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Directory::parse(&"a".repeat(MAX_DIRECTORY_BYTES + 1)).is_err());
    }

    #[test]
    fn a_directory_has_one_spelling() {
        for (text, expected) in [
            (".", "."),
            ("./", "."),
            ("crates/net", "crates/net"),
            ("./crates//net/./", "crates/net"),
            ("...", "..."),
        ] {
            let parsed = Directory::parse(text).map(|it| it.to_string());
            assert_eq!(parsed.as_deref(), Ok(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_parsed_is_parsed_to_the_same(text in "[./a-c]{1,12}") {
            if let Ok(once) = Directory::parse(&text) {
                prop_assert_eq!(Directory::parse(once.as_str()), Ok(once.clone()));
                prop_assert!(!once.as_str().starts_with('/'));
                prop_assert!(once.as_str().split('/').all(|step| step != ".."));
            }
        }
    }
}
