//! A watch: a snapshot, a bookmark, then changes, each session of a batch once.
//!
//! A watcher is a place in the log of changes, and keeps nothing else of what it has told: whether a
//! session was among those that it told is decided by what the session was before.

use std::collections::VecDeque;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use sessionplane_core::contract::ResultStream;
use sessionplane_core::contract::fleet::{SessionOrder, SessionWatchItem, WatchSessions};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::provenance::Digest;
use tokio::sync::watch::Receiver;

use super::hub::Read;
use super::list::{Search, parsed};
use super::order::Place;
use super::seats::Seat;
use super::view::Viewer;
use super::{digests, token};
use crate::app::caller::AppCaller;
use crate::app::session_mail::draining;

/// How long a watcher waits for more after the first change (C47).
const GATHER: Duration = Duration::from_millis(20);
/// Sessions in one item at most, those that are gone among them.
const PAGE: usize = 128;
/// Bytes of one item at most, unless its first session alone has more. An item is what a watcher that
/// nobody reads holds, and there may be many of them.
const PAGE_BYTES: usize = 128 * 1024;

/// Sessions at most that change while a snapshot is told.
const NOTED: usize = 64 * 1024;

/// How far a watcher is.
enum Stage {
    /// It tells what there is, from there on.
    Snapshot(Place),
    /// It tells what changes.
    Live,
    /// Nothing follows.
    Over,
}

/// A watcher.
struct Watcher {
    viewer: Viewer,
    search: Search,
    question: Digest,
    /// Everything up to here was told, or is in the snapshot.
    place: u64,
    /// What the snapshot told of sessions without a channel is of this revision at most: a change that
    /// is older may tell less than it did.
    floor: u64,
    wake: Receiver<u64>,
    stage: Stage,
    /// The version of the policies by which it was judged what the caller may see.
    version: u64,
    /// What became of sessions up to the place, and is still to be told.
    pending: VecDeque<News>,
    /// What changed between the pages of the snapshot, and is told after the last one.
    noted: BTreeSet<SessionId>,
    /// There is more in the log after the place.
    behind: bool,
    /// What was told since the last bookmark.
    owes_bookmark: bool,
    ready: VecDeque<SessionWatchItem>,
    _seat: Seat,
}

/// What became of a session.
enum News {
    /// It is this by now.
    Now(Arc<SessionSummary>),
    /// It is not wanted any more, or is no more.
    Gone(SessionId),
    /// It is looked up when it is told.
    Look(SessionId),
}

impl News {
    fn session(&self) -> SessionId {
        match self {
            Self::Now(session) => session.id,
            Self::Gone(id) | Self::Look(id) => *id,
        }
    }
}

impl AppCaller {
    pub(super) async fn watch(
        &self,
        request: WatchSessions,
    ) -> Result<ResultStream<SessionWatchItem>, CallError> {
        let filter = parsed(&request.filter)?;
        let context = &self.context;
        let question = digests::of_question(&self.principal().tenant, &request.filter, "watch");
        let seat = context.seats.take(self.principal())?;
        if context.draining.is_cancelled() {
            return Err(draining());
        }
        let viewer = self.viewer();
        // Before anything is judged by them.
        let version = context.ports.authorizer.version();
        // Says which start this is.
        viewer.ticket().await?;
        let resumed = match request.bookmark.as_deref().filter(|it| !it.is_empty()) {
            None => None,
            Some(told) => Some(viewer.resumed(&question, told)?),
        };
        // Before the snapshot: what changes while it is told follows it.
        let wake = context.hub.subscribe();
        let mut ready = VecDeque::new();
        let ((place, floor), stage) = match resumed {
            Some(Some(place)) => (place, Stage::Live),
            Some(None) => {
                ready.push_back(SessionWatchItem::BookmarkExpired);
                ((context.hub.place(), 0), Stage::Snapshot(Place::Start))
            }
            None => ((context.hub.place(), 0), Stage::Snapshot(Place::Start)),
        };
        let search = Search {
            filter,
            order: SessionOrder::Id,
            page: PAGE,
            bytes: PAGE_BYTES,
        };
        let resumed = matches!(stage, Stage::Live);
        let mut watcher = Watcher {
            version,
            viewer,
            search,
            question,
            place,
            floor,
            wake,
            stage,
            pending: VecDeque::new(),
            noted: BTreeSet::new(),
            behind: false,
            owes_bookmark: false,
            ready,
            _seat: seat,
        };
        if resumed {
            // The caller hears that it is taken up, however quiet the fleet is.
            watcher.bookmark();
        }
        Ok(Box::pin(stream::unfold(watcher, |mut watcher| async {
            let item = watcher.next().await?;
            Some((item, watcher))
        })))
    }
}

