//! What sessions are found by, and how it changes: by a creation, by a move, by a change of metadata,
//! by a deletion. An index row is written in the round that writes what it follows from.

use std::collections::BTreeSet;

use sessionplane_core::domain::audit::Series;
use sessionplane_core::domain::commit::{Commit, DeletionCommit, MetadataCommit};
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::ids::WorkspaceName;
use sessionplane_core::domain::place::Place;
use sessionplane_core::domain::session::{SessionHead, SessionRecord};
use sessionplane_core::ports::repository::{DeletedSession, ReadError};

use super::bindings;
use crate::adapters::sled::convert::{Address, HeadRow};
use crate::adapters::sled::frame::damaged;
use crate::adapters::sled::keys::{self, Key};
use crate::adapters::sled::round::{Before, Round, fetch};
use crate::adapters::sled::seal;

/// The rows of the indexes that have a session, but for its name and its external key, which lead to
/// one.
pub(in crate::adapters::sled) fn indexes(
    record: &SessionRecord,
    place: Option<&Place>,
) -> BTreeSet<Key> {
    let terms = record.terms(place).into_iter();
    terms
        .map(|term| keys::found(&record.tenant, &term, record.id))
        .collect()
}

/// A session that did not exist before.
pub(super) fn created(
    round: &mut Round<'_>,
    record: &SessionRecord,
    place: Option<&Place>,
) -> Result<(), ReadError> {
    round.put(keys::session(record.id), record, Before::Absent)?;
    let address = Address(record.id);
    if let Some(name) = &record.metadata.name {
        round.put(keys::name(&record.tenant, name), &address, Before::Absent)?;
    }
    if let Some(key) = &record.external_key {
        let key = keys::external_key(&record.tenant, key);
        round.put(key, &address, Before::Absent)?;
    }
    for row in indexes(record, place) {
        round.put_payload(row, &[], Before::Absent)?;
    }
    Ok(())
}

/// A commit to a session that is there: nothing, unless it moves it to another workspace.
pub(super) fn moved(
    round: &mut Round<'_>,
    commit: &Commit,
    former: Option<&HeadRow>,
) -> Result<(), ReadError> {
    let from = former.and_then(|row| workspace(&row.head));
    let to = workspace(&commit.head);
    if from == to {
        return Ok(());
    }
    let place = keys::session(commit.session);
    let record: Option<SessionRecord> = fetch(round, &place)?;
    let record = record.ok_or_else(|| damaged(&place, "it is missing"))?;
    let row = |name: &WorkspaceName| {
        let term = StoredTerm::Workspace(name.clone());
        keys::found(&record.tenant, &term, record.id)
    };
    if let Some(from) = from {
        round.delete(row(from))?;
    }
    match to {
        Some(to) => round.put_payload(row(to), &[], Before::Unknown),
        None => Ok(()),
    }
}

fn workspace(head: &SessionHead) -> Option<&WorkspaceName> {
    head.place.as_ref().map(|place| &place.workspace)
}

/// Adds a judged change of metadata to the round; `stored` is the record before it.
pub(in crate::adapters::sled) fn metadata(
    round: &mut Round<'_>,
    commit: &MetadataCommit,
    stored: &SessionRecord,
) -> Result<(), ReadError> {
    let next = SessionRecord {
        metadata: commit.metadata.clone(),
        ..stored.clone()
    };
    if stored.metadata.name != next.metadata.name {
        if let Some(name) = &stored.metadata.name {
            round.delete(keys::name(&stored.tenant, name))?;
        }
        if let Some(name) = &next.metadata.name {
            let key = keys::name(&next.tenant, name);
            round.put(key, &Address(next.id), Before::Absent)?;
        }
    }
    // Where it works is the head's to say, and does not change here.
    let (before, after) = (indexes(stored, None), indexes(&next, None));
    for row in before.difference(&after) {
        round.delete(row.clone())?;
    }
    for row in after.difference(&before) {
        round.put_payload(row.clone(), &[], Before::Unknown)?;
    }
    round.put(keys::session(next.id), &next, Before::Unknown)?;
    seal::audit(round, Series::Metadata, &commit.audit)?;
    bindings(round, &commit.bindings)
}

/// Adds a judged deletion to the round; `stored` is the session's record. What leads to the session
/// goes now, and what it held is erased later: it is noted that it is to be.
pub(in crate::adapters::sled) fn deletion(
    round: &mut Round<'_>,
    commit: &DeletionCommit,
    stored: &SessionRecord,
) -> Result<(), ReadError> {
    let session = commit.session;
    let head: Option<HeadRow> = fetch(round, &keys::head(session))?;
    let head = head.ok_or_else(|| damaged(&keys::head(session), "it is missing"))?;
    let name = stored.metadata.name.as_ref();
    let name = name.map(|name| keys::name(&stored.tenant, name));
    let external = stored.external_key.as_ref();
    let external = external.map(|key| keys::external_key(&stored.tenant, key));
    let own = [keys::session(session), keys::head(session)];
    let leads = name.into_iter().chain(external);
    let rows = indexes(stored, head.head.place.as_ref());
    for key in own.into_iter().chain(leads).chain(rows) {
        round.delete(key)?;
    }
    let left = DeletedSession {
        session,
        entries: head.head.entries,
    };
    round.put(keys::deleted(session), &left, Before::Absent)?;
    seal::audit(round, Series::Session, &commit.audit)?;
    bindings(round, &commit.bindings)
}
