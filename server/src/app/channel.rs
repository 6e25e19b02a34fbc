//! The event channel of one session: a bounded ring of numbered events and the state they fold to.
//!
//! Numbering, folding and retaining are one step under one lock, so no observer ever reads a state
//! that is older than an event it has seen. A publisher never waits for an observer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_core::domain::event::{Event, EventBody, EventEnvelope};
use sessionplane_core::domain::ids::{RunId, SessionId, TenantId};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::domain::view::SessionView;
use sessionplane_core::ports::lease_store::LeaseStore;
use sessionplane_core::ports::repository::{ReadError, Repository};
use tokio::sync::watch;

use super::config::AppConfig;
use super::observation::Published;
use super::ring_budget::Budget;

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
}

struct Inner {
    /// The number of the newest event.
    seq: u64,
    /// The newest events, without a hole, up to `seq`.
    ring: VecDeque<Arc<Published>>,
    bytes: usize,
    view: SessionView,
    /// The number of the active run's `run_started`.
    run_started: Option<(RunId, u64)>,
    /// Nothing will be published any more: this face lost the session.
    closed: bool,
}

/// The retained events of the active run.
pub(crate) struct RunSoFar {
    /// The place before the first of them.
    pub(crate) before: u64,
    /// How many of the run's events are no longer retained.
    pub(crate) skipped: u64,
    /// The events, up to the newest.
    pub(crate) events: VecDeque<Arc<Published>>,
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

impl Channel {
    fn new(
        record: &SessionRecord,
        epoch: u64,
        view: SessionView,
        config: &AppConfig,
        budget: Arc<Budget>,
    ) -> Self {
        let inner = Inner {
            seq: 0,
            ring: VecDeque::new(),
            bytes: 0,
            view,
            run_started: None,
            closed: false,
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
        }
    }

    /// Numbers events, folds them into the view and shows them: one step, one wake.
    pub fn publish(&self, events: impl IntoIterator<Item = Event>) {
        self.append(self.lock(), events);
    }

    /// Publishes the last event. Whoever reads on from here, also who came late, is told the end.
    /// Nothing if that was done already.
    pub(crate) fn close(&self, last: Event) {
        let mut inner = self.lock();
        if !std::mem::replace(&mut inner.closed, true) {
            self.append(inner, [last]);
        }
    }

