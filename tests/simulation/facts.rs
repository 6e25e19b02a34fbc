//! What an event says of durable facts, against what is stored and acknowledged by then (C39).

use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::{AuditAction, AuditRecord};
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::compaction::{CompactionOutcome, CompactionTrigger};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::{EventBody, EventEnvelope, PendingInput, QueueChange};
use sessionplane_core::domain::ids::{AgentName, EntryId, RunId, SessionId};
use sessionplane_core::domain::input::InputFate;
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::limits::MAX_TOLD_UNDELIVERED;
use sessionplane_core::domain::provenance::Origin;
use sessionplane_core::domain::run::{RunRecord, RunSettings};
use sessionplane_core::domain::settings::{Resolved, SettingsOverride};
use sessionplane_core::domain::time::Timestamp;

use crate::books::{Books, Inner};

/// What a step outside of runs wrote, by its audit record: what is told of it is told with its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Deed {
    pub(crate) at: Timestamp,
    pub(crate) action: AuditAction,
    pub(crate) run: Option<RunId>,
    pub(crate) outcome: &'static str,
    leaf: Leaf,
}

/// Where the leaf is after a step.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Leaf {
    At(Option<EntryId>),
    /// Another step of the same commit moved it on.
    Unknown,
}

impl Deed {
    /// What the records of a commit tell of.
    pub(crate) fn all_of(commit: &Commit) -> impl Iterator<Item = Self> {
        let last = commit.audits.len();
        let deed = move |(at, audit): (usize, &AuditRecord)| Self {
            at: audit.at,
            action: audit.action,
            run: audit.run,
            outcome: audit.outcome,
            leaf: match audit.entries.last() {
                Some(entry) => Leaf::At(Some(*entry)),
                None if at + 1 == last => Leaf::At(commit.head.leaf),
                None => Leaf::Unknown,
            },
        };
        commit.audits.iter().enumerate().map(deed)
    }

    fn is_choice(&self) -> bool {
        let AuditAction::Call(action) = self.action else {
            return false;
        };
        matches!(
            action,
            Action::SetModel | Action::SetThinking | Action::Navigate
        )
    }
}

/// How a run is told to have begun.
struct Begun<'e> {
    origin: &'e Origin,
    entry: EntryId,
    agent: &'e AgentName,
    settings: &'e RunSettings,
}

/// Where a session is told to stand.
struct Stands<'e> {
    leaf: Option<EntryId>,
    chosen: &'e SettingsOverride,
    resolved: &'e Resolved,
}

impl Books {
    /// Whether what an event tells of is acknowledged by now, and stored as it is told. What tells of
    /// nothing durable passes.
    pub(crate) fn bears_out(&self, envelope: &EventEnvelope) -> bool {
        let session = envelope.session;
        let (at, run) = (envelope.event.at, envelope.event.run);
        let inner = self.read();
        match &envelope.event.body {
            EventBody::RunStarted {
                origin,
                entry,
                agent,
                settings,
            } => inner.began(
                run,
                &Begun {
                    origin,
                    entry: *entry,
                    agent,
                    settings,
                },
            ),
            EventBody::RunSettled { run } => inner.ended(run),
            EventBody::EntryAppended { entry } => {
                let stored = inner.entry(session, entry.id.seq);
                stored.is_some_and(|stored| stored.for_event() == **entry)
            }
            EventBody::InputDelivered { input, entry } => {
                inner.fate(*input) == Some(InputFate::Delivered(*entry))
            }
            EventBody::InputDiscarded { input, cause } => {
                inner.fate(*input) == Some(InputFate::Discarded(*cause))
            }
            EventBody::QueueChanged { change, .. } => inner.queued(change),
            EventBody::InteractionRequested { interaction } => {
                let stored = inner.asked(interaction.id).cloned();
                let asked = stored.map(|stored| Interaction {
                    resolution: None,
                    ..stored
                });
                asked.as_ref() == Some(&**interaction)
            }
            EventBody::InteractionResolved { id, resolution } => {
                inner.resolution(*id) == Some(&**resolution)
            }
            EventBody::CompactionStarted {
                trigger: CompactionTrigger::Manual,
            } => inner.did(session, at, |it| {
                it.action == AuditAction::Call(Action::Compact)
            }),
            EventBody::CompactionFinished { outcome } => inner.compacted(envelope, outcome),
            EventBody::StateChanged {
                leaf,
                chosen,
                resolved,
                renamed: _,
            } => inner.stands(
                session,
                at,
                &Stands {
                    leaf: *leaf,
                    chosen,
                    resolved,
                },
            ),
            _ => true,
        }
    }
}

