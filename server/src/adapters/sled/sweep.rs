//! Forgetting old bindings, as one more thing that a round writes.

use sessionplane_core::domain::binding::Binding;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::ReadError;

use super::frame::{Source, damaged};
use super::keys::{self, Key};
use super::round::{Round, failed, fetch};

/// Deletes at most `max` bindings made before `before` whose run settled before that; says how
/// many. Passes over those of active runs: as many as there are active runs and their inputs.
pub(super) fn sweep(
    round: &mut Round<'_>,
    before: Timestamp,
    max: usize,
) -> Result<usize, ReadError> {
    let marks = round.db().range(keys::bindings_before(before));
    let mut gone = 0;
    for mark in marks {
        if gone == max {
            break;
        }
        let (mark, _) = mark.map_err(|error| failed(b"t", &error))?;
        // An earlier sweep of this round may have taken it.
        if round.raw(&mark)?.is_none() {
            continue;
        }
        let (key, binding) = marked(round, &mark)?;
        if settled_before(round, &binding, before)? {
            round.delete(mark.to_vec())?;
            round.delete(key)?;
            gone += 1;
        }
    }
    Ok(gone)
}

fn marked(round: &Round<'_>, mark: &[u8]) -> Result<(Key, Binding), ReadError> {
    let key = keys::marked_binding(mark).ok_or_else(|| damaged(mark, "it names no binding"))?;
    let binding = fetch(round, &key)?.ok_or_else(|| damaged(mark, "its binding is missing"))?;
    Ok((key, binding))
}

fn settled_before(
    round: &Round<'_>,
    binding: &Binding,
    before: Timestamp,
) -> Result<bool, ReadError> {
    let Some(run) = binding.answer.run() else {
        // Nothing but its age keeps it.
        return Ok(true);
    };
    let run: Option<RunRecord> = fetch(round, &keys::run(run))?;
    let settled = run.and_then(|run| run.settled);
    Ok(settled.is_some_and(|settled| settled.at < before))
}
