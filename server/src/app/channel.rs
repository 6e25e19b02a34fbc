//! The event channel of one session: a bounded ring of numbered events and the state they fold to.
//!
//! Numbering, folding and retaining are one step under one lock, so no observer ever reads a state
//! that is older than an event it has seen. A publisher never waits for an observer. The same step
//! makes what the fleet shows of the session.

mod fleet;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::event::{Event, EventBody, EventEnvelope};
use sessionplane_core::domain::ids::{RunId, SessionId, TenantId};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::view::SessionView;
use tokio::sync::watch;

use super::config::AppConfig;
use super::fleet::hub::Hub;
use super::observation::Published;
use super::ring_budget::{Budget, Ring};
use super::session_loss::Loss;
use fleet::Fleet;
pub(crate) use fleet::Placed;

/// One session's channel.
pub struct Channel {
    session: SessionId,
    tenant: TenantId,
    epoch: u64,
    ring_events: usize,
    ring_bytes: usize,
    budget: Arc<Budget>,
    inner: Mutex<Inner>,
    wake: watch::Sender<u64>,
    /// Who observes: each holds one of it.
    observers: Arc<()>,
    /// The session's task has something to do.
    at_work: AtomicBool,
    /// When the ring last took an event in, by the budget's clock.
    touched: AtomicU64,
}

struct Inner {
    /// The number of the newest event.
    seq: u64,
    /// The newest events, without a hole, up to `seq`.
    ring: VecDeque<Arc<Published>>,
    bytes: usize,
    view: SessionView,
    fleet: Fleet,
    /// The run that is active, or was the last one to be.
    run: Option<Span>,
    /// Nothing will be published any more: this face lost the session, and why.
    closed: Option<Loss>,
}

/// A run's place among the events.
#[derive(Clone, Copy)]
struct Span {
    run: RunId,
    /// The number of its `run_started`.
    started: u64,
    /// The number of its `run_settled`.
    settled: Option<u64>,
}

/// Where the retained events of the active run begin.
pub(crate) struct RunSoFar {
    /// The place before the first of them.
    pub(crate) before: u64,
    /// How many of the run's events are no longer retained.
    pub(crate) skipped: u64,
    /// The newest event's place.
    pub(crate) newest: u64,
}

/// What a cursor finds after a place in the ring.
pub(crate) enum Read {
    /// So many events were taken, at least one.
    Events(u64),
    /// Nothing newer.
    CaughtUp,
    /// The place has left the ring.
    Lapped,
    /// Nothing newer will come.
    Closed,
}

impl Inner {
    /// The number of the oldest event that is retained, or of the next one if none is.
    fn first(&self) -> u64 {
        self.seq + 1 - self.ring.len() as u64
    }
}

impl Channel {
    pub(super) fn new(
        record: &SessionRecord,
        epoch: u64,
        view: SessionView,
        placed: Placed,
        config: &AppConfig,
        (budget, hub): (Arc<Budget>, Arc<Hub>),
    ) -> Self {
        let inner = Inner {
            seq: 0,
            ring: VecDeque::new(),
            bytes: 0,
            view,
            fleet: Fleet::new(hub, record.clone(), placed),
            run: None,
            closed: None,
        };
        Self {
            session: record.id,
            tenant: record.tenant.clone(),
            epoch,
            ring_events: config.ring_events.max(1),
            ring_bytes: config.ring_bytes,
            budget,
            inner: Mutex::new(inner),
            wake: watch::Sender::new(0),
            observers: Arc::default(),
            at_work: AtomicBool::new(false),
            touched: AtomicU64::new(0),
        }
    }

    /// Says whether the session's task has something to do.
    pub(crate) fn works(&self, does: bool) {
        self.at_work.store(does, Ordering::SeqCst);
    }

    /// Whether it has: also before the first event of a run, and until after its last.
    pub(crate) fn is_at_work(&self) -> bool {
        self.at_work.load(Ordering::SeqCst)
    }

