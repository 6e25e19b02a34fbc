//! One record after the other, in the order of keys.

use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::binding::Binding;
use sessionplane_core::domain::entry::EntryBody;
use sessionplane_core::domain::ids::{EntryId, RunId, SessionId};
use sessionplane_core::domain::input::{InputFate, InputRecord};
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::ReadError;

use super::rows::{Rows, Step};
use super::{Fault, Findings, RESTORE, RESTORE_SESSION};
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::{Address, ChainedEntry, HeadRow, Meta, Record, RoundRow};
use crate::adapters::sled::frame::{self, Source as _};
use crate::adapters::sled::keys::{self, Named};
use crate::adapters::sled::round::{decode, fetch};
use crate::adapters::sled::tools::Contents;

/// What is wrong with a record; where a record that it names is damaged, nothing: that is told at
/// its own place.
type Verdict = Result<(), String>;

/// The state of going through everything.
pub(super) struct Checks<'a> {
    source: &'a Direct<'a>,
    contents: Option<&'a dyn Contents>,
    entries: Rows,
    audits: Rows,
    findings: Findings,
    pieces: u64,
    pieces_named: u64,
}

impl<'a> Checks<'a> {
    pub(super) fn new(source: &'a Direct<'a>, contents: Option<&'a dyn Contents>) -> Self {
        Self {
            source,
            contents,
            entries: Rows::default(),
            audits: Rows::default(),
            findings: Findings::default(),
            pieces: 0,
            pieces_named: 0,
        }
    }

    pub(super) fn read(&self) -> u64 {
        self.findings.keys
    }

    /// A part of the store that cannot be read at all.
    pub(super) fn unreadable(&mut self, first: &[u8], problem: &str) {
        let kind = keys::kind(first).unwrap_or("audit");
        self.findings.fault(Fault {
            key: format!("{kind} records from {} on", keys::describe(first)),
            session: None,
            problem: problem.to_owned(),
            remedy: RESTORE,
        });
    }

    /// Everything was gone through.
    pub(super) fn done(mut self) -> Findings {
        self.end_entries();
        self.end_audits();
        if self.pieces != self.pieces_named {
            let problem = format!(
                "there are {}, and records name {}",
                self.pieces, self.pieces_named
            );
            self.fault("pieces of long values".to_owned(), None, problem);
        }
        self.findings
    }