    fn append(&self, mut inner: MutexGuard<'_, Inner>, events: impl IntoIterator<Item = Event>) {
        let before = inner.seq;
        for event in events {
            inner.seq += 1;
            let seq = inner.seq;
            inner.view.apply(&event);
            match (&event.body, event.run) {
                (EventBody::RunStarted { .. }, Some(run)) => inner.run_started = Some((run, seq)),
                (EventBody::RunSettled { .. }, _) => inner.run_started = None,
                _ => {}
            }
            let added = size(&event);
            inner.bytes += added;
            self.budget.add(added);
            let envelope = EventEnvelope {
                session: self.session,
                epoch: self.epoch,
                seq,
                event,
            };
            inner.ring.push_back(Arc::new(Published::new(envelope)));
            self.trim(&mut inner, self.budget.allows(self.ring_bytes));
        }
        let seq = inner.seq;
        drop(inner);
        if seq != before {
            self.wake.send_replace(seq);
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
    /// session was hot.
    pub(crate) fn rest(&self, bytes: usize) {
        let mut inner = self.lock();
        // Who reads on is not cut for that; the budget of all rings bounds those as well.
        if self.wake.receiver_count() == 0 {
            self.trim(&mut inner, bytes);
            inner.ring.shrink_to_fit();
        }
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

    /// Takes up to `max` events after `seq`.
    pub(crate) fn read_after(
        &self,
        seq: u64,
        max: usize,
        taken: &mut VecDeque<Arc<Published>>,
    ) -> Read {
        let inner = self.lock();
        if seq >= inner.seq {
            return if inner.closed {
                Read::Closed
            } else {
                Read::CaughtUp
            };
        }
        let first = inner.seq + 1 - inner.ring.len() as u64;
        if seq + 1 < first {
            return Read::Lapped;
        }
        let skip = usize::try_from(seq + 1 - first).unwrap_or(usize::MAX);
        let before = taken.len();
        taken.extend(inner.ring.range(skip..).take(max).cloned());
        Read::Events((taken.len() - before) as u64)
    }

    /// The state together with every retained event after `seq`, in one step; nothing if the place
    /// has left the ring or was never reached.
    pub(crate) fn resume_after(
        &self,
        seq: u64,
    ) -> Option<(Vec<Arc<Published>>, SessionView, Position)> {
        let inner = self.lock();
        let first = inner.seq + 1 - inner.ring.len() as u64;
        if seq > inner.seq || seq + 1 < first {
            return None;
        }
        let skip = usize::try_from(seq + 1 - first).unwrap_or(usize::MAX);
        let missed = inner.ring.iter().skip(skip).cloned().collect();
        Some((
            missed,
            inner.view.clone(),
            Position {
                epoch: self.epoch,
                seq: inner.seq,
            },
        ))
    }

    /// What a joiner of a run is given: the run's retained events, in one step, so that none of
    /// them can leave the ring before the joiner reads. Nothing if the run is not the active one.
    pub(crate) fn run_so_far(&self, run: RunId) -> Option<RunSoFar> {
        let inner = self.lock();
        let (_, started) = inner.run_started.filter(|(active, _)| *active == run)?;
        let first = inner.seq + 1 - inner.ring.len() as u64;
        let from = started.max(first);
        let skip = usize::try_from(from - first).unwrap_or(usize::MAX);
        Some(RunSoFar {
            before: from - 1,
            skipped: from - started,
            events: inner.ring.iter().skip(skip).cloned().collect(),
        })
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

impl Drop for Channel {
    fn drop(&mut self) {
        self.budget.free(self.lock().bytes);
    }
}

/// Roughly the bytes that an event keeps alive: itself, and its encoding once a face asks for it.
fn size(event: &Event) -> usize {
    const BASE: usize = 512;
    let text = match &event.body {
        EventBody::MessageDelta { text, .. } => text.len(),
        EventBody::ToolStarted {
            input_json: text, ..
        }
        | EventBody::ToolProgress { output: text, .. }
        | EventBody::ToolFinished { output: text, .. } => text.text.len(),
        EventBody::EntryAppended { entry } => entry.weight(),
        EventBody::RunSettled { run } => run.undelivered.len() * 64,
        EventBody::RetryScheduled { reason, .. } | EventBody::ServingError { reason } => {
            reason.len()
        }
        _ => 0,
    };
    2 * (BASE + text)
}

/// The channels that are in memory.
pub(crate) struct Channels {
    config: AppConfig,
    budget: Arc<Budget>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    channels: HashMap<SessionId, Arc<Channel>>,
    /// Grows when channels are dropped: a view that was loaded before may be outdated by then.
    evictions: u64,
}

impl Channels {
    pub(crate) fn new(config: AppConfig) -> Self {
        Self {
            budget: Budget::new(config.all_rings_bytes),
            config,
            table: Mutex::default(),
        }
    }

    /// A channel that is in memory.
    pub(crate) fn get(&self, session: SessionId) -> Option<Arc<Channel>> {
        self.lock().channels.get(&session).cloned()
    }

    /// The channel of a stored session: in memory, or made from its rows. Nothing durable changes.
    pub(crate) async fn open(
        &self,
        session: SessionId,
        repository: &dyn Repository,
        leases: &dyn LeaseStore,
    ) -> Result<Option<Arc<Channel>>, ReadError> {
        loop {
            let evictions = {
                let table = self.lock();
                if let Some(channel) = table.channels.get(&session) {
                    return Ok(Some(channel.clone()));
                }
                table.evictions
            };
            let Some(stored) = repository.session(session).await? else {
                return Ok(None);
            };
            let epoch = leases.mint().await?.0;
            let made = Channel::new(
                &stored.record,
                epoch,
                SessionView::dormant(&stored),
                &self.config,
                self.budget.clone(),
            );
            let mut table = self.lock();
            if table.evictions == evictions {
                return Ok(Some(self.insert(&mut table, made)));
            }
        }
    }

    /// The channel of a session that is about to be created.
    pub(crate) fn unborn(&self, record: &SessionRecord, epoch: u64) -> Arc<Channel> {
        let made = Channel::new(
            record,
            epoch,
            SessionView::unborn(record.identity()),
            &self.config,
            self.budget.clone(),
        );
        self.insert(&mut self.lock(), made)
    }

    /// Takes a channel out: the next reader makes one from the stored rows.
    pub(crate) fn forget(&self, session: SessionId) -> Option<Arc<Channel>> {
        let mut table = self.lock();
        table.evictions += 1;
        table.channels.remove(&session)
    }

    fn insert(&self, table: &mut Table, made: Channel) -> Arc<Channel> {
        if table.channels.len() >= self.config.idle_channels.max(1) {
            // Those that only the table holds serve nobody: their sessions have no task and no
            // observer. Dropping them all at once keeps the cost per insertion constant.
            let before = table.channels.len();
            table
                .channels
                .retain(|_, channel| Arc::strong_count(channel) > 1);
            table.evictions += (before - table.channels.len()) as u64;
        }
        table
            .channels
            .entry(made.session)
            .or_insert_with(|| Arc::new(made))
            .clone()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use sessionplane_core::domain::ids::AgentName;
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    fn record(number: u128) -> SessionRecord {
        SessionRecord {
            id: SessionId::mint(Timestamp::from_millis(1), number),
            tenant: TenantId::parse("t").unwrap(),
            name: None,
            external_key: None,
            agent: AgentName::parse("a").unwrap(),
            created_at: Timestamp::from_millis(1),
        }
    }

    fn fill(channel: &Channel, events: u32) {
        for turn in 0..events {
            let body = EventBody::TurnStarted { turn };
            channel.publish([Event {
                at: Timestamp::from_millis(2),
                run: None,
                body,
            }]);
        }
    }

    fn retained(channel: &Channel) -> usize {
        channel.lock().ring.len()
    }

    #[test]
    fn c35_all_rings_together_keep_a_bounded_number_of_bytes() {
        let config = AppConfig {
            ring_bytes: 64 * 1024,
            all_rings_bytes: 256 * 1024,
            ..AppConfig::default()
        };
        let channels = Channels::new(config);
        let made: Vec<_> = (1..=64)
            .map(|number| channels.unborn(&record(number), 1))
            .collect();
        for channel in &made {
            fill(channel, 200);
        }
        let alive: usize = made.iter().map(|channel| channel.lock().bytes).sum();
        assert_eq!(channels.budget.used.load(Ordering::Relaxed), alive);
        // Four rings fill the budget; each later one keeps a sixteenth of its own.
        assert!(
            alive <= 256 * 1024 + 64 * (64 * 1024 / 16 + 2048),
            "{alive} bytes"
        );
        assert!(
            made.iter().all(|channel| retained(channel) > 0),
            "each keeps its newest"
        );
    }

    #[test]
    fn c35_a_session_without_a_task_keeps_little_and_still_knows_its_place() {
        let channels = Channels::new(AppConfig::default());
        let channel = channels.unborn(&record(1), 1);
        fill(&channel, 1000);
        channel.rest(8 * 1024);
        assert!(retained(&channel) <= 8, "{} events", retained(&channel));
        let (missed, _, position) = channel
            .resume_after(1000)
            .expect("who was up to date resumes");
        assert_eq!((missed.len(), position.seq), (0, 1000));
        assert!(
            channel.resume_after(10).is_none(),
            "who was not is told a gap"
        );
        let used = channels.budget.used.load(Ordering::Relaxed);
        drop(channels.forget(channel.session()));
        drop(channel);
        assert!(used > 0);
        assert_eq!(
            channels.budget.used.load(Ordering::Relaxed),
            0,
            "a dropped ring gives all back"
        );
    }
}
