//! Invoke streams come and go; delays run out.

use super::abort;
use super::compaction;
use super::conflate;
use super::effect::{Answer, Effect};
use super::input::{DetachCause, EngineTag, ReplyId, StreamId, Timer};
use super::interaction;
use super::state::{EngineStatus, Phase};
use super::turn::Turn;
use crate::contract::OnDisconnect;
use crate::domain::ids::RunId;

pub(super) fn attach(
    turn: &mut Turn<'_>,
    reply: ReplyId,
    run: RunId,
    stream: StreamId,
    on_disconnect: OnDisconnect,
) {
    let active = turn
        .session
        .active
        .run_mut()
        .filter(|active| active.record.id == run);
    let joined = active.is_some();
    if let Some(active) = active {
        active.streams.insert(stream);
        if on_disconnect == OnDisconnect::Detach {
            active.on_disconnect = OnDisconnect::Detach;
        }
        // Somebody rejoined: that is all that any grace waits for.
        for timer in std::mem::take(&mut active.graces) {
            turn.live(Effect::CancelTimer(timer));
        }
    }
    turn.answer(reply, Answer::Attached { active: joined });
}

/// C13: a CANCEL run is aborted when its last stream is gone: at once without a request id, after
/// a grace with one. A stream that the server ended is never a cancellation. Each stream that leaves
/// starts its grace, also while others listen, so that the longest of them counts in the end.
pub(super) fn detach(turn: &mut Turn<'_>, run: RunId, stream: StreamId, cause: DetachCause) {
    let limits = turn.session.limits;
    let Some(active) = turn
        .session
        .active
        .run_mut()
        .filter(|active| active.record.id == run)
    else {
        return;
    };
    let was_attached = active.streams.remove(&stream);
    if !was_attached || active.on_disconnect == OnDisconnect::Detach {
        return;
    }
    if active.phase != Phase::Active {
        return;
    }
    let rejoinable = active.record.request_id.is_some();
    let grace = match cause {
        DetachCause::ServerEnded => Some((Timer::RejoinGrace, limits.rejoin_grace)),
        DetachCause::CallerGone if rejoinable => {
            Some((Timer::DisconnectGrace, limits.cancel_grace))
        }
        DetachCause::CallerGone => None,
    };
    if let Some((timer, after)) = grace {
        active.graces.insert(timer);
        let tag = active.tag();
        turn.live(Effect::StartTimer { tag, timer, after });
    }
    abort_if_deserted(turn);
}

/// Nobody listens, and nobody who may come back has time left to do so.
fn abort_if_deserted(turn: &mut Turn<'_>) {
    let deserted = turn.session.active.run().is_some_and(|run| {
        run.streams.is_empty() && run.graces.is_empty() && run.on_disconnect == OnDisconnect::Cancel
    });
    if deserted {
        abort::disconnected(turn);
    }
}

pub(super) fn timer(turn: &mut Turn<'_>, tag: EngineTag, timer: Timer) {
    if turn.session.active.compaction().is_some() {
        return compaction::timer(turn, tag, timer);
    }
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    match timer {
        Timer::DisconnectGrace | Timer::RejoinGrace => {
            run.graces.remove(&timer);
            abort_if_deserted(turn);
        }
        Timer::AbortGrace => {
            if run.phase == Phase::Aborting {
                run.engine = EngineStatus::Dropped;
                turn.live(Effect::DropEngine(tag));
            }
        }
        Timer::Conflation => conflate::flush(turn, tag),
        Timer::Interaction(ordinal) => interaction::expire(turn, tag, ordinal),
    }
}
