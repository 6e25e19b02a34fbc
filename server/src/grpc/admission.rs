//! Which connections are let in: never more than the limit, and never nobody.
//!
//! Whoever connects and says nothing must not keep others out. At the limit the oldest connection
//! without a call makes room, and if every one has called, the newcomer is closed at once: it
//! learns that it is not served instead of waiting. What must never enter: who calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;

/// The limit is logged at most this often.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What a connection carries.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    called: AtomicBool,
    open: AtomicUsize,
}

impl Traffic {
    /// A request arrived. It is open until the guard is dropped.
    pub(crate) fn opened(self: &Arc<Self>) -> Open {
        self.called.store(true, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }

    /// Whether a request ever arrived.
    pub(crate) fn has_called(&self) -> bool {
        self.called.load(Ordering::Relaxed)
    }

    /// Whether no request is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }
}

/// An open request, until its response was sent or given up.
pub(crate) struct Open(Arc<Traffic>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections of a server. Dropping them drops their tasks.
pub(crate) struct Connections {
    pub(crate) tasks: JoinSet<()>,
    limit: usize,
    /// In the order of their arrival, those that had not called when last looked at.
    silent: VecDeque<(AbortHandle, Arc<Traffic>)>,
    told: Option<Instant>,
    untold: u64,
}

impl Connections {
    /// None yet, and at most `limit` at a time.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            tasks: JoinSet::new(),
            limit,
            silent: VecDeque::new(),
            told: None,
            untold: 0,
        }
    }

    /// Makes room for one more, if need be by dropping a silent one. False: there is none.
    pub(crate) async fn make_room(&mut self) -> bool {
        if self.tasks.len() < self.limit {
            return true;
        }
        self.forget_the_known();
        let oldest = self.silent.pop_front();
        self.tell(oldest.is_some());
        let Some((task, _traffic)) = oldest else {
            return false;
        };
        task.abort();
        // At least the aborted one ends now.
        if let Some(ended) = self.tasks.join_next().await {
            failed(ended);
        }
        true
    }

    /// Starts to serve a connection.
    pub(crate) fn serve(
        &mut self,
        traffic: Arc<Traffic>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        // Connections that came and went are still listed: they must not pile up.
        if self.silent.len() >= self.limit {
            self.forget_the_known();
        }
        let task = self.tasks.spawn(connection);
        self.silent.push_back((task, traffic));
    }

    fn forget_the_known(&mut self) {
        self.silent
            .retain(|(task, traffic)| !task.is_finished() && !traffic.has_called());
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "paces a log line: nothing that a test or a caller sees depends on it"
    )]
    fn tell(&mut self, made_room: bool) {
        self.untold += 1;
        if self.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        let (limit, times) = (self.limit, std::mem::take(&mut self.untold));
        self.told = Some(Instant::now());
        if made_room {
            tracing::warn!(limit, times, "too many connections: dropped a silent one");
        } else {
            tracing::warn!(limit, times, "too many connections: closed a new one");
        }
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
