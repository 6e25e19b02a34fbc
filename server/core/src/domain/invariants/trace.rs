//! Predicates over what a shell made of the machine's word, told to a [`Trace`] as it happens.
//!
//! The trace keeps its own small model of what is durable and what was shown, and never looks into
//! the machine's state. It grows with the session's history: a tool for tests and simulations.

mod asking;
mod calls;
mod durable;
mod handing;
mod quiet;
mod shown;

use calls::Calls;
use durable::Durable;
use handing::Handing;
use shown::Shown;

use super::{Violation, ensure};
use crate::domain::commit::Commit;
use crate::domain::lifecycle::{Effect, Input};
use crate::domain::run::RunRecord;
use crate::domain::session::{SessionRecord, StoredSession};
use crate::domain::settings::ModelPolicy;
use crate::domain::view::SessionView;

/// One session's history as its shell lived it, judged as it grows.
///
/// The shell tells it each input that it steps, each commit that became durable, each effect that
/// it performs, and each time that it started anew from the store. Every method fails with the
/// first predicate that does not hold.
#[derive(Clone, Debug)]
pub struct Trace {
    durable: Durable,
    shown: Shown,
    handing: Handing,
    calls: Calls,
    models: ModelPolicy,
}

impl Trace {
    /// The history of a session that does not exist yet.
    #[must_use]
    pub fn new(record: &SessionRecord, models: ModelPolicy) -> Self {
        let view = SessionView::unborn(record.identity(), &models);
        Self {
            models,
            durable: Durable::default(),
            shown: Shown::new(view),
            handing: Handing::default(),
            calls: Calls::default(),
        }
    }

    /// The shell steps an input.
    ///
    /// # Errors
    /// A reply id that was used before.
    pub fn stepping(&mut self, input: &Input) -> Result<(), Violation> {
        self.handing.stepping(input);
        self.calls.stepping(input)
    }

    /// A commit is durable. To be told before any of its effects is performed.
    ///
    /// # Errors
    /// A predicate over commits that it breaks.
    pub fn committed(&mut self, commit: &Commit) -> Result<(), Violation> {
        self.durable.committed(commit)?;
        for run in &commit.runs {
            self.uses(run)?;
        }
        self.calls.committed(commit)
    }

    /// A run uses what state showed: the one resolution of what is chosen at its prompt.
    fn uses(&self, run: &RunRecord) -> Result<(), Violation> {
        let prompt = self.durable.entry(run.first_entry.seq);
        let marks = prompt.map(|entry| entry.path).unwrap_or_default();
        let resolved = self.models.resolve(&self.durable.chosen(marks)).settings;
        ensure(run.settings == resolved, "T26", || {
            format!("run {} uses {:?}, not {resolved:?}", run.id, run.settings)
        })
    }

    /// The shell performs an effect.
    ///
    /// # Errors
    /// A predicate over events, hand-overs or answers that it breaks.
    pub fn performing(&mut self, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::Publish(event) => self.shown.publishing(event, &self.durable),
            Effect::Answer(reply, answer) => self.calls.answering(*reply, answer, &self.durable),
            Effect::OpenEngine(tag) => self.handing.opening(*tag, &self.durable),
            Effect::Tell(tag, command) => self.handing.telling(*tag, command, &self.durable),
            Effect::DropEngine(tag) => {
                self.handing.dropping(*tag);
                Ok(())
            }
            Effect::Show(place, checkout) => {
                self.shown.place = (place.clone(), checkout.clone());
                Ok(())
            }
            Effect::StartTimer { .. } | Effect::CancelTimer(_) | Effect::Ignored { .. } => Ok(()),
        }
    }

    /// The shell's state was dropped, whatever was cut was recovered, and the session is served
    /// anew from its rows; without any, it was never created.
    pub fn restarted(&mut self, stored: Option<&StoredSession>) {
        let record = self.shown.view.session.clone();
        let view = match stored {
            None => SessionView::unborn(record, &self.models),
            Some(stored) => {
                let newest = stored.head.last_run.as_ref().map(|last| last.run);
                let asked = newest.map(|run| self.durable.interactions_of(run).cloned().collect());
                SessionView::dormant(stored, &self.models, asked.unwrap_or_default())
            }
        };
        self.shown = Shown::new(view);
        if let Some(StoredSession { head, .. }) = stored {
            self.shown.place = (head.place.clone(), head.checkout.clone());
        }
        self.handing = Handing::default();
        self.calls.restarted();
    }

    /// What observers have seen, folded.
    #[must_use]
    pub fn view(&self) -> &SessionView {
        &self.shown.view
    }

    /// Nothing runs, nothing waits and no commit is in flight: judges the whole.
    ///
    /// # Errors
    /// Something that should have ended or been told by now was not.
    pub fn quiescent(&self, stored: &StoredSession) -> Result<(), Violation> {
        self.all_ended()?;
        self.all_told(stored)
    }
}
