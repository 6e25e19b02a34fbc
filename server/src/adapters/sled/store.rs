//! The ports over committer and reader: commits go to the thread, reads to blocking threads, and
//! the caller only awaits.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use async_trait::async_trait;
use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::binding::{Binding, BindingKey};
use sessionplane_core::domain::commit::{Commit, DeletionCommit, MetadataCommit};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{EntryId, InputId, RunId, SessionId, SessionRef, TenantId};
use sessionplane_core::domain::input::{InputFate, InputRecord};
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::lease_store::{HeldLease, LeaseStore};
use sessionplane_core::ports::repository::{
    CommitError, DeletedSession, EntryRange, FoundSession, ReadError, Repository, SessionQuery,
};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::spawn_blocking;

use super::committer::{Committer, Counters, Holders, Request};
use super::erase::Left;
use super::lookup::Lookups;
use super::open::{OpenError, StoreOptions, open};
use super::reader::Reader;
use super::snapshot::Snapshot;

/// What a call to a closed store hears.
pub(super) const CLOSED: &str = "the store is closed";
/// What a reader hears when sled panicked on what it read.
pub(super) const PANICKED: &str = "the storage engine panicked";

/// What a store counted since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreCounters {
    /// Rounds that were begun.
    pub rounds: u64,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Commits that were refused.
    pub refused: u64,
    /// Syncs of the database file, the one of the opening included.
    pub syncs: u64,
}

/// The durable store. One process at a time has a directory open.
///
/// Dropping it waits for the round that is being written; [`SledStore::close`] does so without
/// blocking a runtime thread, and gives the directory free.
pub struct SledStore {
    queue: Option<mpsc::Sender<Request>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    reader: Arc<RwLock<Option<Reader>>>,
    /// Room for reads at a time.
    reads: RwLock<Arc<Semaphore>>,
    most_reads: usize,
    lookups: Lookups,
    store_id: u128,
    boot: u32,
    minted: AtomicU64,
    holders: Holders,
    counters: Arc<Counters>,
    fatal: watch::Receiver<Option<Arc<str>>>,
    /// Whether somebody reads a snapshot.
    snapshots: watch::Receiver<bool>,
}

impl SledStore {
    /// Opens the store in a directory, creating both if there is none. Blocks; call it before the
    /// runtime serves, or on a blocking thread.
    ///
    /// # Errors
    /// See [`OpenError`]. Never a panic, whatever the directory holds.
    pub fn open(path: impl AsRef<Path>, options: &StoreOptions) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let opened = open(path, options)?;
        let (queue, requests) = mpsc::channel(options.queue.max(1));
        let (fatal_tx, fatal) = watch::channel(None);
        let holders = Holders::default();
        let committer = Committer::new(
            opened.device,
            requests,
            opened.meta.boots,
            Arc::clone(&holders),
            Arc::clone(&opened.counters),
            fatal_tx,
        );
        let no_thread = |error: std::io::Error| OpenError::Io {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        let thread = std::thread::Builder::new()
            .name("store-committer".to_owned())
            .spawn(move || committer.run())
            .map_err(no_thread)?;
        let snapshots = opened.reader.snapshots();
        let reader = Arc::new(RwLock::new(Some(opened.reader)));
        let lookups = Lookups::start(Arc::clone(&reader), options.queue.max(1));
        Ok(Self {
            queue: Some(queue),
            thread: Mutex::new(Some(thread)),
            reader,
            reads: RwLock::new(Arc::new(Semaphore::new(options.reads.max(1)))),
            most_reads: options.reads.max(1),
            lookups: lookups.map_err(no_thread)?,
            store_id: opened.meta.store_id,
            boot: opened.meta.boots,
            minted: AtomicU64::new(0),
            holders,
            counters: opened.counters,
            fatal,
            snapshots,
        })
    }

    /// Takes no more commits, finishes those that wait, and gives the directory free. Everything
    /// fails from then on. A second call does nothing.
    pub async fn close(&self) {
        if let Some(queue) = &self.queue {
            // An error means that the committer has ended already.
            let _ = queue.send(Request::Close).await;
        }
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let reader = Arc::clone(&self.reader);
        // Panics of the committer are told by `fatal`; one of sled's own clean-up must not spread.
        let _ = spawn_blocking(move || {
            let _ = thread.map(JoinHandle::join);
            let reader = reader
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            drop(reader);
        })
        .await;
    }

    /// Becomes the reason once a round failed. What that round wrote is unknown, the store takes
    /// no more commits, and the process has to exit.
    #[must_use]
    pub fn fatal(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.fatal.clone()
    }

