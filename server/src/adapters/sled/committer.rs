//! The one thread that writes. It gathers what waits, judges each commit against the store and the
//! round so far, writes the round, and only then answers, in order.
//!
//! No fixed window: while one round is being synced, the next one gathers in the queue. What a
//! commit may do is the core's to say; how a round reaches the disk is the device's.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sessionplane_core::domain::audit::Refusal;
use sessionplane_core::domain::commit::{Commit, DeletionCommit, MetadataCommit};
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::commit_rules::{LeaseEffect, judge};
use sessionplane_core::ports::fleet_rules::{judge_deletion, judge_metadata};
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::{CommitError, ReadError};
use tokio::sync::{mpsc, oneshot, watch};

use super::device::{Device, RoundStep};
use super::erase::{Erased, Left, erase};
use super::facts::Facts;
use super::frame::Source;
use super::keys::{self, Key};
use super::round::{PieceSets, Round, decode, failed, fetch};
use super::snapshot::{self, Snapshot};
use super::sweep::{self, Swept};
use super::{frame, seal, write};

/// Most requests of one round.
const MAX_REQUESTS: usize = 512;
/// Most bytes of one round, in values; one commit may exceed it.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Leases that live writers hold, as far as they are durable: what [`LeaseStore::holder`] shows to
/// tests. Commits are judged by the committer's own map.
///
/// [`LeaseStore::holder`]: sessionplane_core::ports::lease_store::LeaseStore::holder
pub(super) type Holders = Arc<Mutex<HashMap<SessionId, LeaseToken>>>;

/// Something that only the committer may do. Every answer comes after the round is durable.
pub(super) enum Request {
    /// Judge and apply.
    Commit(Box<Commit>, oneshot::Sender<Result<(), CommitError>>),
    /// Judge and apply a change of metadata.
    Metadata(
        Box<MetadataCommit>,
        oneshot::Sender<Result<(), CommitError>>,
    ),
    /// Judge and apply a deletion.
    Delete(
        Box<DeletionCommit>,
        oneshot::Sender<Result<(), CommitError>>,
    ),
    /// Seal refusals.
    Refused(Vec<Refusal>, oneshot::Sender<Result<(), CommitError>>),
    /// Erase what a deleted session held: one slice.
    Erase {
        session: SessionId,
        keep: u64,
        max: usize,
        done: oneshot::Sender<Result<Erased, ReadError>>,
    },
    /// Forget bindings: one slice, from a mark on.
    Sweep {
        before: Timestamp,
        max: usize,
        from: Option<Key>,
        done: oneshot::Sender<Result<Swept, ReadError>>,
    },
    /// Void a live lease.
    Revoke(SessionId, oneshot::Sender<Result<(), ReadError>>),
    /// Read the leases that nobody holds.
    Orphaned(oneshot::Sender<Result<Vec<HeldLease>, ReadError>>),
    /// Read one session's lease, if nobody holds it.
    Cut(
        SessionId,
        oneshot::Sender<Result<Option<HeldLease>, ReadError>>,
    ),
    /// Keep what the store holds now readable, whatever is written next.
    Snapshot(oneshot::Sender<Result<Snapshot, ReadError>>),
    /// Take no more, finish what waits, end.
    Close,
}

/// A request of the round, with the answer it gets if the round becomes durable.
enum Waiting {
    Commit(
        oneshot::Sender<Result<(), CommitError>>,
        Result<(), CommitError>,
    ),
    Sweep(
        oneshot::Sender<Result<Swept, ReadError>>,
        Result<Swept, ReadError>,
    ),
    Erase(
        oneshot::Sender<Result<Erased, ReadError>>,
        Result<Erased, ReadError>,
    ),
    Revoke(oneshot::Sender<Result<(), ReadError>>),
    Orphaned(oneshot::Sender<Result<Vec<HeldLease>, ReadError>>),
    Cut(
        SessionId,
        oneshot::Sender<Result<Option<HeldLease>, ReadError>>,
    ),
    Snapshot(oneshot::Sender<Result<Snapshot, ReadError>>),
}

