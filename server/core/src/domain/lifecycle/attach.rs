//! Invoke streams come and go; delays run out.

use super::abort;
use super::conflate;
use super::effect::{Answer, Effect};
use super::input::{DetachCause, ReplyId, RunTag, StreamId, Timer};
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
        .run
        .as_mut()
        .filter(|active| active.record.id == run);
    let joined = active.is_some();
    if let Some(active) = active {
        active.streams.insert(stream);
        if on_disconnect == OnDisconnect::Detach {
            active.on_disconnect = OnDisconnect::Detach;
        }
        turn.live(Effect::CancelTimer(Timer::DisconnectGrace));
    }
    turn.answer(reply, Answer::Attached { active: joined });
}

/// C13: a CANCEL run is aborted when its last stream is gone: at once without a request id, after
/// a grace with one. A stream that the server ended is never a cancellation.
pub(super) fn detach(turn: &mut Turn<'_>, run: RunId, stream: StreamId, cause: DetachCause) {
    let limits = turn.session.limits;
    let Some(active) = turn
        .session
        .run
        .as_mut()
        .filter(|active| active.record.id == run)
    else {
        return;
    };
    let was_attached = active.streams.remove(&stream);
    let deserted = was_attached && active.streams.is_empty();
    if !deserted || active.on_disconnect == OnDisconnect::Detach || active.phase != Phase::Active {
        return;
    }
    let rejoinable = active.record.request_id.is_some();
    let tag = active.tag();
    let grace = match cause {
        DetachCause::ServerEnded => limits.rejoin_grace,
        DetachCause::CallerGone if rejoinable => limits.cancel_grace,
        DetachCause::CallerGone => return abort::disconnected(turn),
    };
    turn.live(Effect::StartTimer {
        tag,
        timer: Timer::DisconnectGrace,
        after: grace,
    });
}

pub(super) fn timer(turn: &mut Turn<'_>, tag: RunTag, timer: Timer) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    match timer {
        Timer::DisconnectGrace => {
            let deserted = run.streams.is_empty() && run.on_disconnect == OnDisconnect::Cancel;
            if deserted {
                abort::disconnected(turn);
            }
        }
        Timer::AbortGrace => {
            if run.phase == Phase::Aborting {
                run.engine = EngineStatus::Dropped;
                turn.live(Effect::DropEngine(tag));
            }
        }
        Timer::Conflation => conflate::flush(turn, tag),
    }
}
