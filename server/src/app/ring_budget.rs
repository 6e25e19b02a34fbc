//! What all sessions' rings together keep alive: one bound for the process, whatever the number of
//! sessions. When it is crossed, the largest rings give up their oldest events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A ring that is counted.
pub(super) trait Ring: Send + Sync {
    /// The bytes that it keeps alive.
    fn bytes(&self) -> usize;
    /// Drops its oldest events until it keeps no more than `bytes`; the newest always stays.
    fn cut(&self, bytes: usize);
}

/// What all rings together keep alive.
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// What `used` has to exceed before the rings are cut again.
    next: AtomicUsize,
    rings: Mutex<Rings>,
}

#[derive(Default)]
struct Rings {
    all: Vec<Weak<dyn Ring>>,
    /// How many there may be before those that are gone are looked for.
    sweep_at: usize,
}

/// Rings that are never worth a sweep.
const FEW: usize = 64;

impl Budget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
            next: AtomicUsize::new(limit),
            rings: Mutex::default(),
        })
    }

    /// From now on a ring is among those that may be cut.
    pub(super) fn count<R: Ring + 'static>(&self, ring: &Arc<R>) {
        let mut rings = self.rings();
        if rings.all.len() >= rings.sweep_at {
            rings.all.retain(|ring| ring.strong_count() > 0);
            rings.sweep_at = 2 * rings.all.len().max(FEW);
        }
        let ring: Weak<R> = Arc::downgrade(ring);
        rings.all.push(ring);
    }

    pub(super) fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn free(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Cuts the largest rings to one size if all together keep too much. No ring's lock may be held.
    ///
    /// They are cut to three quarters of the limit, so that the next cut is a quarter of it away and
    /// costs each publication next to nothing.
    pub(super) fn relieve(&self) {
        let next = self.next.load(Ordering::Relaxed);
        // While one cuts, the others go on.
        let is_claimed = || self.next.swap(usize::MAX, Ordering::Relaxed) == usize::MAX;
        if self.used() <= next || is_claimed() {
            return;
        }
        let alive: Vec<Arc<dyn Ring>> = self.rings().all.iter().filter_map(Weak::upgrade).collect();
        let sizes = alive.iter().map(|ring| ring.bytes()).collect();
        let level = level(sizes, self.limit / 4 * 3);
        for ring in alive {
            ring.cut(level);
        }
        // Where the newest events alone are too much, nothing is gained by looking again at once.
        let next = match self.used() {
            used if used > self.limit => used.saturating_add(self.limit / 4),
            _ => self.limit,
        };
        self.next.store(next, Ordering::Relaxed);
    }

    fn rings(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The size to which all that are larger have to shrink for the sum to be at most `target`.
fn level(mut sizes: Vec<usize>, target: usize) -> usize {
    sizes.sort_unstable();
    let (mut left, mut count) = (target, sizes.len());
    for size in sizes {
        let share = left / count;
        if size > share {
            return share;
        }
        left -= size;
        count -= 1;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::level;

    #[test]
    fn the_largest_give_and_the_small_keep_what_they_have() {
        assert_eq!(level(vec![], 10), usize::MAX);
        assert_eq!(level(vec![3, 4, 3], 10), usize::MAX);
        assert_eq!(level(vec![100, 1, 2], 10), 7);
        assert_eq!(level(vec![100, 1, 50], 11), 5);
        assert_eq!(level(vec![8, 8, 8, 8], 8), 2);
    }
}
