//! The ports over the tables: one lock makes judging and keeping a commit one step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
use sessionplane_core::ports::commit_rules::judge;
use sessionplane_core::ports::fleet_rules::{judge_deletion, judge_metadata};
use sessionplane_core::ports::lease_store::{HeldLease, LeaseStore};
use sessionplane_core::ports::repository::{
    CommitError, DeletedSession, EntryRange, FoundSession, ReadError, Repository, SessionQuery,
};
use tokio::sync::watch;

use super::gate::{CommitGate, CommitStep, Open, Passing};
use super::tables::Tables;

const CLOSED: &str = "the store was opened anew";

/// A store without a disk. Cheap to open, and opened anew by [`MemoryStore::reopen`] as a killed
/// process would find it.
pub struct MemoryStore {
    disk: Arc<Mutex<Disk>>,
    boot: u32,
    gate: Arc<dyn CommitGate>,
    fatal: watch::Sender<Option<Arc<str>>>,
}

/// What all openings share. The newest opening owns it; calls through an older one fail.
struct Disk {
    boot: u32,
    minted: u64,
    tables: Tables,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::gated(Arc::new(Open))
    }

    /// An empty store whose commits pass a gate, which may delay and break them.
    #[must_use]
    pub fn gated(gate: Arc<dyn CommitGate>) -> Self {
        let disk = Disk {
            boot: 1,
            minted: 0,
            tables: Tables::default(),
        };
        Self {
            disk: Arc::new(Mutex::new(disk)),
            boot: 1,
            gate,
            fatal: watch::Sender::new(None),
        }
    }

    /// Opens the store again as after a crash: what was synced is there, all leases are void, and
    /// nothing that still waits in the old opening will be written.
    #[must_use]
    pub fn reopen(&self) -> Self {
        let mut disk = lock(&self.disk);
        disk.boot += 1;
        disk.minted = 0;
        disk.tables.revoke_all();
        Self {
            disk: Arc::clone(&self.disk),
            boot: disk.boot,
            gate: Arc::clone(&self.gate),
            fatal: watch::Sender::new(None),
        }
    }

    /// Becomes the reason once a commit failed; the store takes no more commits then, and a server
    /// has to exit.
    #[must_use]
    pub fn fatal(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.fatal.subscribe()
    }

    /// A session's audit records in order.
    pub fn audits(&self, session: SessionId) -> Result<Vec<AuditRecord>, ReadError> {
        self.read(|tables| tables.audits(session))
    }

    /// What was done to a session's metadata, in order.
    pub fn metadata_audits(&self, session: SessionId) -> Result<Vec<AuditRecord>, ReadError> {
        self.read(|tables| tables.metadata_audits(session))
    }

    /// The runs of a session, oldest first.
    pub fn runs_of(&self, session: SessionId) -> Result<Vec<RunId>, ReadError> {
        self.read(|tables| tables.runs_of(session))
    }

    /// Every input that joined a run, in order of acceptance.
    pub fn inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError> {
        self.read(|tables| tables.inputs(run))
    }

    fn open(&self) -> Result<MutexGuard<'_, Disk>, String> {
        let disk = lock(&self.disk);
        if disk.boot == self.boot {
            Ok(disk)
        } else {
            Err(CLOSED.to_owned())
        }
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&mut Tables) -> T) -> Result<T, ReadError> {
        let mut disk = self.open().map_err(ReadError::Store)?;
        Ok(read(&mut disk.tables))
    }

    /// What only the writer of a store may do or tell: refused once it has failed.
    pub(super) fn changeable<T>(&self, act: impl FnOnce(&mut Tables) -> T) -> Result<T, ReadError> {
        let mut disk = self.open().map_err(ReadError::Store)?;
        self.whole().map_err(ReadError::Store)?;
        Ok(act(&mut disk.tables))
    }

    /// Whether no commit has failed.
    fn whole(&self) -> Result<(), String> {
        match &*self.fatal.borrow() {
            Some(reason) => Err(reason.to_string()),
            None => Ok(()),
        }
    }

    async fn pass(&self, step: CommitStep, passing: Passing<'_>) -> Result<(), CommitError> {
        let passed = self.gate.pass(step, passing).await;
        passed.map_err(|reason| {
            self.fatal.send_replace(Some(reason.as_str().into()));
            CommitError::Store(reason)
        })
    }

    /// Judges and keeps in one step.
    fn keep(&self, passing: Passing<'_>) -> Result<(), CommitError> {
        let mut disk = self.open().map_err(CommitError::Store)?;
        self.whole().map_err(CommitError::Store)?;
        let tables = &mut disk.tables;
        match passing {
            Passing::Commit(commit) => {
                judge(commit, &*tables)?;
                tables.apply(commit.clone());
            }
            Passing::Metadata(commit) => {
                judge_metadata(commit, &*tables)?;
                tables.apply_metadata(commit.clone());
            }
            Passing::Deletion(commit) => {
                judge_deletion(commit, &*tables)?;
                tables.apply_deletion(commit.clone());
            }
        }
        Ok(())
    }

    /// Takes it through the gate: held before it is kept, and before it is acknowledged.
    async fn take(&self, passing: Passing<'_>) -> Result<(), CommitError> {
        self.pass(CommitStep::BeforeSync, passing).await?;
        self.keep(passing)?;
        self.pass(CommitStep::AfterSync, passing).await
    }
}

