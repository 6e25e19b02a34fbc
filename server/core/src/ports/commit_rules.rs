//! What every store judges a commit by, in one place, so that no two stores can differ in it.
//!
//! Pure: facts come in through [`CommitFacts`], a verdict goes out. How a store looks its facts up,
//! and how it makes check and write one step, must never enter.

use super::lease_store::HeldLease;
use super::repository::{CommitError, ReadError};
use crate::domain::audit::AuditRecord;
use crate::domain::binding::{Binding, BindingKey};
use crate::domain::commit::Commit;
use crate::domain::entry::{Entry, PathMarks};
use crate::domain::ids::{EntryId, EntrySeq, ExternalKey, SessionId, SessionName, TenantId};
use crate::domain::lease::{LeaseClause, LeaseToken};
use crate::domain::limits::{MAX_ENTRY_TEXT_BYTES, MAX_TEXT_BYTES};
use crate::domain::session::{SessionHead, SessionRecord};

/// Heaviest entry that a store takes ([`Entry::weight`]), in bytes: two texts that are not yet
/// narrowed to their bound, with room to spare.
pub const MAX_ENTRY_WEIGHT: usize = 8 * MAX_ENTRY_TEXT_BYTES;

/// What a store has to know to judge a commit. Answers include what earlier commits of the same
/// round have written, synced or not.
pub trait CommitFacts {
    /// Who the session is; `None` if there is no such session.
    fn record(&self, session: SessionId) -> Result<Option<SessionRecord>, ReadError>;
    /// A session that branches off this one.
    fn child(&self, session: SessionId) -> Result<Option<SessionId>, ReadError>;
    /// The session's stored head; `None` if there is no such session.
    fn head(&self, session: SessionId) -> Result<Option<SessionHead>, ReadError>;
    /// The token of the session's live writer.
    fn live(&self, session: SessionId) -> Option<LeaseToken>;
    /// The session's lease record, whether a live writer holds the lease or not.
    fn leased(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError>;
    /// Whether a session of that name exists.
    fn named(&self, tenant: &TenantId, name: &SessionName) -> Result<bool, ReadError>;
    /// Whether a session of that external key exists.
    fn keyed(&self, tenant: &TenantId, key: &ExternalKey) -> Result<bool, ReadError>;
    /// Whether the request id is bound.
    fn bound(&self, key: &BindingKey) -> Result<bool, ReadError>;
}

/// What an accepted commit does to the session's lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseEffect {
    /// It is held from now on.
    Take(HeldLease),
    /// It stays as it is.
    Keep,
    /// Nobody holds it from now on.
    Free,
}

impl LeaseEffect {
    /// The effect of an accepted commit.
    #[must_use]
    pub fn of(commit: &Commit) -> Self {
        match commit.lease {
            LeaseClause::Acquire(token) => Self::Take(HeldLease {
                session: commit.session,
                holder: commit.holder,
                token,
            }),
            LeaseClause::Hold(_) => Self::Keep,
            LeaseClause::Release(_) | LeaseClause::Recover(_) => Self::Free,
        }
    }
}

/// Judges a commit. The order is the contract's: a bound request id is told before anything about
/// the session, then the lease, then whether the session moved on, then what it branches off, then
/// the names.
///
/// # Errors
/// The refusal; [`CommitError::Store`] when a fact could not be read.
pub fn judge(commit: &Commit, facts: &impl CommitFacts) -> Result<(), CommitError> {
    well_formed(commit)?;
    unbound(&commit.bindings, facts)?;
    let head = read(facts.head(commit.session))?;
    match (&head, &commit.create) {
        (Some(_), Some(_)) => return Err(CommitError::AlreadyExists),
        (None, None) => return Err(CommitError::NoSuchSession),
        _ => {}
    }
    fence(commit, facts, head.as_ref())?;
    let (entries, audits) = head
        .as_ref()
        .map_or((0, 0), |head| (head.entries, head.audits));
    if (entries, audits) != (commit.expected_entries, commit.expected_audits) {
        return Err(CommitError::Conflict { entries, audits });
    }
    match &commit.create {
        Some(record) => {
            branches_off(record, facts)?;
            addresses_free(record, facts)
        }
        None => Ok(()),
    }
}

