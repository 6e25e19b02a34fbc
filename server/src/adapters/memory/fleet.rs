//! What the memory store keeps of the fleet: changes of metadata, deletions, and finding sessions.

use std::ops::Bound;
use std::sync::Arc;

use sessionplane_core::domain::audit::Series;
use sessionplane_core::domain::binding::Binding;
use sessionplane_core::domain::commit::{DeletionCommit, MetadataCommit};
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::ids::{SessionId, SessionRef, TenantId};
use sessionplane_core::domain::session::{SessionRecord, StoredSession};
use sessionplane_core::ports::repository::{
    DeletedSession, FoundSession, SessionPlace, SessionQuery,
};

use super::tables::Tables;

impl Tables {
    /// Keeps an accepted change of metadata.
    pub(super) fn apply_metadata(&mut self, commit: MetadataCommit) {
        let Some(stored) = self.sessions.get_mut(&commit.session) else {
            return;
        };
        let tenant = stored.record.tenant.clone();
        let before = std::mem::replace(&mut stored.record.metadata, commit.metadata.clone());
        if let Some(name) = before.name {
            self.names.remove(&(tenant.clone(), name));
        }
        if let Some(name) = commit.metadata.name {
            self.names.insert((tenant, name), commit.session);
        }
        self.seal(Series::Metadata, &commit.audit);
        let audits = self.metadata_audits.entry(commit.session).or_default();
        audits.push(commit.audit);
        self.bind(commit.bindings);
    }

    /// Keeps an accepted deletion: what the session held is erased later.
    pub(super) fn apply_deletion(&mut self, commit: DeletionCommit) {
        let Some(StoredSession { record, .. }) = self.sessions.remove(&commit.session) else {
            return;
        };
        let SessionRecord {
            tenant,
            external_key,
            metadata,
            ..
        } = record;
        if let Some(name) = metadata.name {
            self.names.remove(&(tenant.clone(), name));
        }
        if let Some(key) = external_key {
            self.external_keys.remove(&(tenant, key));
        }
        self.deleted.insert(commit.session);
        self.seal(Series::Session, &commit.audit);
        let audits = self.audits.entry(commit.session).or_default();
        audits.push(commit.audit);
        self.bind(commit.bindings);
    }

    fn bind(&mut self, bindings: Vec<Binding>) {
        let bindings = bindings.into_iter();
        self.bindings
            .extend(bindings.map(|binding| (binding.key.clone(), binding)));
    }

    pub(super) fn deleted(&self, after: Option<SessionId>) -> Option<DeletedSession> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let session = *self.deleted.range((from, Bound::Unbounded)).next()?;
        let entries = self.entries.get(&session).map_or(0, Vec::len) as u64;
        Some(DeletedSession { session, entries })
    }

    pub(super) fn erase(&mut self, session: SessionId, keep: u64, max: usize) -> bool {
        if !self.deleted.contains(&session) {
            return true;
        }
        let entries = self.entries.entry(session).or_default();
        let wanted = usize::try_from(keep).unwrap_or(usize::MAX);
        let least = entries.len().saturating_sub(max.max(1));
        entries.truncate(wanted.max(least));
        if !entries.is_empty() || keep > 0 {
            return false;
        }
        let runs = self.runs_of.remove(&session).unwrap_or_default();
        for run in &runs {
            self.runs.remove(run);
        }
        self.inputs.retain(|id, _| !runs.contains(&id.run));
        self.interactions.retain(|id, _| !runs.contains(&id.run));
        self.entries.remove(&session);
        self.deleted.remove(&session);
        true
    }

    pub(super) fn look_up(&self, tenant: &TenantId, session: &SessionRef) -> Option<FoundSession> {
        let id = self.resolve(tenant, session)?;
        Some(FoundSession {
            session: Arc::new(self.session(id)?),
            leased: self.is_leased(id),
        })
    }

    pub(super) fn find(&self, query: &SessionQuery) -> Vec<FoundSession> {
        let by_name = matches!(query.term, StoredTerm::NamePrefix(_));
        let place = |stored: &StoredSession| {
            if by_name {
                stored.record.metadata.name.clone().map(SessionPlace::Name)
            } else {
                Some(SessionPlace::Id(stored.record.id))
            }
        };
        // A place in another order is none in this one.
        let after = query.after.as_ref();
        let after = after.filter(|after| matches!(after, SessionPlace::Name(_)) == by_name);
        let of_tenant = |stored: &&StoredSession| stored.record.tenant == query.tenant;
        let of_term = |stored: &&StoredSession| query.term.has(stored);
        let found = self.sessions.values().filter(of_tenant).filter(of_term);
        let mut found: Vec<_> = found
            .filter_map(|stored| Some((place(stored)?, stored)))
            .filter(|(place, _)| match after {
                None => true,
                Some(after) if query.descending => place < after,
                Some(after) => place > after,
            })
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        if query.descending {
            found.reverse();
        }
        let found = found.into_iter().take(query.max.max(1));
        found
            .map(|(_, stored)| FoundSession {
                session: Arc::new(stored.clone()),
                leased: self.is_leased(stored.record.id),
            })
            .collect()
    }
}
