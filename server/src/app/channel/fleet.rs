//! What a channel shows the fleet of its session: a summary that is made in the step in which the events
//! that change it are folded.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::access::SessionFacts;
use sessionplane_core::domain::event::{Event, EventBody};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::fleet::phase::stalled_since;
use sessionplane_core::domain::fleet::summary::{Presence, SessionSummary};
use sessionplane_core::domain::ids::TenantId;
use sessionplane_core::domain::place::{Checkout, Place};
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::view::SessionView;
use tokio::sync::watch;

use super::Channel;
use crate::app::fleet::hub::{Change, Hub};

/// Where a session works, and what version control says there.
pub(crate) type Placed = (Option<Place>, Option<Checkout>);

/// What a summary is made of beside the view, and the summary.
pub(super) struct Fleet {
    hub: Arc<Hub>,
    record: SessionRecord,
    placed: Placed,
    /// Tasks that keep something in memory that a run would find there; for a moment two may.
    residents: u32,
    since: Option<Timestamp>,
    /// When it last showed anything.
    progress: Timestamp,
    stalled: Option<Timestamp>,
    /// None before the session exists, and when it exists no more.
    shown: Option<Arc<SessionSummary>>,
    /// Another channel, or none, speaks for the session from now on.
    over: bool,
    /// Told when the session becomes another one to policies.
    facts: watch::Sender<()>,
}

/// Whether two summaries of a session may be two different ones to policies.
fn differ(tenant: &TenantId, before: &SessionSummary, after: &SessionSummary) -> bool {
    let known = |summary| SessionFacts::of_summary(tenant, summary);
    known(before) != known(after)
}

impl Fleet {
    pub(super) fn new(hub: Arc<Hub>, record: SessionRecord, placed: Placed) -> Self {
        Self {
            hub,
            record,
            placed,
            residents: 0,
            since: None,
            progress: Timestamp::default(),
            stalled: None,
            shown: None,
            over: false,
            facts: watch::Sender::new(()),
        }
    }

    /// Takes note of an event; returns whether a summary shows it.
    pub(super) fn note(&mut self, event: &Event) -> bool {
        let stirred = is_progress(&event.body) && self.stalled.take().is_some();
        if is_progress(&event.body) {
            self.progress = event.at;
        }
        stirred || shows(&event.body)
    }

    pub(super) fn place(&mut self, placed: Placed) {
        self.placed = placed;
    }

    fn made(&self, view: &SessionView, revision: u64) -> SessionSummary {
        let presence = Presence {
            resident: self.residents > 0,
            since: self.since,
            stalled_since: self.stalled,
        };
        SessionSummary::live(&self.record, self.placed.clone(), view, presence, revision)
    }

    /// Makes the summary anew, and tells what changed. Under the channel's lock, so that no revision of
    /// the session is told before one that was drawn earlier.
    pub(super) fn remake(&mut self, view: &SessionView, at: Timestamp) {
        if self.over {
            return;
        }
        let before = self.shown.as_deref();
        let mut made = self.made(view, before.map_or(0, |before| before.revision));
        if before.map(|before| before.phase) != Some(made.phase) {
            self.since = Some(at);
            made.since = self.since;
        }
        if before == Some(&made) {
            return;
        }
        made.revision = self.hub.draw();
        let after = Some(Arc::new(made));
        let before = std::mem::replace(&mut self.shown, after.clone());
        let is_another = match (&before, &after) {
            (Some(before), Some(after)) => differ(&self.record.tenant, before, after),
            _ => true,
        };
        if is_another {
            self.facts.send_replace(());
        }
        self.tell(before, after);
    }

    fn tell(&self, before: Option<Arc<SessionSummary>>, after: Option<Arc<SessionSummary>>) {
        let session = self.record.id;
        let change = Change {
            session,
            before,
            after,
        };
        self.hub.tell(&self.record.tenant, change);
    }
}

/// Whether a session that works shows something of its work with it. What others do to it meanwhile is
/// nothing that it shows: one that hangs is stalled, however often it is renamed or sent words.
fn is_progress(body: &EventBody) -> bool {
    !matches!(
        body,
        EventBody::QueueChanged { .. }
            | EventBody::StateChanged {
                renamed: Some(_),
                ..
            }
    )
}

