//! Tool progress and usage come as fast as an engine likes; observers get at most ten a second per
//! tool, always ending with the newest.

use std::collections::BTreeMap;

use super::effect::Effect;
use super::input::{RunTag, Timer};
use super::turn::Turn;
use crate::domain::event::EventBody;
use crate::domain::limits::CONFLATION_INTERVAL;
use crate::domain::time::Timestamp;

/// What is conflated separately.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Lane {
    /// The run's usage.
    Usage,
    /// One tool call's progress.
    Tool(String),
}

#[derive(Clone, PartialEq, Debug)]
struct Slot {
    last: Timestamp,
    held: Option<EventBody>,
}

/// What was shown last on each lane, and what is held back.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Conflation {
    lanes: BTreeMap<Lane, Slot>,
    timer: bool,
}

impl Conflation {
    /// The tool is done: nothing older than its finish may follow it.
    pub(super) fn forget(&mut self, lane: &Lane) {
        self.lanes.remove(lane);
    }

    /// How many lanes there are.
    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// What is held back, newest per lane.
    pub(super) fn drain(&mut self) -> Vec<EventBody> {
        self.lanes
            .values_mut()
            .filter_map(|slot| slot.held.take())
            .collect()
    }
}

/// Shows `body` now if its lane was quiet long enough; else holds it, replacing what was held.
pub(super) fn offer(turn: &mut Turn<'_>, tag: RunTag, lane: Lane, body: EventBody) {
    let now = turn.now;
    let Some(run) = turn.session.run.as_mut() else {
        return;
    };
    let conflation = &mut run.conflation;
    let due = conflation
        .lanes
        .get(&lane)
        .is_none_or(|slot| now.since(slot.last) >= CONFLATION_INTERVAL);
    if due {
        conflation.lanes.insert(
            lane,
            Slot {
                last: now,
                held: None,
            },
        );
        turn.publish(tag.run, body);
        return;
    }
    if let Some(slot) = conflation.lanes.get_mut(&lane) {
        slot.held = Some(body);
    }
    if !std::mem::replace(&mut conflation.timer, true) {
        turn.live(Effect::StartTimer {
            tag,
            timer: Timer::Conflation,
            after: CONFLATION_INTERVAL,
        });
    }
}

/// Shows what was held back.
pub(super) fn flush(turn: &mut Turn<'_>, tag: RunTag) {
    let now = turn.now;
    let Some(run) = turn.session.run.as_mut() else {
        return;
    };
    run.conflation.timer = false;
    for slot in run
        .conflation
        .lanes
        .values_mut()
        .filter(|slot| slot.held.is_some())
    {
        slot.last = now;
    }
    for body in run.conflation.drain() {
        turn.publish(tag.run, body);
    }
}
