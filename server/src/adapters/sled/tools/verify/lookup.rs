//! What a record names must be there, and fit it. Nothing here remembers what came before, but for
//! the last run that was found whole.

use std::cell::Cell;
use std::collections::BTreeSet;

use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::{AuditAction, AuditRecord};
use sessionplane_core::domain::binding::{Binding, BoundAnswer, SessionAnswer};
use sessionplane_core::domain::ids::{EntryId, InputId, RunId, SessionId};
use sessionplane_core::domain::input::{InputFate, InputRecord};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::SessionRecord;
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::{DeletedSession, ReadError};

use crate::adapters::sled::boot::next;
use crate::adapters::sled::committer::Direct;
use crate::adapters::sled::convert::{Address, HeadRow, Meta, Record};
use crate::adapters::sled::frame::{self, Source as _};
use crate::adapters::sled::keys::{self, Key, Named};
use crate::adapters::sled::round::{decode, fetch};
use crate::adapters::sled::write::indexes;

/// What is wrong with a record; where a record that it names is damaged, nothing: that is told at
/// its own place.
pub(in crate::adapters::sled::tools) type Verdict = Result<(), String>;

/// Looks up what records name.
pub(in crate::adapters::sled::tools) struct Lookup<'a> {
    source: &'a Direct<'a>,
    /// Whether something that a record names was damaged.
    met_damage: Cell<bool>,
    /// The last run that was found whole: entries of one come in a row.
    whole_run: Cell<Option<RunId>>,
}

impl<'a> Lookup<'a> {
    pub(in crate::adapters::sled::tools) fn new(source: &'a Direct<'a>) -> Self {
        Self {
            source,
            met_damage: Cell::new(false),
            whole_run: Cell::new(None),
        }
    }

    /// Whether something that a record names was damaged, since this was asked last. Its own place
    /// may not tell whose it is.
    pub(super) fn met_damage(&self) -> bool {
        self.met_damage.take()
    }

    /// A record that another one names: `None` where it is damaged, which is told elsewhere.
    fn named<T: Record>(&self, key: &[u8], what: &str) -> Result<Option<T>, String> {
        match fetch(self.source, key) {
            Ok(Some(found)) => Ok(Some(found)),
            Ok(None) => Err(format!("{what} is missing: {}", keys::describe(key))),
            Err(_) => {
                self.met_damage.set(true);
                Ok(None)
            }
        }
    }

    pub(super) fn there(&self, key: &[u8], what: &str) -> Verdict {
        match self.source.raw(key) {
            Ok(None) => Err(format!("{what} is missing: {}", keys::describe(key))),
            _ => Ok(()),
        }
    }

    /// A run must be there, and is read: a damaged one does not tell whose it is.
    pub(super) fn run_there(&self, id: RunId, what: &str) -> Verdict {
        if self.whole_run.get() == Some(id) {
            return Ok(());
        }
        let run: Option<RunRecord> = self.named(&keys::run(id), what)?;
        if run.is_some() {
            self.whole_run.set(Some(id));
        }
        Ok(())
    }

    /// The session of a run that can be read.
    pub(super) fn session_of_run(&self, id: RunId) -> Option<SessionId> {
        let run: Option<RunRecord> = fetch(self.source, &keys::run(id)).ok().flatten();
        run.map(|run| run.session)
    }

    pub(super) fn session(&self, id: SessionId, record: &SessionRecord) -> Verdict {
        if record.id != id {
            return Err("it is another session".to_owned());
        }
        self.there(&keys::head(id), "its head")?;
        let revision = record.metadata.revision;
        if revision > 1 {
            let change = keys::metadata_audit(id, revision);
            self.there(&change, "the audit record of its last change")?;
        }
        match record.lineage {
            Some(lineage) => self.there(&keys::session(lineage.parent), "its parent session"),
            None => Ok(()),
        }
    }

