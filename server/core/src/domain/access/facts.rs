//! What a policy decides upon: the session as the server holds it, and what a call would do to it.
//!
//! What must never enter: anything that a caller says of itself, or of a session beyond what the call
//! would make true.

use crate::domain::fleet::labels::Labels;
use crate::domain::fleet::summary::SessionSummary;
use crate::domain::ids::{AgentName, ExternalKey, SessionId, SessionName, TenantId};
use crate::domain::place::Place;
use crate::domain::provenance::{Channel, Trust};
use crate::domain::session::{SessionRecord, StoredSession};

/// What an action is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource<'a> {
    /// The tenant itself: creating in it, reading its agents, administering.
    Tenant(&'a TenantId),
    /// One session of a tenant.
    Session(SessionFacts<'a>),
}

impl<'a> Resource<'a> {
    /// The tenant that it is of.
    #[must_use]
    pub fn tenant(&self) -> &'a TenantId {
        match self {
            Self::Tenant(tenant) => tenant,
            Self::Session(session) => session.tenant,
        }
    }
}

/// What policies may know of a session. Nothing of what it is at: a session does not appear and
/// disappear with each run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionFacts<'a> {
    /// The tenant that owns it.
    pub tenant: &'a TenantId,
    /// The session.
    pub id: SessionId,
    /// Its name.
    pub name: Option<&'a SessionName>,
    /// The host's own key.
    pub external_key: Option<&'a ExternalKey>,
    /// The agent definition that it runs.
    pub agent: &'a AgentName,
    /// What people and schedulers hang on it.
    pub labels: &'a Labels,
    /// Where it works.
    pub place: Option<&'a Place>,
    /// Nothing new runs until it is resumed.
    pub paused: bool,
    /// The session that its conversation branched off.
    pub parent: Option<SessionId>,
}

impl<'a> SessionFacts<'a> {
    /// Of a session as its rows say.
    #[must_use]
    pub fn of_stored(stored: &'a StoredSession) -> Self {
        Self::of_record(&stored.record, stored.head.place.as_ref())
    }

    /// Of a session with that record, which works there.
    #[must_use]
    pub fn of_record(record: &'a SessionRecord, place: Option<&'a Place>) -> Self {
        Self {
            tenant: &record.tenant,
            id: record.id,
            name: record.metadata.name.as_ref(),
            external_key: record.external_key.as_ref(),
            agent: &record.agent,
            labels: &record.metadata.labels,
            place,
            paused: record.metadata.paused,
            parent: record.lineage.map(|lineage| lineage.parent),
        }
    }

    /// Of a session of that tenant as the fleet shows it.
    #[must_use]
    pub fn of_summary(tenant: &'a TenantId, summary: &'a SessionSummary) -> Self {
        Self {
            tenant,
            id: summary.id,
            name: summary.name.as_ref(),
            external_key: summary.external_key.as_ref(),
            agent: &summary.agent,
            labels: &summary.labels,
            place: summary.place.as_ref(),
            paused: summary.paused,
            parent: summary.lineage.map(|lineage| lineage.parent),
        }
    }
}

/// What a call would do, as far as its action has it. All of it comes from the decoded request or from
/// what the server looked up; trust is that of the credential, lowered by the call at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PolicyContext<'a> {
    /// By which way a text comes in.
    pub channel: Option<Channel>,
    /// How far it is trusted.
    pub trust: Option<Trust>,
    /// How many bytes the text has.
    pub size: Option<u64>,
    /// The model that is to be chosen; none for the default.
    pub model: Option<&'a str>,
    /// The thinking level that is to be chosen; none for the default.
    pub level: Option<&'a str>,
    /// The agent definition that a new session is to run.
    pub agent: Option<&'a AgentName>,
    /// The name that a session is to have.
    pub name: Option<&'a SessionName>,
    /// The labels that a session is to have.
    pub labels: Option<&'a Labels>,
    /// Where a session is to work.
    pub place: Option<&'a Place>,
    /// Whether another session works there; none where no policy asks.
    pub shared: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fleet::labels::{LabelKey, LabelValue};
    use crate::domain::fleet::metadata::Metadata;
    use crate::domain::place::Directory;
    use crate::domain::session::{Lineage, SessionHead};
    use crate::domain::time::Timestamp;

    #[test]
    fn c55_a_policy_is_told_the_same_of_a_session_whether_it_is_read_or_shown() {
        let at = Timestamp::from_millis(1);
        let mut metadata = Metadata::first(Some("docs".parse().unwrap()), at);
        let label = (
            LabelKey::parse("accepts").unwrap(),
            LabelValue::parse("ci").unwrap(),
        );
        metadata.labels = Labels::of([label]).unwrap();
        metadata.paused = true;
        let record = SessionRecord {
            id: SessionId::mint(at, 1),
            tenant: "team".parse().unwrap(),
            external_key: Some("key".parse().unwrap()),
            agent: "coder".parse().unwrap(),
            created_at: at,
            lineage: Some(Lineage {
                parent: SessionId::mint(at, 2),
                entry: None,
            }),
            metadata,
        };
        let mut head = SessionHead::empty();
        head.place = Some(Place {
            workspace: "main".parse().unwrap(),
            directory: Directory::root(),
        });
        let stored = StoredSession { record, head };
        let facts = SessionFacts::of_stored(&stored);
        let summary = SessionSummary::dormant(&stored, 1);
        assert_eq!(SessionFacts::of_summary(facts.tenant, &summary), facts);
        assert_eq!(Resource::Session(facts).tenant().as_str(), "team");
        assert!(facts.paused && facts.parent.is_some() && facts.place.is_some());
        assert_eq!(
            (facts.labels.iter().count(), facts.name.is_some()),
            (1, true)
        );
    }
}
