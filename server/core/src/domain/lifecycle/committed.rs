//! A round became durable: what it decided is now true.

use super::state::{Active, Phase};
use super::turn::Turn;

pub(super) fn committed(turn: &mut Turn<'_>, round: u64) {
    let session = &mut *turn.session;
    session.durable_round = session.durable_round.max(round);
    let phase = match &session.active {
        Active::Nothing | Active::Deletion(_) => None,
        Active::Run(run) => Some(run.phase),
        Active::Compaction(compaction) => Some(compaction.phase),
    };
    let settled =
        matches!(phase, Some(Phase::Settling { round }) if round <= session.durable_round);
    if let Some(run) = session.active.run_mut() {
        run.told_depth = run.sealed_depth;
    }
    if settled {
        session.active = Active::Nothing;
    }
}