impl Viewer {
    /// The place of a bookmark, and the floor of its snapshot; none if it is of another start, or what
    /// followed it is not kept.
    fn resumed(&self, question: &Digest, told: &str) -> Result<Option<(u64, u64)>, CallError> {
        let place = token::place("bookmark", question, told)?;
        let mut numbers = place.split('.').map(str::parse::<u64>);
        let mut next = || numbers.next().and_then(Result::ok);
        let (Some(first), Some(place), Some(floor)) = (next(), next(), next()) else {
            return Err(token::wrong("bookmark"));
        };
        let version = next().unwrap_or_default();
        let hub = &self.context.hub;
        let ours = hub.first() == Some(first) && hub.has_after(place);
        // What it was told may be hidden from it by now, and the other way round.
        let ours = ours && version == self.context.ports.authorizer.version();
        Ok(ours.then_some((place, floor)))
    }
}

impl Watcher {
    async fn next(&mut self) -> Option<Result<SessionWatchItem, CallError>> {
        loop {
            if !matches!(self.stage, Stage::Over) && self.is_outdated() {
                self.begin_anew();
            }
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            let step = match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Live if !self.pending.is_empty() => self.tell().await,
                Stage::Snapshot(place) => self.snapshot(place).await,
                Stage::Live => self.changes().await,
                Stage::Over => return None,
            };
            match step {
                Ok(stage) => self.stage = stage,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Whether other policies hold than those by which it was judged what may be told.
    fn is_outdated(&self) -> bool {
        self.version != self.viewer.context.ports.authorizer.version()
    }

    /// C55: what is known of what the caller may see is worth nothing any more, and nothing of it is told.
    fn begin_anew(&mut self) {
        self.version = self.viewer.context.ports.authorizer.version();
        self.ready.clear();
        self.ready.push_back(SessionWatchItem::BookmarkExpired);
        self.pending.clear();
        self.noted.clear();
        (self.behind, self.owes_bookmark) = (false, false);
        (self.place, self.floor) = (self.viewer.context.hub.place(), 0);
        self.stage = Stage::Snapshot(Place::Start);
    }

    async fn snapshot(&mut self, place: Place) -> Result<Stage, CallError> {
        if self.viewer.context.draining.is_cancelled() {
            return Err(sent_away());
        }
        let (sessions, next) = self.viewer.page(&self.search, place).await?;
        // Also that nothing was found so far: who waits hears that the search goes on.
        if !sessions.is_empty() || next.is_some() {
            self.ready.push_back(SessionWatchItem::Changed {
                sessions: sessions.iter().map(|it| (**it).clone()).collect(),
                gone: Vec::new(),
            });
        }
        if let Some(next) = next {
            self.note().await?;
            return Ok(Stage::Snapshot(next));
        }
        self.floor = self.viewer.ticket().await?.revision;
        let noted = std::mem::take(&mut self.noted).into_iter();
        self.pending.extend(noted.map(News::Look));
        if self.pending.is_empty() {
            self.bookmark();
        } else {
            self.owes_bookmark = true;
        }
        Ok(Stage::Live)
    }

    /// What changes while a snapshot is told leaves the log before that is over, if it takes long: which
    /// sessions it was is kept, and what they are then is told after the last page.
    async fn note(&mut self) -> Result<(), CallError> {
        self.behind = true;
        while self.behind {
            for news in self.read().await? {
                self.noted.insert(news.session());
            }
            if self.noted.len() > NOTED {
                return Err(too_slow());
            }
        }
        Ok(())
    }

    /// The next part of the log: each session of it that is wanted, or was, once; as it is after the last
    /// of its changes.
    async fn read(&mut self) -> Result<Vec<News>, CallError> {
        let tenant = &self.viewer.principal.tenant;
        let hub = &self.viewer.context.hub;
        let Read::Changes(changes, place, more) = hub.after(self.place, tenant) else {
            return Err(too_slow());
        };
        (self.place, self.behind) = (place, more);
        let mut sessions = BTreeMap::<SessionId, (bool, Option<Arc<SessionSummary>>)>::new();
        for change in changes {
            let was_told = match &change.before {
                Some(before) => self.tells(before).await,
                None => false,
            };
            let now_told = match change.after {
                Some(after) if self.tells(&after).await => Some(after),
                _ => None,
            };
            let (was, now) = sessions.entry(change.session).or_default();
            // Also if it was so between two changes only: the snapshot may have told it then.
            *was |= was_told;
            *now = now_told;
        }
        let told = sessions.into_iter();
        let told = told.filter(|(_, (was, now))| *was || now.is_some());
        Ok(told
            .map(|(id, (_, now))| now.map_or(News::Gone(id), News::Now))
            .collect())
    }

    /// Whether a session as it was is one that is told: it is wanted, and the caller may see it.
    async fn tells(&self, session: &SessionSummary) -> bool {
        self.search.filter.wants(session) && self.viewer.may_read(session).await
    }

    async fn changes(&mut self) -> Result<Stage, CallError> {
        let context = self.viewer.context.clone();
        let place = self.place;
        let news = self
            .wake
            .wait_for(|newest| *newest > place || context.hub.is_closed());
        tokio::select! {
            biased;
            () = context.draining.cancelled() => return Err(sent_away()),
            () = context.ports.authorizer.changed_from(self.version) => return Ok(Stage::Live),
            // The sender lives as long as the context, so this ends by what is told alone.
            _ = news => {}
        }
        if context.hub.is_closed() {
            let message = "the server was stopped; watch again with the last bookmark";
            return Err(CallError::stream_ended(Reason::ServingLost, message));
        }
        if !self.behind {
            context.ports.clock.sleep(GATHER).await;
        }
        let news = self.read().await?;
        self.pending.extend(news);
        Ok(Stage::Live)
    }

    /// One item of what is to be told, and after the last one a bookmark.
    async fn tell(&mut self) -> Result<Stage, CallError> {
        let (mut sessions, mut gone, mut bytes) = (Vec::new(), Vec::new(), 0);
        while sessions.len() + gone.len() < PAGE
            && let Some(news) = self.pending.pop_front()
        {
            let id = news.session();
            let Some(session) = self.now(news).await? else {
                gone.push(id);
                continue;
            };
            bytes += session.weight();
            if bytes > PAGE_BYTES && !sessions.is_empty() {
                self.pending.push_front(News::Now(session));
                break;
            }
            sessions.push((*session).clone());
        }
        if !(sessions.is_empty() && gone.is_empty()) {
            self.owes_bookmark = true;
            let item = SessionWatchItem::Changed { sessions, gone };
            self.ready.push_back(item);
        }
        if self.pending.is_empty() && std::mem::take(&mut self.owes_bookmark) {
            self.bookmark();
        }
        Ok(Stage::Live)
    }

    /// The session as it is to be told, if it is. C47: one that the snapshot may have told as it was later
    /// is told as it is now.
    async fn now(&self, news: News) -> Result<Option<Arc<SessionSummary>>, CallError> {
        let id = match news {
            News::Now(session) if session.revision >= self.floor => return Ok(Some(session)),
            News::Now(session) => session.id,
            News::Look(id) => id,
            News::Gone(_) => return Ok(None),
        };
        match self.viewer.summary(id).await? {
            Some(now) if self.tells(&now).await => Ok(Some(now)),
            _ => Ok(None),
        }
    }

    fn bookmark(&mut self) {
        let first = self.viewer.context.hub.first().unwrap_or_default();
        let place = format!("{first}.{}.{}.{}", self.place, self.floor, self.version);
        let bookmark = token::make(&self.question, &place);
        self.ready.push_back(SessionWatchItem::Bookmark(bookmark));
    }
}

fn too_slow() -> CallError {
    let message =
        "too much changed while this watch was not read; watch again with the last bookmark";
    CallError::stream_ended(Reason::ObserverTooSlow, message)
}

fn sent_away() -> CallError {
    let message = "this server is stopping; watch again, over a new connection, when another has taken \
                   its place";
    CallError::stream_ended(Reason::ServerDraining, message)
}
