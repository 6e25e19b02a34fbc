//! The chains of audit records in memory: a link says whose record it is of, and has its hash.

use async_trait::async_trait;
use sessionplane_core::domain::audit::{
    AuditRecord, ChainRecord, Link, Refusal, Series, genesis, seal,
};
use sessionplane_core::domain::ids::{SessionId, TenantId};
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::ports::audit_trail::{AuditTrail, StoredLink};
use sessionplane_core::ports::repository::{CommitError, ReadError};

use super::store::MemoryStore;
use super::tables::Tables;

/// The store that these chains are of.
const STORE: u128 = 7;

/// A link.
pub(super) struct Linked {
    of: Of,
    hash: Digest,
}

/// What a link is of.
enum Of {
    Write {
        session: SessionId,
        series: Series,
        ordinal: u64,
    },
    Refused(Refusal),
}

impl Tables {
    /// Seals a record that is about to be kept.
    pub(super) fn seal(&mut self, series: Series, record: &AuditRecord) {
        let of = Of::Write {
            session: record.session,
            series,
            ordinal: record.ordinal,
        };
        self.link(&record.tenant, of, |seq| {
            ChainRecord::of_write(seq, series, record)
        });
    }

    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        let tenant = refusal.tenant.clone();
        let of = Of::Refused(refusal.clone());
        self.link(&tenant, of, |seq| ChainRecord::of_refusal(seq, refusal));
    }

    fn link(&mut self, tenant: &TenantId, of: Of, record: impl FnOnce(u64) -> ChainRecord) {
        let chain = self.chains.entry(chain_of(tenant)).or_default();
        let previous = chain
            .last()
            .map_or_else(|| genesis(STORE, tenant), |last| last.hash);
        let hash = seal(previous, &record(chain.len() as u64 + 1));
        chain.push(Linked { of, hash });
    }

    fn chain(&self, tenant: &TenantId) -> &[Linked] {
        self.chains
            .get(&chain_of(tenant))
            .map_or(&[], Vec::as_slice)
    }

    fn links(&self, tenant: &TenantId, after: u64, max: usize) -> Vec<StoredLink> {
        let chain = self.chain(tenant);
        let after = usize::try_from(after)
            .unwrap_or(usize::MAX)
            .min(chain.len());
        let mut previous = match after.checked_sub(1) {
            None => genesis(STORE, tenant),
            Some(last) => chain[last].hash,
        };
        let mut links = Vec::new();
        for (seq, linked) in (after as u64 + 1..).zip(chain[after..].iter().take(max)) {
            let record = self.linked(seq, &linked.of);
            links.push(StoredLink {
                seq,
                previous,
                hash: linked.hash,
                record: record.ok_or_else(|| "it is missing".to_owned()),
            });
            previous = linked.hash;
        }
        links
    }

    fn linked(&self, seq: u64, of: &Of) -> Option<ChainRecord> {
        match of {
            Of::Refused(refusal) => Some(ChainRecord::of_refusal(seq, refusal)),
            Of::Write {
                session,
                series,
                ordinal,
            } => {
                let audits = match series {
                    Series::Session => self.audits.get(session)?,
                    Series::Metadata => self.metadata_audits.get(session)?,
                };
                let record = audits.iter().find(|it| it.ordinal == *ordinal)?;
                Some(ChainRecord::of_write(seq, *series, record))
            }
        }
    }

    fn links_of_session(&self, session: SessionId, after: u64, max: usize) -> Vec<u64> {
        let mut found = Vec::new();
        for chain in self.chains.values() {
            let of = |linked: &&Linked| matches!(linked.of, Of::Write { session: of, .. } if of == session);
            let numbered = (1..).zip(chain).filter(|(_, linked)| of(linked));
            let numbers = numbered.map(|(seq, _)| seq).filter(|seq| *seq > after);
            found.extend(numbers.take(max));
        }
        found
    }
}

/// Shorter names first, as the durable store has them.
fn chain_of(tenant: &TenantId) -> (usize, TenantId) {
    (tenant.as_str().len(), tenant.clone())
}

#[async_trait]
impl AuditTrail for MemoryStore {
    fn store_id(&self) -> u128 {
        STORE
    }

    async fn chain_end(&self, tenant: &TenantId) -> Result<Option<Link>, ReadError> {
        self.read(|tables| {
            let chain = tables.chain(tenant);
            chain.last().map(|last| Link {
                seq: chain.len() as u64,
                hash: last.hash,
            })
        })
    }

    async fn chains(
        &self,
        after: Option<&TenantId>,
        max: usize,
    ) -> Result<Vec<TenantId>, ReadError> {
        let after = after.map(chain_of);
        self.read(|tables| {
            let keys = tables.chains.keys();
            let rest = keys.filter(|key| after.as_ref().is_none_or(|after| *key > after));
            rest.take(max).map(|(_, tenant)| tenant.clone()).collect()
        })
    }

    async fn links(
        &self,
        tenant: &TenantId,
        after: u64,
        max: usize,
    ) -> Result<Vec<StoredLink>, ReadError> {
        self.read(|tables| tables.links(tenant, after, max))
    }

    async fn links_of_session(
        &self,
        session: SessionId,
        after: u64,
        max: usize,
    ) -> Result<Vec<u64>, ReadError> {
        self.read(|tables| tables.links_of_session(session, after, max))
    }

    async fn refused(&self, refusals: Vec<Refusal>) -> Result<(), CommitError> {
        let kept = self.changeable(|tables| {
            for refusal in &refusals {
                tables.refuse(refusal);
            }
        });
        kept.map_err(|error| CommitError::Store(error.to_string()))
    }
}
