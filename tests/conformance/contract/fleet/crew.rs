//! What a person or a program does with many sessions, with a deadline on every wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use sessionplane_core::contract::fleet::{
    CreateSession, DeleteAnswer, DeleteSession, Fleet, InteractionPage, ListInteractions,
    ListSessions, SessionOrder, SessionPage, SessionWatchItem, UpdateSession, WatchSessions,
};
use sessionplane_core::contract::{CallOptions, ResultStream};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels};
use sessionplane_core::domain::fleet::metadata::{LabelsChange, MetadataChange};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{SessionId, SessionName, SessionRef};

use super::super::desk::{Desk, named, with_id, within};
use super::{FleetWorld, FleetWorlds};
use crate::suite::world::quick;

/// A fleet, and somebody who works with it.
pub(crate) struct Crew {
    pub(crate) world: Arc<dyn FleetWorld>,
}

pub(crate) fn name(text: &str) -> SessionName {
    SessionName::parse(text).expect("a name")
}

pub(crate) fn label(text: &str) -> (LabelKey, LabelValue) {
    let (key, value) = text.split_once('=').expect("key=value");
    let key = LabelKey::parse(key).expect("a key");
    (key, LabelValue::parse(value).expect("a value"))
}

pub(crate) fn labels(texts: &[&str]) -> Labels {
    Labels::of(texts.iter().map(|text| label(text))).expect("few labels")
}

/// A session of that name.
pub(crate) fn new(text: &str) -> CreateSession {
    CreateSession {
        name: Some(name(text)),
        ..CreateSession::default()
    }
}

/// A change of the name alone.
pub(crate) fn rename(to: &str) -> MetadataChange {
    MetadataChange {
        name: Some(Some(name(to))),
        ..MetadataChange::default()
    }
}

/// A change of one label.
pub(crate) fn relabel(text: &str) -> MetadataChange {
    let (key, value) = label(text);
    MetadataChange {
        labels: Some(LabelsChange::Merge(vec![(key, Some(value))])),
        ..MetadataChange::default()
    }
}

impl Crew {
    pub(crate) async fn new(worlds: &dyn FleetWorlds) -> Self {
        let world = worlds.make_fleet(quick()).await;
        Self { world }
    }

    pub(crate) fn fleet(&self) -> Arc<dyn Fleet> {
        self.world.fleet()
    }

    /// Who works at one of the sessions.
    pub(crate) fn desk(&self, name: &str) -> Desk {
        Desk::new(&self.world.clone().as_world(), name)
    }

    pub(crate) async fn try_create(
        &self,
        request: CreateSession,
        id: Option<&str>,
    ) -> Result<SessionSummary, CallError> {
        within("create", self.fleet().create_session(request, with_id(id))).await
    }

    pub(crate) async fn create(&self, request: CreateSession) -> SessionSummary {
        let created = self.try_create(request, None).await;
        created.unwrap_or_else(|error| panic!("create: {error:?}"))
    }

    pub(crate) async fn try_get(&self, session: SessionRef) -> Result<SessionSummary, CallError> {
        let get = self.fleet();
        within("get", get.get_session(session, CallOptions::default())).await
    }

    pub(crate) async fn get(&self, name: &str) -> SessionSummary {
        let got = self.try_get(named(name)).await;
        got.unwrap_or_else(|error| panic!("get {name}: {error:?}"))
    }

    pub(crate) async fn try_update(
        &self,
        session: &str,
        change: MetadataChange,
        etag: Option<u64>,
        id: Option<&str>,
    ) -> Result<SessionSummary, CallError> {
        let request = UpdateSession {
            session: named(session),
            change,
            etag,
        };
        within("update", self.fleet().update_session(request, with_id(id))).await
    }

    pub(crate) async fn update(&self, session: &str, change: MetadataChange) -> SessionSummary {
        let updated = self.try_update(session, change, None, None).await;
        updated.unwrap_or_else(|error| panic!("update {session}: {error:?}"))
    }

    pub(crate) async fn pause(&self, session: &str, paused: bool) -> SessionSummary {
        let (fleet, options) = (self.fleet(), CallOptions::default());
        let held = if paused {
            within("pause", fleet.pause_session(named(session), options)).await
        } else {
            within("resume", fleet.resume_session(named(session), options)).await
        };
        held.unwrap_or_else(|error| panic!("pause {session}: {error:?}"))
    }

    pub(crate) async fn try_delete(
        &self,
        session: SessionRef,
        abort: bool,
        id: Option<&str>,
    ) -> Result<DeleteAnswer, CallError> {
        let request = DeleteSession {
            session,
            etag: None,
            abort,
        };
        self.end(request, id).await
    }

    pub(crate) async fn end(
        &self,
        request: DeleteSession,
        id: Option<&str>,
    ) -> Result<DeleteAnswer, CallError> {
        within("delete", self.fleet().delete_session(request, with_id(id))).await
    }