    /// Wakes who reads, although nothing was published.
    pub(crate) fn wake(&self) {
        let newest = self.lock().seq;
        self.wake.send_replace(newest);
    }

    /// A place among the observers, given up when it is dropped; none if `most` have one.
    pub(crate) fn place(&self, most: usize) -> Option<Arc<()>> {
        // Under the lock, so that of two that come for the last place one is refused.
        let _inner = self.lock();
        let taken = Arc::strong_count(&self.observers) - 1;
        (taken < most).then(|| self.observers.clone())
    }

    /// Why this face lost the session, if it did.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.lock().closed
    }

    /// Numbers events, folds them into the view and shows them: one step, one wake.
    pub fn publish(&self, events: impl IntoIterator<Item = Event>) {
        self.append(self.lock(), events, None);
    }

    /// The same, and says in the same step where the session works: it exists from now on.
    pub(crate) fn publish_at(
        &self,
        events: impl IntoIterator<Item = Event>,
        placed: Placed,
        now: Timestamp,
    ) {
        self.append(self.lock(), events, Some((placed, now)));
    }

    /// Publishes the last event. Whoever reads on from here, also who came late, is told the end.
    /// If that was done already, it only wakes: what else they wait for may have come.
    pub(crate) fn close(&self, last: Event, loss: Loss) {
        let mut inner = self.lock();
        if inner.closed.is_none() {
            inner.closed = Some(loss);
            return self.append(inner, [last], None);
        }
        let newest = inner.seq;
        drop(inner);
        self.wake.send_replace(newest);
    }

    fn append(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        events: impl IntoIterator<Item = Event>,
        placed: Option<(Placed, Timestamp)>,
    ) {
        let before = inner.seq;
        let mut changed = None;
        if let Some((placed, at)) = placed {
            inner.fleet.place(placed);
            changed = Some(at);
        }
        for event in events {
            inner.seq += 1;
            let seq = inner.seq;
            inner.view.apply(&event);
            if inner.fleet.note(&event) {
                changed = Some(event.at);
            }
            match (&event.body, event.run) {
                (EventBody::RunStarted { .. }, Some(run)) => {
                    inner.run = Some(Span {
                        run,
                        started: seq,
                        settled: None,
                    });
                }
                (EventBody::RunSettled { .. }, _) => {
                    if let Some(span) = &mut inner.run {
                        span.settled = Some(seq);
                    }
                }
                _ => {}
            }
            let added = size(&event);
            inner.bytes += added;
            let taken = self.budget.add(added);
            self.touched.store(taken, Ordering::Relaxed);
            let envelope = EventEnvelope {
                session: self.session,
                epoch: self.epoch,
                seq,
                event,
            };
            inner.ring.push_back(Arc::new(Published::new(envelope)));
            self.trim(&mut inner, self.ring_bytes);
        }
        if let Some(at) = changed {
            let inner = &mut *inner;
            inner.fleet.remake(&inner.view, at);
        }
        let seq = inner.seq;
        drop(inner);
        if seq != before {
            self.wake.send_replace(seq);
            self.budget.relieve();
        }
    }

    /// Drops the oldest events until the ring is within its bounds; the newest always stays.
    fn trim(&self, inner: &mut Inner, bytes: usize) {
        while inner.ring.len() > self.ring_events || (inner.bytes > bytes && inner.ring.len() > 1) {
            let Some(oldest) = inner.ring.pop_front() else {
                return;
            };
            let freed = size(&oldest.envelope().event);
            inner.bytes -= freed;
            self.budget.free(freed);
        }
    }

    /// The session has no task any more: its ring keeps little, whatever it had to keep while the
    /// session was hot, and whoever watches. An observer that is up to date needs nothing of it; one
    /// that has not caught up in all the time that the task stayed is told so.
    pub(crate) fn rest(&self, bytes: usize) {
        let mut inner = self.lock();
        self.trim(&mut inner, bytes);
        inner.ring.shrink_to_fit();
    }

    /// The state and the position that it stands at.
    #[must_use]
    pub fn state(&self) -> (SessionView, Position) {
        let inner = self.lock();
        (
            inner.view.clone(),
            Position {
                epoch: self.epoch,
                seq: inner.seq,
            },
        )
    }

    /// Reads something small of the state without copying it.
    pub(crate) fn with_view<T>(&self, read: impl FnOnce(&SessionView) -> T) -> T {
        read(&self.lock().view)
    }

    /// The newest event's position.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            epoch: self.epoch,
            seq: self.lock().seq,
        }
    }

    /// The serving incarnation that numbers the events.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The tenant that the session belongs to.
    #[must_use]
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Takes events after `seq`: at most `max` of them, and at least one but otherwise no more than
    /// `max_bytes` keep alive. They are the reader's from then on, and counted in no budget.
    pub(crate) fn read_after(
        &self,
        seq: u64,
        max: usize,
        max_bytes: usize,
        taken: &mut VecDeque<Arc<Published>>,
    ) -> Read {
        let inner = self.lock();
        if seq >= inner.seq {
            return if inner.closed.is_some() {
                Read::Closed
            } else {
                Read::CaughtUp
            };
        }
        let first = inner.first();
        if seq + 1 < first {
            return Read::Lapped;
        }
        let skip = usize::try_from(seq + 1 - first).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let mut count = 0;
        for event in inner.ring.range(skip..).take(max) {
            bytes += size(&event.envelope().event);
            if count > 0 && bytes > max_bytes {
                break;
            }
            taken.push_back(event.clone());
            count += 1;
        }
        Read::Events(count)
    }

    /// The state and its position, if every event after `seq` up to it is retained; nothing if the
    /// place has left the ring or was never reached.
    pub(crate) fn resume_after(&self, seq: u64) -> Option<(SessionView, Position)> {
        let inner = self.lock();
        if seq > inner.seq || seq + 1 < inner.first() {
            return None;
        }
        let position = Position {
            epoch: self.epoch,
            seq: inner.seq,
        };
        Some((inner.view.clone(), position))
    }

    /// Where a joiner of a run begins to read. Nothing if the run is not the active one.
    pub(crate) fn run_so_far(&self, run: RunId) -> Option<RunSoFar> {
        let inner = self.lock();
        let active = |span: &Span| span.run == run && span.settled.is_none();
        let Span { started, .. } = inner.run.filter(active)?;
        let from = started.max(inner.first());
        Some(RunSoFar {
            before: from - 1,
            skipped: from - started,
            newest: inner.seq,
        })
    }

    /// Where a joiner of a run whose place has left the ring may go on: the place before the oldest
    /// event that is retained. Nothing if the run's end is not to be read any more.
    pub(crate) fn rest_of(&self, run: RunId) -> Option<u64> {
        let inner = self.lock();
        let first = inner.first();
        let has_its_end =
            |span: &Span| span.run == run && span.settled.is_none_or(|settled| settled >= first);
        inner.run.filter(has_its_end).map(|_| first - 1)
    }

    /// How many events the ring holds.
    #[cfg(test)]
    pub(super) fn retained(&self) -> usize {
        self.lock().ring.len()
    }

    /// Wakes at every publication.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.wake.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock was held cannot leave a half-applied event that matters more than
        // going on: the view is a fold and the ring is bounded either way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring for Channel {
    fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn touched(&self) -> u64 {
        self.touched.load(Ordering::Relaxed)
    }

    fn cut(&self, bytes: usize) {
        self.trim(&mut self.lock(), bytes);
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.budget.free(self.lock().bytes);
    }
}

/// Roughly the bytes that an event keeps alive: itself, and its encoding once a face asks for it.
fn size(event: &Event) -> usize {
    const BASE: usize = 512;
    2 * (BASE + event.body.weight())
}
