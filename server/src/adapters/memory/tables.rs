//! What the memory store keeps: maps of domain types, and how a commit changes them.
//!
//! The caller holds the lock around judging and applying, which makes the two one step.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sessionplane_core::domain::audit::{AuditRecord, Series};
use sessionplane_core::domain::binding::{Binding, BindingKey, BoundAnswer};
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{
    EntryId, ExternalKey, InputId, InteractionId, RunId, SessionId, SessionName, SessionRef,
    TenantId,
};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::domain::interaction::{Interaction, surplus};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::{SessionHead, SessionRecord, StoredSession};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::commit_rules::{CommitFacts, LeaseEffect};
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::{EntryRange, ReadError};

use super::chains::Linked;

/// Everything that survives a reopening, and the live leases, which do not.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) sessions: HashMap<SessionId, StoredSession>,
    pub(super) names: HashMap<(TenantId, SessionName), SessionId>,
    pub(super) external_keys: HashMap<(TenantId, ExternalKey), SessionId>,
    pub(super) entries: HashMap<SessionId, Vec<Entry>>,
    pub(super) runs: HashMap<RunId, RunRecord>,
    pub(super) runs_of: HashMap<SessionId, Vec<RunId>>,
    pub(super) inputs: BTreeMap<InputId, InputRecord>,
    pub(super) interactions: BTreeMap<InteractionId, Interaction>,
    pub(super) bindings: HashMap<BindingKey, Binding>,
    pub(super) audits: HashMap<SessionId, Vec<AuditRecord>>,
    leases: BTreeMap<SessionId, HeldLease>,
    live: HashMap<SessionId, LeaseToken>,
    /// What the audit trail says of metadata; its series is their revision.
    pub(super) metadata_audits: HashMap<SessionId, Vec<AuditRecord>>,
    /// Sessions that were deleted and are not erased yet.
    pub(super) deleted: BTreeSet<SessionId>,
    /// Chains of audit records, in the order of the port.
    pub(super) chains: BTreeMap<(usize, TenantId), Vec<Linked>>,
}

impl Tables {
    /// Keeps an accepted commit.
    pub(super) fn apply(&mut self, commit: Commit) {
        match LeaseEffect::of(&commit) {
            LeaseEffect::Take(lease) => {
                self.leases.insert(lease.session, lease);
                self.live.insert(lease.session, lease.token);
            }
            LeaseEffect::Keep => {}
            LeaseEffect::Free => {
                self.leases.remove(&commit.session);
                self.live.remove(&commit.session);
            }
        }
        let session = commit.session;
        if let Some(record) = commit.create {
            if let Some(name) = &record.metadata.name {
                self.names
                    .insert((record.tenant.clone(), name.clone()), session);
            }
            if let Some(key) = &record.external_key {
                self.external_keys
                    .insert((record.tenant.clone(), key.clone()), session);
            }
            let head = commit.head;
            self.sessions
                .insert(session, StoredSession { record, head });
        } else if let Some(stored) = self.sessions.get_mut(&session) {
            stored.head = commit.head;
        }
        self.entries
            .entry(session)
            .or_default()
            .extend(commit.entries);
        for audit in commit.audits {
            self.seal(Series::Session, &audit);
            self.audits.entry(session).or_default().push(audit);
        }
        for run in commit.runs {
            if self.runs.insert(run.id, run.clone()).is_none() {
                self.runs_of.entry(session).or_default().push(run.id);
            }
        }
        self.inputs
            .extend(commit.inputs.into_iter().map(|input| (input.id, input)));
        let asked = commit.interactions.into_iter();
        self.interactions.extend(asked.map(|it| (it.id, it)));
        let bindings = commit.bindings.into_iter();
        self.bindings
            .extend(bindings.map(|binding| (binding.key.clone(), binding)));
    }

    pub(super) fn session(&self, id: SessionId) -> Option<StoredSession> {
        self.sessions.get(&id).cloned()
    }

    pub(super) fn resolve(&self, tenant: &TenantId, session: &SessionRef) -> Option<SessionId> {
        match session {
            SessionRef::Id(id) => self
                .sessions
                .get(id)
                .filter(|stored| stored.record.tenant == *tenant)
                .map(|stored| stored.record.id),
            SessionRef::Name(name) => self.names.get(&(tenant.clone(), name.clone())).copied(),
            SessionRef::ExternalKey(key) => self
                .external_keys
                .get(&(tenant.clone(), key.clone()))
                .copied(),
        }
    }

    pub(super) fn entries(&self, session: SessionId, range: EntryRange) -> Vec<Entry> {
        let mut page: Vec<Entry> = Vec::new();
        let mut bytes = 0;
        let stored = self.entries.get(&session).map_or(&[][..], Vec::as_slice);
        let after = usize::try_from(range.after).unwrap_or(usize::MAX);
        let wanted = stored
            .get(after..)
            .unwrap_or_default()
            .iter()
            .take_while(|entry| entry.id.seq <= range.up_to);
        for entry in wanted {
            if !range.admits(page.len(), bytes, entry.weight()) {
                break;
            }
            bytes += entry.weight();
            page.push(entry.clone());
        }
        page
    }

    pub(super) fn run(&self, id: RunId) -> Option<RunRecord> {
        self.runs.get(&id).cloned()
    }

    pub(super) fn runs_of(&self, session: SessionId) -> Vec<RunId> {
        self.runs_of.get(&session).cloned().unwrap_or_default()
    }

    pub(super) fn entry(&self, id: EntryId) -> Option<Entry> {
        let at = usize::try_from(id.seq.checked_sub(1)?).ok()?;
        self.entries.get(&id.session)?.get(at).cloned()
    }

