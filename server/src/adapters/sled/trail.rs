//! The chains of audit records, as the port asks for them.

use async_trait::async_trait;
use sessionplane_core::domain::audit::{Link, Refusal};
use sessionplane_core::domain::ids::{SessionId, TenantId};
use sessionplane_core::ports::audit_trail::{AuditTrail, StoredLink};
use sessionplane_core::ports::repository::{CommitError, ReadError};

use super::committer::Request;
use super::store::SledStore;

/// Most links of one read: each is up to two point reads.
const MAX_LINKS: usize = 1024;

#[async_trait]
impl AuditTrail for SledStore {
    fn store_id(&self) -> u128 {
        SledStore::store_id(self)
    }

    async fn chain_end(&self, tenant: &TenantId) -> Result<Option<Link>, ReadError> {
        let tenant = tenant.clone();
        self.read(move |reader| reader.chain_end(&tenant)).await
    }

    async fn chains(
        &self,
        after: Option<&TenantId>,
        max: usize,
    ) -> Result<Vec<TenantId>, ReadError> {
        let after = after.cloned();
        self.read(move |reader| reader.chains(after.as_ref(), max))
            .await
    }

    async fn links(
        &self,
        tenant: &TenantId,
        after: u64,
        max: usize,
    ) -> Result<Vec<StoredLink>, ReadError> {
        let (tenant, max) = (tenant.clone(), max.min(MAX_LINKS));
        self.read(move |reader| reader.links(&tenant, after, max))
            .await
    }

    async fn links_of_session(
        &self,
        session: SessionId,
        after: u64,
        max: usize,
    ) -> Result<Vec<u64>, ReadError> {
        let max = max.min(MAX_LINKS);
        self.read(move |reader| reader.links_of_session(session, after, max))
            .await
    }

    async fn refused(&self, refusals: Vec<Refusal>) -> Result<(), CommitError> {
        if refusals.is_empty() {
            return Ok(());
        }
        self.ask(|done| Request::Refused(refusals, done))
            .await
            .unwrap_or_else(|reason| Err(CommitError::Store(reason)))
    }
}
