//! What is durable, as the disk saw it, and what anybody was told of it.
//!
//! Each kept commit is judged by the core's numbered predicates (T01 to T06, T21). What a client is
//! told as a fact must be in a commit that was synced before (C39), once (C3, C20, C25), and stay.

#[path = "books/fleet.rs"]
mod fleet;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{
    AgentName, InputId, InteractionId, RequestId, RunId, SessionId, SessionName,
};
use sessionplane_core::domain::input::{InputFate, InputRecord};
use sessionplane_core::domain::interaction::{Interaction, Resolution, ResolutionCause};
use sessionplane_core::domain::invariants::Trace;
use sessionplane_core::domain::lease::Holder;
use sessionplane_core::domain::place::Place;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::SessionHead;
use sessionplane_core::domain::settings::ModelPolicy;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::commit_rules::LeaseEffect;
use sessionplane_core::ports::lease_store::HeldLease;

use crate::executor::lock;
use crate::facts::Deed;
use crate::log::Log;

/// The books. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Books {
    log: Log,
    inner: Arc<Mutex<Inner>>,
}

/// The rows of all kept commits.
#[derive(Default)]
pub(crate) struct Inner {
    /// What each agent may use.
    pub(crate) models: BTreeMap<AgentName, ModelPolicy>,
    pub(crate) sessions: BTreeMap<SessionId, Stored>,
    pub(crate) names: BTreeMap<SessionName, SessionId>,
    pub(crate) runs: BTreeMap<RunId, RunRecord>,
    pub(crate) inputs: BTreeMap<InputId, InputRecord>,
    pub(crate) interactions: BTreeMap<InteractionId, Interaction>,
    synced: Synced,
    /// Who was told what was accepted under a request id.
    requests: BTreeMap<RequestId, String>,
    /// Questions of which somebody was told that its answer was accepted, and by which call.
    answered: BTreeMap<InteractionId, RequestId>,
    /// Runs and compactions that somebody knows to be active.
    known: BTreeSet<(SessionId, u64)>,
    /// What may be changed of sessions, at each revision.
    metadata: BTreeMap<(SessionId, u64), Metadata>,
    /// Where sessions ever worked.
    places: BTreeSet<(SessionId, Option<Place>)>,
    /// Sessions that are no more.
    deleted: BTreeSet<SessionId>,
    holds: BTreeMap<SessionId, fleet::Hold>,
}

/// A session's rows.
pub(crate) struct Stored {
    trace: Trace,
    agent: AgentName,
    pub(crate) head: SessionHead,
    pub(crate) entries: Vec<Entry>,
    pub(crate) deeds: Vec<Deed>,
    pub(crate) lease: Option<HeldLease>,
    taken_at: Timestamp,
}

/// What is acknowledged, and so must not be lost.
#[derive(Default)]
struct Synced {
    entries: BTreeMap<SessionId, u64>,
    deeds: BTreeMap<SessionId, usize>,
    runs: BTreeSet<RunId>,
    settled: BTreeSet<RunId>,
    inputs: BTreeSet<InputId>,
    ended: BTreeSet<InputId>,
    asked: BTreeSet<InteractionId>,
    resolved: BTreeSet<InteractionId>,
}

impl Books {
    pub(crate) fn new(log: Log) -> Self {
        Self {
            log,
            inner: Arc::default(),
        }
    }