    /// A page of open questions.
    pub(crate) async fn questions(&self, request: ListInteractions) -> InteractionPage {
        let (fleet, options) = (self.fleet(), CallOptions::default());
        let page = within("questions", fleet.list_interactions(request, options)).await;
        page.unwrap_or_else(|error| panic!("questions: {error:?}"))
    }

    pub(crate) async fn try_page(&self, request: ListSessions) -> Result<SessionPage, CallError> {
        let fleet = self.fleet();
        within("list", fleet.list_sessions(request, CallOptions::default())).await
    }

    /// All pages of a size.
    pub(crate) async fn list_by(
        &self,
        filter: &str,
        order: SessionOrder,
        page_size: u32,
    ) -> Vec<SessionSummary> {
        let (mut sessions, mut page_token) = (Vec::new(), None);
        loop {
            let request = ListSessions {
                filter: filter.to_owned(),
                order,
                page_token,
                page_size,
            };
            let page = self.try_page(request).await;
            let page = page.unwrap_or_else(|error| panic!("list {filter:?}: {error:?}"));
            sessions.extend(page.sessions);
            page_token = page.next;
            if page_token.is_none() {
                return sessions;
            }
        }
    }

    /// The names of what a filter finds, sorted.
    pub(crate) async fn names(&self, filter: &str) -> Vec<String> {
        let sessions = self.list_by(filter, SessionOrder::Id, 0).await;
        let mut names = names(&sessions);
        names.sort();
        names
    }

    pub(crate) async fn watch(&self, filter: &str) -> Lookout {
        self.watch_from(filter, None).await
    }

    pub(crate) async fn watch_from(&self, filter: &str, bookmark: Option<String>) -> Lookout {
        let watch = self.try_watch(filter, bookmark).await;
        let stream = watch.unwrap_or_else(|error| panic!("watch {filter:?}: {error:?}"));
        Lookout {
            stream,
            seen: BTreeMap::new(),
            gone: Vec::new(),
            bookmark: None,
            expired: false,
        }
    }

    pub(crate) async fn try_watch(
        &self,
        filter: &str,
        bookmark: Option<String>,
    ) -> Result<ResultStream<SessionWatchItem>, CallError> {
        let request = WatchSessions {
            filter: filter.to_owned(),
            bookmark,
        };
        let fleet = self.fleet();
        within(
            "watch",
            fleet.watch_sessions(request, CallOptions::default()),
        )
        .await
    }
}

/// The names of sessions, as they come.
pub(crate) fn names(sessions: &[SessionSummary]) -> Vec<String> {
    let names = sessions.iter().filter_map(|it| it.name.as_ref());
    names.map(ToString::to_string).collect()
}

/// A watcher, and what it makes of what it is told.
pub(crate) struct Lookout {
    stream: ResultStream<SessionWatchItem>,
    pub(crate) seen: BTreeMap<SessionId, SessionSummary>,
    pub(crate) gone: Vec<SessionId>,
    pub(crate) bookmark: Option<String>,
    pub(crate) expired: bool,
}

impl Lookout {
    /// Takes the next item in. No revision of a session is ever older than the one before.
    pub(crate) async fn step(&mut self) -> Result<(), CallError> {
        let item = within("the next item of a watch", self.stream.next()).await;
        match item.expect("a watch does not end by itself")? {
            SessionWatchItem::BookmarkExpired => {
                assert!(self.seen.is_empty(), "only at the beginning");
                self.expired = true;
            }
            SessionWatchItem::Bookmark(bookmark) => self.bookmark = Some(bookmark),
            SessionWatchItem::Changed { sessions, gone } => {
                // What a bookmark says is all that was told before it.
                self.bookmark = None;
                for session in sessions {
                    let before = self.seen.insert(session.id, session.clone());
                    if let Some(before) = before {
                        let newer = before.revision < session.revision || before == session;
                        assert!(newer, "{before:?}, and then {session:?}");
                    }
                }
                for id in gone {
                    self.seen.remove(&id);
                    self.gone.push(id);
                }
            }
        }
        Ok(())
    }

    /// Reads until something holds of what was told, and a bookmark followed it.
    pub(crate) async fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        loop {
            if self.bookmark.is_some() && holds(self) {
                return;
            }
            let step = self.step().await;
            step.unwrap_or_else(|error| panic!("a watch: {error:?}"));
        }
    }

    /// Reads the snapshot.
    pub(crate) async fn snapshot(&mut self) -> Vec<String> {
        self.until(|_| true).await;
        self.names()
    }

    /// The names of what is seen now, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let seen: Vec<_> = self.seen.values().cloned().collect();
        let mut names = names(&seen);
        names.sort();
        names
    }

    pub(crate) fn of(&self, name: &str) -> Option<&SessionSummary> {
        let is = |it: &&SessionSummary| it.name.as_ref().is_some_and(|it| it.as_str() == name);
        self.seen.values().find(is)
    }
}
