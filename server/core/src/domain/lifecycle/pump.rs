//! After every input: is there something that the engine may be given now?
//!
//! Nothing is handed over before its acceptance is durable, nor before the reports are judged that
//! the engine had made by then, and at most one input is outstanding.

use super::compaction;
use super::effect::Effect;
use super::interaction;
use super::state::{ActiveRun, EngineStatus, Phase};
use super::turn::Turn;
use super::waiting::Unread;
use crate::domain::event::{EventBody, QueueChange};
use crate::domain::input::{InputKind, InputRecord};
use crate::domain::rendering::rendered;
use crate::ports::engine::EngineCommand;

pub(super) fn pump(turn: &mut Turn<'_>) {
    let (durable, Unread { reports, ends }) = (turn.session.durable_round, turn.session.unread);
    if turn.session.active.compaction().is_some() {
        return compaction::pump(turn);
    }
    interaction::tell(turn);
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    if run.phase != Phase::Active || run.admitted_in > durable {
        return;
    }
    if run.engine == EngineStatus::Unopened {
        run.engine = EngineStatus::Opening;
        let tag = run.tag();
        turn.live(Effect::OpenEngine(tag));
        return;
    }
    let Some(at) = next(run, durable) else {
        run.judge_first = None;
        return;
    };
    // What the engine has said by now may change what it is to be given: it may have stopped. What
    // it says from now on is not waited for, or an engine that never pauses would get nothing; but
    // for an end that is in hand already, however late it came: what an engine is handed that is known
    // to have stopped is lost.
    let left = *run.judge_first.get_or_insert(reports);
    let may_go_on = ends == 0;
    if left.min(reports) == 0 && may_go_on {
        hand_over(turn, at);
    }
}

/// The input that the engine, as it is now, may be given next.
fn next(run: &ActiveRun, durable: u64) -> Option<usize> {
    match run.engine {
        EngineStatus::Working if run.capabilities.steering.is_some() && !run.is_handing() => {
            run.next_of(InputKind::Steer, durable)
        }
        EngineStatus::Resting => {
            // Steers that the engine did not take before its end go first: they were meant to be
            // seen before any follow-up.
            let is_steer = |kind| kind == InputKind::Steer;
            let kind = if run.queue.iter().any(|input| is_steer(input.record.kind)) {
                InputKind::Steer
            } else {
                InputKind::FollowUp
            };
            run.next_of(kind, durable)
        }
        EngineStatus::Unopened
        | EngineStatus::Opening
        | EngineStatus::Working
        | EngineStatus::Dropped
        | EngineStatus::Gone => None,
    }
}

fn hand_over(turn: &mut Turn<'_>, at: usize) {
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    let (tag, id_of_run) = (run.tag(), run.record.id);
    // Told at once: it must not count what is not durable yet.
    let depth = run.told_depth;
    run.judge_first = None;
    let input = &mut run.queue[at];
    input.handed = true;
    let InputRecord {
        id,
        text,
        data,
        origin,
        ..
    } = &input.record;
    let (id, text) = (*id, rendered(text, origin, data.as_deref()));
    let withheld = run.withholds.from_here(origin, data.as_deref());
    let command = if run.engine == EngineStatus::Resting {
        run.engine = EngineStatus::Working;
        EngineCommand::Prompt {
            number: run.next_prompt(),
            run: id_of_run,
            text,
            input: Some(id),
            withheld,
        }
    } else {
        EngineCommand::Steer {
            input: id,
            text,
            withheld,
        }
    };
    turn.publish(
        tag.run,
        EventBody::QueueChanged {
            change: QueueChange::Handed(id),
            depth,
        },
    );
    turn.live(Effect::Tell(tag, command));
}
