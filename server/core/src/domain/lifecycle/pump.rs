//! After every input: is there something that the engine may be given now?
//!
//! Nothing is handed over before its acceptance is durable, nor while reports of the engine wait to
//! be judged, and at most one input is outstanding.

use super::compaction;
use super::effect::Effect;
use super::state::{EngineStatus, Phase};
use super::turn::Turn;
use crate::domain::event::{EventBody, QueueChange};
use crate::domain::input::InputKind;
use crate::ports::engine::EngineCommand;

pub(super) fn pump(turn: &mut Turn<'_>) {
    let durable = turn.session.durable_round;
    if turn.session.active.compaction().is_some() {
        return compaction::pump(turn);
    }
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    if run.phase != Phase::Active || run.admitted_in > durable {
        return;
    }
    let tag = run.tag();
    let unread = turn.session.unread > 0;
    match run.engine {
        EngineStatus::Unopened => {
            run.engine = EngineStatus::Opening;
            turn.live(Effect::OpenEngine(tag));
        }
        // What the engine said before may change what it is to be given.
        EngineStatus::Working | EngineStatus::Resting if unread => {}
        EngineStatus::Working if run.capabilities.steering.is_some() && !run.is_handing() => {
            if let Some(at) = run.next_of(InputKind::Steer, durable) {
                hand_over(turn, at);
            }
        }
        EngineStatus::Resting => {
            // Steers that the engine did not take before its end go first: they were meant to be
            // seen before any follow-up.
            let kind = if run
                .queue
                .iter()
                .any(|input| input.record.kind == InputKind::Steer)
            {
                InputKind::Steer
            } else {
                InputKind::FollowUp
            };
            if let Some(at) = run.next_of(kind, durable) {
                hand_over(turn, at);
            }
        }
        EngineStatus::Opening | EngineStatus::Working | EngineStatus::Gone => {}
    }
}

fn hand_over(turn: &mut Turn<'_>, at: usize) {
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    let (tag, id_of_run) = (run.tag(), run.record.id);
    // Told at once: it must not count what is not durable yet.
    let depth = run.told_depth;
    let input = &mut run.queue[at];
    input.handed = true;
    let (id, text) = (input.record.id, input.record.text.clone());
    let command = if run.engine == EngineStatus::Resting {
        run.engine = EngineStatus::Working;
        EngineCommand::Prompt {
            number: run.next_prompt(),
            run: id_of_run,
            text,
            input: Some(id),
        }
    } else {
        EngineCommand::Steer { input: id, text }
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