    pub(crate) fn read(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// A commit is on the disk, acknowledged or not.
    pub(crate) fn kept(&self, commit: &Commit) {
        let mut inner = self.read();
        let judged = inner.keep(commit);
        drop(inner);
        if let Err(problem) = judged {
            self.log.wrong(format!("{problem}: {commit:?}"));
        }
    }

    /// A commit is acknowledged from here on.
    pub(crate) fn synced(&self, commit: &Commit) {
        self.read().sync(commit);
    }

    /// The store was opened anew: what it has is durable, whether or not it ever said so.
    pub(crate) fn reopened(&self) {
        let mut inner = self.read();
        let inner = &mut *inner;
        let entries = inner.sessions.iter().map(|(id, it)| (*id, it.head.entries));
        inner.synced.entries.extend(entries);
        let deeds = inner.sessions.iter().map(|(id, it)| (*id, it.deeds.len()));
        inner.synced.deeds.extend(deeds);
        inner.synced.rows(
            inner.runs.values(),
            inner.inputs.values(),
            inner.interactions.values(),
        );
    }

    /// A client was told that its invoke was accepted.
    pub(crate) fn accepted(&self, session: SessionId, run: RunId, request: Option<&RequestId>) {
        self.ensure(self.read().synced.runs.contains(&run), || {
            format!("C39: {run:?} was accepted before it was durable")
        });
        self.know_run(session, run);
        if let Some(request) = request {
            self.bound(request, &format!("{run:?}"));
        }
    }

    /// A client was told what came of its dispatch.
    pub(crate) fn dispatched(
        &self,
        request: Option<&RequestId>,
        input: Option<InputId>,
        what: &str,
    ) {
        if let Some(input) = input {
            self.ensure(self.read().synced.inputs.contains(&input), || {
                format!("C39: {input:?} was accepted before it was durable")
            });
        }
        if let Some(request) = request {
            self.bound(request, &format!("{what} {input:?}"));
        }
    }

    /// C3: a request id stands for one thing.
    pub(crate) fn bound(&self, request: &RequestId, what: &str) {
        let mut inner = self.read();
        let first = inner.requests.entry(request.clone());
        let first = first.or_insert_with(|| what.to_owned()).clone();
        let same = first == what;
        drop(inner);
        self.ensure(same, || {
            format!("C3: {request} stood for {first}, and now for {what}")
        });
    }

    /// C25: a client was told that its answer was accepted.
    pub(crate) fn responded(&self, id: InteractionId, call: &RequestId) {
        let mut inner = self.read();
        let first = inner.answered.entry(id).or_insert(call.clone()).clone();
        let stored = inner
            .interactions
            .get(&id)
            .and_then(|it| it.resolution.clone());
        let synced = inner.synced.resolved.contains(&id);
        drop(inner);
        self.ensure(first == *call, || {
            format!("C25: {id} was answered by {first} and by {call}")
        });
        let answered = stored.is_some_and(|it| it.cause == ResolutionCause::Answered);
        self.ensure(answered && synced, || {
            format!("C39: an answer of {id} was accepted before it was durable")
        });
    }

    /// Somebody knows that a run is active.
    pub(crate) fn know_run(&self, session: SessionId, run: RunId) {
        let mut inner = self.read();
        let lease = inner.sessions.get(&session).and_then(|it| it.lease);
        if let Some(lease) = lease.filter(|lease| lease.holder == Holder::Run(run)) {
            inner.known.insert((session, lease.token.0));
        }
    }

    /// Somebody knows that a compaction that was admitted at this time is active.
    pub(crate) fn know_compaction(&self, session: SessionId, at: Timestamp) {
        let mut inner = self.read();
        let stored = inner.sessions.get(&session);
        let lease = stored
            .filter(|it| it.taken_at == at)
            .and_then(|it| it.lease);
        if let Some(lease) = lease.filter(|lease| lease.holder == Holder::Boundary) {
            inner.known.insert((session, lease.token.0));
        }
    }

    /// What is known to hold a session at the moment.
    pub(crate) fn known(&self, session: SessionId) -> Option<HeldLease> {
        let inner = self.read();
        let lease = inner.sessions.get(&session)?.lease?;
        inner
            .known
            .contains(&(session, lease.token.0))
            .then_some(lease)
    }

    /// A settled record, once it is acknowledged.
    pub(crate) fn settled(&self, run: RunId) -> Option<RunRecord> {
        self.read().settled(run).cloned()
    }

    /// An entry, once it is acknowledged.
    pub(crate) fn entry(&self, session: SessionId, seq: u64) -> Option<Entry> {
        self.read().entry(session, seq).cloned()
    }

    fn ensure(&self, holds: bool, what: impl FnOnce() -> String) {
        self.log.ensure(holds, what);
    }
}

impl Inner {
    /// Whether a run's admission is acknowledged.
    pub(crate) fn is_run_synced(&self, run: RunId) -> bool {
        self.synced.runs.contains(&run)
    }

    /// A settled record, once it is acknowledged.
    pub(crate) fn settled(&self, run: RunId) -> Option<&RunRecord> {
        let synced = self.synced.settled.contains(&run);
        self.runs.get(&run).filter(|_| synced)
    }

    /// An input, once it is acknowledged.
    pub(crate) fn input(&self, input: InputId) -> Option<&InputRecord> {
        let synced = self.synced.inputs.contains(&input);
        self.inputs.get(&input).filter(|_| synced)
    }

    /// The end of an input, once it is acknowledged.
    pub(crate) fn fate(&self, input: InputId) -> Option<InputFate> {
        let synced = self.synced.ended.contains(&input);
        let stored = self.inputs.get(&input).filter(|_| synced);
        stored.map(|it| it.fate)
    }

    /// A question, once it is acknowledged.
    pub(crate) fn asked(&self, id: InteractionId) -> Option<&Interaction> {
        let synced = self.synced.asked.contains(&id);
        self.interactions.get(&id).filter(|_| synced)
    }

    /// A question's end, once it is acknowledged.
    pub(crate) fn resolution(&self, id: InteractionId) -> Option<&Resolution> {
        let synced = self.synced.resolved.contains(&id);
        let stored = self.interactions.get(&id).filter(|_| synced)?;
        stored.resolution.as_ref()
    }

    /// An entry, once it is acknowledged.
    pub(crate) fn entry(&self, session: SessionId, seq: u64) -> Option<&Entry> {
        let synced = *self.synced.entries.get(&session)?;
        let at = usize::try_from(seq.checked_sub(1)?).ok()?;
        let entries = &self.sessions.get(&session)?.entries;
        entries.get(at).filter(|_| seq <= synced)
    }