/// Whether a summary shows what an event tells. What comes many times a second is not among it.
fn shows(body: &EventBody) -> bool {
    match body {
        EventBody::RunStarted { .. }
        | EventBody::RunSettled { .. }
        | EventBody::QueueChanged { .. }
        | EventBody::CompactionStarted { .. }
        | EventBody::CompactionFinished { .. }
        | EventBody::StateChanged { .. }
        | EventBody::InteractionRequested { .. }
        | EventBody::InteractionResolved { .. }
        | EventBody::UsageUpdated { .. } => true,
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
        | EventBody::EntryAppended { .. }
        | EventBody::RetryScheduled { .. }
        | EventBody::ServingError { .. } => false,
    }
}

impl Channel {
    /// The session as the fleet shows it; none if it does not exist yet, or any more.
    pub(crate) fn shown(&self) -> Option<Arc<SessionSummary>> {
        self.lock().fleet.shown.clone()
    }

    /// The channel is of a stored session, whose summary without it has this revision: the two say the
    /// same.
    pub(crate) fn found(&self, revision: u64) {
        let mut inner = self.lock();
        let made = inner.fleet.made(&inner.view, revision);
        inner.fleet.shown = Some(Arc::new(made));
    }

    /// Wakes when the session becomes another one to policies.
    pub(crate) fn facts(&self) -> watch::Receiver<()> {
        self.lock().fleet.facts.subscribe()
    }

    /// What may be changed of the session outside of any run.
    pub(crate) fn metadata(&self) -> Metadata {
        self.lock().fleet.record.metadata.clone()
    }

    /// Where it works, and what version control says there.
    pub(crate) fn placed(&self) -> Placed {
        self.lock().fleet.placed.clone()
    }

    /// Whether somebody has paused it.
    pub(crate) fn is_paused(&self) -> bool {
        self.lock().fleet.record.metadata.paused
    }

    /// Metadata are durable. Whoever observes the session is told of another name, in the same step.
    pub(crate) fn change(&self, metadata: Metadata, at: Timestamp) {
        let mut inner = self.lock();
        let before = std::mem::replace(&mut inner.fleet.record.metadata, metadata);
        let name = inner.fleet.record.metadata.name.clone();
        let renamed = (before.name != name).then(|| Event {
            at,
            run: None,
            body: EventBody::StateChanged {
                leaf: inner.view.leaf,
                chosen: inner.view.chosen.clone(),
                resolved: inner.view.resolved.clone(),
                renamed: Some(name),
            },
        });
        if renamed.is_none() {
            let inner = &mut *inner;
            inner.fleet.remake(&inner.view, at);
            return;
        }
        self.append(inner, renamed, None);
    }

    /// A task keeps something in memory that a run would find there, or gives it up.
    pub(crate) fn keeps(&self, does: bool, at: Timestamp) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let residents = inner.fleet.residents;
        inner.fleet.residents = if does {
            residents.saturating_add(1)
        } else {
            residents.saturating_sub(1)
        };
        if inner.fleet.shown.is_some() {
            inner.fleet.remake(&inner.view, at);
        }
    }

    /// Marks a session that works and has shown nothing for too long. Returns when it will have, if it
    /// works and has not yet.
    pub(crate) fn look_for_stall(&self, now: Timestamp, patience: Duration) -> Option<Timestamp> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let fleet = &mut inner.fleet;
        let phase = fleet.shown.as_ref()?.phase;
        if fleet.stalled.is_some() {
            return None;
        }
        fleet.stalled = stalled_since(phase, fleet.progress, now, patience);
        if fleet.stalled.is_some() {
            fleet.remake(&inner.view, now);
            return None;
        }
        let works = stalled_since(phase, fleet.progress, now, Duration::ZERO);
        works.map(|since| since.after(patience))
    }

    /// The session exists no more: nothing is shown of it from here on.
    pub(crate) fn gone(&self) {
        let mut inner = self.lock();
        let fleet = &mut inner.fleet;
        fleet.over = true;
        if let Some(before) = fleet.shown.take() {
            fleet.tell(Some(before), None);
        }
    }

    /// Another channel speaks for the session from now on. What was shown last is the caller's to hand
    /// on.
    pub(crate) fn retire(&self) -> Option<Arc<SessionSummary>> {
        let mut inner = self.lock();
        inner.fleet.over = true;
        inner.fleet.shown.clone()
    }

    /// Takes over from a channel that showed this last: whoever watches learns what holds now.
    pub(crate) fn succeed(&self, before: Option<Arc<SessionSummary>>) {
        let inner = self.lock();
        let fleet = &inner.fleet;
        if fleet.shown.is_some() && !fleet.over {
            fleet.tell(before, fleet.shown.clone());
        }
    }
}