/// What was counted since the store was opened.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) rounds: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) syncs: Arc<AtomicU64>,
}

/// The committer's state; [`Committer::run`] is its thread.
pub(super) struct Committer {
    device: Device,
    queue: mpsc::Receiver<Request>,
    live: HashMap<SessionId, LeaseToken>,
    holders: Holders,
    sets: PieceSets,
    counters: Arc<Counters>,
    fatal: watch::Sender<Option<Arc<str>>>,
}

impl Committer {
    pub(super) fn new(
        device: Device,
        queue: mpsc::Receiver<Request>,
        boot: u32,
        holders: Holders,
        counters: Arc<Counters>,
        fatal: watch::Sender<Option<Arc<str>>>,
    ) -> Self {
        Self {
            device,
            queue,
            live: HashMap::new(),
            holders,
            sets: PieceSets::of_boot(boot),
            counters,
            fatal,
        }
    }

    /// Serves until the queue is closed and empty. After a failure it only refuses.
    pub(super) fn run(mut self) {
        while let Some(first) = self.queue.blocking_recv() {
            let broken = self.fatal.borrow().clone();
            if let Some(reason) = broken {
                self.refuse(first, &reason);
                continue;
            }
            // sled panics where it cannot go on. The waiters of such a round lose their channels,
            // which their side takes for what it is: the outcome is unknown.
            let served = catch_unwind(AssertUnwindSafe(|| self.serve(first)));
            let reason = match served {
                Ok(Ok(())) => continue,
                Ok(Err(reason)) => reason,
                Err(_) => "the storage engine panicked".to_owned(),
            };
            self.fatal.send_replace(Some(reason.into()));
        }
        // Whoever still reads one would keep the database open.
        snapshot::end(&self.device.inflight);
    }

    /// One round: gather, write, answer.
    fn serve(&mut self, first: Request) -> Result<(), String> {
        let mut waiting = Vec::new();
        let mut leases = Vec::new();
        let db = self.device.db().clone();
        let mut round = Round::new(&db, &mut self.sets);
        let mut next = Some(first);
        while let Some(request) = next {
            if matches!(request, Request::Close) {
                self.queue.close();
            } else {
                let mut gathering = Gathering {
                    round: &mut round,
                    live: &mut self.live,
                    leases: &mut leases,
                };
                waiting.extend(gathering.take(request));
            }
            let full = waiting.len() >= MAX_REQUESTS || round.bytes() >= MAX_BYTES;
            next = if full {
                None
            } else {
                self.queue.try_recv().ok()
            };
        }
        let written = if round.is_empty() {
            Ok(())
        } else {
            self.counters.rounds.fetch_add(1, Ordering::Relaxed);
            self.device.write(round.into_writes())
        };
        if written.is_ok() {
            self.publish(leases);
        }
        let written = written
            .and_then(|()| self.device.step(RoundStep::BeforeAck))
            // Synced to files that nobody finds again is not kept.
            .and_then(|()| self.device.place.check(self.queue.is_closed()));
        for waiter in waiting {
            self.answer(waiter, &written);
        }
        written
    }

    /// Shows what the round did to leases.
    fn publish(&self, leases: Vec<(SessionId, Option<LeaseToken>)>) {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        for (session, token) in leases {
            match token {
                Some(token) => holders.insert(session, token),
                None => holders.remove(&session),
            };
        }
    }

