//! What observers are shown: durable facts only once they are facts, each exactly once.

use std::collections::{BTreeMap, BTreeSet};

use super::durable::Durable;
use crate::domain::compaction::CompactionOutcome;
use crate::domain::entry::{Entry, EntryBody};
use crate::domain::event::{Event, EventBody, QueueChange};
use crate::domain::ids::{InputId, RunId};
use crate::domain::input::InputFate;
use crate::domain::invariants::{Held, ensure};
use crate::domain::limits::CONFLATION_INTERVAL;
use crate::domain::place::{Checkout, Place};
use crate::domain::time::Timestamp;
use crate::domain::view::SessionView;

/// When a lane was shown last, and whether that was its early last word.
#[derive(Clone, Copy, Debug)]
struct Lane {
    last: Timestamp,
    early: bool,
}

/// What was published since the session is served.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) view: SessionView,
    /// Where the fleet sees it, and what version control says there.
    pub(super) place: (Option<Place>, Option<Checkout>),
    /// Runs whose start was told.
    started: BTreeSet<RunId>,
    /// Inputs whose end was told, and how.
    ends: BTreeMap<InputId, InputFate>,
    removed: BTreeSet<InputId>,
    /// By tool call; the run's usage has none.
    lanes: BTreeMap<Option<String>, Lane>,
    /// A compaction outside of runs goes on; so many entries were durable when it began.
    compacting: Option<usize>,
    /// A compaction within the run goes on.
    within: bool,
}

impl Shown {
    pub(super) fn new(view: SessionView) -> Self {
        Self {
            view,
            place: (None, None),
            started: BTreeSet::new(),
            ends: BTreeMap::new(),
            removed: BTreeSet::new(),
            lanes: BTreeMap::new(),
            compacting: None,
            within: false,
        }
    }

    pub(super) fn publishing(&mut self, event: &Event, durable: &Durable) -> Held {
        let starts = matches!(event.body, EventBody::RunStarted { .. });
        let open = self.view.active_run;
        let outside = event.run.is_none() && open.is_none();
        ensure(
            outside || (event.run.is_some() && (starts || event.run == open)),
            "T11",
            || {
                format!(
                    "{} of run {:?} while {open:?} is open",
                    event.body.event_type(),
                    event.run
                )
            },
        )?;
        let Some(run) = event.run else {
            return self.outside(event, durable);
        };
        match &event.body {
            EventBody::RunStarted { entry, .. } => {
                ensure(open.is_none() && self.started.insert(run), "T07", || {
                    format!("run {run} starts while {open:?} is open, or again")
                })?;
                let first = durable.runs.get(&run).map(|record| record.first_entry);
                ensure(first == Some(*entry), "T08", || {
                    format!("run {run} is not durable")
                })?;
                self.lanes.clear();
                self.within = false;
            }
            EventBody::RunSettled { run: record } => self.settled(run, record, durable)?,
            EventBody::QueueChanged { change, .. } => self.queue(change, durable)?,
            EventBody::InputDelivered { input, entry } => {
                self.ended(*input, InputFate::Delivered(*entry), durable)?;
            }
            EventBody::InputDiscarded { input, cause } => {
                self.ended(*input, InputFate::Discarded(*cause), durable)?;
            }
            EventBody::EntryAppended { entry } => self.appended(entry, durable)?,
            EventBody::InteractionRequested { interaction } => {
                let stored = durable.interactions.get(&interaction.id);
                let same = stored.is_some_and(|it| it.question == interaction.question);
                let new = !self.view.interactions.contains_key(&interaction.id);
                ensure(same && new, "T21", || {
                    format!("{} is asked again, or is not durable", interaction.id)
                })?;
            }
            EventBody::InteractionResolved { id, resolution } => {
                let stored = durable.interactions.get(id);
                let same = stored.is_some_and(|it| it.resolution.as_ref() == Some(resolution));
                let open = self.view.open_interactions().any(|it| it.id == *id);
                ensure(same && open, "T21", || {
                    format!("{id} ends otherwise than stored, or again")
                })?;
            }
            EventBody::CompactionStarted { .. } | EventBody::CompactionFinished { .. } => {
                self.within(run, &event.body, durable)?;
            }
            EventBody::ToolStarted { call, .. } => {
                self.lanes.remove(&Some(call.clone()));
            }
            EventBody::ToolProgress { call, .. } => self.conflated(Some(call.clone()), event.at)?,
            EventBody::UsageUpdated { .. } => self.conflated(None, event.at)?,
            _ => {}
        }
        self.view.apply(event);
        self.depth(event)
    }

