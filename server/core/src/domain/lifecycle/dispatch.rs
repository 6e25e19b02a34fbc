//! A dispatch: judged against the run, never against what the engine is called.

use super::abort;
use super::boundary;
use super::compaction;
use super::effect::Answer;
use super::input::{DispatchFacts, ReplyId};
use super::interaction;
use super::state::{ActiveRun, Phase, QueuedInput};
use super::turn::Turn;
use crate::domain::access::Action;
use crate::domain::audit::AuditAction;
use crate::domain::binding::{Binding, BoundAnswer};
use crate::domain::command::{
    Acceptance, AcceptedInput, Command, DispatchAnswer, Rejection, RejectionCode,
};
use crate::domain::data::Data;
use crate::domain::error::{CallError, Reason};
use crate::domain::event::{EventBody, PendingInput, QueueChange};
use crate::domain::ids::InputId;
use crate::domain::input::{InputFate, InputKind, InputRecord};
use crate::domain::limits::MAX_PENDING_BYTES;

pub(super) fn dispatch(turn: &mut Turn<'_>, reply: ReplyId, facts: DispatchFacts) {
    if let Err(no) = supported(turn.session.active.run(), &facts) {
        return turn.answer(reply, no);
    }
    match facts.command.clone() {
        Command::Steer { text, .. } => input(turn, reply, facts, InputKind::Steer, text),
        Command::FollowUp { text, .. } => {
            input(turn, reply, facts, InputKind::FollowUp, text);
        }
        Command::Abort if turn.session.active.compaction().is_some() => {
            compaction::abort(turn, reply, facts);
        }
        Command::Abort => match reachable(turn.session.active.run(), &facts) {
            Err(no) => turn.answer(reply, no),
            Ok(_) => abort::command(turn, reply, facts),
        },
        Command::Respond {
            interaction,
            answer,
        } => interaction::respond(turn, reply, facts, interaction, &answer),
        Command::Compact { instructions } => {
            compaction::start(turn, reply, facts, instructions);
        }
        Command::SetModel { model } => boundary::set_model(turn, reply, facts, model),
        Command::SetThinking { level } => boundary::set_thinking(turn, reply, facts, level),
        Command::Navigate { entry } => boundary::navigate(turn, reply, facts, entry),
    }
}

fn input(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: DispatchFacts,
    kind: InputKind,
    text: std::sync::Arc<str>,
) {
    let judged = reachable(turn.session.active.run(), &facts)
        .and_then(|run| has_room(turn, run, carried(&text, facts.data.as_deref())));
    match judged {
        Err(no) => turn.answer(reply, no),
        Ok(()) => enqueue(turn, reply, facts, kind, text),
    }
}

pub(super) fn reject(code: RejectionCode, message: impl Into<String>) -> Answer {
    Answer::Dispatched(DispatchAnswer::Rejected(Rejection {
        code,
        message: message.into(),
        // Only what holds the session passes by itself.
        retryable: code == RejectionCode::SessionBusy,
    }))
}

/// What the engine cannot do is said before anything else is judged (C26): that of the active run,
/// else that of the session's agent.
fn supported(run: Option<&ActiveRun>, facts: &DispatchFacts) -> Result<(), Answer> {
    let kind = facts.command.kind();
    let can = run.map_or(&facts.agent.capabilities, |run| &run.capabilities);
    if can.allows(kind) {
        return Ok(());
    }
    let message = format!("the session's agent does not support {}", kind.as_str());
    Err(reject(RejectionCode::UnsupportedCapability, message))
}

