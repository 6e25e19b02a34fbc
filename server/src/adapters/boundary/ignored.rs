//! Which files a folder's own `.gitignore` says are nobody's work.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The largest `.gitignore` that is heeded, in bytes, and its most lines.
pub(super) const RULES_BYTES: u64 = 64 * 1024;
const RULES_LINES: usize = 2_000;

/// The rules of a folder, and of those that it lies in.
#[derive(Clone)]
pub(super) struct Rules {
    own: Arc<Gitignore>,
    /// The folder whose rules they are.
    at: PathBuf,
    outer: Option<Arc<Rules>>,
}

impl Rules {
    /// The rules that a text states for a folder, over those around it. Lines that are no rules say
    /// nothing; so do all of them where they are too many to be taken together.
    pub(super) fn read(text: &[u8], at: &Path, outer: Option<Arc<Self>>) -> Option<Arc<Self>> {
        let text = String::from_utf8_lossy(text);
        let mut builder = GitignoreBuilder::new("");
        for line in text.lines().take(RULES_LINES) {
            let _no_rule = builder.add_line(None, line);
        }
        let Ok(own) = builder.build() else {
            return outer;
        };
        if own.is_empty() {
            return outer;
        }
        Some(Arc::new(Self {
            own: Arc::new(own),
            at: at.to_owned(),
            outer,
        }))
    }

    /// Whether something is ignored, by its path from the boundary's folder. The nearest rules that
    /// speak of it decide.
    pub(super) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            let inside = path.strip_prefix(&here.at).unwrap_or(path);
            match here.own.matched(inside, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => rules = here.outer.as_deref(),
            }
        }
        false
    }
}
