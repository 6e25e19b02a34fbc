//! One session as the fleet shows it: everything that a line of `agents` prints, and what a filter
//! can ask for.
//!
//! It is made when somebody looks, of what is recorded elsewhere; nothing keeps one as a record.

use super::labels::{Labels, Priority};
use super::phase::Phase;
use crate::domain::ids::{AgentName, ExternalKey, RunId, SessionId, SessionName};
use crate::domain::interaction::Interaction;
use crate::domain::place::{Checkout, Place};
use crate::domain::session::{LastRun, Lineage};
use crate::domain::settings::SettingsOverride;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

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

impl SessionSummary {
    /// When anything last happened to it that is recorded.
    #[must_use]
    pub fn last_active_at(&self) -> Timestamp {
        let settled = self.last_run.as_ref().map(|last| last.settled_at);
        settled.unwrap_or_default().max(self.created_at)
    }
}
