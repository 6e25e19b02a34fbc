//! Which sessions are at work, so that a drain knows when it is over.
//!
//! What must never enter: what they work at.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::ids::SessionId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::channel::Channel;

/// The sessions that are at work, and those that a stop has cut.
pub(crate) struct Work {
    count: Arc<watch::Sender<usize>>,
    cut: Mutex<Vec<SessionId>>,
}

/// A session that is at work until this is dropped. Its channel knows: an admission is at work before
/// its first event is told.
pub(crate) struct AtWork {
    count: Arc<watch::Sender<usize>>,
    channel: Arc<Channel>,
    draining: CancellationToken,
}

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
    pub(crate) fn begin(&self, channel: &Arc<Channel>, draining: &CancellationToken) -> AtWork {
        self.count.send_modify(|count| *count += 1);
        channel.works(true);
        AtWork {
            count: self.count.clone(),
            channel: channel.clone(),
            draining: draining.clone(),
        }
    }

    /// How many sessions are at work.
    pub(crate) fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Completes when one is.
    pub(crate) async fn some(&self) {
        let mut count = self.count.subscribe();
        // The sender lives as long as `self`, so this ends by the count alone.
        let _ = count.wait_for(|count| *count > 0).await;
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

    /// A session that a stop has cut; each is given out once.
    pub(crate) fn take_cut(&self) -> Option<SessionId> {
        self.lock().pop()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SessionId>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.channel.works(false);
        if self.draining.is_cancelled() {
            // Its observers have seen it at work, and have nothing else that would wake them.
            self.channel.wake();
        }
        self.count.send_modify(|count| *count -= 1);
    }
}
