//! Finding sessions by an index, and what is left of deleted ones.

use std::ops::Range;
use std::sync::Arc;

use ::sled::IVec;
use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::ids::{SessionId, SessionRef, TenantId};
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::ports::repository::{
    DeletedSession, FoundSession, ReadError, SessionPlace, SessionQuery,
};

use super::{PAGE, Page, Reader};
use crate::adapters::sled::convert::Address;
use crate::adapters::sled::frame::{self, damaged};
use crate::adapters::sled::inflight::settled_scan;
use crate::adapters::sled::keys::{self, Key};
use crate::adapters::sled::round::{decode, failed};

impl Reader {
    /// Sessions of an index term, in its order. One that has changed since its row was read is left
    /// out, and so is one that is damaged: it keeps nobody from finding the others.
    pub(in crate::adapters::sled) fn find(
        &self,
        query: &SessionQuery,
    ) -> Result<Vec<FoundSession>, ReadError> {
        let max = query.max.max(1);
        let mut range = searched(query);
        let mut found = Vec::new();
        while range.start < range.end {
            let (mut rows, rest) = self.part(&range, query.descending, max.min(PAGE))?;
            while let Some((key, value)) = take(&mut rows, query.descending) {
                match self.behind(query, &key, value) {
                    Ok(session) => found.extend(session),
                    Err(error @ ReadError::Damaged { .. }) => {
                        tracing::error!(%error, "a session cannot be listed");
                    }
                    Err(error) => return Err(error),
                }
                if found.len() == max {
                    return self.leased(found);
                }
            }
            range = rest;
        }
        self.leased(found)
    }

    /// Which of them a lease record names. There are as many records as sessions are at work: where those
    /// between the first and the last session are few, they are read at once.
    fn leased(&self, found: Vec<Arc<StoredSession>>) -> Result<Vec<FoundSession>, ReadError> {
        let ids = || found.iter().map(|session| session.record.id);
        let (Some(first), Some(last)) = (ids().min(), ids().max()) else {
            return Ok(Vec::new());
        };
        let range = keys::lease(first)..keys::after(&keys::lease(last));
        let (leases, rest) = self.part(&range, false, PAGE)?;
        let is_all = rest.start >= rest.end;
        let leased = |session: Arc<StoredSession>| {
            let id = session.record.id;
            let leased = if is_all {
                leases.contains_key(keys::lease(id).as_slice())
            } else {
                self.is_leased(id)?
            };
            Ok(FoundSession { session, leased })
        };
        found.into_iter().map(leased).collect()
    }

    /// The session that an index row leads to, if it still belongs there.
    fn behind(
        &self,
        query: &SessionQuery,
        key: &[u8],
        value: IVec,
    ) -> Result<Option<Arc<StoredSession>>, ReadError> {
        if !by_name(query) {
            let id = keys::found_session(key).ok_or_else(|| damaged(key, "it names no session"))?;
            let session = self.session(id)?;
            return Ok(session.filter(|session| query.term.has(session)));
        }
        let Some(payload) = frame::open(self, key, value)? else {
            return Ok(None);
        };
        let Address(id) = decode(key, &payload)?;
        let named = |session: &Arc<StoredSession>| {
            let name = session.record.metadata.name.as_ref();
            name.is_some_and(|name| keys::name(&query.tenant, name) == key)
        };
        Ok(self.session(id)?.filter(named))
    }

    /// The session behind a reference in a tenant, and whether a lease record names it.
    pub(in crate::adapters::sled) fn look_up(
        &self,
        tenant: &TenantId,
        session: &SessionRef,
    ) -> Result<Option<FoundSession>, ReadError> {
        let id = match session {
            // Its record says whose it is.
            SessionRef::Id(id) => Some(*id),
            _ => self.resolve(tenant, session)?,
        };
        let found = id.map(|id| self.session(id)).transpose()?.flatten();
        let mine = found.filter(|session| session.record.tenant == *tenant);
        mine.map(|session| {
            let leased = self.is_leased(session.record.id)?;
            Ok(FoundSession { session, leased })
        })
        .transpose()
    }