    /// The keys of a session's indexes that do not lead to it: what is not there as a verdict, what
    /// is damaged without one, since that is told at its own place.
    pub(super) fn unled(&self, record: &SessionRecord, has_indexes: bool) -> Vec<(Key, Verdict)> {
        let name = record.metadata.name.as_ref();
        let name = name.map(|name| (keys::name(&record.tenant, name), "the index of its name"));
        let external = record.external_key.as_ref();
        let external = external.map(|external| {
            let key = keys::external_key(&record.tenant, external);
            (key, "the index of its external key")
        });
        let indexes = name.into_iter().chain(external);
        let unled = indexes.filter_map(|(key, what)| match self.named::<Address>(&key, what) {
            Ok(Some(Address(id))) if id == record.id => None,
            Ok(_) => Some((key, Ok(()))),
            Err(problem) => Some((key, Err(problem))),
        });
        let rows = if has_indexes {
            self.rows(record)
        } else {
            BTreeSet::new()
        };
        let unled_rows = rows.into_iter().filter_map(|row| {
            let there = frame::load(self.source, &row);
            let lacks = || Err(format!("it lacks its {}", keys::describe(&row)));
            match there {
                Ok(Some(_)) => None,
                Ok(None) => Some((row.clone(), lacks())),
                Err(_) => Some((row, Ok(()))),
            }
        });
        unled.chain(unled_rows).collect()
    }

    /// The rows of the indexes that a session is to be in, as far as its head can be read.
    fn rows(&self, record: &SessionRecord) -> BTreeSet<Key> {
        let head: Option<HeadRow> = fetch(self.source, &keys::head(record.id)).ok().flatten();
        let place = head.and_then(|row| row.head.place);
        indexes(record, place.as_ref())
    }

    /// A row of an index leads to a session that has its term.
    pub(in crate::adapters::sled::tools) fn indexed(&self, id: SessionId, key: &[u8]) -> Verdict {
        let what = "the session that it leads to";
        let record: Option<SessionRecord> = self.named(&keys::session(id), what)?;
        let Some(record) = record else { return Ok(()) };
        if self.rows(&record).contains(key) {
            return Ok(());
        }
        // Where it works cannot be told without its head, which is told of elsewhere.
        let head: Option<HeadRow> = self.named(&keys::head(id), "its session's head")?;
        match head {
            Some(_) => Err("it leads to a session that it is not true of".to_owned()),
            None => Ok(()),
        }
    }

    /// How many entries a deleted session is to have left.
    pub(super) fn left_of(&self, id: SessionId) -> Option<u64> {
        let left: Option<DeletedSession> = fetch(self.source, &keys::deleted(id)).ok().flatten();
        left.map(|left| left.entries)
    }

    /// Whether a session's audit trail ends with its deletion.
    pub(super) fn is_deleted(&self, id: SessionId) -> bool {
        let mut trail = self.source.0.scan_prefix(keys::audits_of_session(id));
        let Some(Ok((key, value))) = trail.next_back() else {
            return false;
        };
        let payload = frame::open(self.source, &key, value).ok().flatten();
        let last = payload.and_then(|payload| decode::<AuditRecord>(&key, &payload).ok());
        last.is_some_and(|last| last.action == AuditAction::Call(Action::Delete))
    }

    /// Whether a session is there; not, where it is deleted.
    fn lives(&self, id: SessionId) -> Result<bool, String> {
        match self.there(&keys::session(id), "its session") {
            Ok(()) => Ok(true),
            Err(_) if self.is_deleted(id) => Ok(false),
            Err(problem) => Err(problem),
        }
    }

    /// What is left of a deleted session.
    pub(super) fn deleted(&self, id: SessionId, key: &[u8], payload: &[u8]) -> Verdict {
        let left: DeletedSession = parsed(key, payload)?;
        if left.session != id {
            return Err("it is of another session".to_owned());
        }
        if self.lives(id)? {
            return Err("its session is there".to_owned());
        }
        match left.entries {
            0 => Ok(()),
            seq => self.there(
                &keys::entry(EntryId { session: id, seq }),
                "the last entry that is left",
            ),
        }
    }

