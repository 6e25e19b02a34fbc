//! One session as the fleet shows it: everything that a line of `agents` prints, and what a filter
//! can ask for.
//!
//! It is made when somebody looks, of what is recorded elsewhere; nothing keeps one as a record.

use super::labels::{Labels, Priority};
use super::phase::{Phase, PhaseFacts};
use crate::domain::binding::SessionAnswer;
use crate::domain::ids::{AgentName, ExternalKey, RunId, SessionId, SessionName};
use crate::domain::interaction::Interaction;
use crate::domain::place::{Checkout, Place};
use crate::domain::session::{LastRun, Lineage, SessionRecord, StoredSession};
use crate::domain::settings::SettingsOverride;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::domain::view::{SessionView, Status};

/// A session at one revision. Two of the same session that have one revision are equal (C46).
#[derive(Clone, PartialEq, Debug)]
pub struct SessionSummary {
    /// Its opaque id.
    pub id: SessionId,
    /// Its name, unique in the tenant.
    pub name: Option<SessionName>,
    /// The host's own key, unique in the tenant, immutable.
    pub external_key: Option<ExternalKey>,
    /// The agent definition that it runs.
    pub agent: AgentName,
    /// What people and schedulers hang on it.
    pub labels: Labels,
    /// How urgent it is.
    pub priority: Priority,
    /// Nothing new runs until it is resumed.
    pub paused: bool,
    /// Where it works; none where its agent sees no workspace.
    pub place: Option<Place>,
    /// What version control said at the last boundary of a run.
    pub checkout: Option<Checkout>,
    /// Where its conversation branched off another session's.
    pub lineage: Option<Lineage>,
    /// What it is at.
    pub phase: Phase,
    /// When it came to be in that phase; none if that was before the server started.
    pub since: Option<Timestamp>,
    /// Since when it has shown nothing though it works.
    pub stalled_since: Option<Timestamp>,
    /// The active run.
    pub active_run: Option<RunId>,
    /// How the newest settled run ended.
    pub last_run: Option<LastRun>,
    /// What its run waits for an answer to, in the order of asking.
    pub questions: Vec<Interaction>,
    /// Inputs and messages that wait.
    pub queued: u64,
    /// Model and level that somebody chose; none until somebody does (C45).
    pub chosen: SettingsOverride,
    /// What its runs used.
    pub usage: Usage,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name, labels, priority or pause changed last.
    pub updated_at: Timestamp,
    /// The number of that change: what an update expects.
    pub metadata_revision: u64,
    /// Grows with everything above.
    pub revision: u64,
}

/// What a session's rows do not say of it: what is known only while something of it is in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Presence {
    /// Something of it is in memory that a run would find there.
    pub resident: bool,
    /// When it came to be in its phase, if that was seen.
    pub since: Option<Timestamp>,
    /// Since when it has shown nothing though it works.
    pub stalled_since: Option<Timestamp>,
}

impl SessionSummary {
    /// A session of which nothing is in memory, and which nothing has cut: what its rows say.
    #[must_use]
    pub fn dormant(stored: &StoredSession, revision: u64) -> Self {
        let StoredSession { record, head } = stored;
        let facts = PhaseFacts {
            status: Status::Idle,
            asks: false,
            resident: false,
            paused: record.metadata.paused,
            messages: false,
        };
        Self {
            phase: facts.phase(),
            last_run: head.last_run.clone(),
            chosen: head.chosen.clone(),
            usage: head.usage,
            revision,
            ..Self::named(record, (head.place.clone(), head.checkout.clone()))
        }
    }

    /// A session as its event channel knows it: who it is, where it works, what its events fold to, and
    /// what is in memory of it.
    #[must_use]
    pub fn live(
        record: &SessionRecord,
        place: (Option<Place>, Option<Checkout>),
        view: &SessionView,
        presence: Presence,
        revision: u64,
    ) -> Self {
        let runs = view.active_run.is_some();
        // What a settled run asked is nobody's to answer.
        let questions: Vec<_> = view.open_interactions().filter(|_| runs).cloned().collect();
        let facts = PhaseFacts {
            status: view.status(),
            asks: !questions.is_empty(),
            resident: presence.resident,
            paused: record.metadata.paused,
            messages: false,
        };
        Self {
            phase: facts.phase(),
            since: presence.since,
            stalled_since: presence.stalled_since,
            active_run: view.active_run,
            last_run: view.last_run.clone(),
            questions,
            queued: view.pending.len() as u64,
            chosen: view.chosen.clone(),
            usage: view.usage,
            revision,
            ..Self::named(record, place)
        }
    }

