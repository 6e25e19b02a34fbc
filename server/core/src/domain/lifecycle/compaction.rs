//! Compaction: on request outside of a run, under a lease of its own; or by the engine within a
//! run whose context is full.
//!
//! Whatever goes wrong, the transcript is as it was: the summary is one entry, written in the one
//! commit that also ends the compaction.

use std::sync::Arc;

use super::boundary::free;
use super::dispatch::{bind, reject};
use super::effect::{Answer, Effect};
use super::engine_output::{bounded, ignore};
use super::input::{DispatchFacts, EngineTag, ReplyId, Timer};
use super::interaction;
use super::state::{Active, ActiveCompaction, EngineStatus, Phase};
use super::turn::Turn;
use crate::domain::access::Action;
use crate::domain::audit::AuditAction;
use crate::domain::binding::BoundAnswer;
use crate::domain::command::{Acceptance, DispatchAnswer, Rejection, RejectionCode};
use crate::domain::compaction::{Compacted, CompactionOutcome, CompactionTrigger};
use crate::domain::entry::EntryBody;
use crate::domain::event::EventBody;
use crate::domain::ids::EntryId;
use crate::domain::lease::{Holder, LeaseClause};
use crate::domain::limits::{MAX_DETAIL_BYTES, MAX_ENTRY_TEXT_BYTES};
use crate::domain::run::{Failure, RunOutcome, code};
use crate::domain::text::{BoundedText, head};
use crate::ports::engine::{EngineCommand, EngineEvent};

/// Accepts fast: the answer comes with the admission, the outcome as `compaction_finished`.
pub(super) fn start(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    facts: DispatchFacts,
    instructions: Option<Arc<str>>,
) {
    let Some(token) = free(turn, reply, &facts) else {
        return;
    };
    // C15: nothing begins that takes an engine. What is written in one commit is not held.
    if facts.paused {
        return turn.answer(reply, held());
    }
    let at = &turn.session.head;
    let leaf = at.leaf.map(|leaf| leaf.seq);
    if !at.path.says_more_than_its_summary(leaf) {
        let message = "nothing was said since the conversation's start or its last compaction";
        return turn.answer(reply, reject(RejectionCode::NothingToCompact, message));
    }
    let settings = facts.agent.models.resolve(&at.chosen).settings;
    turn.session.active = Active::Compaction(ActiveCompaction {
        token,
        phase: Phase::Active,
        engine: EngineStatus::Unopened,
        admitted_in: turn.session.next_round,
        instructions: instructions.clone(),
        settings,
    });
    let trigger = CompactionTrigger::Manual;
    turn.publish_durable(None, EventBody::CompactionStarted { trigger });
    turn.commit(Holder::Boundary, token).lease = LeaseClause::Acquire(token);
    let bytes = instructions.map_or(0, |text| text.len() as u64);
    accepted(turn, reply, facts, Action::Compact, bytes);
}

fn held() -> Answer {
    Answer::Dispatched(DispatchAnswer::Rejected(Rejection {
        code: RejectionCode::BoundaryCommandFailed,
        message: "the session is paused; resume it, and compact again".to_owned(),
        retryable: true,
    }))
}

/// Binds, audits and answers a command on the compaction that holds the session.
fn accepted(turn: &mut Turn<'_>, reply: ReplyId, facts: DispatchFacts, action: Action, bytes: u64) {
    let Some(token) = turn.session.active.compaction().map(|it| it.token) else {
        return;
    };
    let answer = BoundAnswer::Dispatched {
        run: None,
        input: None,
    };
    let binding = bind(turn, &facts.call, answer);
    turn.commit(Holder::Boundary, token)
        .bindings
        .extend(binding);
    let (sandbox, call) = (facts.agent.capabilities.sandbox, Some((facts.call, bytes)));
    turn.audit(
        Holder::Boundary,
        token,
        AuditAction::Call(action),
        call,
        "accepted",
    );
    if action == Action::Compact {
        turn.audit_sandbox(Holder::Boundary, token, sandbox);
    }
    let accepted = DispatchAnswer::Accepted(Acceptance {
        run: None,
        input: None,
    });
    turn.answer_durable(reply, Answer::Dispatched(accepted));
}

