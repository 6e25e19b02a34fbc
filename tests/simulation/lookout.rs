//! Watchers of the fleet that fall behind, leave, and come back with their bookmark or without (C47).

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_core::contract::fleet::{Fleet as _, SessionWatchItem, WatchSessions};
use sessionplane_core::contract::{CallOptions, ResultStream};
use sessionplane_core::domain::error::{Outcome, Reason};
use sessionplane_core::domain::fleet::filter::Filter;
use sessionplane_core::domain::fleet::summary::SessionSummary;

use crate::ledger::{Known, View};
use crate::reader::Shared;
use crate::rng::Rng;
use crate::server::Connection;

/// A watcher.
pub(crate) struct Lookout {
    shared: Shared,
    who: String,
    /// It watches all sessions, reads as fast as it can, and leaves only with the server.
    faithful: bool,
    filter: &'static str,
    rng: Rng,
    seen: View,
    bookmark: Option<String>,
}

impl Lookout {
    pub(crate) fn new(shared: Shared, who: String, faithful: bool, mut rng: Rng) -> Self {
        let filters = ["", "phase = WORKING", "paused = true", "name = \"f*\""];
        let filter = if faithful { "" } else { filters[rng.index(4)] };
        if faithful {
            shared.ledger.view(&who, None);
        }
        Self {
            shared,
            who,
            faithful,
            filter,
            rng,
            seen: View::new(),
            bookmark: None,
        }
    }

    pub(crate) async fn run(mut self) {
        let done = self.shared.done.clone();
        let executor = self.shared.host.executor.clone();
        while !done.is_cancelled() {
            let watching = self.watch();
            tokio::select! {
                biased;
                () = done.cancelled() => return,
                () = watching => {}
            }
            let pause = self.rng.millis(300) + Duration::from_millis(1);
            executor.sleep(pause).await;
        }
    }

    async fn watch(&mut self) {
        let connection = self.shared.host.connect().await;
        if !self.faithful && self.rng.one_in(4) {
            self.bookmark = None;
        }
        let request = WatchSessions {
            filter: self.filter.to_owned(),
            bookmark: self.bookmark.clone(),
        };
        let caller = connection.caller();
        let call = caller.watch_sessions(request, CallOptions::default());
        match connection.call(call).await {
            Err(_) => {}
            Ok(Err(error)) => self.shared.refused(&self.who, &error),
            Ok(Ok(stream)) => self.read(stream, &connection).await,
        }
    }

    async fn read(&mut self, mut stream: ResultStream<SessionWatchItem>, connection: &Connection) {
        let mut first = true;
        if self.bookmark.is_none() {
            self.seen.clear();
        }
        while self.faithful || !self.rng.one_in(30) {
            if !self.faithful && self.rng.one_in(10) {
                let pause = self.rng.millis(2_000);
                let pause = self.shared.host.executor.sleep(pause);
                // Who is told nothing any more keeps no handle on the server that is gone.
                if connection.call(pause).await.is_err() {
                    return;
                }
            }
            let Ok(item) = connection.call(stream.next()).await else {
                return;
            };
            self.shared.log.tell(&self.who, &item);
            match item {
                None => return self.wrong("C47: a watch ended without a word"),
                Some(Err(error)) => {
                    if error.reason == Reason::ObserverTooSlow {
                        self.shared.chronicle.stream("watch too slow");
                    }
                    // A read that failed refuses the rest of a snapshot.
                    let refused = error.reason == Reason::StoreFailed;
                    if error.outcome != Outcome::StreamEnded && !refused {
                        self.wrong(&format!("C2: a watch ended with {error:?}"));
                    }
                    return;
                }
                Some(Ok(item)) => self.take(item, first),
            }
            first = false;
        }
    }

    fn take(&mut self, item: SessionWatchItem, first: bool) {
        match item {
            SessionWatchItem::BookmarkExpired => {
                self.shared.chronicle.stream("bookmark expired");
                if !first || self.bookmark.is_none() {
                    self.wrong("C47: a bookmark expired that nobody gave");
                }
                self.bookmark = None;
                self.seen.clear();
            }
            SessionWatchItem::Bookmark(bookmark) => {
                if first && self.bookmark.is_some() {
                    self.shared.chronicle.stream("watch resumed");
                }
                self.bookmark = Some(bookmark);
                if self.faithful {
                    self.shared.ledger.view(&self.who, Some(self.seen.clone()));
                }
            }
            SessionWatchItem::Changed { sessions, gone } => {
                let mut ids = BTreeSet::new();
                let told = sessions.iter().map(|it| it.id).chain(gone.iter().copied());
                if !told.into_iter().all(|id| ids.insert(id)) {
                    self.wrong("C47: a session twice in one item");
                }
                for session in &sessions {
                    self.see(session);
                }
                for id in gone {
                    self.seen.remove(&id);
                }
            }
        }
    }

    fn see(&mut self, session: &SessionSummary) {
        // It follows within a lag: what others know by now is not yet known here.
        self.shared.ledger.told(session, &Known::default());
        let filter = Filter::parse(self.filter).expect("a filter");
        if !filter.wants(session) {
            self.wrong(&format!("C47: nobody wanted {session:?}"));
        }
        if let Some(before) = self.seen.insert(session.id, session.clone())
            && before.revision > session.revision
        {
            self.wrong(&format!("C47: after {before:?} comes {session:?}"));
        }
    }

    fn wrong(&self, what: &str) {
        self.shared.log.wrong(format!("{}: {what}", self.who));
    }
}
