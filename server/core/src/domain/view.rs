//! The state that observers read: a fold of the published events.
//!
//! There is no second copy of a status. The publisher applies each event to the view in the same
//! step that numbers it, so a read can never be older than an event that was already seen, and a
//! client that folds the stream onto a snapshot gets the same state.

use std::collections::BTreeMap;

use super::event::{Event, EventBody, PendingInput, QueueChange};
use super::ids::{EntryId, InputId, InteractionId, RunId};
use super::interaction::{self, Interaction};
use super::session::{LastRun, SessionHead, SessionIdentity, StoredSession};
use super::settings::{ModelPolicy, Resolved, SettingsOverride};
use super::usage::Usage;

/// Whether something holds the session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// Nothing runs: an invoke would be admitted.
    Idle,
    /// A run is active, from `run_started` to `run_settled`.
    Running,
    /// The transcript is being compacted outside of a run.
    Compacting,
}

impl Status {
    /// The status as it stands in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Compacting => "compacting",
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
    /// The transcript is being compacted outside of a run.
    pub compacting: bool,
    /// What people chose at the leaf.
    pub chosen: SettingsOverride,
    /// Model and level that the next model call uses, and the levels it could use.
    pub resolved: Resolved,
    /// What the active or newest run asked, in order: all that is open, and the newest of the
    /// rest.
    pub interactions: BTreeMap<InteractionId, Interaction>,
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
    /// The state of a session that nothing serves: what its stored rows say. `asked` is what its
    /// newest run asked.
    #[must_use]
    pub fn dormant(stored: &StoredSession, policy: &ModelPolicy, asked: Vec<Interaction>) -> Self {
        let SessionHead {
            entries,
            leaf,
            last_run,
            usage,
            chosen,
            ..
        } = stored.head.clone();
        let mut view = Self {
            active_run: None,
            last_run,
            compacting: false,
            resolved: policy.resolve(&chosen),
            chosen,
            interactions: asked.into_iter().map(|it| (it.id, it)).collect(),
            pending: BTreeMap::new(),
            usage,
            leaf,
            entries,
            session: stored.record.identity(),
        };
        view.bound_interactions();
        view
    }

    /// The state of a session that is about to be created.
    #[must_use]
    pub fn unborn(session: SessionIdentity, policy: &ModelPolicy) -> Self {
        Self {
            session,
            active_run: None,
            last_run: None,
            compacting: false,
            chosen: SettingsOverride::default(),
            resolved: policy.resolve(&SettingsOverride::default()),
            interactions: BTreeMap::new(),
            pending: BTreeMap::new(),
            usage: Usage::default(),
            leaf: None,
            entries: 0,
        }
    }

    /// Idle, running or compacting.
    #[must_use]
    pub fn status(&self) -> Status {
        if self.active_run.is_some() {
            Status::Running
        } else if self.compacting {
            Status::Compacting
        } else {
            Status::Idle
        }
    }

    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            EventBody::RunStarted { settings, .. } => {
                self.active_run = event.run;
                self.resolved.settings = settings.clone();
                self.interactions.clear();
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
            // Within a run the state says `running`.
            EventBody::CompactionStarted { .. } => self.compacting = event.run.is_none(),
            EventBody::CompactionFinished { .. } => self.compacting = false,
            EventBody::StateChanged {
                leaf,
                chosen,
                resolved,
                renamed,
            } => {
                self.leaf = *leaf;
                self.chosen = chosen.clone();
                self.resolved = resolved.clone();
                if let Some(name) = renamed {
                    self.session.name.clone_from(name);
                }
            }
            EventBody::InteractionRequested { interaction } => {
                self.interactions
                    .insert(interaction.id, (**interaction).clone());
                self.bound_interactions();
            }
            EventBody::InteractionResolved { id, resolution } => {
                if let Some(interaction) = self.interactions.get_mut(id) {
                    interaction.resolution = Some((**resolution).clone());
                }
            }
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

    /// What the run waits for an answer to.
    pub fn open_interactions(&self) -> impl Iterator<Item = &Interaction> {
        self.interactions
            .values()
            .filter(|interaction| interaction.resolution.is_none())
    }

    /// Forgets those that were resolved first, beyond the bound. The order is that of their ends,
    /// which no clock can turn round ([`interaction::end_after`]), so that who folds events and who
    /// reads the rows keep the same ones.
    fn bound_interactions(&mut self) {
        while let Some(id) = interaction::surplus(&self.interactions) {
            self.interactions.remove(&id);
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
