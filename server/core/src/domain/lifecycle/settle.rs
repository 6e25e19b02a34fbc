//! The end of a run: one owner decides, one commit holds everything, one event tells it.

use super::compaction;
use super::effect::Effect;
use super::input::Timer;
use super::interaction;
use super::state::{Phase, QueuedInput};
use super::turn::Turn;
use crate::domain::audit::AuditAction;
use crate::domain::event::{EventBody, QueueChange};
use crate::domain::input::{DiscardCause, InputFate, UndeliveredInput};
use crate::domain::interaction::ResolutionCause;
use crate::domain::lease::LeaseClause;
use crate::domain::limits::MAX_TOLD_UNDELIVERED;
use crate::domain::run::{RunOutcome, Settlement};
use crate::domain::session::LastRun;

/// Ends the queued inputs that `which` picks: durable in this step's commit, told after it. The
/// run's record lists them in the same commit, so that a crash cannot part the two.
pub(super) fn discard(
    turn: &mut Turn<'_>,
    cause: DiscardCause,
    which: impl Fn(&QueuedInput) -> bool,
) {
    let Some(run) = turn.session.active.run_mut() else {
        return;
    };
    let (id, token) = (run.record.id, run.token);
    let (gone, kept): (Vec<_>, Vec<_>) = run.queue.drain(..).partition(|input| which(input));
    run.queue = kept.into();
    if gone.is_empty() {
        return;
    }
    let mut depth = super::dispatch::depth(run) + u32::try_from(gone.len()).unwrap_or(u32::MAX);
    let lost = gone.iter().map(|input| UndeliveredInput {
        id: input.record.id,
        kind: input.record.kind,
        cause,
        text: None,
    });
    run.record.undelivered.extend(lost);
    for mut input in gone {
        depth -= 1;
        input.record.fate = InputFate::Discarded(cause);
        let input_id = input.record.id;
        turn.commit(id, token).inputs.push(input.record);
        turn.publish_durable(
            id,
            EventBody::InputDiscarded {
                input: input_id,
                cause,
            },
        );
        turn.publish_durable(
            id,
            EventBody::QueueChanged {
                change: QueueChange::Removed(input_id),
                depth,
            },
        );
    }
    turn.write_run();
}

/// Decides the run's end. From here on joins are rejected and the state stays `running`; after the
/// sync it flips and `run_settled` is published in one step.
pub(super) fn settle(turn: &mut Turn<'_>, outcome: RunOutcome) {
    let rest = match &outcome {
        RunOutcome::Aborted => DiscardCause::Aborted,
        RunOutcome::Failed(_) | RunOutcome::Completed => DiscardCause::Failed,
    };
    discard(turn, DiscardCause::Lost, |input| input.handed);
    discard(turn, rest, |_| true);
    interaction::close_all(
        turn,
        match &outcome {
            RunOutcome::Aborted => ResolutionCause::Aborted,
            RunOutcome::Failed(_) | RunOutcome::Completed => ResolutionCause::EngineGone,
        },
    );
    compaction::cut_within_run(turn, &outcome);
    let (now, round) = (turn.now, turn.session.next_round);
    let session = &mut *turn.session;
    let Some(run) = session.active.run_mut() else {
        return;
    };
    run.phase = Phase::Settling { round };
    let word = outcome.as_str();
    run.record.settled = Some(Settlement { at: now, outcome });
    session.head.last_run = LastRun::of(&run.record);
    session.head.usage = session.head.usage.plus(run.record.usage);
    let (id, token, tag) = (run.record.id, run.token, run.tag());
    for body in run.conflation.drain() {
        turn.publish(id, body);
    }
    for timer in Timer::ALL {
        turn.live(Effect::CancelTimer(timer));
    }
    turn.write_run();
    turn.commit(id, token).lease = LeaseClause::Release(token);
    turn.audit(id, token, AuditAction::Settle, None, word);
    if let Some(run) = turn.session.active.run() {
        let mut run = Box::new(run.record.clone());
        run.undelivered.truncate(MAX_TOLD_UNDELIVERED);
        turn.publish_durable(id, EventBody::RunSettled { run });
    }
    // Residency is a cache: what an engine still says after its run belongs to nobody.
    turn.after_commit(Effect::DropEngine(tag));
}
