//! The durable store: one write verb, a few reads.
//!
//! Promises that the suite checks: a commit is applied whole or not at all; it is acknowledged
//! only after it would survive power loss; no read shows anything of a commit before that; the
//! lease clause and the expected head are checked in the same atomic step as the write; one
//! caller's refusal never disturbs another's commit.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::binding::{Binding, BindingKey};
use crate::domain::commit::{Commit, DeletionCommit, MetadataCommit};
use crate::domain::entry::Entry;
use crate::domain::fleet::filter::StoredTerm;
use crate::domain::ids::{
    EntryId, EntrySeq, InputId, RunId, SessionId, SessionName, SessionRef, TenantId,
};
use crate::domain::input::InputRecord;
use crate::domain::interaction::Interaction;
use crate::domain::lease::LeaseToken;
use crate::domain::run::RunRecord;
use crate::domain::session::StoredSession;

/// Why a commit was not applied. Except for [`CommitError::Store`], nothing was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommitError {
    /// Another writer holds the lease, or a newer token was used since.
    #[error("the lease is held under token {current:?}")]
    Fenced {
        /// The token that stands in the way, where one is known.
        current: Option<LeaseToken>,
    },
    /// The stored head is not the one that the commit was decided on.
    #[error("the session moved on: it has {entries} entries and {audits} audit records")]
    Conflict {
        /// Entries that the stored head has.
        entries: u64,
        /// Audit records that the stored head has.
        audits: u64,
    },
    /// The stored metadata are not those that the change was decided on.
    #[error("the session's metadata changed: they are of revision {revision}")]
    MetadataConflict {
        /// The revision that they have.
        revision: u64,
    },
    /// Other sessions branch off the one to be deleted.
    #[error("other sessions branch off it, such as {child}")]
    HasChildren {
        /// One of them.
        child: SessionId,
    },
    /// A session with that id, name or external key exists.
    #[error("a session of that name or key exists")]
    AlreadyExists,
    /// One of the request ids is bound already.
    #[error("one of the request ids is bound already")]
    AlreadyBound,
    /// The session to write to does not exist.
    #[error("no such session")]
    NoSuchSession,
    /// The session that a new one branches off does not exist.
    #[error("the session that it branches off is gone")]
    NoParent,
    /// The commit itself breaks a rule (numbering, sizes): a bug of the caller.
    #[error("the commit is malformed: {0}")]
    Malformed(String),
    /// The store failed or is closed: whether it was applied is unknown.
    #[error("the store failed: {0}")]
    Store(String),
}

/// Why a read failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// A record is damaged.
    #[error("the record {key} is damaged: {problem}")]
    Damaged {
        /// The record's key, printable.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The store failed or is closed.
    #[error("the store failed: {0}")]
    Store(String),
}

/// A session that was deleted and is not erased yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeletedSession {
    /// The session.
    pub session: SessionId,
    /// Entries that are left, from the first on.
    pub entries: u64,
}

/// Which entries to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryRange {
    /// The last entry that the reader has; 0 for none.
    pub after: EntrySeq,
    /// The last entry to read; the caller takes it from the session's published view.
    pub up_to: EntrySeq,
    /// Most entries to return, at least 1.
    pub max_entries: usize,
    /// Stop before the entry that would exceed this many bytes ([`Entry::weight`]), but return at
    /// least one.
    pub max_bytes: usize,
}

impl EntryRange {
    /// Whether a page that holds `taken` entries of together `bytes` takes one more of `weight`.
    #[must_use]
    pub fn admits(&self, taken: usize, bytes: usize, weight: usize) -> bool {
        taken == 0 || (taken < self.max_entries && bytes.saturating_add(weight) <= self.max_bytes)
    }
}

/// A session that an index or a reference leads to.
#[derive(Clone, PartialEq, Debug)]
pub struct FoundSession {
    /// Its rows.
    pub session: Arc<StoredSession>,
    /// Whether a lease record names it: it is held, or its run was cut, which
    /// [`LeaseStore::cut`](super::lease_store::LeaseStore::cut) tells. Read after the rows.
    pub leased: bool,
}

