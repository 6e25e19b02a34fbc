//! Erasing what deleted sessions held, as one more thing that a round writes.
//!
//! A slice takes entries from the newest on, and notes with them how many are left; then runs, each
//! after what belongs to it; then what calls were answered about it; and last the note itself. So whatever slice was the last before a crash,
//! what is left is found by the note. The audit trail and the bindings stay.

use sessionplane_core::domain::ids::{EntryId, SessionId};
use sessionplane_core::ports::repository::{DeletedSession, ReadError};

use super::committer::Direct;
use super::frame::{Source, damaged};
use super::keys::{self, Key};
use super::round::{Before, Round, failed, fetch};

/// Records that one slice takes, about: other commits wait for a slice, not for a whole session.
const SLICE: usize = 256;
/// Bytes of values that one slice takes, about: they stay in memory until the round is durable.
const SLICE_BYTES: usize = 4 * 1024 * 1024;

/// What a slice did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Erased {
    /// Records that it erased.
    pub(super) gone: usize,
    /// What there is left to do.
    pub(super) left: Left,
}

/// What there is left to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Left {
    /// Nothing is left of the session.
    Nothing,
    /// All that was asked for is done.
    Kept,
    /// Another slice.
    More,
}

/// A slice being gathered.
struct Slice<'r, 'db> {
    round: &'r mut Round<'db>,
    /// Records that it may still take.
    max: usize,
    /// The round's bytes at which it ends.
    full: usize,
    gone: usize,
}

/// Erases entries after number `keep`, and once there is none and `keep` is 0 all else: at most about
/// `max` records, and no more than a slice.
pub(super) fn erase(
    round: &mut Round<'_>,
    session: SessionId,
    keep: u64,
    max: usize,
) -> Result<Erased, ReadError> {
    let note = keys::deleted(session);
    let done = |gone, left| Ok(Erased { gone, left });
    // What this round itself deletes cannot be searched by its keys before the round is over.
    if fetch::<DeletedSession>(&Direct(round.db()), &note)?.is_none() {
        let noted = round.raw(&note)?.is_some();
        return done(0, if noted { Left::Kept } else { Left::Nothing });
    }
    let Some(found) = fetch::<DeletedSession>(round, &note)? else {
        return done(0, Left::Nothing);
    };
    let full = round.bytes() + SLICE_BYTES;
    let max = max.clamp(1, SLICE);
    let mut slice = Slice {
        round,
        max,
        full,
        gone: 0,
    };
    let entries = slice.entries(found, keep)?;
    if entries > keep {
        return done(slice.gone, Left::More);
    }
    if keep > 0 {
        return done(slice.gone, Left::Kept);
    }
    if !slice.runs(session)? || !slice.answers(session)? {
        return done(slice.gone, Left::More);
    }
    slice.round.delete(note)?;
    done(slice.gone, Left::Nothing)
}

impl Slice<'_, '_> {
    fn is_full(&self) -> bool {
        self.gone >= self.max || self.round.bytes() >= self.full
    }

    /// Erases a record. Of a damaged one nobody knows the pieces, if it has any: they stay, and
    /// nothing else is kept by it.
    fn take(&mut self, key: Key) -> Result<(), ReadError> {
        self.gone += 1;
        match self.round.delete(key.clone()) {
            Err(error @ ReadError::Damaged { .. }) => {
                tracing::warn!(%error, "a damaged record of a deleted session is erased as it is");
                self.round.delete_whole(key)
            }
            done => done,
        }
    }

    /// Erases entries after number `keep`; gives how many are left.
    fn entries(&mut self, found: DeletedSession, keep: u64) -> Result<u64, ReadError> {
        let DeletedSession { session, entries } = found;
        let mut left = entries;
        while left > keep && !self.is_full() {
            self.take(keys::entry(EntryId { session, seq: left }))?;
            left -= 1;
        }
        if left < entries {
            let note = DeletedSession {
                session,
                entries: left,
            };
            self.round
                .put(keys::deleted(session), &note, Before::Unknown)?;
        }
        Ok(left)
    }

    /// Erases runs and what belongs to them; tells whether none is left.
    fn runs(&mut self, session: SessionId) -> Result<bool, ReadError> {
        for mark in self.below(&keys::runs_of_session(session))? {
            let run = keys::marked_run(&mark).ok_or_else(|| damaged(&mark, "it names no run"))?;
            let belongs = [keys::inputs_of_run(run), keys::interactions_of_run(run)];
            for prefix in belongs {
                for key in self.below(&prefix)? {
                    if self.is_full() {
                        return Ok(false);
                    }
                    self.take(key)?;
                }
            }
            if self.is_full() {
                return Ok(false);
            }
            self.take(keys::run(run))?;
            self.take(mark)?;
        }
        Ok(!self.is_full())
    }

    /// Erases what changes of the session decided; tells whether none is left.
    fn answers(&mut self, session: SessionId) -> Result<bool, ReadError> {
        for key in self.below(&keys::answers_of_session(session))? {
            if self.is_full() {
                return Ok(false);
            }
            self.take(key)?;
        }
        Ok(!self.is_full())
    }

    /// The first keys below a prefix that are still there: as many as fit, and one more.
    fn below(&self, prefix: &[u8]) -> Result<Vec<Key>, ReadError> {
        let mut found = Vec::new();
        for record in self.round.db().scan_prefix(prefix) {
            let (key, _) = record.map_err(|error| failed(prefix, &error))?;
            // An earlier slice of this round may have taken it.
            if self.round.raw(&key)?.is_some() {
                found.push(key.to_vec());
            }
            if found.len() + self.gone > self.max {
                break;
            }
        }
        Ok(found)
    }
}