/// What a session branches off must be there: it may have been deleted since that was decided.
fn branches_off(record: &SessionRecord, facts: &impl CommitFacts) -> Result<(), CommitError> {
    let Some(lineage) = record.lineage else {
        return Ok(());
    };
    let parent = read(facts.head(lineage.parent))?;
    parent.map(drop).ok_or(CommitError::NoParent)
}

/// That none of the request ids is bound.
pub(super) fn unbound(bindings: &[Binding], facts: &impl CommitFacts) -> Result<(), CommitError> {
    for binding in bindings {
        if read(facts.bound(&binding.key))? {
            return Err(CommitError::AlreadyBound);
        }
    }
    Ok(())
}

pub(super) fn read<T>(fact: Result<T, ReadError>) -> Result<T, CommitError> {
    fact.map_err(|error| CommitError::Store(error.to_string()))
}

/// The lease clause against the live writer, the newest token ever used and the run that a lease
/// without a live writer names. That record is all that leads to a run that was cut: nothing but
/// the settlement of that run takes its place.
fn fence(
    commit: &Commit,
    facts: &impl CommitFacts,
    head: Option<&SessionHead>,
) -> Result<(), CommitError> {
    let live = facts.live(commit.session);
    let token = commit.lease.token();
    let used = head.map(|head| head.token);
    let fresh = live.is_none() && used.is_none_or(|used| used < token);
    let holds = match commit.lease {
        LeaseClause::Acquire(_) => fresh && read(facts.leased(commit.session))?.is_none(),
        LeaseClause::Recover(_) => {
            let cut = read(facts.leased(commit.session))?;
            fresh && cut.is_none_or(|cut| cut.holder == commit.holder)
        }
        LeaseClause::Hold(_) | LeaseClause::Release(_) => {
            live == Some(token) && used == Some(token)
        }
    };
    if holds {
        Ok(())
    } else {
        Err(CommitError::Fenced {
            current: live.or(used),
        })
    }
}

fn addresses_free(record: &SessionRecord, facts: &impl CommitFacts) -> Result<(), CommitError> {
    let named = match &record.metadata.name {
        Some(name) => read(facts.named(&record.tenant, name))?,
        None => false,
    };
    let keyed = match &record.external_key {
        Some(key) => read(facts.keyed(&record.tenant, key))?,
        None => false,
    };
    if named || keyed {
        return Err(CommitError::AlreadyExists);
    }
    Ok(())
}

/// What a commit must be whatever the store holds.
fn well_formed(commit: &Commit) -> Result<(), CommitError> {
    head_follows(commit)?;
    for (entry, seq) in commit
        .entries
        .iter()
        .zip(commit.expected_entries.saturating_add(1)..)
    {
        entry_fits(commit.session, entry, seq)?;
    }
    for (audit, ordinal) in commit
        .audits
        .iter()
        .zip(commit.expected_audits.saturating_add(1)..)
    {
        audit_fits(commit.session, audit, ordinal)?;
    }
    records_fit(commit)?;
    bindings_fit(commit.session, &commit.bindings)
}

fn head_follows(commit: &Commit) -> Result<(), CommitError> {
    let head = &commit.head;
    must(head.token == commit.lease.token(), || {
        format!("the head's token {} is not the lease's", head.token)
    })?;
    let sums = commit
        .expected_entries
        .checked_add(commit.entries.len() as u64)
        == Some(head.entries)
        && commit
            .expected_audits
            .checked_add(commit.audits.len() as u64)
            == Some(head.audits);
    must(sums, || "the head does not count what is appended".into())?;
    if let Some(leaf) = head.leaf {
        must(within(commit.session, leaf, head.entries), || {
            format!("the leaf {leaf} is no entry of the session")
        })?;
    }
    marks_fit(head.path, head.leaf.map_or(0, |leaf| leaf.seq))?;
    let Some(record) = &commit.create else {
        return Ok(());
    };
    let takes = matches!(
        commit.lease,
        LeaseClause::Acquire(_) | LeaseClause::Recover(_)
    );
    must(
        record.id == commit.session
            && takes
            && (commit.expected_entries, commit.expected_audits) == (0, 0),
        || "a created session starts empty, under its own id and a fresh lease".into(),
    )
}

