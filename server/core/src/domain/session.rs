//! A session's durable rows: who it is (its metadata change by compare-and-set) and where it stands
//! (written by each commit under the lease). Neither kind of write touches the other's row (C40).

use super::entry::PathMarks;
use super::fleet::metadata::Metadata;
use super::ids::{AgentName, EntryId, ExternalKey, RunId, SessionId, SessionName, TenantId};
use super::lease::LeaseToken;
use super::place::{Checkout, Place};
use super::run::{RunOutcome, RunRecord, Settlement};
use super::settings::SettingsOverride;
use super::time::Timestamp;
use super::usage::Usage;

/// Who a session is. Changes rarely, never by a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRecord {
    /// Its opaque id.
    pub id: SessionId,
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// The host's own key, unique in the tenant, immutable.
    pub external_key: Option<ExternalKey>,
    /// The agent definition that it runs.
    pub agent: AgentName,
    /// When it was created.
    pub created_at: Timestamp,
    /// Where its conversation branched off another session's, if it did.
    pub lineage: Option<Lineage>,
    /// What may be changed of it outside of any run: name, labels, priority, pause. Everything else
    /// here is written once.
    pub metadata: Metadata,
}

/// The place in another session's conversation that a session goes on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lineage {
    /// The other session.
    pub parent: SessionId,
    /// The last entry of it that counts as this session's past; none if it had no entry.
    pub entry: Option<EntryId>,
}

impl SessionRecord {
    /// What an observer may know of it.
    #[must_use]
    pub fn identity(&self) -> SessionIdentity {
        SessionIdentity {
            id: self.id,
            name: self.metadata.name.clone(),
            external_key: self.external_key.clone(),
            agent: self.agent.clone(),
        }
    }
}

/// Who a session is, as observers see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionIdentity {
    /// Its opaque id.
    pub id: SessionId,
    /// Its name, unique in the tenant.
    pub name: Option<SessionName>,
    /// The host's own key, unique in the tenant, immutable.
    pub external_key: Option<ExternalKey>,
    /// The agent definition that it runs.
    pub agent: AgentName,
}

/// How the newest run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastRun {
    /// The run.
    pub run: RunId,
    /// How it ended.
    pub outcome: RunOutcome,
    /// When it was decided.
    pub settled_at: Timestamp,
}

impl LastRun {
    /// What a run's record says of its end; nothing while it is active.
    #[must_use]
    pub fn of(run: &RunRecord) -> Option<Self> {
        let Settlement { at, outcome } = run.settled.clone()?;
        Some(Self {
            run: run.id,
            outcome,
            settled_at: at,
        })
    }
}

/// Where a session stands: the row that every fenced commit compares and rewrites.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionHead {
    /// The token of the last commit: a commit under an older one is refused.
    pub token: LeaseToken,
    /// Entries appended so far; the next one gets this plus one.
    pub entries: u64,
    /// The entry that the conversation goes on from.
    pub leaf: Option<EntryId>,
    /// Audit records written so far.
    pub audits: u64,
    /// How the newest run ended.
    pub last_run: Option<LastRun>,
    /// What all settled runs used.
    pub usage: Usage,
    /// What holds at the leaf.
    pub path: PathMarks,
    /// What is chosen at the leaf: what the entry that `path.settings` names says.
    pub chosen: SettingsOverride,
    /// Where it works; none where its agent sees no workspace.
    pub place: Option<Place>,
    /// What version control said of the place at the last boundary of a run.
    pub checkout: Option<Checkout>,
}

impl SessionHead {
    /// The head of a session that nothing was ever written to.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            token: LeaseToken(0),
            entries: 0,
            leaf: None,
            audits: 0,
            last_run: None,
            usage: Usage::default(),
            path: PathMarks::default(),
            chosen: SettingsOverride::default(),
            place: None,
            checkout: None,
        }
    }
}

/// A session as the store holds it.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredSession {
    /// Who it is.
    pub record: SessionRecord,
    /// Where it stands.
    pub head: SessionHead,
}
