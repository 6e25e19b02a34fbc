//! The one write of the conversation: compare and append, under a fencing token.

use super::audit::AuditRecord;
use super::binding::Binding;
use super::entry::Entry;
use super::ids::SessionId;
use super::input::InputRecord;
use super::interaction::Interaction;
use super::lease::{Holder, LeaseClause};
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
