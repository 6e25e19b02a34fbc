//! What the clients know: every acknowledgement, entry, fate and end that a server has told them.
//! Whatever is told twice must be told alike.
//!
//! What must never enter: a call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessionplane_client::contract::{DispatchRequest, EventItem, InvokeEvent, InvokeRequest};
use sessionplane_client::domain::command::{Acceptance, Command, DispatchAnswer};
use sessionplane_client::domain::entry::{Entry, EntryBody};
use sessionplane_client::domain::error::{CallError, Outcome};
use sessionplane_client::domain::event::EventBody;
use sessionplane_client::domain::ids::{InputId, InteractionId, RequestId, RunId, SessionRef};
use sessionplane_client::domain::input::InputFate;
use sessionplane_client::domain::interaction::Interaction;
use sessionplane_client::domain::position::Position;
use sessionplane_client::domain::run::RunRecord;
use sessionplane_client::domain::settings::SettingsOverride;

use crate::tree;

/// What a call came to, as far as its caller knows.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Known<T> {
    /// Sent; no answer came.
    Unknown,
    /// Refused or rejected: it did nothing.
    Nothing,
    /// Accepted.
    Accepted(T),
}

/// An invoke.
#[derive(Clone, Debug)]
pub(crate) struct Invoked {
    pub(crate) request: InvokeRequest,
    /// Stands in the prompt and nowhere else.
    pub(crate) marker: String,
    pub(crate) known: Known<RunId>,
    pub(crate) terminal: Option<InvokeEvent>,
}

/// A dispatch.
#[derive(Clone, Debug)]
pub(crate) struct Dispatched {
    pub(crate) request: DispatchRequest,
    /// Stands in the text and nowhere else; none for what carries no text.
    pub(crate) marker: Option<String>,
    pub(crate) known: Known<Acceptance>,
}

/// What is known of one session.
pub(crate) struct Ledger {
    pub(crate) at: SessionRef,
    pub(crate) invokes: BTreeMap<RequestId, Invoked>,
    pub(crate) dispatches: BTreeMap<RequestId, Dispatched>,
    /// By number, narrowed as an event carries them.
    pub(crate) entries: BTreeMap<u64, Entry>,
    pub(crate) fates: BTreeMap<InputId, InputFate>,
    pub(crate) settled: BTreeMap<RunId, RunRecord>,
    /// Runs whose `run_settled` an observer has received.
    announced: BTreeSet<RunId>,
    /// Runs for which an abort was acknowledged.
    pub(crate) aborted: BTreeSet<RunId>,
    /// What was asked, as it was told last.
    pub(crate) asked: BTreeMap<InteractionId, Interaction>,
    /// Questions of which an answer was acknowledged.
    pub(crate) answered: BTreeSet<InteractionId>,
    /// What may be chosen by now: one, or two while nobody knows of the last change.
    pub(crate) chosen: Vec<SettingsOverride>,
    /// The entry that the leaf was moved to last, or may have been; none if it never was.
    pub(crate) moved_to: Vec<Option<u64>>,
    /// The place that the observer has reached.
    pub(crate) position: Option<Position>,
}

impl Ledger {
    pub(crate) fn new(at: SessionRef) -> Self {
        Self {
            at,
            invokes: BTreeMap::new(),
            dispatches: BTreeMap::new(),
            entries: BTreeMap::new(),
            fates: BTreeMap::new(),
            settled: BTreeMap::new(),
            announced: BTreeSet::new(),
            aborted: BTreeSet::new(),
            asked: BTreeMap::new(),
            answered: BTreeSet::new(),
            chosen: vec![SettingsOverride::default()],
            moved_to: vec![None],
            position: None,
        }
    }

    pub(crate) fn entry(&mut self, entry: &Entry) {
        let entry = entry.for_event();
        let before = self.entries.insert(entry.id.seq, entry.clone());
        if let Some(before) = before {
            assert_eq!(before, entry, "an entry has changed");
        }
    }