    pub(super) fn head(&self, id: SessionId, key: &[u8], payload: &[u8]) -> Verdict {
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
            Some(last) => self.run_there(last.run, "its last run"),
            None => Ok(()),
        }
    }

    pub(in crate::adapters::sled::tools) fn address(
        &self,
        named: Named,
        key: &[u8],
        payload: &[u8],
    ) -> (Option<SessionId>, Verdict) {
        let Address(id) = match parsed(key, payload) {
            Ok(address) => address,
            Err(problem) => return (None, Err(problem)),
        };
        let leads = || {
            let record: Option<SessionRecord> =
                self.named(&keys::session(id), "the session that it leads to")?;
            let Some(record) = record else { return Ok(()) };
            let back = match named {
                Named::Name => record
                    .metadata
                    .name
                    .map(|name| keys::name(&record.tenant, &name)),
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

    pub(super) fn run(
        &self,
        id: RunId,
        key: &[u8],
        payload: &[u8],
    ) -> (Option<SessionId>, Verdict) {
        let record: RunRecord = match parsed(key, payload) {
            Ok(record) => record,
            Err(problem) => return (None, Err(problem)),
        };
        let session = record.session;
        let check = || {
            if record.id != id {
                return Err("it is another run".to_owned());
            }
            // A deleted session's entries go before its runs.
            if self.lives(session)? {
                self.there(&keys::entry(record.first_entry), "its first entry")?;
                if let Some(last) = record.final_entry {
                    self.there(&keys::entry(last), "its last entry")?;
                }
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

    pub(super) fn mark(&self, session: SessionId, first_entry: Option<u64>, id: RunId) -> Verdict {
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
    pub(super) fn of_run(
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

    pub(super) fn binding(&self, key: &[u8], payload: &[u8]) -> (Option<SessionId>, Verdict) {
        let binding: Binding = match parsed(key, payload) {
            Ok(binding) => binding,
            Err(problem) => return (None, Err(problem)),
        };
        let bound = self.bound(key, &binding);
        let verdict = bound.and_then(|()| self.marked(key, &binding));
        (Some(binding.session), verdict)
    }

    /// What a binding leads to.
    pub(in crate::adapters::sled::tools) fn bound(&self, key: &[u8], binding: &Binding) -> Verdict {
        if keys::binding(&binding.key) != key {
            return Err("it is the binding of another request".to_owned());
        }
        // Bindings outlive the sessions that they are of.
        let lives = self.lives(binding.session)?;
        match binding.answer.run() {
            Some(run) if lives => self.there(&keys::run(run), "its run"),
            _ => Ok(()),
        }
    }

    /// The mark of a binding's time.
    pub(super) fn marked(&self, key: &[u8], binding: &Binding) -> Verdict {
        let mark = keys::binding_by_time(binding.at, key);
        self.there(&mark, "the mark of its time, by which it is forgotten,")
    }

    /// What a change of a session decided: its binding is there, and is of that session. It goes
    /// after its session, and before the note that this is to be erased.
    pub(in crate::adapters::sled::tools) fn answer(
        &self,
        session: SessionId,
        key: &[u8],
        payload: &[u8],
    ) -> Verdict {
        parsed::<SessionAnswer>(key, payload)?;
        if !self.lives(session)? {
            let note = keys::deleted(session);
            self.there(&note, "its session is erased: the note that it is to be")?;
        }
        let Some(place) = keys::answered_binding(key) else {
            return Err("it names no binding".to_owned());
        };
        let binding: Option<Binding> = self.named(&place, "its binding")?;
        match binding {
            Some(binding) if binding.session != session => {
                Err("its binding is of another session".to_owned())
            }
            Some(binding) if !matches!(binding.answer, BoundAnswer::Session(_)) => {
                Err("its binding is of another kind of call".to_owned())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn binding_mark(&self, key: &[u8], at: u64) -> Verdict {
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

    pub(super) fn lease(&self, session: SessionId, key: &[u8], payload: &[u8]) -> Verdict {
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

pub(super) fn input(id: InputId, run: &RunRecord, key: &[u8], payload: &[u8]) -> Verdict {
    let input: InputRecord = parsed(key, payload)?;
    if input.id != id {
        return Err("it is another input".to_owned());
    }
    if input.fate == InputFate::Pending && run.settled.is_some() {
        return Err("it waits although its run has settled".to_owned());
    }
    Ok(())
}

/// The store's own record must be one that a start goes on from.
pub(super) fn meta(key: &[u8], payload: &[u8]) -> Verdict {
    let meta: Meta = parsed(key, payload)?;
    next(meta).map(drop).map_err(str::to_owned)
}

/// A record whose key says everything.
pub(super) fn empty(payload: &[u8]) -> Verdict {
    match payload.len() {
        0 => Ok(()),
        more => Err(format!(
            "it holds {more} bytes, where only its key says something"
        )),
    }
}

pub(super) fn parsed<T: Record>(key: &[u8], payload: &[u8]) -> Result<T, String> {
    decode(key, payload).map_err(problem_of)
}

pub(super) fn problem_of(error: ReadError) -> String {
    match error {
        ReadError::Damaged { problem, .. } | ReadError::Store(problem) => problem,
    }
}
