//! Which sessions are at work, so that a drain knows when it is over.
//!
//! What must never enter: what they work at.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::ids::SessionId;
use tokio::sync::watch;

/// The sessions that are at work, and those that a stop has cut.
pub(crate) struct Work {
    count: Arc<watch::Sender<usize>>,
    cut: Mutex<Vec<SessionId>>,
}

/// A session that is at work until this is dropped.
pub(crate) struct AtWork(Arc<watch::Sender<usize>>);

impl Default for Work {
    fn default() -> Self {
        Self {
            count: Arc::new(watch::Sender::new(0)),
            cut: Mutex::default(),
        }
    }
}

impl Work {
    /// A session begins to work.
    pub(crate) fn begin(&self) -> AtWork {
        self.count.send_modify(|count| *count += 1);
        AtWork(self.count.clone())
    }

    /// How many sessions are at work.
    pub(crate) fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Completes when none is.
    pub(crate) async fn over(&self) {
        let mut count = self.count.subscribe();
        // The sender lives as long as `self`, so this ends by the count alone.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    /// A stop has cut what this session was at.
    pub(crate) fn cut(&self, session: SessionId) {
        self.lock().push(session);
    }

    /// The sessions that a stop has cut, each given out once.
    pub(crate) fn take_cut(&self) -> Vec<SessionId> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SessionId>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