/// C21: an abort ends a running compaction.
pub(super) fn abort(turn: &mut Turn<'_>, reply: ReplyId, facts: DispatchFacts) {
    let grace = turn.session.limits.abort_grace;
    let Some(compaction) = turn.session.active.compaction_mut() else {
        return;
    };
    if facts.expected_run.is_some() {
        let no = Rejection::no_active_run(facts.expected_run);
        return turn.answer(reply, Answer::Dispatched(DispatchAnswer::Rejected(no)));
    }
    if matches!(compaction.phase, Phase::Settling { .. }) {
        let message = "the compaction is ending and takes no more commands";
        return turn.answer(reply, reject(RejectionCode::RunCommandFailed, message));
    }
    let first = compaction.phase == Phase::Active;
    compaction.phase = Phase::Aborting;
    let (tag, engine) = (compaction.tag(), compaction.engine);
    accepted(turn, reply, facts, Action::Abort, 0);
    match engine {
        EngineStatus::Working if first => {
            turn.live(Effect::Tell(tag, EngineCommand::Abort));
            turn.live(Effect::StartTimer {
                tag,
                timer: Timer::AbortGrace,
                after: grace,
            });
        }
        EngineStatus::Working => {}
        EngineStatus::Unopened | EngineStatus::Opening => {
            turn.live(Effect::DropEngine(tag));
            finish(turn, CompactionOutcome::Aborted);
        }
        EngineStatus::Resting | EngineStatus::Dropped | EngineStatus::Gone => {
            finish(turn, CompactionOutcome::Aborted);
        }
    }
}

/// The engine is opened once the admission is durable.
pub(super) fn pump(turn: &mut Turn<'_>) {
    let durable = turn.session.durable_round;
    let Some(compaction) = turn.session.active.compaction_mut() else {
        return;
    };
    let admitted = compaction.admitted_in <= durable && compaction.phase == Phase::Active;
    if admitted && compaction.engine == EngineStatus::Unopened {
        compaction.engine = EngineStatus::Opening;
        let tag = compaction.tag();
        turn.live(Effect::OpenEngine(tag));
    }
}

/// The compaction that an engine's report is of, unless its end is decided.
fn live<'t>(turn: &'t mut Turn<'_>, tag: EngineTag) -> Option<&'t mut ActiveCompaction> {
    let compaction = turn.session.active.compaction_mut()?;
    let settling = matches!(compaction.phase, Phase::Settling { .. });
    (compaction.tag() == tag && !settling).then_some(compaction)
}

/// How its transcript stood is not written down here: a compaction that fails leaves no entry.
pub(super) fn opened(turn: &mut Turn<'_>, tag: EngineTag) {
    let Some(compaction) = live(turn, tag) else {
        return;
    };
    if compaction.engine != EngineStatus::Opening {
        return ignore(turn, tag, "the engine opened twice");
    }
    compaction.engine = EngineStatus::Working;
    let instructions = compaction.instructions.clone();
    turn.live(Effect::Tell(tag, EngineCommand::Compact { instructions }));
}

pub(super) fn gone(turn: &mut Turn<'_>, tag: EngineTag, reason: &str) {
    let Some(compaction) = live(turn, tag) else {
        return;
    };
    let aborting = compaction.phase == Phase::Aborting;
    let code = match compaction.engine {
        EngineStatus::Opening => code::ENGINE_UNAVAILABLE,
        EngineStatus::Unopened
        | EngineStatus::Working
        | EngineStatus::Resting
        | EngineStatus::Dropped
        | EngineStatus::Gone => code::ENGINE_GONE,
    };
    compaction.engine = EngineStatus::Gone;
    turn.live(Effect::DropEngine(tag));
    let failure = Failure {
        code: code.to_owned(),
        details: head(reason, MAX_DETAIL_BYTES).to_owned(),
        retryable: true,
    };
    finish(
        turn,
        if aborting {
            CompactionOutcome::Aborted
        } else {
            CompactionOutcome::Failed(failure)
        },
    );
}

/// Nothing but the end counts: what the engine says on its way to a summary belongs to no run, and
/// nobody could be asked.
pub(super) fn event(turn: &mut Turn<'_>, tag: EngineTag, event: EngineEvent) {
    let Some(compaction) = live(turn, tag) else {
        return;
    };
    if compaction.engine != EngineStatus::Working {
        return ignore(
            turn,
            tag,
            "the engine reported before it was asked to compact",
        );
    }
    let aborting = compaction.phase == Phase::Aborting;
    match event {
        EngineEvent::CompactionFinished(_) | EngineEvent::Stopped { .. } if aborting => {
            compaction.engine = EngineStatus::Resting;
            finish(turn, CompactionOutcome::Aborted);
        }
        EngineEvent::CompactionFinished(Ok(compacted)) => {
            compaction.engine = EngineStatus::Resting;
            succeed(turn, compacted);
        }
        EngineEvent::CompactionFinished(Err(failure)) => {
            compaction.engine = EngineStatus::Resting;
            finish(turn, CompactionOutcome::Failed(bounded(failure)));
        }
        EngineEvent::Stopped { .. } => {
            compaction.engine = EngineStatus::Resting;
            finish(turn, CompactionOutcome::Failed(no_summary()));
        }
        EngineEvent::Asked { ask, .. } if !aborting => {
            interaction::refuse(turn, tag, ask);
        }
        _ => {}
    }
}

pub(super) fn timer(turn: &mut Turn<'_>, tag: EngineTag, timer: Timer) {
    let Some(compaction) = live(turn, tag) else {
        return;
    };
    if timer == Timer::AbortGrace && compaction.phase == Phase::Aborting {
        compaction.engine = EngineStatus::Gone;
        turn.live(Effect::DropEngine(tag));
        finish(turn, CompactionOutcome::Aborted);
    }
}

