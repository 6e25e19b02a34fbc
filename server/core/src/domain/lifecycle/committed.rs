//! A round became durable: what it decided is now true.

use super::state::Phase;
use super::turn::Turn;

pub(super) fn committed(turn: &mut Turn<'_>, round: u64) {
    let session = &mut *turn.session;
    session.durable_round = session.durable_round.max(round);
    let settled = session.run.as_ref().is_some_and(
        |run| matches!(run.phase, Phase::Settling { round } if round <= session.durable_round),
    );
    if let Some(run) = session.run.as_mut() {
        run.told_depth = run.sealed_depth;
    }
    if settled {
        session.run = None;
    }
}