    /// Identifies the store, for as long as its directory lives.
    #[must_use]
    pub fn store_id(&self) -> u128 {
        self.store_id
    }

    /// How often the store was opened, this time included.
    #[must_use]
    pub fn boots(&self) -> u32 {
        self.boot
    }

    /// What was counted since it was opened.
    #[must_use]
    pub fn counters(&self) -> StoreCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreCounters {
            rounds: read(&self.counters.rounds),
            commits: read(&self.counters.commits),
            refused: read(&self.counters.refused),
            syncs: read(&self.counters.syncs),
        }
    }

    /// All that the store holds by now, to be read at leisure while it goes on being written.
    ///
    /// # Errors
    /// When there is one already, or the store failed.
    pub async fn snapshot(&self) -> Result<Snapshot, ReadError> {
        self.ask(Request::Snapshot)
            .await
            .unwrap_or_else(|reason| Err(ReadError::Store(reason)))
    }

    /// A session's audit records in order.
    pub async fn audits(&self, session: SessionId) -> Result<Vec<AuditRecord>, ReadError> {
        self.read(move |reader| reader.audits(session)).await
    }

    /// What was done to a session's metadata, in order.
    pub async fn metadata_audits(&self, session: SessionId) -> Result<Vec<AuditRecord>, ReadError> {
        self.read(move |reader| reader.metadata_audits(session))
            .await
    }

    /// The runs of a session, oldest first.
    pub async fn runs_of(&self, session: SessionId) -> Result<Vec<RunId>, ReadError> {
        self.read(move |reader| reader.runs_of(session)).await
    }

    /// Every input that joined a run, in order of acceptance. For tests and tools: a run may have had
    /// any number of them.
    pub async fn inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError> {
        self.read(move |reader| reader.inputs(run, |_| true)).await
    }

    /// Reads on a blocking thread. The number at a time is bounded here, the number of waiting
    /// reads by their callers.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let closed = || ReadError::Store(CLOSED.to_owned());
        let reads = self.present_reads();
        let permit = reads.acquire_owned().await;
        let permit = permit.map_err(|_| closed())?;
        let reader = Arc::clone(&self.reader);
        let reading = spawn_blocking(move || {
            crate::failpoint::reach("store::read");
            let _permit = permit;
            let reader = reader.read().unwrap_or_else(PoisonError::into_inner);
            reader.as_ref().ok_or_else(closed).and_then(read)
        });
        // sled panics on some damage; the runtime has caught it.
        reading
            .await
            .unwrap_or_else(|_| Err(ReadError::Store(PANICKED.to_owned())))
    }

    /// Room for those who ask now.
    fn present_reads(&self) -> Arc<Semaphore> {
        let reads = self.reads.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&reads)
    }

    /// Hands a request to the committer and waits for its answer.
    pub(super) async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, String> {
        let (done, answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or(CLOSED)?;
        queue.send(request(done)).await.map_err(|_| CLOSED)?;
        answer
            .await
            .map_err(|_| "the committer failed in the round".to_owned())
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        // The queue ends with its only sender, and the committer with the queue.
        self.queue = None;
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let _ = thread.map(JoinHandle::join);
    }
}

