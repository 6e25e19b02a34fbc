//! Everything as of one round, read at leisure while the store goes on being written.
//!
//! Not a copy: from that round on, the first value of each key that a later round replaces is kept
//! in memory, until the reader, who goes through the keys in order, has passed it. The committer is
//! held up for one page at a time, and never waits for the reader. What is kept is bounded: a
//! snapshot for which too much was written is given up, and its reader told.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::sled::{Db, IVec};
use sessionplane_core::ports::repository::ReadError;

use super::convert::Meta;
use super::device::Device;
use super::frame::Source;
use super::inflight::{InFlight, Replaced, settled_scan};
use super::keys::{self, Key, Named};
use super::round::{failed, fetch};
use super::tally::Tally;
use super::walk::{PAGE, Page, Walk};
use crate::failpoint;

/// Memory for values that later rounds replaced, in bytes.
const KEPT_BYTES: usize = 256 * 1024 * 1024;
/// What a kept key takes besides its bytes, about.
const KEPT_OVERHEAD: usize = 96;

/// What rounds since a snapshot's replaced, as far as its reader may still ask for it.
pub(super) struct Kept {
    former: Replaced,
    /// Pieces of long values: asked for when their value is come by, wherever they lie.
    pieces: Replaced,
    /// Keys before this one were read.
    read_to: Key,
    bytes: usize,
    most: usize,
    spent: bool,
}

impl Kept {
    fn new(most: usize) -> Self {
        Self {
            former: Replaced::new(),
            pieces: Replaced::new(),
            read_to: Key::new(),
            bytes: 0,
            most,
            spent: false,
        }
    }

    /// Takes note of what a round is about to replace.
    pub(super) fn keep(&mut self, replaced: &Replaced) {
        for (key, old) in replaced {
            if self.spent {
                return;
            }
            let map = match (keys::named(key), old) {
                // Its number is beyond all of the snapshot's.
                (Some(Named::Piece(_)), None) => continue,
                (Some(Named::Piece(_)), Some(_)) => &mut self.pieces,
                _ if key.as_ref() < &self.read_to[..] => continue,
                _ => &mut self.former,
            };
            if !map.contains_key(key) {
                self.bytes += weight(key, old.as_ref());
                map.insert(key.clone(), old.clone());
            }
            if self.bytes > self.most {
                *self = Self::new(0);
                self.spent = true;
            }
        }
    }

    /// Forgets what lies before `next`.
    fn passed(&mut self, next: &[u8]) {
        let rest = self.former.split_off(next);
        let passed = std::mem::replace(&mut self.former, rest);
        let freed: usize = passed
            .iter()
            .map(|(key, old)| weight(key, old.as_ref()))
            .sum();
        self.bytes -= freed;
        self.read_to = next.to_vec();
    }

    fn settled(&self, key: &[u8], seen: Option<IVec>) -> Option<IVec> {
        match self.former.get(key).or_else(|| self.pieces.get(key)) {
            Some(old) => old.clone(),
            None => seen,
        }
    }
}

fn weight(key: &IVec, old: Option<&IVec>) -> usize {
    key.len() + old.map_or(0, |old| old.len()) + KEPT_OVERHEAD
}

/// Gives up the snapshot that there is, if there is one: its reader hears so at its next page.
pub(super) fn end(inflight: &InFlight) {
    inflight.change().kept = None;
    inflight.snapshots.send_replace(false);
}

/// All that the store held after one round. There is one at a time; dropping it frees what is kept.
pub struct Snapshot {
    db: Db,
    inflight: Arc<InFlight>,
    meta: Meta,
    round: u64,
    tally: Tally,
    /// Pieces beyond this set are newer.
    newest_set: u64,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot(round {})", self.round)
    }
}

impl Snapshot {
    /// On the committer's thread, between rounds.
    pub(super) fn take(device: &Device, newest_set: u64) -> Result<Self, ReadError> {
        let meta: Option<Meta> = fetch(&super::committer::Direct(device.db()), &keys::meta())?;
        let meta = meta.ok_or_else(|| super::frame::damaged(&keys::meta(), "it is missing"))?;
        let mut state = device.inflight.change();
        if state.kept.is_some() {
            let busy = "another snapshot is being read; try again when it is done";
            return Err(ReadError::Store(busy.to_owned()));
        }
        state.kept = Some(Kept::new(KEPT_BYTES));
        drop(state);
        device.inflight.snapshots.send_replace(true);
        Ok(Self {
            db: device.db().clone(),
            inflight: Arc::clone(&device.inflight),
            meta,
            round: device.durable.round,
            tally: device.tally,
            newest_set,
        })
    }

    /// The round after which it was taken.
    #[must_use]
    pub fn round(&self) -> u64 {
        self.round
    }

    pub(super) fn meta(&self) -> Meta {
        self.meta
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether what is kept still tells all of it.
    fn kept(kept: Option<&Kept>) -> Result<&Kept, ReadError> {
        let gone = "the store was closed before everything was read";
        let spent = "more was written meanwhile than is kept in memory (256 MiB); \
                     try again when less is written";
        match kept {
            Some(kept) if !kept.spent => Ok(kept),
            Some(_) => Err(ReadError::Store(spent.to_owned())),
            None => Err(ReadError::Store(gone.to_owned())),
        }
    }

    fn is_newer(&self, key: &[u8]) -> bool {
        matches!(keys::named(key), Some(Named::Piece(set)) if set > self.newest_set)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        end(&self.inflight);
    }
}

impl Source for Snapshot {
    fn raw(&self, key: &[u8]) -> Result<Option<IVec>, ReadError> {
        let seen = self.db.get(key).map_err(|error| failed(key, &error))?;
        let held = self.inflight.hold();
        Ok(Self::kept(held.kept.as_ref())?.settled(key, seen))
    }
}

impl Walk for Snapshot {
    fn page(&self, first: &[u8]) -> Result<Page, ReadError> {
        failpoint::reach("store::snapshot-page");
        let held = self.inflight.hold();
        let kept = Self::kept(held.kept.as_ref())?;
        let mut seen = BTreeMap::new();
        let mut next = None;
        for (looked, record) in self.db.range(first..).enumerate() {
            let (key, value) = record.map_err(|error| failed(first, &error))?;
            if looked == PAGE {
                next = Some(key.to_vec());
                break;
            }
            if !self.is_newer(&key) {
                seen.insert(key, value);
            }
        }
        let seen = settled_scan(b"", first, next.as_deref(), seen, &kept.former);
        let seen = settled_scan(b"", first, next.as_deref(), seen, &kept.pieces);
        drop(held);
        if let (Some(next), Some(kept)) = (&next, &mut self.inflight.change().kept) {
            kept.passed(next);
        }
        Ok(Page {
            records: seen.into_iter().collect(),
            next,
        })
    }
}