fn lock(disk: &Mutex<Disk>) -> MutexGuard<'_, Disk> {
    // A panic while the lock is held can only be a bug in `apply`, which a test would show.
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Repository for MemoryStore {
    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        self.take(Passing::Commit(&commit)).await
    }

    async fn commit_metadata(&self, commit: MetadataCommit) -> Result<(), CommitError> {
        self.take(Passing::Metadata(&commit)).await
    }

    async fn delete(&self, commit: DeletionCommit) -> Result<(), CommitError> {
        self.take(Passing::Deletion(&commit)).await
    }

    async fn deleted(&self, after: Option<SessionId>) -> Result<Option<DeletedSession>, ReadError> {
        self.read(|tables| tables.deleted(after))
    }

    async fn erase(&self, session: SessionId, keep: u64, max: usize) -> Result<bool, ReadError> {
        self.changeable(|tables| tables.erase(session, keep, max))
    }

    async fn find(&self, query: SessionQuery) -> Result<Vec<FoundSession>, ReadError> {
        self.read(|tables| tables.find(&query))
    }

    async fn session(&self, id: SessionId) -> Result<Option<StoredSession>, ReadError> {
        self.read(|tables| tables.session(id))
    }

    async fn resolve(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<SessionId>, ReadError> {
        self.read(|tables| tables.resolve(tenant, session))
    }

    async fn look_up(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<FoundSession>, ReadError> {
        self.read(|tables| tables.look_up(tenant, session))
    }

    async fn entries(
        &self,
        session: SessionId,
        range: EntryRange,
    ) -> Result<Vec<Entry>, ReadError> {
        self.read(|tables| tables.entries(session, range))
    }

    async fn entry(&self, id: EntryId) -> Result<Option<Entry>, ReadError> {
        self.read(|tables| tables.entry(id))
    }
    async fn runs(
        &self,
        session: SessionId,
        before: Option<RunId>,
        max: usize,
    ) -> Result<Vec<RunRecord>, ReadError> {
        self.read(|tables| tables.runs(session, before, max))
    }
    async fn interactions(&self, run: RunId) -> Result<Vec<Interaction>, ReadError> {
        self.read(|tables| tables.interactions(run))
    }
    async fn run(&self, id: RunId) -> Result<Option<RunRecord>, ReadError> {
        self.read(|tables| tables.run(id))
    }

    async fn input(&self, id: InputId) -> Result<Option<InputRecord>, ReadError> {
        self.read(|tables| tables.input(id))
    }

    async fn pending_inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError> {
        let mut inputs = self.inputs(run)?;
        inputs.retain(|input| input.fate == InputFate::Pending);
        Ok(inputs)
    }

    async fn binding(&self, key: &BindingKey) -> Result<Option<Binding>, ReadError> {
        self.read(|tables| tables.binding(key))
    }

    async fn sweep_bindings(&self, before: Timestamp, max: usize) -> Result<usize, ReadError> {
        self.changeable(|tables| tables.sweep(before, max))
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    async fn mint(&self) -> Result<LeaseToken, ReadError> {
        let mut disk = self.open().map_err(ReadError::Store)?;
        disk.minted += 1;
        LeaseToken::minted(disk.boot, disk.minted)
            .ok_or_else(|| ReadError::Store("no tokens are left; start anew".into()))
    }

    async fn holder(&self, session: SessionId) -> Result<Option<LeaseToken>, ReadError> {
        self.read(|tables| tables.holder(session))
    }

    async fn revoke(&self, session: SessionId) -> Result<(), ReadError> {
        self.changeable(|tables| tables.revoke(session))
    }

    async fn orphaned(&self) -> Result<Vec<HeldLease>, ReadError> {
        self.changeable(|tables| tables.orphaned())
    }

    async fn cut(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError> {
        // Where there is no record, nobody has to be asked.
        if self.read(|tables| tables.is_leased(session))? {
            self.changeable(|tables| tables.cut(session))
        } else {
            Ok(None)
        }
    }
}
