//! The chains of audit records that a store seals: reading them, and adding what was refused.
//!
//! Promises that the repository suite checks: each record that a commit appends is sealed in the step
//! that keeps it, as the next of its tenant's chain; a chain has no gap and no two records of a number.

use async_trait::async_trait;

use super::repository::{CommitError, ReadError};
use crate::domain::audit::{ChainRecord, Link, Refusal};
use crate::domain::ids::{SessionId, TenantId};
use crate::domain::provenance::Digest;

/// A link of a chain as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredLink {
    /// Its number.
    pub seq: u64,
    /// The hash of the one before it, as that is stored.
    pub previous: Digest,
    /// Its hash, as it is stored.
    pub hash: Digest,
    /// What it is of, or why that cannot be read.
    pub record: Result<ChainRecord, String>,
}

/// Reads and extends chains.
#[async_trait]
pub trait AuditTrail: Send + Sync {
    /// Tells apart stores whose chains begin alike: the genesis of each chain is of it.
    fn store_id(&self) -> u128;
    /// The newest link of a tenant's chain; none where nothing was recorded.
    async fn chain_end(&self, tenant: &TenantId) -> Result<Option<Link>, ReadError>;
    /// The tenants that have a chain, after that one in the order of their names: at most `max`.
    async fn chains(
        &self,
        after: Option<&TenantId>,
        max: usize,
    ) -> Result<Vec<TenantId>, ReadError>;
    /// Links of a chain in order: at most `max` of those after number `after`.
    async fn links(
        &self,
        tenant: &TenantId,
        after: u64,
        max: usize,
    ) -> Result<Vec<StoredLink>, ReadError>;
    /// Numbers in the chain of a session's records, in the order in which they were written, of each of
    /// its series: at most `max` of those after number `after`. A deleted session's stay.
    async fn links_of_session(
        &self,
        session: SessionId,
        after: u64,
        max: usize,
    ) -> Result<Vec<u64>, ReadError>;
    /// Records refusals, syncs, then returns.
    async fn refused(&self, refusals: Vec<Refusal>) -> Result<(), CommitError>;
}