    pub(crate) fn fate(&mut self, input: InputId, fate: InputFate) {
        // An answer that says pending may be read after the event that says more.
        if fate == InputFate::Pending {
            return;
        }
        let before = self.fates.insert(input, fate);
        assert!(
            before.is_none_or(|before| before == fate),
            "{input}: {before:?}, then {fate:?}"
        );
    }

    pub(crate) fn settled(&mut self, run: &RunRecord) {
        assert!(run.settled.is_some(), "{} has no end", run.id);
        let mut run = run.clone();
        // Only who asks for the record is given the texts of undelivered inputs.
        for input in &mut run.undelivered {
            input.text = None;
        }
        let before = self.settled.insert(run.id, run.clone());
        if let Some(before) = before {
            assert_eq!(before, run, "a settled run has changed");
        }
    }

    /// Takes note of a terminal.
    pub(crate) fn terminal(&mut self, id: &RequestId, terminal: InvokeEvent) {
        if let InvokeEvent::Completed { run } | InvokeEvent::Failed { run: Some(run), .. } =
            &terminal
        {
            self.settled(run);
        }
        let invoked = self.invokes.get_mut(id).expect("it was sent");
        if let Some(before) = &invoked.terminal {
            assert_eq!(before, &terminal, "another terminal for {id}");
        }
        invoked.terminal = Some(terminal);
    }

    /// Takes note of a dispatch's answer.
    pub(crate) fn answer(&mut self, id: &RequestId, answer: &Result<DispatchAnswer, CallError>) {
        let dispatched = self.dispatches.get_mut(id).expect("it was sent");
        dispatched.known = match answer {
            Ok(DispatchAnswer::Accepted(acceptance)) => Known::Accepted(*acceptance),
            Ok(DispatchAnswer::Rejected(_)) => Known::Nothing,
            Err(error) => unanswered(error),
        };
        let (command, known) = (dispatched.request.command.clone(), dispatched.known.clone());
        self.changed(&command, &known);
        if let Known::Accepted(acceptance) = known {
            match command {
                // Without a run it ended a compaction.
                Command::Abort => self.aborted.extend(acceptance.run),
                Command::Respond { interaction, .. } => {
                    self.answered.insert(interaction);
                }
                _ => {}
            }
            if let Some(input) = acceptance.input {
                self.fate(input.id, input.fate);
            }
        }
    }

    /// Takes note of what a change between runs came to. One client makes all of a session's, one
    /// at a time, so what it was told is what holds.
    fn changed(&mut self, command: &Command, known: &Known<Acceptance>) {
        let before = self.chosen[0].clone();
        if let Some(after) = tree::after(command, &before, &self.entries) {
            self.chosen = match known {
                Known::Accepted(_) => vec![after],
                Known::Nothing => vec![before],
                Known::Unknown => vec![before, after],
            };
        }
        if let Command::Navigate { entry } = command {
            let (before, after) = (self.moved_to[0], Some(entry.seq));
            self.moved_to = match known {
                Known::Accepted(_) => vec![after],
                Known::Nothing => vec![before],
                Known::Unknown => vec![before, after],
            };
        }
    }

    /// Takes note of a question. One that has ended never opens again, or ends otherwise.
    pub(crate) fn question(&mut self, told: &Interaction) {
        let before = self.asked.insert(told.id, told.clone());
        if let Some(ended) = before.and_then(|before| before.resolution) {
            assert_eq!(
                told.resolution.as_ref(),
                Some(&ended),
                "{} ended otherwise",
                told.id
            );
        }
    }

    /// Entries that the leaf was moved to, or may have been.
    pub(crate) fn moves(&self) -> BTreeSet<Option<u64>> {
        let sent = self.dispatches.values();
        let moved = sent.filter(|dispatched| dispatched.known != Known::Nothing);
        moved
            .filter_map(|dispatched| match dispatched.request.command {
                Command::Navigate { entry } => Some(Some(entry.seq)),
                _ => None,
            })
            .collect()
    }

