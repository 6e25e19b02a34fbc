//! Tool progress and usage come as fast as an engine likes; observers get at most ten a second per
//! tool, always ending with the newest.

use std::collections::BTreeMap;
use std::time::Duration;

use super::effect::Effect;
use super::input::{EngineTag, Timer};
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
pub(super) fn offer(turn: &mut Turn<'_>, tag: EngineTag, lane: Lane, body: EventBody) {
    let now = turn.now;
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    match run.conflation.lanes.get_mut(&lane) {
        Some(slot) if wait(slot, now).is_some() => {
            slot.held = Some(body);
            arm(turn, tag);
        }
        _ => {
            let slot = Slot {
                last: now,
                held: None,
            };
            run.conflation.lanes.insert(lane, slot);
            turn.publish(tag.run, body);
        }
    }
}

/// How long the lane must still be quiet, by wall time: a clock that jumps shows one piece too early,
/// and one that went back holds nothing up.
fn wait(slot: &Slot, now: Timestamp) -> Option<Duration> {
    let left = CONFLATION_INTERVAL.checked_sub(now.since(slot.last))?;
    (now >= slot.last && !left.is_zero()).then_some(left)
}

/// Sets the timer, unless it runs, to the moment when the first held lane is due.
fn arm(turn: &mut Turn<'_>, tag: EngineTag) {
    let now = turn.now;
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    let held = run
        .conflation
        .lanes
        .values()
        .filter(|slot| slot.held.is_some());
    let first = held.map(|slot| wait(slot, now).unwrap_or_default()).min();
    let Some(after) = first.filter(|_| !run.conflation.timer) else {
        return;
    };
    run.conflation.timer = true;
    turn.live(Effect::StartTimer {
        tag,
        timer: Timer::Conflation,
        after,
    });
}

/// Shows what was held back on the lanes that are due: another lane's timer must not show a lane
/// more often than it may be.
pub(super) fn flush(turn: &mut Turn<'_>, tag: EngineTag) {
    let now = turn.now;
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    run.conflation.timer = false;
    let mut due = Vec::new();
    for slot in run.conflation.lanes.values_mut() {
        if wait(slot, now).is_none()
            && let Some(body) = slot.held.take()
        {
            slot.last = now;
            due.push(body);
        }
    }
    for body in due {
        turn.publish(tag.run, body);
    }
    arm(turn, tag);
}

/// The engine waits for no tool any more: shows the last of each, and forgets them.
pub(super) fn close_tools(turn: &mut Turn<'_>, tag: EngineTag) {
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    let usage = run.conflation.lanes.remove(&Lane::Usage);
    let last = run.conflation.drain();
    run.conflation.lanes.clear();
    run.conflation
        .lanes
        .extend(usage.map(|slot| (Lane::Usage, slot)));
    for body in last {
        turn.publish(tag.run, body);
    }
}
