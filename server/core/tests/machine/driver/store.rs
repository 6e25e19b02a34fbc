//! A model of the store: judges a commit as every store does, and applies it whole or not at all.

use std::collections::BTreeMap;

use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::binding::{Binding, BindingKey};
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{
    ExternalKey, InputId, RunId, SessionId, SessionName, TenantId,
};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::CutRun;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::{SessionHead, StoredSession};
use sessionplane_core::ports::commit_rules::{self, CommitFacts, LeaseEffect};
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::{CommitError, ReadError};

/// The rows of one session.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Store {
    pub(crate) session: Option<StoredSession>,
    /// Who holds the lease, and for which run.
    pub(crate) holder: Option<HeldLease>,
    /// The token of the writer that lives: the one thing here that is not a row.
    live: Option<LeaseToken>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) runs: BTreeMap<RunId, RunRecord>,
    pub(crate) inputs: BTreeMap<InputId, InputRecord>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) audits: Vec<AuditRecord>,
}

impl CommitFacts for Store {
    fn head(&self, session: SessionId) -> Result<Option<SessionHead>, ReadError> {
        let ours = self.session.as_ref();
        let ours = ours.filter(|stored| stored.record.id == session);
        Ok(ours.map(|stored| stored.head.clone()))
    }

    fn live(&self, _: SessionId) -> Option<LeaseToken> {
        self.live
    }

    fn leased(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError> {
        Ok(self.holder.filter(|lease| lease.session == session))
    }

    fn named(&self, tenant: &TenantId, name: &SessionName) -> Result<bool, ReadError> {
        let is = |it: &StoredSession| {
            it.record.tenant == *tenant && it.record.name.as_ref() == Some(name)
        };
        Ok(self.session.as_ref().is_some_and(is))
    }

    fn keyed(&self, tenant: &TenantId, key: &ExternalKey) -> Result<bool, ReadError> {
        let is = |it: &StoredSession| {
            it.record.tenant == *tenant && it.record.external_key.as_ref() == Some(key)
        };
        Ok(self.session.as_ref().is_some_and(is))
    }

    fn bound(&self, key: &BindingKey) -> Result<bool, ReadError> {
        Ok(self.bindings.iter().any(|binding| binding.key == *key))
    }
}

impl Store {
    pub(crate) fn apply(&mut self, commit: &Commit) -> Result<(), CommitError> {
        commit_rules::judge(commit, self)?;
        self.write(commit);
        Ok(())
    }

    /// The process is gone, and with it its right to write.
    pub(crate) fn reopen(&mut self) {
        self.live = None;
    }

    fn write(&mut self, commit: &Commit) {
        let record = match (&self.session, &commit.create) {
            (Some(session), _) => session.record.clone(),
            (None, Some(record)) => record.clone(),
            (None, None) => return,
        };
        let head = commit.head.clone();
        self.session = Some(StoredSession { record, head });
        match LeaseEffect::of(commit) {
            LeaseEffect::Take(lease) => {
                self.holder = Some(lease);
                self.live = Some(lease.token);
            }
            LeaseEffect::Keep => {}
            LeaseEffect::Free => {
                self.holder = None;
                self.live = None;
            }
        }
        self.entries.extend(commit.entries.iter().cloned());
        self.audits.extend(commit.audits.iter().cloned());
        self.bindings.extend(commit.bindings.iter().cloned());
        self.runs
            .extend(commit.runs.iter().map(|run| (run.id, run.clone())));
        self.inputs
            .extend(commit.inputs.iter().map(|input| (input.id, input.clone())));
    }

    /// The run that nobody drives any more, once the process that drove it is gone.
    pub(crate) fn cut(&self) -> Option<CutRun> {
        let run = self.holder?.run;
        let inputs = self.inputs.values().filter(|input| input.id.run == run);
        Some(CutRun {
            session: self.session.clone()?,
            run: self.runs.get(&run)?.clone(),
            inputs: inputs.cloned().collect(),
        })
    }
}
