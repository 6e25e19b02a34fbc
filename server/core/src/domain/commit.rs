//! The writes: compare and append, under a fencing token, for all that a run or a boundary mutation
//! does; compare and set, by a revision of their own, for metadata; and the end of a session.

use super::audit::AuditRecord;
use super::binding::Binding;
use super::entry::Entry;
use super::fleet::metadata::Metadata;
use super::ids::SessionId;
use super::input::InputRecord;
use super::interaction::Interaction;
use super::lease::{Holder, LeaseClause, LeaseToken};
use super::run::RunRecord;
use super::session::{SessionHead, SessionRecord};

/// All that one round of a session writes, or none of it.
///
/// A store applies it only if the lease clause holds and the session's stored head is still the
/// one that `expected_entries` and `expected_audits` describe; both checks and the write are one
/// atomic step.
#[derive(Clone, PartialEq, Debug)]
pub struct Commit {
    /// The session written to.
    pub session: SessionId,
    /// How the writer proves its right.
    pub lease: LeaseClause,
    /// What the lease is held for: the index of running sessions names it.
    pub holder: Holder,
    /// Entries that the stored head must have.
    pub expected_entries: u64,
    /// Audit records that the stored head must have.
    pub expected_audits: u64,
    /// The session to create with this commit. Refused when its id, name or key is taken.
    pub create: Option<SessionRecord>,
    /// The new head.
    pub head: SessionHead,
    /// Entries to append, numbered on from `expected_entries`.
    pub entries: Vec<Entry>,
    /// Run records to write or overwrite.
    pub runs: Vec<RunRecord>,
    /// Input records to write or overwrite.
    pub inputs: Vec<InputRecord>,
    /// Interaction records to write or overwrite.
    pub interactions: Vec<Interaction>,
    /// Bindings to add. Refused when one of the keys is bound already.
    pub bindings: Vec<Binding>,
    /// Audit records to append, numbered on from `expected_audits`.
    pub audits: Vec<AuditRecord>,
}

/// A change of a session's metadata: whatever runs goes on, and nothing of what it writes is touched.
///
/// A store applies it only if the stored metadata are of revision `expected`, and a new name is free;
/// checks and write are one atomic step.
#[derive(Clone, PartialEq, Debug)]
pub struct MetadataCommit {
    /// The session.
    pub session: SessionId,
    /// The revision that the change was decided on.
    pub expected: u64,
    /// The metadata after it, of the revision that follows.
    pub metadata: Metadata,
    /// Bindings to add. Refused when one of the keys is bound already.
    pub bindings: Vec<Binding>,
    /// What the audit trail says of it. Its ordinal is the new revision: metadata have a series of
    /// their own, since the other one is counted in the head, which is a run's.
    pub audit: AuditRecord,
}

/// The end of a session. From the commit on nobody finds it; what it held is erased after that, in
/// bounded steps that go on after a crash ([`crate::ports::repository::Repository::erase`]).
///
/// A store applies it only if nobody holds the session's lease, nothing of it was cut, its head and
/// its metadata are the expected ones, and no other session branches off it.
#[derive(Clone, PartialEq, Debug)]
pub struct DeletionCommit {
    /// The session.
    pub session: SessionId,
    /// A fresh token, above every one that was used.
    pub token: LeaseToken,
    /// Entries that the stored head must have.
    pub expected_entries: u64,
    /// Audit records that the stored head must have.
    pub expected_audits: u64,
    /// The revision that the stored metadata must have.
    pub expected_metadata: u64,
    /// Bindings to add. Refused when one of the keys is bound already.
    pub bindings: Vec<Binding>,
    /// What the audit trail says of it, numbered on from `expected_audits`. The trail stays.
    pub audit: AuditRecord,
}