impl Inner {
    fn began(&self, run: Option<RunId>, begun: &Begun<'_>) -> bool {
        let stored = run.filter(|run| self.is_run_synced(*run));
        let stored = stored.and_then(|run| self.runs.get(&run));
        stored.is_some_and(|it| {
            it.origin == *begun.origin
                && it.first_entry == begun.entry
                && it.agent == *begun.agent
                && it.settings == *begun.settings
        })
    }

    fn ended(&self, told: &RunRecord) -> bool {
        let Some(stored) = self.settled(told.id) else {
            return false;
        };
        let mut stored = stored.clone();
        stored.undelivered.truncate(MAX_TOLD_UNDELIVERED);
        stored == *told
    }

    fn queued(&self, change: &QueueChange) -> bool {
        match change {
            QueueChange::Added(told) => self
                .input(told.id)
                .is_some_and(|stored| PendingInput::of(stored, false) == **told),
            QueueChange::Handed(id) | QueueChange::Returned(id) => self.input(*id).is_some(),
            QueueChange::Removed(id) => self.fate(*id).is_some(),
        }
    }

    /// The summary is the entry that the end names; outside of a run every end is on record.
    fn compacted(&self, envelope: &EventEnvelope, outcome: &CompactionOutcome) -> bool {
        let (at, run) = (envelope.event.at, envelope.event.run);
        let due = match run {
            Some(_) => CompactionTrigger::Overflow,
            None => CompactionTrigger::Manual,
        };
        let written = match outcome {
            CompactionOutcome::Completed(id) => {
                let stored = self.entry(id.session, id.seq);
                stored.is_some_and(|entry| {
                    let same = entry.id == *id && entry.run == run;
                    same && matches!(entry.body, EntryBody::Compaction { trigger, .. } if trigger == due)
                })
            }
            CompactionOutcome::Failed(_) | CompactionOutcome::Aborted => true,
        };
        let recorded = run.is_some()
            || self.did(envelope.session, at, |it| {
                it.action == AuditAction::Compacted
                    && it.run.is_none()
                    && it.outcome == outcome.as_str()
            });
        written && recorded
    }

    /// The leaf is where a choice or a move put it, and the settings are those of the way there.
    fn stands(&self, session: SessionId, at: Timestamp, told: &Stands<'_>) -> bool {
        let moved = self.did(session, at, |it| {
            it.is_choice() && [Leaf::At(told.leaf), Leaf::Unknown].contains(&it.leaf)
        });
        let Some(leaf) = told.leaf.and_then(|leaf| self.entry(session, leaf.seq)) else {
            return moved && told.leaf.is_none() && *told.chosen == SettingsOverride::default();
        };
        let chosen = match self.choice(leaf) {
            Some(Entry {
                body: EntryBody::Settings { chosen },
                ..
            }) => chosen.clone(),
            _ => SettingsOverride::default(),
        };
        let resolved = self.policy(session).map(|policy| policy.resolve(&chosen));
        moved && *told.chosen == chosen && resolved.as_ref() == Some(told.resolved)
    }

    /// The newest settings on the way to an entry.
    fn choice(&self, leaf: &Entry) -> Option<&Entry> {
        let seq = leaf.path.settings?;
        self.entry(leaf.id.session, seq)
    }

    /// Whether something of the kind that was decided at this time is acknowledged.
    fn did(&self, session: SessionId, at: Timestamp, which: impl Fn(&Deed) -> bool) -> bool {
        let mut deeds = self.deeds(session).iter();
        deeds.any(|deed| deed.at == at && which(deed))
    }
}
