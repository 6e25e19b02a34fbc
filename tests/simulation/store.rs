//! The memory store on a disk that is slow and fails: every call waits before it is made and before
//! it is answered, so that what may overlap does, and any read may fail. Commits have the gate of
//! [`Disk`] besides, which breaks the store for good.

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::binding::{Binding, BindingKey};
use sessionplane_core::domain::commit::{Commit, DeletionCommit, MetadataCommit};
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{EntryId, InputId, RunId, SessionId, SessionRef, TenantId};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::lease_store::{HeldLease, LeaseStore};
use sessionplane_core::ports::repository::{
    CommitError, DeletedSession, EntryRange, FoundSession, ReadError, Repository, SessionQuery,
};
use sessionplane_server::adapters::memory::MemoryStore;

use crate::disk::Disk;

/// The store of one start.
pub(crate) struct SlowStore {
    pub(crate) inner: Arc<MemoryStore>,
    pub(crate) disk: Arc<Disk>,
}

impl SlowStore {
    /// Makes a call, slowly. A failure is drawn before it: what fails has done nothing.
    async fn slowly<T>(
        &self,
        call: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        self.disk.read().await.map_err(ReadError::Store)?;
        let answer = call.await;
        self.disk.wait().await;
        answer
    }
}

#[async_trait]
impl Repository for SlowStore {
    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        self.inner.commit(commit).await
    }

    async fn commit_metadata(&self, commit: MetadataCommit) -> Result<(), CommitError> {
        self.inner.commit_metadata(commit).await
    }

    async fn delete(&self, commit: DeletionCommit) -> Result<(), CommitError> {
        self.inner.delete(commit).await
    }

    async fn deleted(&self, after: Option<SessionId>) -> Result<Option<DeletedSession>, ReadError> {
        self.slowly(self.inner.deleted(after)).await
    }

    async fn erase(&self, session: SessionId, keep: u64, max: usize) -> Result<bool, ReadError> {
        self.slowly(self.inner.erase(session, keep, max)).await
    }

    async fn find(&self, query: SessionQuery) -> Result<Vec<FoundSession>, ReadError> {
        self.slowly(self.inner.find(query)).await
    }

    async fn session(&self, id: SessionId) -> Result<Option<StoredSession>, ReadError> {
        self.slowly(self.inner.session(id)).await
    }

    async fn resolve(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<SessionId>, ReadError> {
        self.slowly(self.inner.resolve(tenant, session)).await
    }

    async fn look_up(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<FoundSession>, ReadError> {
        self.slowly(self.inner.look_up(tenant, session)).await
    }

    async fn entries(
        &self,
        session: SessionId,
        range: EntryRange,
    ) -> Result<Vec<Entry>, ReadError> {
        self.slowly(self.inner.entries(session, range)).await
    }

    async fn entry(&self, id: EntryId) -> Result<Option<Entry>, ReadError> {
        self.slowly(self.inner.entry(id)).await
    }

    async fn runs(
        &self,
        session: SessionId,
        before: Option<RunId>,
        max: usize,
    ) -> Result<Vec<RunRecord>, ReadError> {
        self.slowly(self.inner.runs(session, before, max)).await
    }

    async fn interactions(&self, run: RunId) -> Result<Vec<Interaction>, ReadError> {
        self.slowly(self.inner.interactions(run)).await
    }

    async fn run(&self, id: RunId) -> Result<Option<RunRecord>, ReadError> {
        self.slowly(self.inner.run(id)).await
    }

    async fn input(&self, id: InputId) -> Result<Option<InputRecord>, ReadError> {
        self.slowly(self.inner.input(id)).await
    }

    async fn pending_inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError> {
        self.slowly(self.inner.pending_inputs(run)).await
    }

    async fn binding(&self, key: &BindingKey) -> Result<Option<Binding>, ReadError> {
        self.slowly(self.inner.binding(key)).await
    }

    async fn sweep_bindings(&self, before: Timestamp, max: usize) -> Result<usize, ReadError> {
        self.slowly(self.inner.sweep_bindings(before, max)).await
    }
}

#[async_trait]
impl LeaseStore for SlowStore {
    async fn mint(&self) -> Result<LeaseToken, ReadError> {
        self.slowly(self.inner.mint()).await
    }

    async fn holder(&self, session: SessionId) -> Result<Option<LeaseToken>, ReadError> {
        self.slowly(self.inner.holder(session)).await
    }

    async fn revoke(&self, session: SessionId) -> Result<(), ReadError> {
        self.slowly(self.inner.revoke(session)).await
    }

    async fn orphaned(&self) -> Result<Vec<HeldLease>, ReadError> {
        self.slowly(self.inner.orphaned()).await
    }

    async fn cut(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError> {
        self.slowly(self.inner.cut(session)).await
    }
}
