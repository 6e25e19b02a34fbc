//! An audit record as a link of its tenant's chain: flat, in words, as it is hashed, sent and
//! exported. Words rather than enums: a record of a newer server is verified by an older reader.
//!
//! What must never enter: anything that is not in the record that the store keeps.

use super::refusal::{Refusal, Refused};
use super::{AuditRecord, RefusalKind};
use crate::domain::ids::{RunId, SessionId};
use crate::domain::provenance::Digest;

/// Which of a session's two series of records one is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Series {
    /// What runs, boundary mutations and the deletion did, numbered from 1.
    Session,
    /// What changes of metadata did, numbered by the revision that came of them.
    Metadata,
}

impl Series {
    /// The stable word of the series.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Metadata => "metadata",
        }
    }
}

/// A record of a chain. Absent fields do not apply.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChainRecord {
    /// Its number in the tenant's chain, from 1.
    pub seq: u64,
    /// When, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The tenant.
    pub tenant: String,
    /// Who; absent where the server itself acted, and of callers that are not known.
    pub principal: Option<String>,
    /// A non-secret name of the credential used.
    pub credential: Option<String>,
    /// How the call came.
    pub via: Option<String>,
    /// What was done or wanted.
    pub action: String,
    /// The session.
    pub session: Option<SessionId>,
    /// `allow`, `server` (nobody asked), or why it did not happen.
    pub decision: String,
    /// The policies that decided.
    pub policies: Vec<String>,
    /// SHA-256 over the request's decoded fields.
    pub request_digest: Option<Digest>,
    /// Bytes of text that the request carried.
    pub bytes: u64,
    /// The caller's key for the call.
    pub request_id: Option<String>,
    /// The W3C trace id of the call.
    pub trace_id: Option<String>,
    /// How it ended.
    pub outcome: String,
    /// The run concerned.
    pub run: Option<RunId>,
    /// Numbers of the entries of `session` that it appended.
    pub entries: Vec<u64>,
    /// The message that it delivers; reserved for inboxes.
    pub message: Option<[u8; 16]>,
    /// The series that the record is of in its session.
    pub series: Option<String>,
    /// Its number in that series.
    pub ordinal: Option<u64>,
    /// What keeps the agent's tools inside their directory.
    pub sandbox: Option<String>,
    /// Where a caller that is not known was.
    pub peer: Option<String>,
    /// The reason that a refused caller was told.
    pub reason: Option<String>,
    /// How many refusals it stands for.
    pub count: Option<u64>,
    /// When the last of them was, in milliseconds since the Unix epoch.
    pub last_time_ms: Option<u64>,
}

impl ChainRecord {
    /// The decision of what a policy allowed.
    pub const ALLOWED: &str = "allow";
    /// The decision of what the server did by itself.
    pub const BY_SERVER: &str = "server";
    /// The outcome of what did not happen.
    pub const REFUSED: &str = "refused";

    /// The record of a committed write.
    #[must_use]
    pub fn of_write(seq: u64, series: Series, record: &AuditRecord) -> Self {
        let actor = record.actor.as_ref();
        let decision = match actor {
            Some(_) => Self::ALLOWED,
            None => Self::BY_SERVER,
        };
        Self {
            seq,
            time_ms: record.at.as_millis(),
            tenant: record.tenant.to_string(),
            principal: actor.map(|actor| actor.principal.to_string()),
            credential: actor.map(|actor| actor.credential.to_string()),
            via: actor.and_then(|actor| actor.via).map(|via| via.to_string()),
            action: record.action.as_str().to_owned(),
            session: Some(record.session),
            decision: decision.to_owned(),
            policies: actor.map_or_else(Vec::new, |actor| actor.policies.to_vec()),
            request_digest: record.request_digest,
            bytes: record.bytes,
            request_id: record.request_id.as_ref().map(ToString::to_string),
            trace_id: actor
                .and_then(|actor| actor.trace_id.as_ref())
                .map(ToString::to_string),
            outcome: record.outcome.to_owned(),
            run: record.run,
            entries: record.entries.iter().map(|id| id.seq).collect(),
            series: Some(series.as_str().to_owned()),
            ordinal: Some(record.ordinal),
            sandbox: record.sandbox.map(|level| level.as_str().to_owned()),
            ..Self::default()
        }
    }

    /// The record of a refusal.
    #[must_use]
    pub fn of_refusal(seq: u64, refusal: &Refusal) -> Self {
        let (principal, credential, peer) = match &refusal.who {
            Refused::Known {
                principal,
                credential,
            } => (
                Some(principal.to_string()),
                Some(credential.to_string()),
                None,
            ),
            Refused::Peer(peer) => (None, None, peer.as_ref().map(ToString::to_string)),
            Refused::Nobody => (None, None, None),
        };
        Self {
            seq,
            time_ms: refusal.first_at.as_millis(),
            tenant: refusal.tenant.to_string(),
            principal,
            credential,
            via: refusal.via.map(|via| via.to_string()),
            action: refusal.action.to_string(),
            session: refusal.session,
            decision: refusal.kind.as_str().to_owned(),
            policies: refusal.policies.to_vec(),
            outcome: Self::REFUSED.to_owned(),
            peer,
            reason: Some(refusal.reason.to_string()),
            count: Some(refusal.count),
            last_time_ms: Some(refusal.last_at.as_millis()),
            ..Self::default()
        }
    }

    /// Whether it tells of something that did not happen.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let mut kinds = RefusalKind::ALL.iter();
        kinds.any(|kind| kind.as_str() == self.decision)
    }
}
