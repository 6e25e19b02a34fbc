//! What is durable of the fleet: metadata, ends of sessions; and what is known of their pauses.

use std::collections::BTreeSet;

use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::AuditAction;
use sessionplane_core::domain::commit::{Commit, DeletionCommit, MetadataCommit};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{SessionId, SessionName};
use sessionplane_core::domain::place::Place;
use sessionplane_core::domain::time::Timestamp;

use super::{Books, Inner};

/// Whether a session is known to be paused.
#[derive(Default)]
pub(super) struct Hold {
    since: Option<Timestamp>,
    /// How often somebody began to resume it, and how many of them do not know yet what came of it.
    resumes: u64,
    under_way: u64,
}

impl Hold {
    /// C15: nothing that was decided after the pause was known takes the session.
    pub(super) fn admits(&self, commit: &Commit) -> Result<(), String> {
        let at = commit.audits.first().map(|it| it.at);
        match self.since {
            Some(_) if at > self.since => Err(format!("C15: it is paused since {:?}", self.since)),
            _ => Ok(()),
        }
    }
}

impl Books {
    /// Metadata changed.
    pub(crate) fn changed(&self, commit: &MetadataCommit) {
        let mut inner = self.read();
        let judged = inner.change(commit);
        drop(inner);
        if let Err(problem) = judged {
            self.log.wrong(format!("{problem}: {commit:?}"));
        }
    }

    /// A session is no more.
    pub(crate) fn deleted(&self, commit: &DeletionCommit) {
        let mut inner = self.read();
        inner.names.retain(|_, id| *id != commit.session);
        let first = inner.deleted.insert(commit.session);
        drop(inner);
        self.ensure(first, || format!("C61: it was deleted twice: {commit:?}"));
    }

    /// The metadata that a session has at a revision, once they are on the disk: whoever reads them
    /// may do so before their writer hears of it.
    pub(crate) fn metadata(&self, session: SessionId, revision: u64) -> Option<Metadata> {
        let inner = self.read();
        inner.metadata.get(&(session, revision)).cloned()
    }

    /// Where a session works.
    pub(crate) fn place(&self, session: SessionId) -> Option<Place> {
        let inner = self.read();
        inner.sessions.get(&session)?.head.place.clone()
    }

    /// Whether a session ever worked there.
    pub(crate) fn worked(&self, session: SessionId, place: Option<&Place>) -> bool {
        self.read().places.contains(&(session, place.cloned()))
    }

    /// Somebody begins to pause a session: how often it was resumed by then.
    pub(crate) fn pausing(&self, session: SessionId) -> u64 {
        let mut inner = self.read();
        inner.holds.entry(session).or_default().resumes
    }

    /// He was told that it is paused. If nobody has begun to resume it since, it is held from now on.
    pub(crate) fn paused(&self, session: SessionId, resumes: u64, now: Timestamp) {
        let mut inner = self.read();
        let hold = inner.holds.entry(session).or_default();
        if (hold.resumes, hold.under_way) == (resumes, 0) {
            hold.since = hold.since.or(Some(now));
        }
    }

    /// Somebody begins to resume it: from now on nobody knows.
    pub(crate) fn resuming(&self, session: SessionId) {
        let mut inner = self.read();
        let hold = inner.holds.entry(session).or_default();
        hold.since = None;
        hold.resumes += 1;
        hold.under_way += 1;
    }

    /// He knows what came of it. Who does not may resume it at any time.
    pub(crate) fn resumed(&self, session: SessionId) {
        let mut inner = self.read();
        inner.holds.entry(session).or_default().under_way -= 1;
    }
}

impl Inner {
    /// C40: each change follows the one before it; C4: a name is one session's.
    fn change(&mut self, commit: &MetadataCommit) -> Result<(), String> {
        let (id, revision) = (commit.session, commit.metadata.revision);
        let before = self.metadata.get(&(id, commit.expected));
        if before.is_none() || self.deleted.contains(&id) || revision != commit.expected + 1 {
            return Err("C40: it follows nothing".to_owned());
        }
        self.names.retain(|_, named| *named != id);
        if let Some(name) = &commit.metadata.name
            && self.names.insert(name.clone(), id).is_some()
        {
            return Err(format!("C4: {name} is another session's"));
        }
        let metadata = commit.metadata.clone();
        if self.metadata.insert((id, revision), metadata).is_some() {
            return Err("C40: a change was overwritten".to_owned());
        }
        Ok(())
    }

    /// Sessions that are there, whoever knows of them.
    pub(crate) fn alive(&self) -> BTreeSet<SessionId> {
        let ids = self.sessions.keys().copied();
        ids.filter(|id| !self.deleted.contains(id)).collect()
    }

    /// The name of a session.
    pub(crate) fn name(&self, session: SessionId) -> Option<&SessionName> {
        let mut names = self.names.iter();
        names.find(|(_, id)| **id == session).map(|(name, _)| name)
    }

    /// What became of sessions: how many were deleted, how often one was changed, renamed,
    /// moved, and looked at anew.
    pub(crate) fn fates(&self) -> [(&'static str, u64); 5] {
        let did = |action| {
            let deeds = self.sessions.values().flat_map(|it| &it.deeds);
            deeds.filter(|deed| deed.action == action).count() as u64
        };
        let changed = self.metadata.keys().filter(|(_, revision)| *revision > 1);
        let renamed = self.metadata.iter().filter(|((id, revision), now)| {
            let before = self.metadata.get(&(*id, revision - 1));
            before.is_some_and(|before| before.name != now.name)
        });
        [
            ("session: deleted", self.deleted.len() as u64),
            ("session: changed", changed.count() as u64),
            ("session: renamed", renamed.count() as u64),
            (
                "session: moved",
                did(AuditAction::Call(Action::ChangeDirectory)),
            ),
            ("session: noted", did(AuditAction::Checkout)),
        ]
    }
}
