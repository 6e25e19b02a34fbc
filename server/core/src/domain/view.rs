//! The state that observers read: a fold of the published events.
//!
//! There is no second copy of a status. The publisher applies each event to the view in the same
//! step that numbers it, so a read can never be older than an event that was already seen, and a
//! client that folds the stream onto a snapshot gets the same state.

use std::collections::BTreeMap;

use super::event::{Event, EventBody, PendingInput, QueueChange};
use super::ids::{EntryId, InputId, RunId};
use super::run::RunSettings;
use super::session::{LastRun, SessionHead, SessionIdentity, StoredSession};
use super::usage::Usage;

/// Whether something holds the session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// Nothing runs: an invoke would be admitted.
    Idle,
    /// A run is active, from `run_started` to `run_settled`.
    Running,
}

impl Status {
    /// The status as it stands in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
        }
    }
}

/// A session's state as observers read it.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionView {
    /// Who the session is.
    pub session: SessionIdentity,
    /// The active run.
    pub active_run: Option<RunId>,
    /// How the newest settled run ended.
    pub last_run: Option<LastRun>,
    /// Model and level of the active or newest run.
    pub settings: RunSettings,
    /// Inputs that wait, in order of acceptance.
    pub pending: BTreeMap<InputId, PendingInput>,
    /// What settled runs used, and the active one so far.
    pub usage: Usage,
    /// The entry that the conversation goes on from.
    pub leaf: Option<EntryId>,
    /// How many entries are durable.
    pub entries: u64,
}

impl SessionView {
    /// The state of a session that nothing serves: what its stored rows say.
    #[must_use]
    pub fn dormant(stored: &StoredSession) -> Self {
        let SessionHead {
            entries,
            leaf,
            last_run,
            usage,
            ..
        } = stored.head.clone();
        Self {
            session: stored.record.identity(),
            active_run: None,
            last_run,
            settings: RunSettings::default(),
            pending: BTreeMap::new(),
            usage,
            leaf,
            entries,
        }
    }

    /// The state of a session that is about to be created.
    #[must_use]
    pub fn unborn(session: SessionIdentity) -> Self {
        Self {
            session,
            active_run: None,
            last_run: None,
            settings: RunSettings::default(),
            pending: BTreeMap::new(),
            usage: Usage::default(),
            leaf: None,
            entries: 0,
        }
    }

    /// Idle or running.
    #[must_use]
    pub fn status(&self) -> Status {
        if self.active_run.is_some() {
            Status::Running
        } else {
            Status::Idle
        }
    }

    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            EventBody::RunStarted { settings, .. } => {
                self.active_run = event.run;
                self.settings = settings.clone();
            }
            EventBody::RunSettled { run } => {
                self.pending.clear();
                self.active_run = None;
                self.last_run = LastRun::of(run);
            }
            EventBody::QueueChanged { change, .. } => self.apply_queue(change),
            EventBody::EntryAppended { entry } => {
                self.leaf = Some(entry.id);
                self.entries = self.entries.max(entry.id.seq);
            }
            EventBody::UsageUpdated { session, .. } => self.usage = *session,
            EventBody::TurnStarted { .. }
            | EventBody::TurnFinished { .. }
            | EventBody::MessageStarted { .. }
            | EventBody::MessageDelta { .. }
            | EventBody::MessageFinished { .. }
            | EventBody::ToolStarted { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::ToolFinished { .. }
            | EventBody::InputDelivered { .. }
            | EventBody::InputDiscarded { .. }
            | EventBody::RetryScheduled { .. }
            | EventBody::ServingError { .. } => {}
        }
    }

    fn apply_queue(&mut self, change: &QueueChange) {
        match change {
            QueueChange::Added(input) => {
                self.pending.insert(input.id, (**input).clone());
            }
            QueueChange::Handed(id) => {
                if let Some(input) = self.pending.get_mut(id) {
                    input.handed = true;
                }
            }
            QueueChange::Returned(id) => {
                if let Some(input) = self.pending.get_mut(id) {
                    input.handed = false;
                }
            }
            QueueChange::Removed(id) => {
                self.pending.remove(id);
            }
        }
    }
}
