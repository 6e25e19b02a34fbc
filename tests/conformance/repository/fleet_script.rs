//! What happens to a session beside its runs: its metadata change, it moves, it ends.

use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::binding::{Binding, BindingKey, BoundAnswer, SessionAnswer};
use sessionplane_core::domain::commit::{Commit, DeletionCommit, MetadataCommit};
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels};
use sessionplane_core::domain::fleet::metadata::{LabelsChange, MetadataChange};
use sessionplane_core::domain::ids::{SessionId, SessionName};
use sessionplane_core::domain::lease::{Holder, LeaseClause, LeaseToken};
use sessionplane_core::domain::place::{Directory, Place};
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::domain::session::{Lineage, StoredSession};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::CommitError;

use super::Store;
use super::script::Script;

/// Labels from words.
pub(crate) fn labels_of(labels: &[(&str, &str)]) -> Labels {
    let label = |(key, value): &(&str, &str)| {
        let key = LabelKey::parse(key).unwrap();
        (key, LabelValue::parse(value).unwrap())
    };
    Labels::of(labels.iter().map(label)).unwrap()
}

fn place(workspace: &str) -> Place {
    Place {
        workspace: workspace.parse().unwrap(),
        directory: Directory::root(),
    }
}

impl Script {
    pub(crate) fn labelled(mut self, labels: &[(&str, &str)]) -> Self {
        self.record.metadata.labels = labels_of(labels);
        self
    }

    pub(crate) fn of_agent(mut self, agent: &str) -> Self {
        self.record.agent = agent.parse().unwrap();
        self
    }

    pub(crate) fn child_of(mut self, parent: SessionId) -> Self {
        self.record.lineage = Some(Lineage {
            parent,
            entry: None,
        });
        self
    }

    /// It works in that workspace from the beginning.
    pub(crate) fn placed(mut self, workspace: &str) -> Self {
        self.head.place = Some(place(workspace));
        self
    }

    /// Changes metadata.
    pub(crate) fn change(&self, change: &MetadataChange) -> MetadataCommit {
        let before = &self.record.metadata;
        let now = Timestamp::from_millis(self.now);
        MetadataCommit {
            session: self.id(),
            expected: before.revision,
            metadata: before.changed(change, now).unwrap(),
            bindings: Vec::new(),
            audit: self.audit(before.revision + 1, Action::Update),
        }
    }

    /// Takes another name, or none.
    pub(crate) fn rename(&self, name: Option<&str>) -> MetadataCommit {
        let name = name.map(|name| SessionName::parse(name).unwrap());
        self.change(&MetadataChange {
            name: Some(name),
            ..MetadataChange::default()
        })
    }

    /// Takes other labels in place of all that it has.
    pub(crate) fn relabel(&self, labels: &[(&str, &str)]) -> MetadataCommit {
        self.change(&MetadataChange {
            labels: Some(LabelsChange::Replace(labels_of(labels))),
            ..MetadataChange::default()
        })
    }

    /// Is held, or goes on.
    pub(crate) fn pause(&self, paused: bool) -> MetadataCommit {
        self.change(&MetadataChange {
            paused: Some(paused),
            ..MetadataChange::default()
        })
    }

    /// Commits a change of metadata and goes on.
    pub(crate) async fn set(
        &mut self,
        store: &(impl Store + ?Sized),
        commit: MetadataCommit,
    ) -> Result<(), CommitError> {
        store.commit_metadata(commit.clone()).await?;
        self.record.metadata = commit.metadata;
        self.now += 1;
        Ok(())
    }

    /// A change between runs: the session moves to another workspace, or to none.
    pub(crate) fn go_to(&self, token: LeaseToken, workspace: Option<&str>) -> Commit {
        let mut commit = self.commit(LeaseClause::Recover(token), Holder::Boundary, Vec::new());
        commit.head.place = workspace.map(place);
        commit
    }

    /// Ends the session.
    pub(crate) fn delete(&self, token: LeaseToken) -> DeletionCommit {
        DeletionCommit {
            session: self.id(),
            token,
            expected_entries: self.head.entries,
            expected_audits: self.head.audits,
            expected_metadata: self.record.metadata.revision,
            bindings: Vec::new(),
            audit: self.audit(self.head.audits + 1, Action::Delete),
        }
    }

    /// As the store holds it.
    pub(crate) fn stored(&self) -> StoredSession {
        StoredSession {
            record: self.record.clone(),
            head: self.head.clone(),
        }
    }

    /// Creates the session with a run that is over at once.
    pub(crate) async fn create(&mut self, store: &(impl Store + ?Sized)) {
        let admit = self.admit(store.mint().await.unwrap(), "go");
        self.write(store, admit).await.unwrap();
        let settle = self.settle();
        self.write(store, settle).await.unwrap();
    }

    /// Binds a request id to a change of the session, and to what that decided.
    pub(crate) fn decided(&self, key: BindingKey, answer: &SessionAnswer) -> Vec<Binding> {
        let mut bound = self.bound(key);
        bound[0].answer = BoundAnswer::Session(Some(Box::new(answer.clone())));
        bound
    }

    /// Binds a request id to what is no run.
    pub(crate) fn bound(&self, key: BindingKey) -> Vec<Binding> {
        vec![Binding {
            key,
            session: self.id(),
            digest: Digest([9; 32]),
            answer: BoundAnswer::Dispatched {
                run: None,
                input: None,
            },
            at: Timestamp::from_millis(self.now),
        }]
    }
}