fn entry_fits(session: SessionId, entry: &Entry, seq: u64) -> Result<(), CommitError> {
    must(entry.id == EntryId { session, seq }, || {
        format!("entry {} is not number {seq} of its session", entry.id)
    })?;
    if let Some(parent) = entry.parent {
        must(within(session, parent, seq - 1), || {
            format!("the parent {parent} is no earlier entry of the session")
        })?;
    }
    marks_fit(entry.path, seq)?;
    must(entry.weight() <= MAX_ENTRY_WEIGHT, || {
        format!("entry {} is longer than {MAX_ENTRY_WEIGHT} bytes", entry.id)
    })
}

fn marks_fit(marks: PathMarks, seq: EntrySeq) -> Result<(), CommitError> {
    let fit = |mark: Option<EntrySeq>| mark.is_none_or(|mark| (1..=seq).contains(&mark));
    let all = [marks.settings, marks.compaction, marks.said];
    must(all.into_iter().all(fit), || {
        format!("the marks {marks:?} are of entries after number {seq}")
    })
}

pub(super) fn audit_fits(
    session: SessionId,
    audit: &AuditRecord,
    ordinal: u64,
) -> Result<(), CommitError> {
    must(audit.session == session && audit.ordinal == ordinal, || {
        format!("audit record {} is not number {ordinal}", audit.ordinal)
    })?;
    must(AuditRecord::OUTCOMES.contains(&audit.outcome), || {
        format!("{:?} is no audit outcome", audit.outcome)
    })?;
    must(audit.entries.iter().all(|id| id.session == session), || {
        "an audit record names an entry of another session".into()
    })
}

fn records_fit(commit: &Commit) -> Result<(), CommitError> {
    for run in &commit.runs {
        must(run.session == commit.session, || {
            format!("run {} is another session's", run.id)
        })?;
    }
    for input in &commit.inputs {
        let joined = Some(input.id.run) == commit.holder.run() && input.id.ordinal > 0;
        must(joined, || {
            format!("input {} did not join {}", input.id, commit.holder)
        })?;
        must(input.text.len() <= MAX_TEXT_BYTES, || {
            format!("input {} is longer than {MAX_TEXT_BYTES} bytes", input.id)
        })?;
    }
    for asked in &commit.interactions {
        let ours = Some(asked.id.run) == commit.holder.run() && asked.id.ordinal > 0;
        must(ours && asked.question.is_sound(), || {
            format!("{} cannot be asked by {}", asked.id, commit.holder)
        })?;
    }
    Ok(())
}

pub(super) fn bindings_fit(session: SessionId, bindings: &[Binding]) -> Result<(), CommitError> {
    for (place, binding) in bindings.iter().enumerate() {
        must(binding.session == session, || {
            "a binding is of another session".into()
        })?;
        let twice = bindings[..place]
            .iter()
            .any(|earlier| earlier.key == binding.key);
        if twice {
            return Err(CommitError::AlreadyBound);
        }
    }
    Ok(())
}

/// Whether an id is one of the session's entries up to number `last`.
fn within(session: SessionId, id: EntryId, last: u64) -> bool {
    id.session == session && (1..=last).contains(&id.seq)
}

pub(super) fn must(holds: bool, problem: impl FnOnce() -> String) -> Result<(), CommitError> {
    if holds {
        Ok(())
    } else {
        Err(CommitError::Malformed(problem()))
    }
}
