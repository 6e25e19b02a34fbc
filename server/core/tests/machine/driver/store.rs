//! A model of the store: judges a commit as every store does, and applies it whole or not at all.

use std::collections::BTreeMap;

use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::binding::{Binding, BindingKey};
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::ids::{
    EntryId, ExternalKey, InputId, InteractionId, RunId, SessionId, SessionName, TenantId,
};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::lease::{Holder, LeaseToken};
use sessionplane_core::domain::lifecycle::{CutRun, NavigationTarget};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::{SessionHead, SessionRecord, StoredSession};
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::ports::commit_rules::{self, CommitFacts, LeaseEffect};
use sessionplane_core::ports::lease_store::HeldLease;
use sessionplane_core::ports::repository::{CommitError, ReadError};

/// What a dead process held the session for.
pub(crate) enum Cut {
    Run(Box<CutRun>),
    /// A compaction.
    Boundary(Box<StoredSession>),
}

/// The rows of one session.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Store {
    pub(crate) session: Option<StoredSession>,
    /// Who holds the lease, and what for.
    pub(crate) holder: Option<HeldLease>,
    /// The token of the writer that lives: the one thing here that is not a row.
    live: Option<LeaseToken>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) runs: BTreeMap<RunId, RunRecord>,
    pub(crate) inputs: BTreeMap<InputId, InputRecord>,
    pub(crate) interactions: BTreeMap<InteractionId, Interaction>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) audits: Vec<AuditRecord>,
}

impl CommitFacts for Store {
    fn head(&self, session: SessionId) -> Result<Option<SessionHead>, ReadError> {
        let ours = self.session.as_ref();
        let ours = ours.filter(|stored| stored.record.id == session);
        Ok(ours.map(|stored| stored.head.clone()))
    }

    fn record(&self, session: SessionId) -> Result<Option<SessionRecord>, ReadError> {
        let ours = self.session.as_ref();
        let ours = ours.filter(|stored| stored.record.id == session);
        Ok(ours.map(|stored| stored.record.clone()))
    }

    fn child(&self, _: SessionId) -> Result<Option<SessionId>, ReadError> {
        Ok(None)
    }

    fn live(&self, _: SessionId) -> Option<LeaseToken> {
        self.live
    }

    fn leased(&self, session: SessionId) -> Result<Option<HeldLease>, ReadError> {
        Ok(self.holder.filter(|lease| lease.session == session))
    }

    fn named(&self, tenant: &TenantId, name: &SessionName) -> Result<bool, ReadError> {
        let is = |it: &StoredSession| {
            it.record.tenant == *tenant && it.record.metadata.name.as_ref() == Some(name)
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
        let asked = commit.interactions.iter();
        self.interactions
            .extend(asked.map(|asked| (asked.id, asked.clone())));
    }

    /// What an app layer reads of an entry before somebody moves the leaf there.
    pub(crate) fn target(&self, id: EntryId) -> Option<NavigationTarget> {
        let at = |seq: u64| self.entries.iter().find(|entry| entry.id.seq == seq);
        let entry = at(id.seq).filter(|entry| entry.id == id)?;
        let chosen = entry.path.settings.and_then(at).map(|entry| &entry.body);
        Some(NavigationTarget {
            entry: id,
            path: entry.path,
            chosen: match chosen {
                Some(EntryBody::Settings { chosen }) => chosen.clone(),
                _ => SettingsOverride::default(),
            },
        })
    }

    /// What nobody drives any more, once the process that drove it is gone.
    pub(crate) fn cut(&self) -> Option<Cut> {
        let session = self.session.clone()?;
        let run = match self.holder?.holder {
            Holder::Boundary => return Some(Cut::Boundary(Box::new(session))),
            Holder::Run(run) => run,
        };
        let inputs = self.inputs.values().filter(|input| input.id.run == run);
        let asked = self.interactions.values().filter(|it| it.id.run == run);
        Some(Cut::Run(Box::new(CutRun {
            session,
            run: self.runs.get(&run)?.clone(),
            inputs: inputs.cloned().collect(),
            interactions: asked.cloned().collect(),
        })))
    }
}
