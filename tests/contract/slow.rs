//! The memory store as if it had a disk: every call gives way to other tasks before it is made and
//! before it is answered, so that what may overlap does. It can refuse to settle what was cut.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sessionplane_core::domain::binding::{Binding, BindingKey};
use sessionplane_core::domain::commit::{Commit, DeletionCommit, MetadataCommit};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{EntryId, InputId, RunId, SessionId, SessionRef, TenantId};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::lease::LeaseClause;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::{
    CommitError, DeletedSession, EntryRange, FoundSession, ReadError, Repository, SessionQuery,
};
use sessionplane_server::adapters::memory::MemoryStore;
use tokio::sync::watch;

use crate::suite::desk::within;

/// Gives way so often before a call and before its answer.
const TURNS: usize = 3;

/// The slow store.
pub(crate) struct Slow(pub(crate) Arc<MemoryStore>, pub(crate) Arc<Refusal>);

/// Whether settlements of cut runs are refused, and how many were.
#[derive(Default)]
pub(crate) struct Refusal {
    on: AtomicBool,
    full: AtomicBool,
    damaged: Mutex<Option<RunId>>,
    emptied: AtomicBool,
    broken: AtomicBool,
    read: AtomicUsize,
    found: AtomicUsize,
    refused: watch::Sender<u64>,
}

impl Refusal {
    /// Refuses every settlement from now on, or none any more.
    pub(crate) fn set(&self, on: bool) {
        self.on.store(on, Ordering::SeqCst);
    }

    /// Confirms no commit from now on, as on a disk that is full.
    pub(crate) fn fill(&self) {
        self.full.store(true, Ordering::SeqCst);
    }

    /// Takes one run's record for damaged from now on.
    pub(crate) fn damage(&self, run: RunId) {
        *self.damaged.lock().expect("no panic") = Some(run);
    }

    /// Finds no entries from now on, although their number is known.
    pub(crate) fn empty(&self) {
        self.emptied.store(true, Ordering::SeqCst);
    }

    /// Fails to read entries from now on, or no more.
    pub(crate) fn break_entries(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }

    /// How many entries were read so far.
    pub(crate) fn entries_read(&self) -> usize {
        self.read.load(Ordering::SeqCst)
    }

    /// How many sessions were read through an index so far.
    pub(crate) fn sessions_found(&self) -> usize {
        self.found.load(Ordering::SeqCst)
    }

    fn count(&self, entries: usize) -> Result<(), ReadError> {
        self.read.fetch_add(entries, Ordering::SeqCst);
        if self.broken.load(Ordering::SeqCst) {
            return Err(ReadError::Store("it broke".to_owned()));
        }
        Ok(())
    }

    /// Waits until so many were refused.
    pub(crate) async fn reached(&self, count: u64) {
        let mut refused = self.refused.subscribe();
        let reached = refused.wait_for(|refused| *refused >= count);
        within("a refused settlement", reached)
            .await
            .expect("a store");
    }
}

/// Makes a call, slowly.
async fn slowly<T>(call: impl Future<Output = T>) -> T {
    give_way().await;
    let answer = call.await;
    give_way().await;
    answer
}

async fn give_way() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl Repository for Slow {
    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        if self.1.on.load(Ordering::SeqCst) && matches!(commit.lease, LeaseClause::Recover(_)) {
            self.1.refused.send_modify(|count| *count += 1);
            return Err(CommitError::Store("not now".to_owned()));
        }
        if self.1.full.load(Ordering::SeqCst) {
            return Err(CommitError::Store("no space left".to_owned()));
        }
        slowly(self.0.commit(commit)).await
    }

    async fn commit_metadata(&self, commit: MetadataCommit) -> Result<(), CommitError> {
        if self.1.full.load(Ordering::SeqCst) {
            return Err(CommitError::Store("no space left".to_owned()));
        }
        slowly(self.0.commit_metadata(commit)).await
    }

    async fn delete(&self, commit: DeletionCommit) -> Result<(), CommitError> {
        slowly(self.0.delete(commit)).await
    }

    async fn deleted(&self, after: Option<SessionId>) -> Result<Option<DeletedSession>, ReadError> {
        slowly(self.0.deleted(after)).await
    }

    async fn erase(&self, session: SessionId, keep: u64, max: usize) -> Result<bool, ReadError> {
        slowly(self.0.erase(session, keep, max)).await
    }

    async fn find(&self, query: SessionQuery) -> Result<Vec<FoundSession>, ReadError> {
        let found = slowly(self.0.find(query)).await?;
        self.1.found.fetch_add(found.len(), Ordering::SeqCst);
        Ok(found)
    }

    async fn session(&self, id: SessionId) -> Result<Option<StoredSession>, ReadError> {
        slowly(self.0.session(id)).await
    }

    async fn resolve(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<SessionId>, ReadError> {
        slowly(self.0.resolve(tenant, session)).await
    }

    async fn look_up(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<FoundSession>, ReadError> {
        slowly(self.0.look_up(tenant, session)).await
    }

    async fn entries(
        &self,
        session: SessionId,
        range: EntryRange,
    ) -> Result<Vec<Entry>, ReadError> {
        if self.1.emptied.load(Ordering::SeqCst) {
            give_way().await;
            return Ok(Vec::new());
        }
        let entries = slowly(self.0.entries(session, range)).await?;
        self.1.count(entries.len())?;
        Ok(entries)
    }

    async fn entry(&self, id: EntryId) -> Result<Option<Entry>, ReadError> {
        let entry = slowly(self.0.entry(id)).await?;
        self.1.count(1)?;
        Ok(entry)
    }

    async fn runs(
        &self,
        session: SessionId,
        before: Option<RunId>,
        max: usize,
    ) -> Result<Vec<RunRecord>, ReadError> {
        slowly(self.0.runs(session, before, max)).await
    }

    async fn interactions(&self, run: RunId) -> Result<Vec<Interaction>, ReadError> {
        slowly(self.0.interactions(run)).await
    }

    async fn run(&self, id: RunId) -> Result<Option<RunRecord>, ReadError> {
        if *self.1.damaged.lock().expect("no panic") == Some(id) {
            return Err(ReadError::Damaged {
                key: format!("run {id}"),
                problem: "on purpose".to_owned(),
            });
        }
        slowly(self.0.run(id)).await
    }

    async fn input(&self, id: InputId) -> Result<Option<InputRecord>, ReadError> {
        slowly(self.0.input(id)).await
    }

    async fn pending_inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError> {
        slowly(self.0.pending_inputs(run)).await
    }

    async fn binding(&self, key: &BindingKey) -> Result<Option<Binding>, ReadError> {
        slowly(self.0.binding(key)).await
    }

    async fn sweep_bindings(&self, before: Timestamp, max: usize) -> Result<usize, ReadError> {
        slowly(self.0.sweep_bindings(before, max)).await
    }
}