    /// The same as a call left it that decided this, whatever was changed since (C3): its revision is 0
    /// then, which no session has, because it never was what it is told to be all at once.
    #[must_use]
    pub fn decided(mut self, answer: SessionAnswer) -> Self {
        let now = self.clone();
        if let Some(metadata) = answer.metadata {
            if let Some(phase) = self.phase.if_paused(metadata.paused) {
                (self.phase, self.since) = (phase, None);
            }
            self.name = metadata.name;
            self.labels = metadata.labels;
            self.priority = metadata.priority;
            self.paused = metadata.paused;
            self.updated_at = metadata.updated_at;
            self.metadata_revision = metadata.revision;
        }
        if let Some(placed) = answer.placed {
            self.place = placed.place;
            self.checkout = placed.checkout;
        }
        if self != now {
            self.revision = 0;
        }
        self
    }

    /// What holds of a session whatever it is at.
    fn named(record: &SessionRecord, place: (Option<Place>, Option<Checkout>)) -> Self {
        let metadata = record.metadata.clone();
        Self {
            id: record.id,
            name: metadata.name,
            external_key: record.external_key.clone(),
            agent: record.agent.clone(),
            labels: metadata.labels,
            priority: metadata.priority,
            paused: metadata.paused,
            place: place.0,
            checkout: place.1,
            lineage: record.lineage,
            phase: Phase::Dormant,
            since: None,
            stalled_since: None,
            active_run: None,
            last_run: None,
            questions: Vec::new(),
            queued: 0,
            chosen: SettingsOverride::default(),
            usage: Usage::default(),
            created_at: record.created_at,
            updated_at: metadata.updated_at,
            metadata_revision: metadata.revision,
            revision: 0,
        }
    }

    /// Roughly the bytes that it keeps alive: what is kept in memory and sent of summaries is bounded by
    /// this.
    #[must_use]
    pub fn weight(&self) -> usize {
        let labels = self.labels.iter();
        let labels: usize = labels
            .map(|(key, value)| key.as_str().len() + value.as_str().len())
            .sum();
        let questions: usize = self.questions.iter().map(Interaction::weight).sum();
        let ended = self
            .last_run
            .as_ref()
            .map_or(0, |last| last.outcome.weight());
        size_of::<Self>() + 256 + 2 * labels + questions + ended
    }

    /// When anything last happened to it that is recorded.
    #[must_use]
    pub fn last_active_at(&self) -> Timestamp {
        let settled = self.last_run.as_ref().map(|last| last.settled_at);
        settled.unwrap_or_default().max(self.created_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fleet::metadata::Metadata;
    use crate::domain::ids::{TenantId, WorkspaceName};
    use crate::domain::place::Directory;
    use crate::domain::session::SessionHead;
    use crate::domain::settings::ModelPolicy;

    /// C46: whether a session is read from its rows or from a channel that was made of them.
    #[test]
    fn c46_the_rows_and_the_channel_that_is_made_of_them_say_the_same() {
        let at = Timestamp::from_millis(5);
        let mut metadata = Metadata::first(None, at);
        metadata.paused = true;
        let record = SessionRecord {
            id: SessionId::mint(at, 1),
            tenant: TenantId::parse("t").unwrap(),
            external_key: None,
            agent: AgentName::parse("a").unwrap(),
            created_at: at,
            lineage: None,
            metadata,
        };
        let mut head = SessionHead::empty();
        head.place = Some(Place {
            workspace: WorkspaceName::parse("repo").unwrap(),
            directory: Directory::root(),
        });
        head.chosen.model = Some("deep".to_owned());
        head.usage.output_tokens = Some(7);
        let stored = StoredSession { record, head };
        let view = SessionView::dormant(&stored, &ModelPolicy::default(), Vec::new());
        let place = (stored.head.place.clone(), None);
        let live = SessionSummary::live(&stored.record, place, &view, Presence::default(), 9);
        assert_eq!(SessionSummary::dormant(&stored, 9), live);
        assert_eq!(live.phase, Phase::Paused);
    }
}
