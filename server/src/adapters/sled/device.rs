//! How a round reaches the disk: applied, flushed, synced; and the places where a test stops it.
//!
//! Nothing here knows a commit. A failure is final: what the disk holds is then unknown, and only a
//! new start, which reads it, can tell.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::sled::{Batch, Db, IVec};
use prost::Message as _;

use super::convert::{RoundRow, Stored as _};
use super::directory::Place;
use super::inflight::{InFlight, Replaced};
use super::keys::Key;
use super::round::Writes;
use super::tally::Tally;
use super::witness::{Acknowledged, Witness};
use super::{frame, keys};
use crate::failpoint;

/// Where in a round a probe is asked. All of it is on the committer thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RoundStep {
    /// Judged; the store is untouched.
    BeforeApply,
    /// Applied; nothing of it is on disk for sure.
    AfterApply,
    /// Handed to the operating system: it survives a kill, not a power loss.
    BeforeSync,
    /// On stable storage, and not yet shown to readers.
    AfterSync,
    /// Shown to readers, and not yet acknowledged.
    BeforeAck,
}

impl RoundStep {
    /// The failpoint of the step, which the FAILPOINTS variable of a process can set in builds with
    /// failpoints.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeApply => "store::before-apply",
            Self::AfterApply => "store::after-apply",
            Self::BeforeSync => "store::before-sync",
            Self::AfterSync => "store::after-sync",
            Self::BeforeAck => "store::before-ack",
        }
    }
}

/// Watches the rounds of one store. A test stops the committer by not returning, and breaks the
/// store by failing.
pub trait RoundProbe: Send + Sync {
    /// A round has come to a step.
    ///
    /// # Errors
    /// What the failing disk is to have said: the store is broken from then on.
    fn at(&self, step: RoundStep) -> Result<(), String>;
}

/// The database and the descriptor that it is synced through.
pub(super) struct Device {
    pub(super) db: Db,
    pub(super) file: File,
    pub(super) witness: Witness,
    pub(super) place: Place,
    pub(super) inflight: Arc<InFlight>,
    pub(super) probe: Option<Arc<dyn RoundProbe>>,
    pub(super) syncs: Arc<AtomicU64>,
    /// The store, and the newest round that is durable.
    pub(super) durable: Acknowledged,
    /// What the store holds after that round.
    pub(super) tally: Tally,
}

impl Device {
    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    /// Makes a round durable, hidden from readers until it is.
    pub(super) fn write(&mut self, writes: Writes) -> Result<(), String> {
        let mut batch = Batch::default();
        let mut replaced = Replaced::new();
        let mut tally = self.tally;
        for (key, write) in writes {
            if let Some(former) = &write.replaces {
                tally.remove(&key, former);
            }
            let key = IVec::from(key);
            replaced.insert(key.clone(), write.replaces);
            match write.value {
                Some(value) => {
                    tally.add(&key, &value);
                    batch.insert(key, value);
                }
                None => batch.remove(key),
            }
        }
        self.step(RoundStep::BeforeApply)?;
        self.inflight.begin(replaced);
        let round = self.apply(batch, tally)?;
        self.step(RoundStep::AfterApply)?;
        self.flush()?;
        self.step(RoundStep::BeforeSync)?;
        self.sync(round)?;
        self.step(RoundStep::AfterSync)?;
        self.inflight.clear();
        Ok(())
    }

    /// Writes without a round's steps: while the store is being opened and nobody reads. A value of
    /// `None` deletes; no key occurs twice.
    pub(super) fn write_alone(
        &mut self,
        writes: Vec<(Key, Option<Vec<u8>>)>,
    ) -> Result<(), String> {
        let mut batch = Batch::default();
        let mut tally = self.tally;
        for (key, value) in writes {
            let former = self.db.get(&key).map_err(|error| said("read", &error))?;
            if let Some(former) = former {
                tally.remove(&key, &former);
            }
            match value {
                Some(value) => {
                    tally.add(&key, &value);
                    batch.insert(key, value);
                }
                None => batch.remove(key),
            }
        }
        let round = self.apply(batch, tally)?;
        self.flush()?;
        failpoint::reach("store::opening");
        self.sync(round)?;
        self.witness.sync().map_err(|error| said("sync", &error))
    }

    /// Applies a batch and, with it, its number and what the store holds by then.
    fn apply(&mut self, mut batch: Batch, tally: Tally) -> Result<u64, String> {
        let round = self.durable.round + 1;
        let row = RoundRow {
            number: round,
            tally: Some(tally),
        };
        let payload = row.form().encode_to_vec();
        for (key, value) in frame::values(keys::round(), &payload, || 0) {
            batch.insert(key, value);
        }
        self.db
            .apply_batch(batch)
            .map_err(|error| said("apply", &error))?;
        // A round that fails after this is the last one of this opening.
        self.tally = tally;
        Ok(round)
    }

    fn flush(&self) -> Result<(), String> {
        let flushed = self.db.flush().map_err(|error| said("flush", &error));
        flushed.map(drop)
    }

    /// sled's flush ends in the page cache; this ends on the device.
    fn sync(&mut self, round: u64) -> Result<(), String> {
        self.file
            .sync_data()
            .map_err(|error| said("sync", &error))?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.durable.round = round;
        self.witness
            .note(self.durable)
            .map_err(|error| said("note", &error))
    }

    /// Lets a failpoint or the probe stop, fail or kill at a step.
    pub(super) fn step(&self, step: RoundStep) -> Result<(), String> {
        fail::fail_point!(step.name(), |said: Option<String>| {
            failpoint::kill_if_asked(said.as_deref());
            Err(said.unwrap_or_else(|| step.name().to_owned()))
        });
        match &self.probe {
            Some(probe) => probe.at(step),
            None => Ok(()),
        }
    }
}

fn said(what: &str, error: &impl std::error::Error) -> String {
    format!("{what}: {error}")
}
