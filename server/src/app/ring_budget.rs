//! What all sessions' rings together keep alive: one bound for the process, whatever the number of
//! sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all rings together keep alive.
pub(crate) struct Budget {
    limit: usize,
    pub(super) used: AtomicUsize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
        })
    }

    pub(super) fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn free(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What one ring may keep now, of what it may keep while there is room.
    pub(super) fn allows(&self, own: usize) -> usize {
        if self.used.load(Ordering::Relaxed) > self.limit {
            own / 16
        } else {
            own
        }
    }
}
