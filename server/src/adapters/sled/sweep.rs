//! Forgetting old bindings, as one more thing that a round writes.

use sessionplane_core::domain::binding::{Binding, BoundAnswer};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::ReadError;

use super::frame::{Source, damaged};
use super::keys::{self, Key};
use super::round::{Round, failed, fetch};

/// Marks that one slice looks at, at most: other commits wait for a slice, not for a whole sweep.
const SLICE: usize = 256;

/// What a slice of a sweep did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Swept {
    /// Bindings that it deleted.
    pub(super) gone: usize,
    /// Where the next slice begins; `None` at the end.
    pub(super) next: Option<Key>,
}

/// Deletes at most `max` bindings made before `before` whose run settled before that, oldest first,
/// from the mark `from` on or else from the oldest. Passes over those of active runs, and over
/// damaged ones, which it logs.
pub(super) fn sweep(
    round: &mut Round<'_>,
    before: Timestamp,
    max: usize,
    from: Option<Key>,
) -> Result<Swept, ReadError> {
    let all = keys::bindings_before(before);
    let first = from.unwrap_or(all.start);
    let marks = round.db().range(first..all.end);
    let mut gone = 0;
    for (looked, mark) in marks.enumerate() {
        let (mark, _) = mark.map_err(|error| failed(b"t", &error))?;
        if gone == max || looked == SLICE {
            let next = Some(mark.to_vec());
            return Ok(Swept { gone, next });
        }
        match outlived(round, &mark, before) {
            Ok(None) => {}
            Ok(Some(binding)) => {
                let key = keys::binding(&binding.key);
                if let BoundAnswer::Session(_) = binding.answer {
                    round.delete(keys::answer(binding.session, &key))?;
                }
                round.delete(mark.to_vec())?;
                round.delete(key)?;
                gone += 1;
            }
            Err(error @ ReadError::Damaged { .. }) => {
                tracing::warn!(%error, "a request binding is damaged and stays");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Swept { gone, next: None })
}

/// A mark's binding, if its time is over.
fn outlived(
    round: &Round<'_>,
    mark: &[u8],
    before: Timestamp,
) -> Result<Option<Binding>, ReadError> {
    // An earlier sweep of this round may have taken it.
    if round.raw(mark)?.is_none() {
        return Ok(None);
    }
    let key = keys::marked_binding(mark).ok_or_else(|| damaged(mark, "it names no binding"))?;
    let binding: Option<Binding> = fetch(round, &key)?;
    let binding = binding.ok_or_else(|| damaged(mark, "its binding is missing"))?;
    let Some(run) = binding.answer.run() else {
        // Nothing but its age keeps it.
        return Ok(Some(binding));
    };
    // A run that is no more was erased with its session.
    let run: Option<RunRecord> = fetch(round, &keys::run(run))?;
    let over = run.is_none_or(|run| run.settled.is_some_and(|settled| settled.at < before));
    Ok(over.then_some(binding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::sled::round::PieceSets;

    #[test]
    fn a_slice_looks_at_so_many_marks_steps_over_damaged_ones_and_is_gone_on_from() {
        let directory = tempfile::TempDir::new().unwrap();
        let db = ::sled::Config::new()
            .path(directory.path())
            .flush_every_ms(None)
            .open()
            .unwrap();
        let mark = |n: u64| {
            let mut binding = [0; 33];
            binding[..8].copy_from_slice(&n.to_be_bytes());
            keys::binding_by_time(Timestamp::from_millis(n), &binding)
        };
        let count = SLICE as u64 + 3;
        for n in 0..count {
            // None of them has a binding.
            db.insert(mark(n), b"x").unwrap();
        }
        let mut sets = PieceSets::of_boot(1);
        let mut round = Round::new(&db, &mut sets);
        let far = Timestamp::from_millis(u64::MAX);
        let mut slice = |max, from| sweep(&mut round, far, max, from).unwrap();
        let next = Some(mark(SLICE as u64));
        let first = slice(9, None);
        assert_eq!(first, Swept { gone: 0, next });
        assert_eq!(
            slice(9, first.next),
            Swept {
                gone: 0,
                next: None
            }
        );
        let next = Some(mark(0));
        assert_eq!(slice(0, None), Swept { gone: 0, next });
    }
}
