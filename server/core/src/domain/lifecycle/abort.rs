//! An abort: the queue is drained first, then the engine is told, then what is left is killed at a
//! deadline. Only the answer waits for the disk.

use super::dispatch::bind;
use super::effect::{Answer, Effect};
use super::engine_output;
use super::input::{DispatchFacts, ReplyId, Timer};
use super::interaction;
use super::settle;
use super::state::{EngineStatus, Phase};
use super::turn::Turn;
use crate::domain::access::Action;
use crate::domain::audit::AuditAction;
use crate::domain::binding::BoundAnswer;
use crate::domain::command::{Acceptance, DispatchAnswer};
use crate::domain::input::DiscardCause;
use crate::domain::interaction::ResolutionCause;
use crate::domain::run::RunOutcome;
use crate::ports::engine::EngineCommand;

/// A caller's abort. The run was found to be reachable.
pub(super) fn command(turn: &mut Turn<'_>, reply: ReplyId, facts: DispatchFacts) {
    let Some(run) = turn.session.active.run() else {
        return;
    };
    let (id, token) = (run.record.id, run.token);
    begin(turn);
    let binding = bind(
        turn,
        &facts.call,
        BoundAnswer::Dispatched {
            run: Some(id),
            input: None,
        },
    );
    turn.commit(id, token).bindings.extend(binding);
    turn.audit(
        id,
        token,
        AuditAction::Call(Action::Abort),
        Some((facts.call, 0)),
        "accepted",
    );
    let accepted = DispatchAnswer::Accepted(Acceptance {
        run: Some(id),
        input: None,
    });
    turn.answer_durable(reply, Answer::Dispatched(accepted));
    end_if_nothing_works(turn);
}

/// The callers of a CANCEL run are gone.
pub(super) fn disconnected(turn: &mut Turn<'_>) {
    let Some(run) = turn.session.active.run() else {
        return;
    };
    if run.phase != Phase::Active {
        return;
    }
    let (id, token) = (run.record.id, run.token);
    begin(turn);
    turn.audit(id, token, AuditAction::Disconnect, None, "aborted");
    end_if_nothing_works(turn);
}

/// Drains our queue, then tells the engine. The durable mark makes the run settle as aborted also
/// after a crash.
fn begin(turn: &mut Turn<'_>) {
    let grace = turn.session.limits.abort_grace;
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    if run.phase != Phase::Active {
        return;
    }
    run.phase = Phase::Aborting;
    run.record.abort_requested = true;
    let tag = run.tag();
    let graces = std::mem::take(&mut run.graces);
    let working = run.engine == EngineStatus::Working;
    settle::discard(turn, DiscardCause::Aborted, |input| !input.handed);
    interaction::close_all(turn, ResolutionCause::Aborted);
    if working {
        turn.live(Effect::Tell(tag, EngineCommand::Abort));
    }
    for timer in graces {
        turn.live(Effect::CancelTimer(timer));
    }
    turn.live(Effect::StartTimer {
        tag,
        timer: Timer::AbortGrace,
        after: grace,
    });
    turn.write_run();
}

/// An engine that was given up at the deadline ends its run with the last of what it had said: a
/// deadline does not undo what was shown or finished before it.
pub(super) fn end_if_all_is_judged(turn: &mut Turn<'_>) {
    let judged = turn.session.unread.reports == 0;
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    if run.phase == Phase::Aborting && run.engine == EngineStatus::Dropped && judged {
        run.engine = EngineStatus::Gone;
        let tag = run.tag();
        engine_output::keep_partial(turn, tag);
        settle::settle(turn, RunOutcome::Aborted);
    }
}

/// With no engine at work there is nothing to wait for.
fn end_if_nothing_works(turn: &mut Turn<'_>) {
    let Some(run) = turn.session.active.run() else {
        return;
    };
    let idle = matches!(
        run.engine,
        EngineStatus::Unopened | EngineStatus::Resting | EngineStatus::Gone
    );
    if run.phase == Phase::Aborting && idle {
        settle::settle(turn, RunOutcome::Aborted);
    }
}