    /// What is told outside of runs: the leaf, the settings and compactions, as they are stored.
    fn outside(&mut self, event: &Event, durable: &Durable) -> Held {
        match &event.body {
            EventBody::EntryAppended { entry } => self.appended(entry, durable)?,
            EventBody::StateChanged { leaf, .. } => {
                let known = leaf.is_none_or(|leaf| durable.entry(leaf.seq).is_some());
                ensure(known, "T22", || format!("{leaf:?} is no durable entry"))?;
            }
            EventBody::CompactionStarted { .. } => {
                ensure(self.compacting.is_none(), "T22", || {
                    "a compaction starts during another".to_owned()
                })?;
                self.compacting = Some(durable.entries.len());
            }
            EventBody::CompactionFinished { outcome } => {
                // The summary and nothing else, or nothing at all.
                let written = u64::from(matches!(outcome, CompactionOutcome::Completed(_)));
                let before = self.compacting.take().map(|entries| entries as u64);
                let now = durable.entries.len() as u64;
                let whole = before.is_some_and(|before| before + written == now);
                ensure(whole && is_written(outcome, None, durable), "T22", || {
                    format!("{outcome:?} is told, entries were {before:?} and are {now}")
                })?;
            }
            other => {
                return ensure(false, "T11", || {
                    format!("{} outside of a run", other.event_type())
                });
            }
        }
        self.view.apply(event);
        Ok(())
    }

    /// Compactions of a run begin and end in turn, and all of them before it.
    fn within(&mut self, run: RunId, body: &EventBody, durable: &Durable) -> Held {
        let goes_on = matches!(body, EventBody::CompactionStarted { .. });
        let stands = match body {
            EventBody::CompactionFinished { outcome } => is_written(outcome, Some(run), durable),
            _ => true,
        };
        let turns = std::mem::replace(&mut self.within, goes_on) != goes_on;
        ensure(turns && stands, "T22", || {
            format!("{body:?} is told within run {run}, out of turn or without its entry")
        })
    }

    fn appended(&self, entry: &Entry, durable: &Durable) -> Held {
        let next = self.view.entries + 1;
        let stored = durable.entry(next).map(Entry::for_event);
        ensure(stored.as_ref() == Some(entry), "T09", || {
            format!(
                "{} is told where entry {next} is next, or is not durable",
                entry.id
            )
        })
    }

    fn settled(
        &self,
        run: RunId,
        record: &crate::domain::run::RunRecord,
        durable: &Durable,
    ) -> Held {
        let stored = durable.runs.get(&run);
        ensure(
            record.settled.is_some() && stored == Some(record),
            "T08",
            || format!("run {run} is told to have settled otherwise than stored"),
        )?;
        ensure(!self.within, "T22", || {
            format!("run {run} is told to have settled during a compaction")
        })?;
        let silent = durable.inputs_of(run).find(|input| {
            self.ends.get(&input.id) != Some(&input.fate) || !self.removed.contains(&input.id)
        });
        ensure(silent.is_none(), "T10", || {
            format!("the end of {silent:?} was never told")
        })
    }

    fn queue(&mut self, change: &QueueChange, durable: &Durable) -> Held {
        match change {
            QueueChange::Added(input) => {
                let new = durable.inputs.contains_key(&input.id)
                    && !self.view.pending.contains_key(&input.id)
                    && !self.removed.contains(&input.id);
                ensure(new, "T08", || {
                    format!("{} is added, not durable or again", input.id)
                })
            }
            QueueChange::Handed(id) | QueueChange::Returned(id) => {
                let returned = matches!(change, QueueChange::Returned(_));
                let pending = self.view.pending.get(id);
                ensure(
                    pending.is_some_and(|it| it.handed == returned),
                    "T08",
                    || format!("{change:?}, and an observer knows {pending:?}"),
                )
            }
            QueueChange::Removed(id) => {
                let ended = self.ends.contains_key(id) && self.removed.insert(*id);
                ensure(ended, "T10", || {
                    format!("{id} leaves the queue without an end, or again")
                })
            }
        }
    }

    fn ended(&mut self, input: InputId, fate: InputFate, durable: &Durable) -> Held {
        let stored = durable.inputs.get(&input).map(|record| record.fate);
        ensure(stored == Some(fate), "T08", || {
            format!("{input} is told to be {fate:?}, stored is {stored:?}")
        })?;
        let before = self.ends.insert(input, fate);
        ensure(before.is_none(), "T10", || {
            format!("{input} ends again, after {before:?}")
        })
    }

    fn depth(&self, event: &Event) -> Held {
        let EventBody::QueueChanged { change, depth } = &event.body else {
            return Ok(());
        };
        let folded = self.view.pending.len();
        ensure(*depth as usize == folded, "T12", || {
            format!("{change:?} says {depth} wait, an observer counts {folded}")
        })
    }

    /// Ten a second and lane: a shorter gap is only for the last word before an end.
    fn conflated(&mut self, lane: Option<String>, at: Timestamp) -> Held {
        let before = self.lanes.get(&lane).copied();
        let early = before.is_some_and(|lane| at.since(lane.last) < CONFLATION_INTERVAL);
        ensure(!before.is_some_and(|lane| lane.early), "T13", || {
            format!("{lane:?} is shown at {at:?}, after {before:?}")
        })?;
        self.lanes.insert(lane, Lane { last: at, early });
        Ok(())
    }
}

/// The summary that a compaction is told to have ended with is an entry of the same.
fn is_written(outcome: &CompactionOutcome, run: Option<RunId>, durable: &Durable) -> bool {
    let CompactionOutcome::Completed(id) = outcome else {
        return true;
    };
    durable
        .entry(id.seq)
        .is_some_and(|entry| entry.run == run && matches!(entry.body, EntryBody::Compaction { .. }))
}
