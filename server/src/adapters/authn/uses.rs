//! When each token was used last, so that whoever replaces one sees whether it is still in use.
//!
//! A call costs no write: the times are kept in memory and written once in a while and at a stop, and
//! what was not written when a server dies is lost. Nobody is let in or kept out by them.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sessionplane_core::domain::time::Timestamp;

use super::super::private_file;
use super::bearer::TokenId;
use super::book::TokenBook;

/// The file in the data directory.
const USES_FILE: &str = "tokens.used.json";
/// Largest file that is read, in bytes: more than as many tokens as there can be fill.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;
/// How often it is written at most.
pub(super) const WRITE_EVERY: Duration = Duration::from_secs(60);
/// Calls that follow each other so closely count as one, in milliseconds.
const CLOSE: u64 = 1000;

/// When tokens were used last. Those that nothing is known of are not in it.
pub type Uses = BTreeMap<TokenId, Timestamp>;

impl TokenBook {
    /// When the tokens were used last, as of a minute ago or the server's stop. What cannot be read is not known.
    #[must_use]
    pub fn uses(&self) -> Uses {
        let read = private_file::read(&self.uses_path(), MAX_FILE_BYTES);
        let bytes = read.ok().flatten().unwrap_or_default();
        let stored: BTreeMap<String, u64> = serde_json::from_slice(&bytes).unwrap_or_default();
        let uses = stored.into_iter().filter_map(|(id, millis)| {
            let id = TokenId::parse(&id)?;
            Some((id, Timestamp::from_millis(millis)))
        });
        uses.collect()
    }

    /// Replaces what is known of their uses.
    pub(super) fn write_uses(&self, uses: &Uses) -> io::Result<()> {
        let stored = uses.iter().map(|(id, at)| (id.as_str(), at.as_millis()));
        let stored: BTreeMap<&str, u64> = stored.collect();
        let text = serde_json::to_string(&stored)?;
        private_file::replace(&self.uses_path(), &text)
    }

    fn uses_path(&self) -> PathBuf {
        self.path().with_file_name(USES_FILE)
    }
}

/// The use of one token, as a running server sees it.
#[derive(Default)]
pub(super) struct Use {
    /// In milliseconds since 1970; 0: never.
    last: AtomicU64,
    /// What goes on with it.
    open: AtomicUsize,
}

impl Use {
    /// One that was used at this time.
    pub(super) fn at(last: Timestamp) -> Self {
        Self {
            last: AtomicU64::new(last.as_millis()),
            open: AtomicUsize::new(0),
        }
    }

    /// It is used now.
    pub(super) fn seen(&self, now: Timestamp) {
        let (now, last) = (now.as_millis(), self.last.load(Ordering::Relaxed));
        // Every call comes by here: most of them write nothing that all of them read.
        if now >= last.saturating_add(CLOSE) {
            self.last.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Something goes on with it until the guard is dropped.
    pub(super) fn open(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }

    /// When it was used last.
    pub(super) fn last(&self, now: Timestamp) -> Option<Timestamp> {
        if self.open.load(Ordering::Relaxed) > 0 {
            self.seen(now);
        }
        let last = self.last.load(Ordering::Relaxed);
        (last > 0).then(|| Timestamp::from_millis(last))
    }
}

/// A stream, or a call that takes its time.
pub(super) struct Open(Arc<Use>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
