//! The log of changes that watchers read, and the numbers that summaries are told apart by.
//!
//! A change is appended under the lock of its session's channel, so that the changes of one session
//! stand in the order of its revisions. The log is bounded and nobody waits for a watcher: one whose
//! place has left it is told so.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{SessionId, TenantId};
use tokio::sync::watch;

/// Bytes that they keep alive at most.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Changes that are read in one go at most, and bytes that they keep alive: who has read them and is not
/// read itself holds no more than that.
const MAX_READ: usize = 1024;
const MAX_READ_BYTES: usize = 1024 * 1024;
/// Revisions of one start. Those of a later one are above all of them.
const NUMBER_BITS: u32 = 40;

/// What became of a session in one step.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) session: SessionId,
    /// Before it; none if the session did not exist.
    pub(crate) before: Option<Arc<SessionSummary>>,
    /// After it; none if the session exists no more.
    pub(crate) after: Option<Arc<SessionSummary>>,
}

impl Change {
    /// What it keeps alive beyond the change before it, whose end is its beginning.
    fn weight(&self) -> usize {
        let after = self.after.as_deref().map_or(0, SessionSummary::weight);
        size_of::<Self>() + after
    }
}

/// The changes after a place in the log.
pub(crate) enum Read {
    /// These, up to that place, and whether there are more after it.
    Changes(Vec<Change>, u64, bool),
    /// The place has left the log, or was never in it.
    Lapped,
}

/// The log, and the counter.
pub(crate) struct Hub {
    /// The newest revision that was drawn.
    newest: AtomicU64,
    /// Where the revisions of this start begin; 0 until it is known.
    first: AtomicU64,
    /// Changes that are kept at most.
    most: usize,
    log: Mutex<Log>,
    wake: watch::Sender<u64>,
    closed: AtomicBool,
}

#[derive(Default)]
struct Log {
    /// The number of the newest change.
    newest: u64,
    bytes: usize,
    changes: VecDeque<(TenantId, Change)>,
}