    /// What was done in a session, as far as it is acknowledged.
    pub(crate) fn deeds(&self, session: SessionId) -> &[Deed] {
        let synced = self.synced.deeds.get(&session).copied().unwrap_or(0);
        let deeds = self.sessions.get(&session).map(|it| it.deeds.as_slice());
        deeds.and_then(|it| it.get(..synced)).unwrap_or_default()
    }

    /// What a session's agent may use.
    pub(crate) fn policy(&self, session: SessionId) -> Option<&ModelPolicy> {
        self.models.get(&self.sessions.get(&session)?.agent)
    }

    fn keep(&mut self, commit: &Commit) -> Result<(), String> {
        if self.deleted.contains(&commit.session) {
            return Err("C61: its session is no more".to_owned());
        }
        if let Some(record) = &commit.create {
            let metadata = record.metadata.clone();
            self.metadata.insert((record.id, 1), metadata);
            let models = self.models.get(&record.agent).cloned().unwrap_or_default();
            let stored = Stored {
                trace: Trace::new(record, models),
                agent: record.agent.clone(),
                head: commit.head.clone(),
                entries: Vec::new(),
                deeds: Vec::new(),
                lease: None,
                taken_at: record.created_at,
            };
            if self.sessions.insert(record.id, stored).is_some() {
                return Err("C44: a session was created twice".to_owned());
            }
            if let Some(name) = &record.metadata.name
                && self.names.insert(name.clone(), record.id).is_some()
            {
                return Err(format!("C14: {name} was created twice"));
            }
        }
        let Some(stored) = self.sessions.get_mut(&commit.session) else {
            return Err("a commit of no session".to_owned());
        };
        let judged = stored.trace.committed(commit);
        judged.map_err(|violation| violation.to_string())?;
        match LeaseEffect::of(commit) {
            LeaseEffect::Take(lease) => {
                let hold = self.holds.get(&commit.session);
                hold.map_or(Ok(()), |hold| hold.admits(commit))?;
                stored.taken_at = commit.audits.first().map_or(stored.taken_at, |it| it.at);
                if let Some(held) = stored.lease.replace(lease) {
                    return Err(format!("C22: {held:?} was held"));
                }
            }
            LeaseEffect::Keep => {}
            LeaseEffect::Free => stored.lease = None,
        }
        stored.head = commit.head.clone();
        let place = commit.head.place.clone();
        self.places.insert((commit.session, place));
        stored.entries.extend(commit.entries.iter().cloned());
        stored.deeds.extend(Deed::all_of(commit));
        let runs = commit.runs.iter().map(|run| (run.id, run.clone()));
        self.runs.extend(runs);
        let inputs = commit.inputs.iter().map(|it| (it.id, it.clone()));
        self.inputs.extend(inputs);
        let asked = commit.interactions.iter().map(|it| (it.id, it.clone()));
        self.interactions.extend(asked);
        Ok(())
    }

    fn sync(&mut self, commit: &Commit) {
        let synced = &mut self.synced;
        synced.entries.insert(commit.session, commit.head.entries);
        let deeds = usize::try_from(commit.head.audits).unwrap_or(usize::MAX);
        synced.deeds.insert(commit.session, deeds);
        synced.rows(
            commit.runs.iter(),
            commit.inputs.iter(),
            commit.interactions.iter(),
        );
    }

    /// Everything that was begun has ended; no request id stands for two things.
    pub(crate) fn unfinished(&self) -> Option<String> {
        let run = self.runs.values().find(|run| run.settled.is_none());
        let input = self
            .inputs
            .values()
            .find(|input| input.fate == InputFate::Pending);
        let asked = self
            .interactions
            .values()
            .find(|asked| asked.resolution.is_none());
        let held = self.sessions.values().find_map(|stored| stored.lease);
        let mut requests = BTreeSet::new();
        let ids = self.runs.values().filter_map(|run| run.request_id.as_ref());
        let inputs = self.inputs.values();
        let mut ids = ids.chain(inputs.filter_map(|input| input.origin.request_id.as_ref()));
        let twice = ids.find(|id| !requests.insert(*id));
        match (run, input, asked, held, twice) {
            (None, None, None, None, None) => None,
            other => Some(format!("{other:?}")),
        }
    }
}

impl Synced {
    fn rows<'r>(
        &mut self,
        runs: impl Iterator<Item = &'r RunRecord>,
        inputs: impl Iterator<Item = &'r InputRecord>,
        interactions: impl Iterator<Item = &'r Interaction>,
    ) {
        for run in runs {
            self.runs.insert(run.id);
            if run.settled.is_some() {
                self.settled.insert(run.id);
            }
        }
        for input in inputs {
            self.inputs.insert(input.id);
            if input.fate != InputFate::Pending {
                self.ended.insert(input.id);
            }
        }
        for asked in interactions {
            self.asked.insert(asked.id);
            if asked.resolution.is_some() {
                self.resolved.insert(asked.id);
            }
        }
    }
}