/// The run that a command is for, if it takes commands.
pub(super) fn reachable<'r>(
    run: Option<&'r ActiveRun>,
    facts: &DispatchFacts,
) -> Result<&'r ActiveRun, Answer> {
    let expected = facts.expected_run;
    let run = run.filter(|run| expected.is_none_or(|id| id == run.record.id));
    let Some(run) = run else {
        return Err(Answer::Dispatched(DispatchAnswer::Rejected(
            Rejection::no_active_run(expected),
        )));
    };
    let ending = match run.phase {
        Phase::Active => false,
        // A second abort finds what it wants already under way.
        Phase::Aborting => facts.command != Command::Abort,
        Phase::Settling { .. } => true,
    };
    if ending {
        let message = format!("run {} is ending and takes no more commands", run.record.id);
        return Err(reject(RejectionCode::RunCommandFailed, message));
    }
    Ok(run)
}

/// What an input keeps in memory, in bytes.
fn carried(text: &str, data: Option<&Data>) -> usize {
    text.len() + data.map_or(0, Data::carried)
}

fn has_room(turn: &Turn<'_>, run: &ActiveRun, bytes: usize) -> Result<(), Answer> {
    let limit = turn.session.limits.max_pending_inputs;
    let texts = run.queue.iter().map(|input| {
        let record = &input.record;
        carried(&record.text, record.data.as_deref())
    });
    let what = if run.queue.len() >= limit {
        format!("{limit} inputs wait (limits.max_pending_inputs)")
    } else if texts.sum::<usize>() + bytes > MAX_PENDING_BYTES {
        format!("with this text more than {MAX_PENDING_BYTES} bytes would wait")
    } else {
        return Ok(());
    };
    let message =
        format!("the run's queue is full: {what}; wait until some are delivered, or abort the run");
    Err(Answer::Refused(CallError::refused(
        Reason::LimitReached,
        message,
    )))
}

fn enqueue(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: DispatchFacts,
    kind: InputKind,
    text: std::sync::Arc<str>,
) {
    let (now, round) = (turn.now, turn.session.next_round);
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    let (run_id, token) = (run.record.id, run.token);
    let id = InputId {
        run: run_id,
        ordinal: run.next_ordinal,
    };
    run.next_ordinal += 1;
    let bytes = text.len() as u64 + facts.data.as_ref().map_or(0, |data| data.bytes());
    let record = InputRecord {
        id,
        kind,
        text,
        data: facts.data,
        origin: facts.origin,
        accepted_at: now,
        fate: InputFate::Pending,
    };
    let pending = PendingInput::of(&record, false);
    run.queue.push_back(QueuedInput {
        record: record.clone(),
        accepted_in: round,
        handed: false,
        held: false,
        returns: 0,
    });
    let depth = depth(run);
    turn.publish_durable(
        run_id,
        EventBody::QueueChanged {
            change: QueueChange::Added(Box::new(pending)),
            depth,
        },
    );

    let answer = BoundAnswer::Dispatched {
        run: Some(run_id),
        input: Some(id),
    };
    let binding = bind(turn, &facts.call, answer);
    let commit = turn.commit(run_id, token);
    commit.inputs.push(record);
    commit.bindings.extend(binding);
    let action = match kind {
        InputKind::Steer => Action::Steer,
        InputKind::FollowUp => Action::FollowUp,
    };
    turn.audit(
        run_id,
        token,
        AuditAction::Call(action),
        Some((facts.call, bytes)),
        "accepted",
    );
    let input = Some(AcceptedInput {
        id,
        fate: InputFate::Pending,
    });
    let accepted = DispatchAnswer::Accepted(Acceptance {
        run: Some(run_id),
        input,
    });
    turn.answer_durable(reply, Answer::Dispatched(accepted));
}

/// The binding of an accepted call, if its caller gave a key.
pub(super) fn bind(
    turn: &Turn<'_>,
    call: &super::input::CallFacts,
    answer: BoundAnswer,
) -> Option<Binding> {
    let key = call.binding.clone()?;
    Some(Binding {
        key,
        session: turn.session.record.id,
        digest: call.digest,
        answer,
        at: turn.now,
    })
}

pub(super) fn depth(run: &ActiveRun) -> u32 {
    u32::try_from(run.queue.len()).unwrap_or(u32::MAX)
}
