//! What all sessions' rings together keep alive: one bound for the process, whatever the number of
//! sessions. When it is crossed, the rings that have been quiet give up their oldest events first, and
//! only if that is not enough the largest of the others: who has come to rest does not cut the readers
//! of who is at work.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A ring that is counted.
pub(super) trait Ring: Send + Sync {
    /// The bytes that it keeps alive.
    fn bytes(&self) -> usize;
    /// What [`Budget::add`] gave when it last took an event in.
    fn touched(&self) -> u64;
    /// Drops its oldest events until it keeps no more than `bytes`; the newest always stays.
    fn cut(&self, bytes: usize);
}

/// What all rings together keep alive.
pub(crate) struct Budget {
    limit: usize,
    /// What the ring of a session at rest keeps.
    at_rest: usize,
    used: AtomicUsize,
    /// All bytes that were ever taken in: the clock by which a ring is quiet.
    taken: AtomicU64,
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
    /// A bound for all rings, of which one at rest keeps `at_rest`, both in bytes.
    pub(super) fn new(limit: usize, at_rest: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            at_rest,
            used: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
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

    /// Counts an event that a ring takes in; gives when that was, as [`Ring::touched`] tells it.
    pub(super) fn add(&self, bytes: usize) -> u64 {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64
    }

    pub(super) fn free(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Cuts rings if all together keep too much. No ring's lock may be held.
    ///
    /// First go the quiet ones, those that were quiet for longest first: rings that took nothing in
    /// while all together took in a quarter of the limit. A reader of such a one has had as long to
    /// read. If that is not enough, the largest are cut to one size.
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
        let target = self.limit / 4 * 3;
        self.hush(&alive, target);
        if self.used() > target {
            let sizes = alive.iter().map(|ring| ring.bytes()).collect();
            let level = level(sizes, target);
            for ring in alive {
                ring.cut(level);
            }
        }
        // Where the newest events alone are too much, nothing is gained by looking again at once.
        let next = match self.used() {
            used if used > self.limit => used.saturating_add(self.limit / 4),
            _ => self.limit,
        };
        self.next.store(next, Ordering::Relaxed);
    }

    /// Cuts quiet rings to what a session at rest keeps, until all together keep no more than `target`.
    fn hush(&self, alive: &[Arc<dyn Ring>], target: usize) {
        let now = self.taken.load(Ordering::Relaxed);
        let quiet_since = now.saturating_sub(self.limit as u64 / 4);
        let mut quiet: Vec<_> = alive
            .iter()
            .map(|ring| (ring.touched(), ring))
            .filter(|(touched, _)| *touched < quiet_since)
            .collect();
        quiet.sort_unstable_by_key(|(touched, _)| *touched);
        for (_, ring) in quiet {
            if self.used() <= target {
                return;
            }
            ring.cut(self.at_rest);
        }
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
