//! Numbered records of one session after the other, without a gap.

use sessionplane_core::domain::ids::SessionId;

use crate::adapters::sled::chain::{self, Link};
use crate::adapters::sled::convert::{ChainedEntry, HeadRow};

/// What the next record is chained to, and how a record is chained to the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    previous: Option<(u32, Option<Link>)>,
    checksum: u32,
    digest: Option<Link>,
}

impl Step {
    pub(super) fn of_entry(record: &ChainedEntry, payload: &[u8]) -> Self {
        Self {
            previous: Some((record.previous_checksum, record.previous_digest)),
            checksum: crc32fast::hash(payload),
            digest: record.previous_digest.map(|_| chain::digest(payload)),
        }
    }

    /// Of a record that only has a number.
    pub(super) fn unchained() -> Self {
        Self {
            previous: None,
            checksum: 0,
            digest: None,
        }
    }

    /// Whether the head names it as the last one.
    pub(super) fn is_named_by(&self, row: &HeadRow) -> bool {
        (row.entries_checksum, row.entries_digest) == (self.checksum, self.digest)
    }

    fn follows(&self, before: Option<&Self>) -> Result<(), String> {
        let Some((checksum, digest)) = self.previous else {
            return Ok(());
        };
        if checksum != before.map_or(0, |before| before.checksum) {
            return Err("it does not follow the entry before it".to_owned());
        }
        if !chain::follows(before.and_then(|before| before.digest), digest) {
            return Err("it does not name the digest of the entry before it".to_owned());
        }
        Ok(())
    }
}

/// What ended: whose records, how many, and the last one, where that could be read.
type Ended = Option<(SessionId, u64, Option<Step>)>;

/// Where a row stands.
#[derive(Default)]
pub(super) struct Rows {
    at: Ended,
}

impl Rows {
    /// The next record. Gives the row that ended with the one before it, if that was another
    /// session's.
    pub(super) fn step(
        &mut self,
        session: SessionId,
        number: u64,
        step: Step,
    ) -> (Ended, Result<(), String>) {
        let ended = self.other(session);
        let (before, last) = match &self.at {
            Some((_, number, step)) => (*number, *step),
            None => (0, None),
        };
        let known = self.at.is_none() || last.is_some();
        let verdict = if number == before + 1 {
            if known {
                step.follows(last.as_ref())
            } else {
                Ok(())
            }
        } else {
            let missing = number.saturating_sub(before + 1);
            Err(format!("{missing} before it are missing"))
        };
        self.at = Some((session, number, Some(step)));
        (ended, verdict)
    }

    /// The next record, which cannot be read.
    pub(super) fn skip(&mut self, session: SessionId, number: u64) -> Ended {
        let ended = self.other(session);
        self.at = Some((session, number, None));
        ended
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self) -> Ended {
        self.at.take()
    }

    /// Whether a chain begins with this record, although entries come before it.
    pub(super) fn begins_late(&self, step: &Step, session: SessionId) -> bool {
        let begins = step
            .previous
            .is_some_and(|(_, link)| link == Some(chain::BEGINS));
        begins && self.at.as_ref().is_some_and(|(at, ..)| *at == session)
    }

    fn other(&mut self, session: SessionId) -> Ended {
        if self.at.as_ref().is_some_and(|(at, ..)| *at != session) {
            self.at.take()
        } else {
            None
        }
    }
}
