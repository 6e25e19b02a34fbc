//! One record after the other, in the order of keys.

use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::ids::{EntryId, SessionId};
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::session::SessionRecord;

use super::chains::Chains;
use super::lookup::{Lookup, Verdict, empty, input, meta, parsed, problem_of};
use super::rows::{Rows, Step};
use super::sessions::Sessions;
use super::{Fault, Findings, RESTORE, RESTORE_SESSION};
use crate::adapters::sled::boot::{INDEXES, SEALED};
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::{ChainedEntry, HeadRow, Meta, RoundRow};
use crate::adapters::sled::frame;
use crate::adapters::sled::keys::{self, Named};
use crate::adapters::sled::round::fetch;
use crate::adapters::sled::tools::{Contents, GAVE_UP, misnamed};

mod trail;

/// The state of going through everything.
pub(super) struct Checks<'a> {
    source: &'a Direct<'a>,
    lookup: Lookup<'a>,
    /// Each session is in the indexes of its terms.
    has_indexes: bool,
    contents: Option<&'a dyn Contents>,
    entries: Rows,
    audits: Rows,
    metadata_audits: Rows,
    chains: Chains,
    /// Each audit record is a link of a chain.
    is_sealed: bool,
    findings: Findings,
    sessions: Sessions,
    pieces: u64,
    pieces_named: u64,
}

impl<'a> Checks<'a> {
    pub(super) fn new(
        source: &'a Direct<'a>,
        meta: Meta,
        contents: Option<&'a dyn Contents>,
    ) -> Self {
        Self {
            source,
            lookup: Lookup::new(source),
            has_indexes: meta.format_version >= INDEXES,
            contents,
            entries: Rows::default(),
            audits: Rows::default(),
            metadata_audits: Rows::default(),
            chains: Chains::of(meta.store_id),
            is_sealed: meta.format_version >= SEALED,
            findings: Findings::default(),
            sessions: Sessions::default(),
            pieces: 0,
            pieces_named: 0,
        }
    }

    pub(super) fn read(&self) -> u64 {
        self.findings.keys
    }

    /// A part of the store that cannot be read at all.
    pub(super) fn unreadable(&mut self, first: &[u8], problem: &str) {
        self.sessions.lost_track();
        let kind = keys::kind(first).unwrap_or("audit");
        self.findings.fault(Fault {
            key: format!("{kind} records from {} on", keys::describe(first)),
            session: None,
            problem: problem.to_owned(),
            remedy: RESTORE,
        });
    }

    /// The storage engine gave up on a record, or on one that it names.
    pub(super) fn gave_up(&mut self, key: &[u8]) {
        let session = keys::named(key).and_then(of_key);
        if session.is_none() {
            self.sessions.lost_track();
        }
        self.fault(keys::describe(key), session, GAVE_UP.to_owned());
    }

    /// What was to be looked at was gone through, without the pieces of long values.
    pub(super) fn done_with_some(mut self) -> Findings {
        self.end_entries();
        self.end_audits();
        self.end_metadata_audits();
        self.findings
    }

    /// Everything was gone through, and all rows were ended: what was found, which sessions are whole, and
    /// whether the chains are.
    pub(super) fn done(mut self) -> (Findings, Sessions, bool) {
        if self.pieces != self.pieces_named {
            let problem = format!(
                "there are {}, and records name {}",
                self.pieces, self.pieces_named
            );
            self.fault("pieces of long values".to_owned(), None, problem);
        }
        (self.findings, self.sessions, !self.chains.broken)
    }

    fn fault(&mut self, key: String, session: Option<SessionId>, problem: String) {
        if let Some(session) = session {
            self.sessions.not_whole(session);
        }
        self.told(key, session, problem);
    }

    /// A fault that leaves its session whole: it is in what leads to it.
    fn told(&mut self, key: String, session: Option<SessionId>, problem: String) {
        let remedy = if session.is_some() {
            RESTORE_SESSION
        } else {
            RESTORE
        };
        self.findings.fault(Fault {
            key,
            session: session.map(|id| id.to_string()),
            problem,
            remedy,
        });
    }