/// Which sessions to look for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionQuery {
    /// The tenant.
    pub tenant: TenantId,
    /// What the index is asked.
    pub term: StoredTerm,
    /// The last session that the reader has; none at the beginning. Its row may be gone by now.
    pub after: Option<SessionPlace>,
    /// From the newest to the oldest, or from the last name to the first.
    pub descending: bool,
    /// Most sessions to return, at least 1.
    pub max: usize,
}

/// A place in the order of an index: of ids (which is that of creation), or of names where the term is
/// [`StoredTerm::NamePrefix`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SessionPlace {
    /// After that id.
    Id(SessionId),
    /// After that name.
    Name(SessionName),
}

/// The durable store.
#[async_trait]
pub trait Repository: Send + Sync {
    /// What is asked from here on need not wait behind reads that wait already. A server that stops
    /// says so before it settles what it cuts.
    fn make_way(&self) {}
    /// Applies a commit, syncs, then returns.
    async fn commit(&self, commit: Commit) -> Result<(), CommitError>;
    /// Applies a change of metadata, syncs, then returns.
    async fn commit_metadata(&self, commit: MetadataCommit) -> Result<(), CommitError>;
    /// Ends a session, syncs, then returns.
    async fn delete(&self, commit: DeletionCommit) -> Result<(), CommitError>;
    /// The deleted session with the least id after `after`, or of all, that still has records; none
    /// when all is erased. It survives a crash. Waits while somebody reads the store as it was before
    /// (a backup): until then what the session named must stay.
    async fn deleted(&self, after: Option<SessionId>) -> Result<Option<DeletedSession>, ReadError>;
    /// Erases a deleted session's entries with a greater number than `keep`, and, once `keep` is 0 and
    /// no entry is left, its other records, at most about `max` in all. Syncs, then returns whether
    /// nothing is left. The audit trail and the bindings stay.
    ///
    /// Entries go from the newest to the oldest, so that what is left can be read like any session's:
    /// who removes what an entry names does that first, and erases the entry then.
    async fn erase(&self, session: SessionId, keep: u64, max: usize) -> Result<bool, ReadError>;
    /// Sessions of an index term, in its order. At most `max`; fewer only at the end.
    async fn find(&self, query: SessionQuery) -> Result<Vec<FoundSession>, ReadError>;
    /// A session's rows.
    async fn session(&self, id: SessionId) -> Result<Option<StoredSession>, ReadError>;
    /// The id behind a reference in a tenant. An id of another tenant resolves to nothing.
    async fn resolve(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<SessionId>, ReadError>;
    /// The session behind a reference in a tenant: what `resolve` and `session` say, in one read.
    async fn look_up(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<FoundSession>, ReadError>;
    /// Entries in append order.
    async fn entries(&self, session: SessionId, range: EntryRange)
    -> Result<Vec<Entry>, ReadError>;
    /// One entry.
    async fn entry(&self, id: EntryId) -> Result<Option<Entry>, ReadError>;
    /// A session's runs, newest first: at most `max` of those before `before`, or of all.
    async fn runs(
        &self,
        session: SessionId,
        before: Option<RunId>,
        max: usize,
    ) -> Result<Vec<RunRecord>, ReadError>;
    /// What a run asked, in order: all that is open, and the newest of the rest
    /// ([`crate::domain::interaction::surplus`]).
    async fn interactions(&self, run: RunId) -> Result<Vec<Interaction>, ReadError>;
    /// A run's record.
    async fn run(&self, id: RunId) -> Result<Option<RunRecord>, ReadError>;
    /// One dispatched input.
    async fn input(&self, id: InputId) -> Result<Option<InputRecord>, ReadError>;
    /// The inputs of a run that are still [`Pending`](crate::domain::input::InputFate::Pending), in
    /// order of acceptance. No run has many of those at a time, whatever became of how many others.
    async fn pending_inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError>;
    /// A request binding.
    async fn binding(&self, key: &BindingKey) -> Result<Option<Binding>, ReadError>;
    /// Forgets bindings older than `before` whose run settled before that, oldest first, at most
    /// `max` of them. Returns how many went.
    async fn sweep_bindings(
        &self,
        before: crate::domain::time::Timestamp,
        max: usize,
    ) -> Result<usize, ReadError>;
}
