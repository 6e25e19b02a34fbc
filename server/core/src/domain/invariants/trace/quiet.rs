//! What must hold once nothing runs any more.

use super::Trace;
use crate::domain::input::InputFate;
use crate::domain::invariants::{Held, ensure};
use crate::domain::session::StoredSession;
use crate::domain::view::SessionView;

impl Trace {
    pub(super) fn all_ended(&self) -> Held {
        let run = self.durable.runs.values().find(|run| run.settled.is_none());
        ensure(run.is_none(), "T19", || format!("{run:?} never settled"))?;
        let pending = self
            .durable
            .inputs
            .values()
            .find(|input| input.fate == InputFate::Pending);
        ensure(pending.is_none(), "T19", || {
            format!("{pending:?} never ended")
        })?;
        let asked = self.durable.interactions.values();
        let open = asked.clone().find(|asked| asked.resolution.is_none());
        ensure(open.is_none(), "T19", || format!("{open:?} never ended"))?;
        let lease = self.durable.lease;
        ensure(lease.is_none(), "T19", || {
            format!("{lease:?} holds the session, and nothing runs")
        })?;
        let open = self.calls.open();
        ensure(open == 0, "T17", || format!("{open} calls have no answer"))
    }

    /// Observers know what the rows say: a view built from either is the same.
    pub(super) fn all_told(&self, stored: &StoredSession) -> Held {
        let newest = stored.head.last_run.as_ref().map(|last| last.run);
        let asked = newest.map(|run| self.durable.interactions_of(run).cloned().collect());
        let dormant = SessionView::dormant(stored, &self.models, asked.unwrap_or_default());
        ensure(
            self.durable.head.as_ref() == Some(&stored.head),
            "T01",
            || {
                format!(
                    "the store's head is {:?}, the commits say {:?}",
                    stored.head, self.durable.head
                )
            },
        )?;
        let place = (stored.head.place.clone(), stored.head.checkout.clone());
        ensure(self.shown.place == place, "T27", || {
            format!(
                "the fleet sees {:?}, the rows say {place:?}",
                self.shown.place
            )
        })?;
        ensure(self.shown.view == dormant, "T19", || {
            format!(
                "observers see {:?}, the rows say {dormant:?}",
                self.shown.view
            )
        })
    }
}