    /// The next record.
    pub(super) fn record(&mut self, key: &[u8], value: ::sled::IVec) {
        self.findings.keys += 1;
        let Some(named) = keys::named(key) else {
            let problem = "no server writes such a key".to_owned();
            return self.fault(keys::describe(key), None, problem);
        };
        let session = of_key(named);
        if let Named::Piece(_) = named {
            self.pieces += 1;
            if let Err(problem) = frame::check_piece(key, &value) {
                self.fault(keys::describe(key), None, problem);
            }
            return;
        }
        let read = frame::piece_keys(key, &value).and_then(|pieces| {
            let payload = frame::open(self.source, key, value)?;
            Ok((pieces.len() as u64, payload))
        });
        let payload = match read {
            Ok((pieces, Some(payload))) => {
                self.pieces_named += pieces;
                payload
            }
            Ok((_, None)) => return,
            Err(error) => {
                self.skip(named);
                if let Named::Chain(_) | Named::ChainEnd = named {
                    self.chains.skip(key);
                }
                let session = session.or_else(|| self.through_run(named));
                return self.fault(keys::describe(key), session, problem_of(error));
            }
        };
        let (session, verdict) = self.judge(named, key, &payload);
        let met_damage = self.lookup.met_damage();
        if leads_to_a_session(named) {
            if let Err(problem) = verdict {
                self.chains.broken |= matches!(named, Named::Chain(_) | Named::ChainEnd);
                self.told(keys::describe(key), session, problem);
            }
            return;
        }
        if let Some(session) = session.filter(|_| met_damage) {
            self.sessions.not_whole(session);
        }
        if let Err(problem) = verdict {
            self.fault(keys::describe(key), session, problem);
        }
    }

    /// Whose a record is that cannot be read, where its key names a run.
    fn through_run(&self, named: Named) -> Option<SessionId> {
        match named {
            Named::Input(id) => self.lookup.session_of_run(id.run),
            Named::Interaction(id) => self.lookup.session_of_run(id.run),
            _ => None,
        }
    }

    /// A record that cannot be read is told once, and not again as a gap.
    fn skip(&mut self, named: Named) {
        match named {
            Named::Entry(id) => {
                let ended = self.entries.skip(id.session, id.seq);
                self.end_of_entries(ended);
            }
            Named::Audit(session, ordinal) => {
                let ended = self.audits.skip(session, ordinal);
                self.end_of_audits(ended);
            }
            Named::MetadataAudit(session, revision) => {
                let ended = self
                    .metadata_audits
                    .skip(session, revision.saturating_sub(1));
                self.end_of_metadata_audits(ended);
            }
            _ => {}
        }
    }

    fn judge(&mut self, named: Named, key: &[u8], payload: &[u8]) -> (Option<SessionId>, Verdict) {
        match named {
            Named::Meta => (None, meta(key, payload)),
            Named::Round => (None, parsed::<RoundRow>(key, payload).map(drop)),
            // Looked at above.
            Named::Piece(_) => (None, Ok(())),
            Named::Session(id) => {
                self.findings.sessions += 1;
                (Some(id), self.session(id, key, payload))
            }
            Named::Head(id) => {
                self.sessions.token_of(key, payload);
                (Some(id), self.lookup.head(id, key, payload))
            }
            Named::Name | Named::ExternalKey => self.lookup.address(named, key, payload),
            Named::Entry(id) => (Some(id.session), self.entry(id, key, payload)),
            Named::Audit(session, ordinal) => {
                (Some(session), self.audit(session, ordinal, key, payload))
            }
            Named::MetadataAudit(session, revision) => (
                Some(session),
                self.metadata_audit(session, revision, key, payload),
            ),
            Named::Chain(_) => self.chains.link(self.source, key, payload),
            Named::ChainEnd => (None, self.chains.end(key, payload)),
            Named::Index(session) => {
                let leads = self.lookup.indexed(session, key);
                (Some(session), leads.and_then(|()| empty(payload)))
            }
            Named::Deleted(session) => (Some(session), self.lookup.deleted(session, key, payload)),
            Named::Run(id) => self.lookup.run(id, key, payload),
            Named::RunOfSession {
                session,
                first_entry,
                run,
            } => {
                let fits = self.lookup.mark(session, first_entry, run);
                (Some(session), fits.and_then(|()| empty(payload)))
            }
            Named::Input(id) => self
                .lookup
                .of_run(id.run, |run| input(id, run, key, payload)),
            Named::Interaction(id) => self.lookup.of_run(id.run, |run| {
                let asked: Interaction = parsed(key, payload)?;
                if asked.id != id {
                    return Err("it is another question".to_owned());
                }
                if asked.resolution.is_none() && run.settled.is_some() {
                    return Err("it is open although its run has settled".to_owned());
                }
                Ok(())
            }),
            Named::Binding => self.lookup.binding(key, payload),
            Named::Answer(id) => (Some(id), self.lookup.answer(id, key, payload)),
            Named::BindingByTime(at) => {
                let fits = self.lookup.binding_mark(key, at);
                (None, fits.and_then(|()| empty(payload)))
            }
            Named::Lease(id) => (Some(id), self.lookup.lease(id, key, payload)),
        }
    }

