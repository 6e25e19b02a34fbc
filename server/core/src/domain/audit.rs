//! What was done, by whom, by which credential, and what it caused. One record per commit, and the
//! chain that a tenant's records are links of.
//!
//! What must never enter: a content. A record outlives its session (C61), so it names and digests.

use std::sync::Arc;

use super::access::Action;
use super::capabilities::SandboxLevel;
use super::ids::{EntryId, PrincipalId, RequestId, RunId, SessionId, TenantId};
use super::provenance::Digest;
use super::time::Timestamp;

mod canonical;
mod chain;
mod checkpoint;
mod record;
mod refusal;
mod via;

pub use canonical::{DOMAIN, GENESIS, encode, genesis, seal};
pub use chain::{Broken, Flaw, Link, Sealed, Verifier};
pub use checkpoint::{Checkpoint, CheckpointBody, WitnessFlaw, witness};
pub use record::{ChainRecord, Series};
pub use refusal::{Refusal, RefusalKind, Refused};
pub use via::{Proof, Transport, Via};

/// Who stands behind an audited write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditActor {
    /// The sender.
    pub principal: PrincipalId,
    /// A non-secret name of the credential used.
    pub credential: Arc<str>,
    /// The policies that allowed it.
    pub policies: Arc<[String]>,
    /// The W3C trace id of the call, if it carried one.
    pub trace_id: Option<Arc<str>>,
    /// How the call came; `None` where nobody noted it.
    pub via: Option<Via>,
}

/// What an audited commit did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuditAction {
    /// A caller's verb was accepted.
    Call(Action),
    /// The run's engine produced entries, took an input, or asked something or no longer does.
    EngineOutput,
    /// The callers of a run that asked for it are gone: it is being aborted.
    Disconnect,
    /// A question's deadline passed.
    Expire,
    /// A compaction ended.
    Compacted,
    /// What version control says of the session's place was noted after a run.
    Checkout,
    /// The run settled.
    Settle,
    /// A run or a compaction that a crash cut was ended at the next start.
    Recover,
}

impl AuditAction {
    /// The stable name of the action in the record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call(action) => action.as_str(),
            Self::EngineOutput => "EngineOutput",
            Self::Disconnect => "Disconnect",
            Self::Expire => "Expire",
            Self::Compacted => "Compacted",
            Self::Checkout => "Checkout",
            Self::Settle => "Settle",
            Self::Recover => "Recover",
        }
    }
}

/// An audit record. Its key is the session and `ordinal`; the store that keeps it seals it as the next
/// link of its tenant's chain ([`ChainRecord`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditRecord {
    /// The session written to.
    pub session: SessionId,
    /// The record's number within its session, from 1.
    pub ordinal: u64,
    /// The tenant of the session.
    pub tenant: TenantId,
    /// When the commit was decided.
    pub at: Timestamp,
    /// Who stands behind it; `None` where the server itself acted (settle, recovery).
    pub actor: Option<AuditActor>,
    /// What was done.
    pub action: AuditAction,
    /// SHA-256 over the decoded fields of the request, where a request caused it; keyed for an answer.
    pub request_digest: Option<Digest>,
    /// Bytes of text the request carried for the model or engine; none are counted of an answer.
    pub bytes: u64,
    /// The caller's key for the call, if it gave one.
    pub request_id: Option<RequestId>,
    /// The run concerned; none for what is done between runs.
    pub run: Option<RunId>,
    /// Entries that this commit appended.
    pub entries: Vec<EntryId>,
    /// How it ended, as a stable word: one of [`Self::OUTCOMES`].
    pub outcome: &'static str,
    /// What keeps the agent's tools inside their directory, of a commit that lets it work somewhere: an
    /// invoke, a compaction, a new session, a change of directory.
    pub sandbox: Option<SandboxLevel>,
}

impl AuditRecord {
    /// Every word that an outcome may be; a store keeps and reads back no other.
    pub const OUTCOMES: [&'static str; 4] = ["accepted", "completed", "failed", "aborted"];
}

#[cfg(test)]
mod tests;