    /// A session's runs, newest first: at most `max` before `before`, or of all.
    pub(super) fn runs(
        &self,
        session: SessionId,
        before: Option<RunId>,
        max: usize,
    ) -> Vec<RunRecord> {
        let all = self.runs_of.get(&session).map_or(&[][..], Vec::as_slice);
        let end = match before {
            None => all.len(),
            // Unknown: nothing is before it.
            Some(run) => all.iter().position(|it| *it == run).unwrap_or(0),
        };
        let newest_first = all[..end].iter().rev().take(max);
        newest_first.filter_map(|run| self.run(*run)).collect()
    }

    pub(super) fn interactions(&self, run: RunId) -> Vec<Interaction> {
        let all = InteractionId { run, ordinal: 0 }..=InteractionId {
            run,
            ordinal: u32::MAX,
        };
        let mut asked: BTreeMap<_, _> = self
            .interactions
            .range(all)
            .map(|(id, interaction)| (*id, interaction.clone()))
            .collect();
        while let Some(id) = surplus(&asked) {
            asked.remove(&id);
        }
        asked.into_values().collect()
    }

    pub(super) fn input(&self, id: InputId) -> Option<InputRecord> {
        self.inputs.get(&id).cloned()
    }

    pub(super) fn inputs(&self, run: RunId) -> Vec<InputRecord> {
        let all = InputId { run, ordinal: 0 }..=InputId {
            run,
            ordinal: u32::MAX,
        };
        self.inputs
            .range(all)
            .map(|(_, input)| input.clone())
            .collect()
    }

    pub(super) fn binding(&self, key: &BindingKey) -> Option<Binding> {
        let mut binding = self.bindings.get(key).cloned()?;
        if let BoundAnswer::Session(answer) = &mut binding.answer
            && !self.sessions.contains_key(&binding.session)
        {
            *answer = None;
        }
        Some(binding)
    }

    pub(super) fn audits(&self, session: SessionId) -> Vec<AuditRecord> {
        self.audits.get(&session).cloned().unwrap_or_default()
    }

    pub(super) fn metadata_audits(&self, session: SessionId) -> Vec<AuditRecord> {
        let audits = self.metadata_audits.get(&session);
        audits.cloned().unwrap_or_default()
    }

    pub(super) fn sweep(&mut self, before: Timestamp, max: usize) -> usize {
        let settled_before = |run: Option<RunId>| {
            // Without a run nothing but its age keeps it.
            let Some(run) = run else { return true };
            // One that is no more was erased with its session.
            let Some(run) = self.runs.get(&run) else {
                return true;
            };
            let settled = run.settled.as_ref();
            settled.is_some_and(|settled| settled.at < before)
        };
        let mut old: Vec<(Timestamp, BindingKey)> = self
            .bindings
            .values()
            .filter(|binding| binding.at < before && settled_before(binding.answer.run()))
            .map(|binding| (binding.at, binding.key.clone()))
            .collect();
        old.sort_by_key(|(at, _)| *at);
        old.truncate(max);
        for (_, key) in &old {
            self.bindings.remove(key);
        }
        old.len()
    }

    pub(super) fn holder(&self, session: SessionId) -> Option<LeaseToken> {
        self.live.get(&session).copied()
    }

    pub(super) fn revoke(&mut self, session: SessionId) {
        self.live.remove(&session);
    }

    /// All former leases are void once a store is opened anew.
    pub(super) fn revoke_all(&mut self) {
        self.live.clear();
    }

    pub(super) fn orphaned(&self) -> Vec<HeldLease> {
        self.leases
            .values()
            .filter(|lease| !self.live.contains_key(&lease.session))
            .copied()
            .collect()
    }

    pub(super) fn is_leased(&self, session: SessionId) -> bool {
        self.leases.contains_key(&session)
    }

    pub(super) fn cut(&self, session: SessionId) -> Option<HeldLease> {
        let lease = self.leases.get(&session).copied();
        lease.filter(|lease| !self.live.contains_key(&lease.session))
    }
}

impl CommitFacts for Tables {
    fn record(&self, session: SessionId) -> Result<Option<SessionRecord>, ReadError> {
        Ok(self.session(session).map(|stored| stored.record))
    }

    fn child(&self, session: SessionId) -> Result<Option<SessionId>, ReadError> {
        let of = |stored: &&StoredSession| {
            let lineage = stored.record.lineage;
            lineage.is_some_and(|lineage| lineage.parent == session)
        };
        let child = self.sessions.values().find(of);
        Ok(child.map(|stored| stored.record.id))
    }

    fn head(&self, session: SessionId) -> Result<Option<SessionHead>, ReadError> {
        Ok(self
            .sessions
            .get(&session)
            .map(|stored| stored.head.clone()))
    }

    fn live(&self, session: SessionId) -> Option<LeaseToken> {
        self.holder(session)
    }

    fn leased(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError> {
        Ok(self.leases.get(&session).copied())
    }

    fn named(&self, tenant: &TenantId, name: &SessionName) -> Result<bool, ReadError> {
        Ok(self.names.contains_key(&(tenant.clone(), name.clone())))
    }

    fn keyed(&self, tenant: &TenantId, key: &ExternalKey) -> Result<bool, ReadError> {
        Ok(self
            .external_keys
            .contains_key(&(tenant.clone(), key.clone())))
    }

    fn bound(&self, key: &BindingKey) -> Result<bool, ReadError> {
        Ok(self.bindings.contains_key(key))
    }
}