impl Hub {
    /// A log that keeps so many changes.
    pub(crate) fn keeping(most: usize) -> Self {
        Self {
            newest: AtomicU64::new(0),
            first: AtomicU64::new(0),
            most: most.max(1),
            log: Mutex::default(),
            wake: watch::Sender::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Says which start of the store this is. The same each time; before the first revision is drawn.
    pub(crate) fn begin(&self, start: u32) {
        let first = u64::from(start) << NUMBER_BITS;
        self.newest.fetch_max(first, Ordering::SeqCst);
        self.first.fetch_max(first, Ordering::SeqCst);
    }

    /// Where the revisions of this start begin; none until it is known.
    pub(crate) fn first(&self) -> Option<u64> {
        let first = self.first.load(Ordering::SeqCst);
        (first > 0).then_some(first)
    }

    /// A revision above every one that was drawn.
    pub(crate) fn draw(&self) -> u64 {
        self.newest.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The newest one that was drawn.
    #[cfg(test)]
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    /// Appends a change. To be called under the lock of the session's channel.
    pub(crate) fn tell(&self, tenant: &TenantId, change: Change) {
        let newest = {
            let mut log = self.lock();
            log.newest += 1;
            log.bytes += change.weight();
            log.changes.push_back((tenant.clone(), change));
            while log.changes.len() > self.most || log.bytes > MAX_BYTES && log.changes.len() > 1 {
                let Some((_, oldest)) = log.changes.pop_front() else {
                    break;
                };
                log.bytes -= oldest.weight();
            }
            log.newest
        };
        // Where two meet here the later number may be sent first: whoever is woken reads the log, and
        // the number is only what wakes.
        self.wake.send_if_modified(|told| {
            let newer = *told < newest;
            *told = newest.max(*told);
            newer
        });
    }

    /// The place of the newest change.
    pub(crate) fn place(&self) -> u64 {
        self.lock().newest
    }

    /// Whether the changes after a place are all in the log.
    pub(crate) fn has_after(&self, place: u64) -> bool {
        self.lock().skip(place).is_some()
    }

    /// The changes of a tenant after a place, as many as may be read in one go.
    pub(crate) fn after(&self, place: u64, tenant: &TenantId) -> Read {
        let log = self.lock();
        let Some(skip) = log.skip(place) else {
            return Read::Lapped;
        };
        let (mut mine, mut upto, mut bytes) = (Vec::new(), place, 0);
        for (of, change) in log.changes.range(skip..) {
            if of == tenant {
                bytes += change.weight();
                if mine.len() >= MAX_READ || bytes > MAX_READ_BYTES && !mine.is_empty() {
                    break;
                }
                mine.push(change.clone());
            }
            upto += 1;
        }
        Read::Changes(mine, upto, upto < log.newest)
    }

    /// Wakes at every change, and at the end.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.wake.subscribe()
    }

    /// Ends every watch: the application is no more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.wake.send_modify(|_| {});
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// How many of the changes that are kept are not after a place; none if some after it are not kept.
    fn skip(&self, place: u64) -> Option<usize> {
        let before_all = self.newest - self.changes.len() as u64;
        let kept = before_all <= place && place <= self.newest;
        kept.then(|| usize::try_from(place - before_all).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn change(number: u128) -> Change {
        Change {
            session: SessionId::mint(Timestamp::from_millis(1), number),
            before: None,
            after: None,
        }
    }

    #[test]
    fn c46_the_revisions_of_a_start_are_above_those_of_the_starts_before() {
        let (earlier, later) = (Hub::keeping(1), Hub::keeping(1));
        earlier.begin(3);
        later.begin(4);
        assert!(earlier.draw() < earlier.draw());
        assert!(earlier.newest() < later.newest() && later.newest() < later.draw());
        // Each token that is minted says it again.
        let newest = later.newest();
        later.begin(4);
        assert_eq!(later.newest(), newest);
    }

    #[test]
    fn c47_a_place_that_left_the_log_is_told_and_one_within_is_read_on_from() {
        let (hub, tenant) = (Hub::keeping(64), TenantId::parse("t").unwrap());
        let other = TenantId::parse("u").unwrap();
        for number in 0..10 {
            hub.tell(&tenant, change(number));
            hub.tell(&other, change(100 + number));
        }
        let Read::Changes(changes, place, more) = hub.after(10, &tenant) else {
            panic!("it is kept");
        };
        let ids: Vec<_> = changes.iter().map(|change| change.session).collect();
        let expected: Vec<_> = (5..10).map(|number| change(number).session).collect();
        assert_eq!((ids, place, more), (expected, 20, false));
        assert!(matches!(hub.after(21, &tenant), Read::Lapped));
        for number in 0..64 {
            hub.tell(&tenant, change(number));
        }
        assert!(hub.has_after(20) && !hub.has_after(19));
        assert!(matches!(hub.after(19, &tenant), Read::Lapped));
    }

    #[test]
    fn c35_c60_what_is_read_in_one_go_is_bounded_and_the_next_goes_on_from_there() {
        let (hub, tenant) = (Hub::keeping(8 * MAX_READ), TenantId::parse("t").unwrap());
        let other = TenantId::parse("u").unwrap();
        let total = 2 * MAX_READ + 5;
        for number in 0..total {
            hub.tell(&tenant, change(number as u128));
            hub.tell(&other, change(number as u128));
        }
        let (mut place, mut read) = (0, Vec::new());
        loop {
            let Read::Changes(changes, upto, more) = hub.after(place, &tenant) else {
                panic!("it is kept");
            };
            assert!(changes.len() <= MAX_READ, "{}", changes.len());
            read.extend(changes.iter().map(|change| change.session));
            place = upto;
            if !more {
                break;
            }
        }
        let expected: Vec<_> = (0..total).map(|it| change(it as u128).session).collect();
        assert_eq!((read, place), (expected, hub.place()));
    }
}
