//! What becomes of an input that the engine was handed: shown to the model, or given back.

use super::engine_output::ignore;
use super::input::EngineTag;
use super::settle;
use super::state::{ActiveRun, Phase};
use super::turn::Turn;
use crate::domain::audit::AuditAction;
use crate::domain::entry::EntryBody;
use crate::domain::event::{EventBody, QueueChange};
use crate::domain::ids::InputId;
use crate::domain::input::{DiscardCause, InputFate};
use crate::domain::limits::MAX_RETURNS;

/// The model saw a handed input: entry and fate are one commit.
pub(super) fn shown(turn: &mut Turn<'_>, tag: EngineTag, id: InputId) {
    let Some((run, at)) = handed(turn, tag, id) else {
        return ignore(turn, tag, "an input was shown that is not handed");
    };
    let Some(mut input) = run.queue.remove(at) else {
        return;
    };
    let (depth, token) = (super::dispatch::depth(run), run.token);
    let body = EntryBody::User {
        text: input.record.text.clone(),
        omitted_bytes: 0,
        origin: input.record.origin.clone(),
        input: Some(id),
        data: input.record.data.clone(),
    };
    let entry = turn.append(tag.run, token, body);
    input.record.fate = InputFate::Delivered(entry);
    turn.commit(tag.run, token).inputs.push(input.record);
    turn.publish_durable(tag.run, EventBody::InputDelivered { input: id, entry });
    turn.publish_durable(
        tag.run,
        EventBody::QueueChanged {
            change: QueueChange::Removed(id),
            depth,
        },
    );
    turn.audit(tag.run, token, AuditAction::EngineOutput, None, "accepted");
}

/// The engine gave a handed input back: on an abort it ends there, else it waits again, first of
/// its kind, until the turn is over. An engine that gives it back again and again has lost it.
pub(super) fn taken_back(turn: &mut Turn<'_>, tag: EngineTag, id: InputId) {
    let Some((run, at)) = handed(turn, tag, id) else {
        return ignore(turn, tag, "an input was taken back that is not handed");
    };
    let (token, depth) = (run.token, run.told_depth);
    let input = &mut run.queue[at];
    input.returns += 1;
    let cause = if run.phase == Phase::Aborting {
        DiscardCause::Aborted
    } else if input.returns >= MAX_RETURNS {
        DiscardCause::Lost
    } else {
        input.handed = false;
        input.held = true;
        let change = QueueChange::Returned(id);
        return turn.publish(tag.run, EventBody::QueueChanged { change, depth });
    };
    settle::discard(turn, cause, |input| input.record.id == id);
    turn.audit(tag.run, token, AuditAction::EngineOutput, None, "accepted");
}

fn handed<'t>(
    turn: &'t mut Turn<'_>,
    tag: EngineTag,
    id: InputId,
) -> Option<(&'t mut ActiveRun, usize)> {
    let run = turn.live_run(tag)?;
    let at = run.position_of(id)?;
    run.queue[at].handed.then_some((run, at))
}