#[async_trait]
impl Repository for SledStore {
    fn make_way(&self) {
        let fresh = Arc::new(Semaphore::new(self.most_reads));
        *self.reads.write().unwrap_or_else(PoisonError::into_inner) = fresh;
    }

    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        let commit = Box::new(commit);
        self.ask(|done| Request::Commit(commit, done))
            .await
            .unwrap_or_else(|reason| Err(CommitError::Store(reason)))
    }

    async fn commit_metadata(&self, commit: MetadataCommit) -> Result<(), CommitError> {
        let commit = Box::new(commit);
        self.ask(|done| Request::Metadata(commit, done))
            .await
            .unwrap_or_else(|reason| Err(CommitError::Store(reason)))
    }

    async fn delete(&self, commit: DeletionCommit) -> Result<(), CommitError> {
        let commit = Box::new(commit);
        self.ask(|done| Request::Delete(commit, done))
            .await
            .unwrap_or_else(|reason| Err(CommitError::Store(reason)))
    }

    /// It is read first, and waited for then: a snapshot that is begun after that has it as deleted.
    async fn deleted(&self, after: Option<SessionId>) -> Result<Option<DeletedSession>, ReadError> {
        let found = self.read(move |reader| reader.deleted(after)).await?;
        if found.is_some() {
            let mut snapshots = self.snapshots.clone();
            // Once the store is closed there is none, and nothing is erased.
            let _ = snapshots.wait_for(|read| !read).await;
        }
        Ok(found)
    }

    async fn erase(&self, session: SessionId, keep: u64, max: usize) -> Result<bool, ReadError> {
        let max = max.max(1);
        let mut gone = 0;
        loop {
            let slice = |done| Request::Erase {
                session,
                keep,
                max: max - gone,
                done,
            };
            let erased = self.ask(slice).await.map_err(ReadError::Store)??;
            gone += erased.gone;
            if erased.left != Left::More || gone >= max {
                return Ok(erased.left == Left::Nothing);
            }
        }
    }

    async fn find(&self, query: SessionQuery) -> Result<Vec<FoundSession>, ReadError> {
        self.read(move |reader| reader.find(&query)).await
    }

    async fn session(&self, id: SessionId) -> Result<Option<StoredSession>, ReadError> {
        let read = move |reader: &Reader| reader.session(id);
        Ok(self.read(read).await?.map(Arc::unwrap_or_clone))
    }

    async fn resolve(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<SessionId>, ReadError> {
        let (tenant, session) = (tenant.clone(), session.clone());
        self.read(move |reader| reader.resolve(&tenant, &session))
            .await
    }

    async fn look_up(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<FoundSession>, ReadError> {
        let (tenant, session) = (tenant.clone(), session.clone());
        self.read(move |reader| reader.look_up(&tenant, &session))
            .await
    }

    async fn entries(
        &self,
        session: SessionId,
        range: EntryRange,
    ) -> Result<Vec<Entry>, ReadError> {
        self.read(move |reader| reader.entries(session, range))
            .await
    }

    async fn entry(&self, id: EntryId) -> Result<Option<Entry>, ReadError> {
        self.read(move |reader| reader.one_entry(id)).await
    }
    async fn runs(
        &self,
        session: SessionId,
        before: Option<RunId>,
        max: usize,
    ) -> Result<Vec<RunRecord>, ReadError> {
        self.read(move |reader| reader.runs(session, before, max))
            .await
    }
    async fn interactions(&self, run: RunId) -> Result<Vec<Interaction>, ReadError> {
        self.read(move |reader| reader.interactions(run)).await
    }
    async fn run(&self, id: RunId) -> Result<Option<RunRecord>, ReadError> {
        self.read(move |reader| reader.run(id)).await
    }

    async fn input(&self, id: InputId) -> Result<Option<InputRecord>, ReadError> {
        self.read(move |reader| reader.input(id)).await
    }

    async fn pending_inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError> {
        let pending = |input: &InputRecord| input.fate == InputFate::Pending;
        self.read(move |reader| reader.inputs(run, pending)).await
    }

    async fn binding(&self, key: &BindingKey) -> Result<Option<Binding>, ReadError> {
        self.lookups.binding(key.clone()).await
    }

    async fn sweep_bindings(&self, before: Timestamp, max: usize) -> Result<usize, ReadError> {
        let (mut gone, mut from) = (0, None);
        loop {
            let slice = |done| Request::Sweep {
                before,
                max: max - gone,
                from: from.take(),
                done,
            };
            let swept = self.ask(slice).await.map_err(ReadError::Store)??;
            gone += swept.gone;
            if gone == max || swept.next.is_none() {
                return Ok(gone);
            }
            from = swept.next;
        }
    }
}

#[async_trait]
impl LeaseStore for SledStore {
    /// From memory: the boot counter, synced at open, sets tokens of this opening above all former.
    async fn mint(&self) -> Result<LeaseToken, ReadError> {
        let number = self.minted.fetch_add(1, Ordering::Relaxed) + 1;
        LeaseToken::minted(self.boot, number)
            .ok_or_else(|| ReadError::Store("no tokens are left; start anew".to_owned()))
    }

    async fn holder(&self, session: SessionId) -> Result<Option<LeaseToken>, ReadError> {
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(holders.get(&session).copied())
    }

    async fn revoke(&self, session: SessionId) -> Result<(), ReadError> {
        self.ask(|done| Request::Revoke(session, done))
            .await
            .unwrap_or_else(|reason| Err(ReadError::Store(reason)))
    }

    async fn orphaned(&self) -> Result<Vec<HeldLease>, ReadError> {
        self.ask(Request::Orphaned)
            .await
            .unwrap_or_else(|reason| Err(ReadError::Store(reason)))
    }

    /// Only the committer knows who holds a lease, and it answers between rounds. It is asked only
    /// where there is a record: few sessions that nobody drives have one.
    async fn cut(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError> {
        if !self.read(move |reader| reader.is_leased(session)).await? {
            return Ok(None);
        }
        self.ask(|done| Request::Cut(session, done))
            .await
            .unwrap_or_else(|reason| Err(ReadError::Store(reason)))
    }
}