    /// Answers one waiter. A caller that has gone away wants no answer.
    fn answer(&self, waiter: Waiting, written: &Result<(), String>) {
        match (waiter, written) {
            (Waiting::Commit(done, judged), Ok(())) => {
                let count = match judged {
                    Ok(()) => &self.counters.commits,
                    Err(_) => &self.counters.refused,
                };
                count.fetch_add(1, Ordering::Relaxed);
                let _ = done.send(judged);
            }
            (Waiting::Commit(done, _), Err(reason)) => {
                let _ = done.send(Err(CommitError::Store(reason.clone())));
            }
            (Waiting::Sweep(done, swept), Ok(())) => {
                let _ = done.send(swept);
            }
            (Waiting::Sweep(done, _), Err(reason)) => {
                let _ = done.send(Err(ReadError::Store(reason.clone())));
            }
            (Waiting::Erase(done, erased), Ok(())) => {
                let _ = done.send(erased);
            }
            (Waiting::Erase(done, _), Err(reason)) => {
                let _ = done.send(Err(ReadError::Store(reason.clone())));
            }
            (Waiting::Revoke(done), Ok(())) => {
                let _ = done.send(Ok(()));
            }
            (Waiting::Revoke(done), Err(reason)) => {
                let _ = done.send(Err(ReadError::Store(reason.clone())));
            }
            (Waiting::Orphaned(done), Ok(())) => {
                let _ = done.send(self.orphaned());
            }
            (Waiting::Orphaned(done), Err(reason)) => {
                let _ = done.send(Err(ReadError::Store(reason.clone())));
            }
            (Waiting::Cut(session, done), Ok(())) => {
                let _ = done.send(self.cut(session));
            }
            (Waiting::Cut(_, done), Err(reason)) => {
                let _ = done.send(Err(ReadError::Store(reason.clone())));
            }
            (Waiting::Snapshot(done), Ok(())) => {
                // Nothing is in flight here, so it is of one round.
                let _ = done.send(Snapshot::take(&self.device, self.sets.newest()));
            }
            (Waiting::Snapshot(done), Err(reason)) => {
                let _ = done.send(Err(ReadError::Store(reason.clone())));
            }
        }
    }

    /// Refuses a request of a broken store.
    fn refuse(&mut self, request: Request, reason: &str) {
        let broken = Err(reason.to_owned());
        match request {
            Request::Commit(_, done)
            | Request::Metadata(_, done)
            | Request::Delete(_, done)
            | Request::Refused(_, done) => {
                self.answer(Waiting::Commit(done, Ok(())), &broken);
            }
            Request::Erase { done, .. } => {
                let nothing = Erased {
                    gone: 0,
                    left: Left::Kept,
                };
                self.answer(Waiting::Erase(done, Ok(nothing)), &broken);
            }
            Request::Sweep { done, .. } => {
                let nothing = Swept {
                    gone: 0,
                    next: None,
                };
                self.answer(Waiting::Sweep(done, Ok(nothing)), &broken);
            }
            Request::Revoke(_, done) => self.answer(Waiting::Revoke(done), &broken),
            Request::Orphaned(done) => self.answer(Waiting::Orphaned(done), &broken),
            Request::Cut(session, done) => self.answer(Waiting::Cut(session, done), &broken),
            Request::Snapshot(done) => self.answer(Waiting::Snapshot(done), &broken),
            Request::Close => self.queue.close(),
        }
    }