    /// Whether an answer was sent that nobody knows the fate of.
    pub(crate) fn may_be_answered(&self, id: InteractionId) -> bool {
        self.dispatches.values().any(|dispatched| {
            let this = matches!(&dispatched.request.command,
                Command::Respond { interaction, .. } if *interaction == id);
            this && dispatched.known == Known::Unknown
        })
    }

    /// How many calls of each verb were accepted: a run of the suite that accepted none of a verb
    /// has not tried it.
    pub(crate) fn summary(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for dispatched in self.dispatches.values() {
            if let Known::Accepted(_) = dispatched.known {
                let verb = dispatched.request.command.kind().as_str();
                *counts.entry(verb).or_default() += 1;
            }
        }
        let (invokes, entries) = (self.invokes.len(), self.entries.len());
        format!("{invokes} invokes, {entries} entries, {counts:?}")
    }

    /// Takes note of what an observer received.
    pub(crate) fn observed(&mut self, item: &EventItem) {
        match item {
            EventItem::Subscribed { .. } => {}
            EventItem::Entries {
                entries,
                full_backfill,
            } => {
                assert!(!full_backfill, "the server did not know our last entry");
                for entry in entries {
                    self.entry(entry);
                }
            }
            EventItem::Snapshot(state) => {
                self.position = Some(state.position);
                for asked in state.view.interactions.values() {
                    self.question(asked);
                }
            }
            EventItem::Heartbeat(position) => self.position = Some(*position),
            EventItem::Event(envelope) => {
                let position = Position {
                    epoch: envelope.epoch,
                    seq: envelope.seq,
                };
                if let Some(before) = self
                    .position
                    .filter(|before| before.epoch == position.epoch)
                {
                    assert_eq!(
                        before.seq + 1,
                        position.seq,
                        "the stream skipped or repeated"
                    );
                }
                self.position = Some(position);
                self.told(&envelope.event.body);
            }
        }
    }

    fn told(&mut self, body: &EventBody) {
        match body {
            EventBody::EntryAppended { entry } => {
                let last = self.entries.keys().next_back().copied().unwrap_or(0);
                assert!(entry.id.seq == last + 1, "{} came after {last}", entry.id);
                self.entry(entry);
            }
            EventBody::InputDelivered { input, entry } => {
                self.fate(*input, InputFate::Delivered(*entry));
            }
            EventBody::InputDiscarded { input, cause } => {
                self.fate(*input, InputFate::Discarded(*cause));
            }
            EventBody::InteractionRequested { interaction } => self.question(interaction),
            EventBody::InteractionResolved { id, resolution } => {
                let asked = self.asked.get(id).expect("it was asked first");
                let mut ended = asked.clone();
                assert_eq!(ended.resolution, None, "{id} ended twice");
                ended.resolution = Some((**resolution).clone());
                self.question(&ended);
            }
            EventBody::RunSettled { run } => {
                assert!(self.announced.insert(run.id), "{} settled twice", run.id);
                self.settled(run);
            }
            _ => {}
        }
    }
}

/// What an error leaves known: only a refusal says that nothing was done.
pub(crate) fn unanswered<T>(error: &CallError) -> Known<T> {
    match error.outcome {
        Outcome::Refused => Known::Nothing,
        Outcome::Unknown | Outcome::StreamEnded => Known::Unknown,
    }
}

/// The marker that a user's entry holds, or a compaction's summary.
pub(crate) fn marker(entry: &Entry) -> Option<&str> {
    let text = match &entry.body {
        EntryBody::User { text, .. } => text,
        EntryBody::Compaction { summary, .. } => summary.text.as_str(),
        _ => return None,
    };
    let from = text.find("<m:")?;
    let length = text[from..].find('>')?;
    Some(&text[from..=from + length])
}

/// A session's ledger, shared by those who talk to it.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Ledger>>);

impl Shared {
    pub(crate) fn new(at: SessionRef) -> Self {
        Self(Arc::new(Mutex::new(Ledger::new(at))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
