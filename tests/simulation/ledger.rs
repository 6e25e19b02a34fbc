//! What anybody was told of sessions by the fleet, against what is stored and what was told before (C39,
//! C40, C46, C47).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;

use crate::books::Books;
use crate::executor::lock;
use crate::log::Log;

/// The ledger. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Ledger {
    log: Log,
    books: Books,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// Every session at every revision that anybody was told.
    told: BTreeMap<(SessionId, u64), SessionSummary>,
    known: Known,
    views: BTreeMap<String, Option<View>>,
}

/// The sessions that a watcher knows.
pub(crate) type View = BTreeMap<SessionId, SessionSummary>;

/// What somebody knows who asks: the newest revisions that were told, and whose end was.
#[derive(Clone, Default)]
pub(crate) struct Known {
    pub(crate) revisions: BTreeMap<SessionId, (u64, u64)>,
    deleted: BTreeSet<SessionId>,
}

impl Ledger {
    pub(crate) fn new(log: Log, books: Books) -> Self {
        Self {
            log,
            books,
            inner: Arc::default(),
        }
    }

    /// What is known by now. Whoever asks from here on is told nothing older.
    pub(crate) fn known(&self) -> Known {
        lock(&self.inner).known.clone()
    }

    /// Somebody was told that a session is deleted.
    pub(crate) fn deleted(&self, session: SessionId) {
        lock(&self.inner).known.deleted.insert(session);
    }

    /// Somebody who knew this when he asked was told of a session.
    pub(crate) fn told(&self, session: &SessionSummary, known: &Known) {
        if let Err(problem) = self.judge(session, known) {
            self.log.wrong(format!("{problem}: {session:?}"));
        }
    }

    /// A call was answered with a session: as it is, or if the call is a repeat as that once left it.
    pub(crate) fn answered(&self, session: &SessionSummary, known: &Known) {
        if session.revision > 0 {
            return self.told(session, known);
        }
        if let Err(problem) = self.was(session, known) {
            self.log.wrong(format!("{problem}: {session:?}"));
        }
    }

    fn judge(&self, session: &SessionSummary, known: &Known) -> Result<(), String> {
        let (id, revision) = (session.id, session.revision);
        if revision == 0 {
            return Err("C3: only what a repeat is answered has no revision".to_owned());
        }
        let mut inner = lock(&self.inner);
        let first = inner.told.entry((id, revision));
        let first = first.or_insert_with(|| session.clone());
        if first != session {
            return Err(format!("C46: one revision, and before it was {first:?}"));
        }
        let newest = (revision, session.metadata_revision);
        let seen = inner.known.revisions.entry(id).or_insert(newest);
        *seen = (seen.0.max(newest.0), seen.1.max(newest.1));
        drop(inner);
        let before = known.revisions.get(&id).copied().unwrap_or((0, 0));
        if before.0 > newest.0 || before.1 > newest.1 {
            return Err(format!("C46: {before:?} was told before anybody asked"));
        }
        self.was(session, known)
    }

    /// It was so at some time, and the session is there.
    fn was(&self, session: &SessionSummary, known: &Known) -> Result<(), String> {
        let id = session.id;
        if known.deleted.contains(&id) {
            return Err("C61: it was deleted before anybody asked".to_owned());
        }
        let stored = self.books.metadata(id, session.metadata_revision);
        if stored.as_ref() != Some(&metadata(session)) {
            return Err(format!("C39, C40: its metadata are {stored:?}"));
        }
        if !self.books.worked(id, session.place.as_ref()) {
            return Err("C39, C45: it never worked there".to_owned());
        }
        Ok(())
    }

    /// What a faithful watcher knows at a bookmark; nothing while it is behind one.
    pub(crate) fn view(&self, who: &str, view: Option<View>) {
        lock(&self.inner).views.insert(who.to_owned(), view);
    }

    /// Who does not know what there is (C47).
    pub(crate) fn behind(&self, listed: &View) -> Option<String> {
        let rest = |view: &View| view.values().map(at_rest).collect::<Vec<_>>();
        let expected = rest(listed);
        let inner = lock(&self.inner);
        let mut views = inner.views.iter();
        let behind = views.find(|(_, view)| view.as_ref().map(rest).as_ref() != Some(&expected));
        behind.map(|(who, view)| format!("{who} knows {view:?}"))
    }
}

/// What holds of a session whoever shows it, from its channel or from its rows.
pub(crate) fn at_rest(session: &SessionSummary) -> SessionSummary {
    SessionSummary {
        since: None,
        revision: 0,
        ..session.clone()
    }
}

pub(crate) fn metadata(session: &SessionSummary) -> Metadata {
    Metadata {
        name: session.name.clone(),
        labels: session.labels.clone(),
        priority: session.priority,
        paused: session.paused,
        updated_at: session.updated_at,
        revision: session.metadata_revision,
    }
}