    /// Records of a range as they are at one moment, the first ones or the last ones; and the rest of
    /// the range. The committer waits for one such part at most.
    fn part(
        &self,
        range: &Range<Key>,
        descending: bool,
        max: usize,
    ) -> Result<(Page, Range<Key>), ReadError> {
        let held = self.inflight.hold();
        let mut seen = Page::new();
        let mut records = self.db.range(range.clone());
        let (mut read, mut rest) = (range.clone(), range.start.clone()..range.start.clone());
        loop {
            let record = if descending {
                records.next_back()
            } else {
                records.next()
            };
            let Some(record) = record else { break };
            #[cfg(test)]
            super::counted::one();
            let (key, value) = record.map_err(|error| failed(&range.start, &error))?;
            if seen.len() < max {
                seen.insert(key, value);
                continue;
            }
            if descending {
                read.start = keys::after(&key);
                rest = range.start.clone()..read.start.clone();
            } else {
                read.end = key.to_vec();
                rest = read.end.clone()..range.end.clone();
            }
            break;
        }
        let settled = settled_scan(b"", &read.start, Some(&read.end), seen, &held.replaced);
        Ok((settled, rest))
    }

    /// The first deleted session after one that is not erased yet, but for those of which that cannot be
    /// read.
    pub(in crate::adapters::sled) fn deleted(
        &self,
        after: Option<SessionId>,
    ) -> Result<Option<DeletedSession>, ReadError> {
        let mut range = keys::below(keys::deletions());
        if let Some(after) = after {
            range.start = keys::after(&keys::deleted(after));
        }
        while range.start < range.end {
            let (notes, rest) = self.part(&range, false, PAGE)?;
            for (key, value) in notes {
                let note = frame::open(self, &key, value)
                    .and_then(|payload| payload.map(|it| decode(&key, &it)).transpose());
                match note {
                    Ok(Some(deleted)) => return Ok(Some(deleted)),
                    Ok(None) => {}
                    Err(error @ ReadError::Damaged { .. }) => {
                        tracing::error!(%error, "a deleted session cannot be erased");
                    }
                    Err(error) => return Err(error),
                }
            }
            range = rest;
        }
        Ok(None)
    }

    /// What was done to a session's metadata, in order.
    pub(in crate::adapters::sled) fn metadata_audits(
        &self,
        session: SessionId,
    ) -> Result<Vec<AuditRecord>, ReadError> {
        self.audits_below(&keys::metadata_audits_of_session(session))
    }

    /// Audit records as they lie.
    pub(super) fn audits_below(&self, prefix: &[u8]) -> Result<Vec<AuditRecord>, ReadError> {
        let mut audits = Vec::new();
        self.scan(prefix, |key, value| {
            if let Some(payload) = frame::open(self, key, value)? {
                audits.push(decode(key, &payload)?);
            }
            Ok(())
        })?;
        Ok(audits)
    }
}

fn by_name(query: &SessionQuery) -> bool {
    matches!(query.term, StoredTerm::NamePrefix(_))
}

/// The next row in the order that is asked for.
fn take(rows: &mut Page, descending: bool) -> Option<(IVec, IVec)> {
    if descending {
        rows.pop_last()
    } else {
        rows.pop_first()
    }
}

/// The keys that a query has still to look at.
fn searched(query: &SessionQuery) -> Range<Key> {
    let prefix = keys::term(&query.tenant, &query.term);
    let last = match &query.after {
        Some(SessionPlace::Name(name)) if by_name(query) => keys::name(&query.tenant, name),
        Some(SessionPlace::Id(id)) if !by_name(query) => {
            keys::found(&query.tenant, &query.term, *id)
        }
        // A place in another order is none in this one.
        _ => return keys::below(prefix),
    };
    let mut range = keys::below(prefix);
    if query.descending {
        range.end = range.end.min(last);
    } else {
        range.start = range.start.max(keys::after(&last));
    }
    range
}

#[cfg(test)]
mod tests;
