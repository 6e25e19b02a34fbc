//! Who may do what beside, or instead of, what the default set says: `[policy]`.

use std::path::PathBuf;

use crate::adapters::authz::PolicyPaths;

/// Where policies are.
#[derive(Debug, Clone)]
pub struct PolicyConfig {
    /// Files of policies.
    pub files: Vec<String>,
    /// A directory of such files.
    pub dir: Option<PathBuf>,
    /// Whether the default set holds beside them.
    pub default_set: bool,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            dir: None,
            default_set: true,
        }
    }
}

impl PolicyConfig {
    /// Where the policies are read from.
    #[must_use]
    pub fn paths(&self) -> PolicyPaths {
        PolicyPaths {
            files: self.files.iter().map(PathBuf::from).collect(),
            dir: self.dir.clone(),
            default_set: self.default_set,
        }
    }
}