    fn session(&mut self, id: SessionId, key: &[u8], payload: &[u8]) -> Verdict {
        let record: SessionRecord = parsed(key, payload)?;
        if let Some(lineage) = record.lineage {
            self.sessions.branched(id, lineage.parent);
        }
        self.lookup.session(id, &record)?;
        for (index, verdict) in self.lookup.unled(&record, self.has_indexes) {
            self.sessions.unled(index, id);
            if let Err(problem) = verdict {
                self.told(keys::describe(key), Some(id), problem);
            }
        }
        // A damaged index is no damage of the session.
        self.lookup.met_damage();
        Ok(())
    }

    fn entry(&mut self, id: EntryId, key: &[u8], payload: &[u8]) -> Verdict {
        self.findings.entries += 1;
        let record = match parsed::<ChainedEntry>(key, payload) {
            Ok(record) => record,
            Err(problem) => {
                self.skip(Named::Entry(id));
                return Err(problem);
            }
        };
        let step = Step::of_entry(&record, payload);
        if record.previous_digest.is_none() {
            self.findings.unlinked_entries += 1;
        } else if self.entries.begins_late(&step, id.session) {
            self.findings.chains_that_begin_late += 1;
        }
        let (ended, stepped) = self.entries.step(id.session, id.seq, step);
        self.end_of_entries(ended);
        stepped?;
        if record.entry.id != id {
            return Err("it is another entry".to_owned());
        }
        if let Some(parent) = record.entry.parent {
            if parent.session == id.session && parent.seq >= id.seq {
                return Err("its parent comes after it".to_owned());
            }
            self.lookup.there(&keys::entry(parent), "its parent")?;
        }
        if let Some(run) = record.entry.run {
            self.lookup.run_there(run, "its run")?;
        }
        let mut named = record.entry.body.artifacts();
        named.try_for_each(|artifact| self.content(id.session, artifact))
    }

    fn content(&mut self, session: SessionId, artifact: &ArtifactRef) -> Verdict {
        let id = artifact.id;
        let Some(contents) = self.contents else {
            return Ok(());
        };
        self.findings.artifacts += 1;
        match contents.content(id) {
            Ok(Some(content)) => match misnamed(artifact, &content) {
                Some(problem) => Err(format!("its artifact {id}: {problem}")),
                None => Ok(()),
            },
            // What a deleted session's entries name goes before they do.
            Ok(None) if self.lookup.left_of(session).is_some() => Ok(()),
            Ok(None) => Err(format!("its artifact {id} is missing")),
            Err(problem) => Err(format!("its artifact {id}: {problem}")),
        }
    }

    /// No entry comes any more.
    pub(super) fn end_entries(&mut self) {
        let ended = self.entries.end();
        self.end_of_entries(ended);
    }

    /// The row of a session's entries must be as long as its head says, and end with what that names.
    fn end_of_entries(&mut self, ended: Option<(SessionId, u64, Option<Step>)>) {
        let Some((session, last, step)) = ended else {
            return;
        };
        let head: Result<Option<HeadRow>, _> = fetch(self.source, &keys::head(session));
        let problem = match head {
            Err(_) => return,
            Ok(None) => match self.lookup.left_of(session) {
                Some(left) if left < last => {
                    format!("its session is deleted, and is to have {left} entries left")
                }
                // As below.
                Some(left) if left > last => return self.sessions.not_whole(session),
                Some(_) => return,
                None => "its session has no head".to_owned(),
            },
            Ok(Some(row)) if row.head.entries < last => {
                format!("it is beyond the head, which counts {}", row.head.entries)
            }
            // That it lacks the last one is told with the head; unless the engine still finds by its
            // key what it leaves out in the order of keys, in which an export is written.
            Ok(Some(row)) if row.head.entries > last => return self.sessions.not_whole(session),
            Ok(Some(row)) => match step {
                Some(step) if !step.is_named_by(&row) => {
                    "it is not the one that the head names".to_owned()
                }
                _ => return,
            },
        };
        let key = keys::describe(&keys::entry(EntryId { session, seq: last }));
        self.fault(key, Some(session), problem);
    }
}

/// Whether a record only leads to a session, or to its records: without it, that one is whole.
fn leads_to_a_session(named: Named) -> bool {
    matches!(
        named,
        Named::Name
            | Named::ExternalKey
            | Named::Index(_)
            | Named::Chain(_)
            | Named::ChainEnd
            | Named::Binding
            | Named::Answer(_)
            | Named::BindingByTime(_)
    )
}

/// The session that a key names, unless it only leads to it.
pub(in crate::adapters::sled::tools) fn of_key(named: Named) -> Option<SessionId> {
    match named {
        Named::Session(id)
        | Named::Head(id)
        | Named::Lease(id)
        | Named::Deleted(id)
        | Named::Audit(id, _)
        | Named::MetadataAudit(id, _) => Some(id),
        Named::Entry(id) => Some(id.session),
        Named::RunOfSession { session, .. } => Some(session),
        _ => None,
    }
}