    /// Lease records that no live writer holds. On this thread nothing is in flight here, so
    /// records and live leases are of one moment.
    fn orphaned(&self) -> Result<Vec<HeldLease>, ReadError> {
        let db = self.device.db();
        let mut orphaned = Vec::new();
        for record in db.scan_prefix(keys::leases()) {
            let (key, value) = record.map_err(|error| failed(b"l", &error))?;
            let lease = frame::open(&Direct(db), &key, value)
                .and_then(|payload| payload.map(|payload| decode(&key, &payload)).transpose());
            match lease {
                Ok(lease) => orphaned.extend(lease.filter(|lease| self.is_cut(lease))),
                Err(error @ ReadError::Damaged { .. }) => {
                    tracing::error!(%error, "a running session cannot be told from its record");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(orphaned)
    }

    /// As [`Self::orphaned`], for one session.
    fn cut(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError> {
        let lease: Option<HeldLease> = fetch(&Direct(self.device.db()), &keys::lease(session))?;
        Ok(lease.filter(|lease| self.is_cut(lease)))
    }

    fn is_cut(&self, lease: &HeldLease) -> bool {
        !self.live.contains_key(&lease.session)
    }
}

/// The store without the in-flight map: for the committer between rounds, and while opening.
pub(super) struct Direct<'a>(pub(super) &'a ::sled::Db);

impl Source for Direct<'_> {
    fn raw(&self, key: &[u8]) -> Result<Option<::sled::IVec>, ReadError> {
        self.0.get(key).map_err(|error| failed(key, &error))
    }
}

/// The round while requests join it.
struct Gathering<'r, 'db> {
    round: &'r mut Round<'db>,
    live: &'r mut HashMap<SessionId, LeaseToken>,
    leases: &'r mut Vec<(SessionId, Option<LeaseToken>)>,
}

impl<'db> Gathering<'_, 'db> {
    fn take(&mut self, request: Request) -> Option<Waiting> {
        match request {
            Request::Commit(commit, done) => {
                let judged = self.commit(&commit);
                Some(Waiting::Commit(done, judged))
            }
            Request::Metadata(commit, done) => {
                let judged = self.metadata(&commit);
                Some(Waiting::Commit(done, judged))
            }
            Request::Delete(commit, done) => {
                let judged = self.deletion(&commit);
                Some(Waiting::Commit(done, judged))
            }
            Request::Refused(refusals, done) => {
                let sealed = self.add(|round| seal::refused(round, &refusals));
                Some(Waiting::Commit(done, sealed))
            }
            Request::Erase {
                session,
                keep,
                max,
                done,
            } => {
                let slice = |round: &mut Round<'_>| erase(round, session, keep, max);
                let erased = self.round.attempt(slice);
                Some(Waiting::Erase(done, erased))
            }
            Request::Sweep {
                before,
                max,
                from,
                done,
            } => {
                let slice = |round: &mut Round<'_>| sweep::sweep(round, before, max, from);
                let swept = self.round.attempt(slice);
                Some(Waiting::Sweep(done, swept))
            }
            Request::Revoke(session, done) => {
                self.hold(session, None);
                Some(Waiting::Revoke(done))
            }
            Request::Orphaned(done) => Some(Waiting::Orphaned(done)),
            Request::Cut(session, done) => Some(Waiting::Cut(session, done)),
            Request::Snapshot(done) => Some(Waiting::Snapshot(done)),
            Request::Close => None,
        }
    }

    /// Judges a commit against the store and the round so far, and adds it.
    fn commit(&mut self, commit: &Commit) -> Result<(), CommitError> {
        judge(commit, &self.facts())?;
        self.add(|round| write::commit(round, commit))?;
        match LeaseEffect::of(commit) {
            LeaseEffect::Take(lease) => self.hold(lease.session, Some(lease.token)),
            LeaseEffect::Keep => {}
            LeaseEffect::Free => self.hold(commit.session, None),
        }
        Ok(())
    }

    /// As [`Self::commit`], for a change of metadata.
    fn metadata(&mut self, commit: &MetadataCommit) -> Result<(), CommitError> {
        let stored = judge_metadata(commit, &self.facts())?;
        self.add(|round| write::metadata(round, commit, &stored))
    }

    /// As [`Self::commit`], for a deletion.
    fn deletion(&mut self, commit: &DeletionCommit) -> Result<(), CommitError> {
        let stored = judge_deletion(commit, &self.facts())?;
        self.add(|round| write::deletion(round, commit, &stored))
    }

    fn facts(&self) -> Facts<'_, 'db> {
        Facts {
            round: self.round,
            live: self.live,
        }
    }

    fn add(
        &mut self,
        write: impl FnOnce(&mut Round<'db>) -> Result<(), ReadError>,
    ) -> Result<(), CommitError> {
        let added = self.round.attempt(write);
        added.map_err(|error| CommitError::Store(error.to_string()))
    }

    fn hold(&mut self, session: SessionId, token: Option<LeaseToken>) {
        match token {
            Some(token) => self.live.insert(session, token),
            None => self.live.remove(&session),
        };
        self.leases.push((session, token));
    }
}
