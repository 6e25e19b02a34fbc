//! Which connections are let in: never more than the limit, and never nobody.
//!
//! Whoever connects and says nothing must not keep others out, and neither must who called once and
//! then rests, or whom nobody knows. At the limit the oldest connection without a call makes room, then
//! the one that has rested longest, where calls of strangers are no calls; if all are at work, the newcomer is closed at once: it learns that it is not
//! served instead of waiting. What must never enter: who calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::now;
use super::seldom::Seldom;

/// The limit is logged at most this often.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// How long a newcomer waits at most for one that was asked to leave. A connection at rest is gone
/// sooner; only one that was called meanwhile stays.
const LEAVES_WITHIN: Duration = Duration::from_millis(500);

/// What a connection carries.
#[derive(Debug)]
pub(crate) struct Traffic {
    called: AtomicBool,
    open: AtomicUsize,
    /// Requests without an answer yet.
    unanswered: AtomicUsize,
    /// How often something arrived.
    heard: AtomicU64,
    born: Instant,
    /// When the last request of somebody known ended, in microseconds of the connection's life.
    used: AtomicU64,
    leave: CancellationToken,
}

impl Traffic {
    /// A new connection's.
    pub(crate) fn new() -> Self {
        Self {
            called: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            unanswered: AtomicUsize::new(0),
            heard: AtomicU64::new(0),
            born: now(),
            used: AtomicU64::new(0),
            leave: CancellationToken::new(),
        }
    }

    /// A request arrived. It is open until the guard is dropped.
    pub(crate) fn opened(self: &Arc<Self>) -> Open {
        self.called.store(true, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Open {
            traffic: self.clone(),
            of_a_stranger: false,
        }
    }

    /// Whether a request ever arrived.
    pub(crate) fn has_called(&self) -> bool {
        self.called.load(Ordering::Relaxed)
    }

    /// Whether no request of somebody known is open. The end of the last response may still be on its way out.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    /// How long no request has been open.
    fn idle_for(&self) -> Duration {
        if !self.is_idle() {
            return Duration::ZERO;
        }
        let used = Duration::from_micros(self.used.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(used)
    }

    /// Whether nothing can be on its way any more: no request ever arrived, or none was open for
    /// as long as `after`.
    pub(crate) fn rests(&self, after: Duration) -> bool {
        self.is_idle() && (!self.has_called() || self.idle_for() >= after)
    }

    /// Something arrived.
    pub(crate) fn heard(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer is awaited, until this is dropped.
    pub(crate) fn answering(&self) -> Answered<'_> {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        Answered(&self.unanswered)
    }

    /// Completes when nothing arrived for as long as `within` (at most twice that) while no answer
    /// was awaited: nobody is there, or they read nothing.
    pub(crate) async fn silent(&self, within: Duration) {
        let mut before = None;
        loop {
            let heard = self.heard.load(Ordering::Relaxed);
            let idle = self.unanswered.load(Ordering::Relaxed) == 0;
            if idle && before == Some(heard) {
                return;
            }
            before = idle.then_some(heard);
            sleep(within).await;
        }
    }

    /// Completes when the connection is to make room.
    pub(crate) async fn asked_to_leave(&self) {
        self.leave.cancelled().await;
    }
}

/// A request that is answered once this is dropped.
pub(crate) struct Answered<'a>(&'a AtomicUsize);

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open request, until its response was handed to the transport or given up.
pub(crate) struct Open {
    traffic: Arc<Traffic>,
    of_a_stranger: bool,
}

impl Open {
    /// Whose request it was is not known: it is no use of the connection. Otherwise whoever may only
    /// ask for health could keep the places of those who work.
    pub(crate) fn of_a_stranger(mut self) {
        self.of_a_stranger = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.of_a_stranger {
            let lived = self.traffic.born.elapsed().as_micros();
            let lived = u64::try_from(lived).unwrap_or(u64::MAX);
            self.traffic.used.store(lived, Ordering::Relaxed);
        }
        self.traffic.open.fetch_sub(1, Ordering::Release);
    }
}

/// A connection that is served.
struct Served {
    task: AbortHandle,
    traffic: Arc<Traffic>,
}

/// The connections of a server. Dropping them drops their tasks.
pub(crate) struct Connections {
    pub(crate) tasks: JoinSet<()>,
    limit: usize,
    rest_after: Duration,
    /// In the order of their arrival.
    served: VecDeque<Served>,
    told: Option<Instant>,
    untold: u64,
    /// The system gave no connection: it is out of descriptors, for example.
    pub(crate) refused: Seldom,
}

impl Connections {
    /// None yet, and at most `limit` at a time. One that was not used for `rest_after` may have to
    /// make room.
    pub(crate) fn new(limit: usize, rest_after: Duration) -> Self {
        Self {
            tasks: JoinSet::new(),
            limit,
            rest_after,
            served: VecDeque::new(),
            told: None,
            untold: 0,
            refused: Seldom::default(),
        }
    }

    /// Makes room for one more, if need be by dropping a silent one or by letting one go that
    /// rests. False: there is none.
    pub(crate) async fn make_room(&mut self) -> bool {
        if self.tasks.len() < self.limit {
            return true;
        }
        self.forget_the_ended();
        if let Some(silent) = self.oldest_silent() {
            self.tell("too many connections: dropped a silent one");
            silent.abort();
            return self.wait_for(&silent).await;
        }
        if let Some((rested, traffic)) = self.longest_rested() {
            self.tell("too many connections: closed the one that rested longest");
            traffic.leave.cancel();
            return self.wait_for(&rested).await;
        }
        self.tell("too many connections: closed a new one");
        false
    }

    /// Starts to serve a connection.
    pub(crate) fn serve(
        &mut self,
        traffic: Arc<Traffic>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        // Connections that came and went are still listed: they must not pile up.
        if self.served.len() >= self.limit {
            self.forget_the_ended();
        }
        let task = self.tasks.spawn(connection);
        self.served.push_back(Served { task, traffic });
    }

    fn oldest_silent(&self) -> Option<AbortHandle> {
        let mut served = self.served.iter();
        let silent = served.find(|served| !served.traffic.has_called())?;
        Some(silent.task.clone())
    }

    fn longest_rested(&self) -> Option<(AbortHandle, Arc<Traffic>)> {
        let rested = self
            .served
            .iter()
            .filter(|served| served.traffic.rests(self.rest_after))
            .max_by_key(|served| served.traffic.idle_for())?;
        Some((rested.task.clone(), rested.traffic.clone()))
    }

    /// Waits until a connection's task has ended. False: it stays.
    async fn wait_for(&mut self, leaving: &AbortHandle) -> bool {
        let ended = async {
            while !leaving.is_finished()
                && let Some(ended) = self.tasks.join_next().await
            {
                failed(ended);
            }
        };
        // Who stays was called meanwhile. Others may have ended.
        let _stays = timeout(LEAVES_WITHIN, ended).await;
        self.tasks.len() < self.limit
    }

    fn forget_the_ended(&mut self) {
        self.served.retain(|served| !served.task.is_finished());
    }

    fn tell(&mut self, what: &'static str) {
        self.untold += 1;
        if self.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        let (limit, times) = (self.limit, std::mem::take(&mut self.untold));
        self.told = Some(now());
        tracing::warn!(limit, times, "{what}");
    }
}

/// Logs a connection's task that panicked. One that was aborted did what it should.
pub(crate) fn failed(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && !error.is_cancelled()
    {
        tracing::error!(%error, "a connection's task failed");
    }
}