    fn fault(&mut self, key: String, session: Option<SessionId>, problem: String) {
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
                return self.fault(keys::describe(key), session, problem_of(error));
            }
        };
        let (session, verdict) = self.judge(named, key, &payload);
        if let Err(problem) = verdict {
            self.fault(keys::describe(key), session, problem);
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
            _ => {}
        }
    }

    fn judge(&mut self, named: Named, key: &[u8], payload: &[u8]) -> (Option<SessionId>, Verdict) {
        match named {
            Named::Meta => (None, parsed::<Meta>(key, payload).map(drop)),
            Named::Round => (None, parsed::<RoundRow>(key, payload).map(drop)),
            // Looked at above.
            Named::Piece(_) => (None, Ok(())),
            Named::Session(id) => {
                self.findings.sessions += 1;
                (Some(id), self.session(id, key, payload))
            }
            Named::Head(id) => (Some(id), self.head(id, key, payload)),
            Named::Name | Named::ExternalKey => self.address(named, key, payload),
            Named::Entry(id) => (Some(id.session), self.entry(id, key, payload)),
            Named::Audit(session, ordinal) => {
                (Some(session), self.audit(session, ordinal, key, payload))
            }
            Named::Run(id) => self.run(id, key, payload),
            Named::RunOfSession {
                session,
                first_entry,
                run,
            } => (Some(session), self.mark(session, first_entry, run)),
            Named::Input(id) => self.of_run(id.run, |run| input(id, run, key, payload)),
            Named::Interaction(id) => self.of_run(id.run, |run| {
                let asked: Interaction = parsed(key, payload)?;
                if asked.id != id {
                    return Err("it is another question".to_owned());
                }
                if asked.resolution.is_none() && run.settled.is_some() {
                    return Err("it is open although its run has settled".to_owned());
                }
                Ok(())
            }),
            Named::Binding => self.binding(key, payload),
            Named::BindingByTime(at) => (None, self.binding_mark(key, at)),
            Named::Lease(id) => (Some(id), self.lease(id, key, payload)),
        }
    }

    /// A record that another one names: `None` where it is damaged, which is told elsewhere.
    fn named<T: Record>(&self, key: &[u8], what: &str) -> Result<Option<T>, String> {
        match fetch(self.source, key) {
            Ok(Some(found)) => Ok(Some(found)),
            Ok(None) => Err(format!("{what} is missing: {}", keys::describe(key))),
            Err(_) => Ok(None),
        }
    }

    fn there(&self, key: &[u8], what: &str) -> Verdict {
        match self.source.raw(key) {
            Ok(None) => Err(format!("{what} is missing: {}", keys::describe(key))),
            _ => Ok(()),
        }
    }

    fn session(&self, id: SessionId, key: &[u8], payload: &[u8]) -> Verdict {
        let record: SessionRecord = parsed(key, payload)?;
        if record.id != id {
            return Err("it is another session".to_owned());
        }
        self.there(&keys::head(id), "its head")?;
        if let Some(name) = &record.name {
            self.there(&keys::name(&record.tenant, name), "the index of its name")?;
        }
        if let Some(external) = &record.external_key {
            let key = keys::external_key(&record.tenant, external);
            self.there(&key, "the index of its external key")?;
        }
        match record.lineage {
            Some(lineage) => self.there(&keys::session(lineage.parent), "its parent session"),
            None => Ok(()),
        }
    }

    fn head(&self, id: SessionId, key: &[u8], payload: &[u8]) -> Verdict {
        let row: HeadRow = parsed(key, payload)?;
        self.there(&keys::session(id), "its session")?;
        let seq = row.head.entries;
        if seq > 0 {
            self.there(&keys::entry(EntryId { session: id, seq }), "its last entry")?;
        }
        if row.head.audits > 0 {
            let last = keys::audit(id, row.head.audits);
            self.there(&last, "its last audit record")?;
        }
        let beyond = |leaf: &EntryId| leaf.session == id && leaf.seq > seq;
        if row.head.leaf.as_ref().is_some_and(beyond) {
            return Err("its leaf is beyond its entries".to_owned());
        }
        match &row.head.last_run {
            Some(last) => self.there(&keys::run(last.run), "its last run"),
            None => Ok(()),
        }
    }

    fn address(&self, named: Named, key: &[u8], payload: &[u8]) -> (Option<SessionId>, Verdict) {
        let Address(id) = match parsed(key, payload) {
            Ok(address) => address,
            Err(problem) => return (None, Err(problem)),
        };
        let leads = || {
            let record: Option<SessionRecord> =
                self.named(&keys::session(id), "the session that it leads to")?;
            let Some(record) = record else { return Ok(()) };
            let back = match named {
                Named::Name => record.name.map(|name| keys::name(&record.tenant, &name)),
                _ => record
                    .external_key
                    .map(|external| keys::external_key(&record.tenant, &external)),
            };
            match back {
                Some(back) if back == key => Ok(()),
                _ => Err("it leads to a session that is called otherwise".to_owned()),
            }
        };
        (Some(id), leads())
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
            self.there(&keys::entry(parent), "its parent")?;
        }
        if let Some(run) = record.entry.run {
            self.there(&keys::run(run), "its run")?;
        }
        match record.entry.body {
            EntryBody::Tool {
                artifact: Some(artifact),
                ..
            } => self.content(artifact.id, artifact.bytes),
            _ => Ok(()),
        }
    }

    fn content(&mut self, id: sessionplane_core::domain::ids::ArtifactId, bytes: u64) -> Verdict {
        let Some(contents) = self.contents else {
            return Ok(());
        };
        self.findings.artifacts += 1;
        match contents.content(id) {
            Ok(Some(content)) if content.len() as u64 == bytes => Ok(()),
            Ok(Some(content)) => Err(format!(
                "its artifact {id} has {} bytes, not {bytes}",
                content.len()
            )),
            Ok(None) => Err(format!("its artifact {id} is missing")),
            Err(problem) => Err(format!("its artifact {id}: {problem}")),
        }
    }

    fn end_entries(&mut self) {
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
            Ok(None) => "its session has no head".to_owned(),
            Ok(Some(row)) if row.head.entries < last => {
                format!("it is beyond the head, which counts {}", row.head.entries)
            }
            // That it lacks the last one is told with the head.
            Ok(Some(row)) if row.head.entries > last => return,
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

    fn audit(&mut self, session: SessionId, ordinal: u64, key: &[u8], payload: &[u8]) -> Verdict {
        let (ended, stepped) = self.audits.step(session, ordinal, Step::unchained());
        self.end_of_audits(ended);
        stepped?;
        let record: AuditRecord = parsed(key, payload)?;
        if (record.session, record.ordinal) != (session, ordinal) {
            return Err("it is another record".to_owned());
        }
        Ok(())
    }

    fn end_audits(&mut self) {
        let ended = self.audits.end();
        self.end_of_audits(ended);
    }

    fn end_of_audits(&mut self, ended: Option<(SessionId, u64, Option<Step>)>) {
        let Some((session, last, _)) = ended else {
            return;
        };
        let head: Result<Option<HeadRow>, _> = fetch(self.source, &keys::head(session));
        let problem = match head {
            Ok(None) => "its session has no head".to_owned(),
            Ok(Some(row)) if row.head.audits < last => {
                format!("it is beyond the head, which counts {}", row.head.audits)
            }
            _ => return,
        };
        let key = keys::describe(&keys::audit(session, last));
        self.fault(key, Some(session), problem);
    }

    fn run(&self, id: RunId, key: &[u8], payload: &[u8]) -> (Option<SessionId>, Verdict) {
        let record: RunRecord = match parsed(key, payload) {
            Ok(record) => record,
            Err(problem) => return (None, Err(problem)),
        };
        let session = record.session;
        let check = || {
            if record.id != id {
                return Err("it is another run".to_owned());
            }
            self.there(&keys::session(session), "its session")?;
            self.there(&keys::entry(record.first_entry), "its first entry")?;
            if let Some(last) = record.final_entry {
                self.there(&keys::entry(last), "its last entry")?;
            }
            let mark = keys::run_of_session(record.first_entry, id);
            let former = [keys::runs_of_session(session), id.to_bytes().to_vec()].concat();
            if self.there(&former, "").is_err() {
                self.there(&mark, "its mark in the session's list")?;
            }
            if record.settled.is_some() {
                return Ok(());
            }
            let lease: Option<HeldLease> =
                self.named(&keys::lease(session), "it has not settled, and its lease")?;
            match lease {
                Some(lease) if lease.holder.run() != Some(id) => {
                    Err("it has not settled, and another holds the lease".to_owned())
                }
                _ => Ok(()),
            }
        };
        (Some(session), check())
    }

    fn mark(&self, session: SessionId, first_entry: Option<u64>, id: RunId) -> Verdict {
        let run: Option<RunRecord> = self.named(&keys::run(id), "its run")?;
        let Some(run) = run else { return Ok(()) };
        let fits = first_entry.is_none_or(|seq| run.first_entry == EntryId { session, seq });
        if run.session == session && fits {
            Ok(())
        } else {
            Err("its run is of another session, or begins elsewhere".to_owned())
        }
    }

    /// What belongs to a run.
    fn of_run(
        &self,
        id: RunId,
        check: impl FnOnce(&RunRecord) -> Verdict,
    ) -> (Option<SessionId>, Verdict) {
        match self.named::<RunRecord>(&keys::run(id), "its run") {
            Ok(Some(run)) => (Some(run.session), check(&run)),
            Ok(None) => (None, Ok(())),
            Err(problem) => (None, Err(problem)),
        }
    }

    fn binding(&self, key: &[u8], payload: &[u8]) -> (Option<SessionId>, Verdict) {
        let binding: Binding = match parsed(key, payload) {
            Ok(binding) => binding,
            Err(problem) => return (None, Err(problem)),
        };
        let check = || {
            if keys::binding(&binding.key) != key {
                return Err("it is the binding of another request".to_owned());
            }
            self.there(&keys::session(binding.session), "its session")?;
            if let Some(run) = binding.answer.run() {
                self.there(&keys::run(run), "its run")?;
            }
            let mark = keys::binding_by_time(binding.at, key);
            self.there(&mark, "the mark of its time, by which it is forgotten,")
        };
        (Some(binding.session), check())
    }

    fn binding_mark(&self, key: &[u8], at: u64) -> Verdict {
        let Some(place) = keys::marked_binding(key) else {
            return Err("it names no binding".to_owned());
        };
        let binding: Option<Binding> = self.named(&place, "its binding")?;
        match binding {
            Some(binding) if binding.at.as_millis() != at => {
                Err("its binding was made at another time".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn lease(&self, session: SessionId, key: &[u8], payload: &[u8]) -> Verdict {
        let lease: HeldLease = parsed(key, payload)?;
        if lease.session != session {
            return Err("it is of another session".to_owned());
        }
        self.there(&keys::session(session), "its session")?;
        let Some(id) = lease.holder.run() else {
            return Ok(());
        };
        let run: Option<RunRecord> = self.named(&keys::run(id), "the run that holds it")?;
        match run {
            Some(run) if run.session != session => {
                Err("the run that holds it is of another session".to_owned())
            }
            Some(run) if run.settled.is_some() => {
                Err("the run that holds it has settled".to_owned())
            }
            _ => Ok(()),
        }
    }
}

fn input(
    id: sessionplane_core::domain::ids::InputId,
    run: &RunRecord,
    key: &[u8],
    payload: &[u8],
) -> Verdict {
    let input: InputRecord = parsed(key, payload)?;
    if input.id != id {
        return Err("it is another input".to_owned());
    }
    if input.fate == InputFate::Pending && run.settled.is_some() {
        return Err("it waits although its run has settled".to_owned());
    }
    Ok(())
}

fn of_key(named: Named) -> Option<SessionId> {
    match named {
        Named::Session(id) | Named::Head(id) | Named::Lease(id) | Named::Audit(id, _) => Some(id),
        Named::Entry(id) => Some(id.session),
        Named::RunOfSession { session, .. } => Some(session),
        _ => None,
    }
}

fn parsed<T: Record>(key: &[u8], payload: &[u8]) -> Result<T, String> {
    decode(key, payload).map_err(problem_of)
}

fn problem_of(error: ReadError) -> String {
    match error {
        ReadError::Damaged { problem, .. } | ReadError::Store(problem) => problem,
    }
}
