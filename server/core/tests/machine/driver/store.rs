//! A model of the store: checks a commit as the real one must, and applies it whole or not at all.

use std::collections::BTreeMap;

use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::binding::Binding;
use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::ids::{InputId, RunId};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::domain::lease::{LeaseClause, LeaseToken};
use sessionplane_core::domain::lifecycle::CutRun;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::ports::repository::CommitError;

/// The rows of one session.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Store {
    pub(crate) session: Option<StoredSession>,
    /// Who holds the lease, and for which run.
    pub(crate) holder: Option<(LeaseToken, RunId)>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) runs: BTreeMap<RunId, RunRecord>,
    pub(crate) inputs: BTreeMap<InputId, InputRecord>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) audits: Vec<AuditRecord>,
}

impl Store {
    pub(crate) fn apply(&mut self, commit: &Commit) -> Result<(), CommitError> {
        self.check_lease(commit.lease)?;
        let (entries, audits) = (self.entries.len() as u64, self.audits.len() as u64);
        if (commit.expected_entries, commit.expected_audits) != (entries, audits) {
            return Err(CommitError::Conflict { entries, audits });
        }
        match (&self.session, &commit.create) {
            (None, None) => return Err(CommitError::NoSuchSession),
            (Some(_), Some(_)) => return Err(CommitError::AlreadyExists),
            _ => {}
        }
        let bound = |binding: &Binding| self.bindings.iter().any(|old| old.key == binding.key);
        if commit.bindings.iter().any(bound) {
            return Err(CommitError::AlreadyBound);
        }
        self.write(commit);
        Ok(())
    }

    fn check_lease(&self, clause: LeaseClause) -> Result<(), CommitError> {
        let newest = self.session.as_ref().map(|session| session.head.token);
        let holder = self.holder.map(|(token, _)| token);
        let (token, grows) = (
            clause.token(),
            newest.is_none_or(|newest| clause.token() > newest),
        );
        let may = match clause {
            LeaseClause::Acquire(_) => holder.is_none() && grows,
            LeaseClause::Hold(_) | LeaseClause::Release(_) => holder == Some(token),
            LeaseClause::Recover(_) => grows,
        };
        may.then_some(())
            .ok_or(CommitError::Fenced { current: newest })
    }

    fn write(&mut self, commit: &Commit) {
        let record = match (&self.session, &commit.create) {
            (Some(session), _) => session.record.clone(),
            (None, Some(record)) => record.clone(),
            (None, None) => return,
        };
        let head = commit.head.clone();
        self.session = Some(StoredSession { record, head });
        self.holder = match commit.lease {
            LeaseClause::Acquire(token) | LeaseClause::Hold(token) => Some((token, commit.run)),
            LeaseClause::Release(_) | LeaseClause::Recover(_) => None,
        };
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
        let (_, run) = self.holder?;
        let inputs = self.inputs.values().filter(|input| input.id.run == run);
        Some(CutRun {
            session: self.session.clone()?,
            run: self.runs.get(&run)?.clone(),
            inputs: inputs.cloned().collect(),
        })
    }
}
