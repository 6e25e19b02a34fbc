//! What every store judges a change of metadata and a deletion by, beside [`super::commit_rules`].
//!
//! Pure, as those.

use super::commit_rules::{CommitFacts, audit_fits, bindings_fit, must, read, unbound};
use super::repository::CommitError;
use crate::domain::commit::{DeletionCommit, MetadataCommit};
use crate::domain::ids::SessionId;
use crate::domain::session::SessionRecord;

/// Judges a change of metadata; returns the record as it is stored, for the keys that change with it.
///
/// # Errors
/// The refusal; [`CommitError::Store`] when a fact could not be read.
pub fn judge_metadata(
    commit: &MetadataCommit,
    facts: &impl CommitFacts,
) -> Result<SessionRecord, CommitError> {
    let next = commit.metadata.revision;
    must(commit.expected.checked_add(1) == Some(next), || {
        format!("revision {next} does not follow {}", commit.expected)
    })?;
    audit_fits(commit.session, &commit.audit, next)?;
    bindings_fit(commit.session, &commit.bindings)?;
    unbound(&commit.bindings, facts)?;
    let record = known(commit.session, commit.expected, facts)?;
    let wanted = commit.metadata.name.as_ref();
    if let Some(name) = wanted.filter(|name| record.metadata.name.as_ref() != Some(name))
        && read(facts.named(&record.tenant, name))?
    {
        return Err(CommitError::AlreadyExists);
    }
    Ok(record)
}

/// Judges a deletion; returns the record as it is stored, for the keys that go with it.
///
/// # Errors
/// The refusal; [`CommitError::Store`] when a fact could not be read.
pub fn judge_deletion(
    commit: &DeletionCommit,
    facts: &impl CommitFacts,
) -> Result<SessionRecord, CommitError> {
    let ordinal = commit.expected_audits.saturating_add(1);
    audit_fits(commit.session, &commit.audit, ordinal)?;
    bindings_fit(commit.session, &commit.bindings)?;
    unbound(&commit.bindings, facts)?;
    let head = read(facts.head(commit.session))?.ok_or(CommitError::NoSuchSession)?;
    let live = facts.live(commit.session);
    let cut = read(facts.leased(commit.session))?;
    if live.is_some() || cut.is_some() || commit.token <= head.token {
        let current = live.or(Some(head.token));
        return Err(CommitError::Fenced { current });
    }
    if (head.entries, head.audits) != (commit.expected_entries, commit.expected_audits) {
        let (entries, audits) = (head.entries, head.audits);
        return Err(CommitError::Conflict { entries, audits });
    }
    let record = known(commit.session, commit.expected_metadata, facts)?;
    match read(facts.child(commit.session))? {
        Some(child) => Err(CommitError::HasChildren { child }),
        None => Ok(record),
    }
}

fn known(
    session: SessionId,
    expected: u64,
    facts: &impl CommitFacts,
) -> Result<SessionRecord, CommitError> {
    let record = read(facts.record(session))?.ok_or(CommitError::NoSuchSession)?;
    let revision = record.metadata.revision;
    if revision != expected {
        return Err(CommitError::MetadataConflict { revision });
    }
    Ok(record)
}
