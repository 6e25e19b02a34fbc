//! Audit records, one after the other, and the chains that they are links of.

use sessionplane_core::domain::audit::Series;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::session::SessionRecord;

use super::super::lookup::{Verdict, parsed};
use super::super::rows::Step;
use super::Checks;
use crate::adapters::sled::convert::{HeadRow, Place, SealedAudit};
use crate::adapters::sled::keys;
use crate::adapters::sled::round::fetch;
use crate::adapters::sled::seal;

impl Checks<'_> {
    pub(super) fn audit(
        &mut self,
        session: SessionId,
        ordinal: u64,
        key: &[u8],
        payload: &[u8],
    ) -> Verdict {
        let (ended, stepped) = self.audits.step(session, ordinal, Step::unchained());
        self.end_of_audits(ended);
        stepped?;
        self.of_audit(Series::Session, session, ordinal, key, payload)
    }

    /// No audit record comes any more.
    pub(in crate::adapters::sled::tools::verify) fn end_audits(&mut self) {
        let ended = self.audits.end();
        self.end_of_audits(ended);
    }

    pub(super) fn end_of_audits(&mut self, ended: Option<(SessionId, u64, Option<Step>)>) {
        let Some((session, last, _)) = ended else {
            return;
        };
        let head: Result<Option<HeadRow>, _> = fetch(self.source, &keys::head(session));
        let problem = match head {
            // The trail of a deleted session stays, and ends with its deletion.
            Ok(None) if self.lookup.is_deleted(session) => return,
            Ok(None) => "its session has no head".to_owned(),
            Ok(Some(row)) if row.head.audits < last => {
                format!("it is beyond the head, which counts {}", row.head.audits)
            }
            Ok(Some(row)) if row.head.audits > last => return self.sessions.not_whole(session),
            _ => return,
        };
        let key = keys::describe(&keys::audit(session, last));
        self.fault(key, Some(session), problem);
    }

    pub(super) fn metadata_audit(
        &mut self,
        session: SessionId,
        revision: u64,
        key: &[u8],
        payload: &[u8],
    ) -> Verdict {
        // The first revision is that of the creation, which the other series tells.
        let number = revision.saturating_sub(1);
        let (ended, stepped) = self
            .metadata_audits
            .step(session, number, Step::unchained());
        self.end_of_metadata_audits(ended);
        stepped?;
        self.of_audit(Series::Metadata, session, revision, key, payload)
    }

    /// No audit record of metadata comes any more.
    pub(in crate::adapters::sled::tools::verify) fn end_metadata_audits(&mut self) {
        let ended = self.metadata_audits.end();
        self.end_of_metadata_audits(ended);
    }

    pub(super) fn end_of_metadata_audits(&mut self, ended: Option<(SessionId, u64, Option<Step>)>) {
        let Some((session, last, _)) = ended else {
            return;
        };
        let record: Result<Option<SessionRecord>, _> = fetch(self.source, &keys::session(session));
        let revision = last + 1;
        let problem = match record {
            Ok(None) if self.lookup.is_deleted(session) => return,
            Ok(None) => "its session is missing".to_owned(),
            Ok(Some(record)) if record.metadata.revision < revision => {
                let newest = record.metadata.revision;
                format!("it is beyond its session's metadata, which are of revision {newest}")
            }
            Ok(Some(record)) if record.metadata.revision > revision => {
                return self.sessions.not_whole(session);
            }
            _ => return,
        };
        let key = keys::describe(&keys::metadata_audit(session, revision));
        self.fault(key, Some(session), problem);
    }

    fn of_audit(
        &mut self,
        series: Series,
        session: SessionId,
        ordinal: u64,
        key: &[u8],
        payload: &[u8],
    ) -> Verdict {
        let found: SealedAudit = parsed(key, payload)?;
        if (found.record.session, found.record.ordinal) != (session, ordinal) {
            return Err("it is another record".to_owned());
        }
        let place = Place {
            session,
            series,
            ordinal,
        };
        // What is wrong with the chain leaves the session whole; a damaged link is told as itself.
        if self.is_sealed && seal::is_sealed(self.source, place, &found) == Ok(false) {
            self.chains.broken = true;
            let problem = "it is no link of its tenant's chain".to_owned();
            self.told(keys::describe(key), Some(session), problem);
        }
        Ok(())
    }

    /// No link of a chain comes any more.
    pub(in crate::adapters::sled::tools::verify) fn end_chains(&mut self) {
        for end in self.chains.unended() {
            self.chains.broken = true;
            let problem = "it is missing, and there are links before it".to_owned();
            self.told(end, None, problem);
        }
    }
}
