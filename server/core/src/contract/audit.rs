//! The audit trail's part of the contract: reading a tenant's chain.

use async_trait::async_trait;

use super::{CallOptions, ResultStream};
use crate::domain::audit::{ChainRecord, Link};
use crate::domain::error::CallError;
use crate::domain::ids::SessionId;
use crate::domain::provenance::Digest;

/// Which records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListAudit {
    /// Only those after this number.
    pub after: u64,
    /// Records in a page; 0 asks for the default.
    pub page_size: u32,
    /// Which of those.
    pub filter: AuditFilter,
}

/// What is wanted of a record; absent fields want any.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditFilter {
    /// Of this session.
    pub session: Option<SessionId>,
    /// By this principal.
    pub principal: Option<String>,
    /// Of this action.
    pub action: Option<String>,
    /// With this decision.
    pub decision: Option<String>,
    /// From then on, in milliseconds since the Unix epoch.
    pub since_ms: Option<u64>,
    /// Before then, in milliseconds since the Unix epoch.
    pub until_ms: Option<u64>,
}

impl AuditFilter {
    /// Whether a record is wanted.
    #[must_use]
    pub fn wants(&self, record: &ChainRecord) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        self.session.is_none_or(|id| record.session == Some(id))
            && is(&self.principal, record.principal.as_deref())
            && is(&self.action, Some(&record.action))
            && is(&self.decision, Some(&record.decision))
            && self.since_ms.is_none_or(|since| record.time_ms >= since)
            && self.until_ms.is_none_or(|until| record.time_ms < until)
    }

    /// Whether every record is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A record as it is told: what the chain says of it, and what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditItem {
    /// Its number.
    pub seq: u64,
    /// The hash of the one before it.
    pub previous: Digest,
    /// Its own.
    pub hash: Digest,
    /// The record, or why it cannot be read.
    pub record: Result<ChainRecord, String>,
}

/// Some records, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditPage {
    /// Them.
    pub items: Vec<AuditItem>,
    /// What comes after this number is on the next page; none at the chain's end.
    pub next: Option<u64>,
    /// The newest record of the chain; number 0 and the genesis where there is none.
    pub end: Link,
    /// What stands for the hash before the first record.
    pub genesis: Digest,
    /// Whose chain it is.
    pub tenant: String,
}

/// Reads the audit trail of the caller's tenant.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Records in the order of the chain.
    async fn list_audit(
        &self,
        request: ListAudit,
        options: CallOptions,
    ) -> Result<AuditPage, CallError>;

    /// The records after a number, then those that come. Never ends by itself.
    async fn watch_audit(
        &self,
        after: u64,
        options: CallOptions,
    ) -> Result<ResultStream<AuditItem>, CallError>;
}