fn no_summary() -> Failure {
    Failure {
        code: code::ENGINE_FAILED.to_owned(),
        details: "the agent stopped without a summary".to_owned(),
        retryable: true,
    }
}

fn succeed(turn: &mut Turn<'_>, compacted: Compacted) {
    let Some(token) = turn.session.active.compaction().map(|it| it.token) else {
        return;
    };
    if compacted.summary.is_empty() {
        return finish(turn, CompactionOutcome::Failed(no_summary()));
    }
    let body = entry(turn, compacted, CompactionTrigger::Manual);
    let id = turn.append(Holder::Boundary, token, body);
    finish(turn, CompactionOutcome::Completed(id));
}

fn entry(turn: &Turn<'_>, compacted: Compacted, trigger: CompactionTrigger) -> EntryBody {
    let Compacted {
        summary,
        first_kept,
        tokens_before,
        tokens_after,
    } = compacted;
    let (record, newest) = (&turn.session.record, turn.session.head.entries);
    // That its engine was given it to read is found out where it can be read; here only what there
    // cannot be is left out.
    let known = |id: &EntryId| {
        if id.session == record.id {
            (1..=newest).contains(&id.seq)
        } else {
            record.lineage.is_some()
        }
    };
    EntryBody::Compaction {
        summary: BoundedText::new(&summary, MAX_ENTRY_TEXT_BYTES),
        first_kept: first_kept.filter(known),
        tokens_before,
        tokens_after,
        trigger,
    }
}

/// Gives the lease up in the same commit as the summary, if there is one.
fn finish(turn: &mut Turn<'_>, outcome: CompactionOutcome) {
    let round = turn.session.next_round;
    let Some(compaction) = turn.session.active.compaction_mut() else {
        return;
    };
    compaction.phase = Phase::Settling { round };
    let (token, tag) = (compaction.token, compaction.tag());
    turn.live(Effect::CancelTimer(Timer::AbortGrace));
    turn.commit(Holder::Boundary, token).lease = LeaseClause::Release(token);
    turn.audit(
        Holder::Boundary,
        token,
        AuditAction::Compacted,
        None,
        outcome.as_str(),
    );
    turn.publish_durable(None, EventBody::CompactionFinished { outcome });
    turn.after_commit(Effect::DropEngine(tag));
}

/// Within a run: told, and nothing else; the state says `running`.
pub(super) fn started_within_run(turn: &mut Turn<'_>, tag: EngineTag) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    if run.compacting {
        return ignore(turn, tag, "a compaction was started twice");
    }
    run.compacting = true;
    let trigger = CompactionTrigger::Overflow;
    turn.publish(tag.run, EventBody::CompactionStarted { trigger });
}

pub(super) fn finished_within_run(
    turn: &mut Turn<'_>,
    tag: EngineTag,
    result: Result<Compacted, Failure>,
) {
    let round = turn.session.next_round;
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    if !run.compacting {
        return ignore(turn, tag, "a compaction ended that was not started");
    }
    run.compacting = false;
    let failure = match result {
        Ok(compacted) if !compacted.summary.is_empty() => {
            let token = run.token;
            run.compacted_in = round;
            let body = entry(turn, compacted, CompactionTrigger::Overflow);
            let outcome = CompactionOutcome::Completed(turn.append(tag.run, token, body));
            turn.audit(tag.run, token, AuditAction::Compacted, None, "completed");
            return turn.publish_durable(tag.run, EventBody::CompactionFinished { outcome });
        }
        Ok(_) => no_summary(),
        Err(failure) => bounded(failure),
    };
    // It wrote nothing, so there is nothing to wait for.
    let outcome = CompactionOutcome::Failed(failure);
    turn.publish(tag.run, EventBody::CompactionFinished { outcome });
}

/// The engine comes to rest in the middle of its compaction, and the run goes on.
pub(super) fn cut_at_rest(turn: &mut Turn<'_>, tag: EngineTag) {
    if let Some(run) = turn.live_run(tag).filter(|run| run.compacting) {
        run.compacting = false;
        let outcome = CompactionOutcome::Failed(no_summary());
        turn.publish(tag.run, EventBody::CompactionFinished { outcome });
    }
}

/// A run ends in the middle of its engine's compaction: told with the run's end.
pub(super) fn cut_within_run(turn: &mut Turn<'_>, outcome: &RunOutcome) {
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    if !std::mem::take(&mut run.compacting) {
        return;
    }
    let id = run.record.id;
    let outcome = match outcome {
        RunOutcome::Aborted => CompactionOutcome::Aborted,
        RunOutcome::Failed(failure) => CompactionOutcome::Failed(failure.clone()),
        RunOutcome::Completed => CompactionOutcome::Failed(no_summary()),
    };
    turn.publish_durable(id, EventBody::CompactionFinished { outcome });
}
