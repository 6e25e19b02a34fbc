//! Pages of sessions: one index has all that are wanted, and a bounded number of what it has is looked at
//! for each page.

use std::sync::Arc;

use sessionplane_core::contract::fleet::{ListSessions, SessionOrder, SessionPage};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::filter::{Filter, IndexTerm, StoredTerm};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{SessionId, SessionRef};
use sessionplane_core::domain::session::StoredSession;
use sessionplane_core::ports::repository::{SessionPlace, SessionQuery};

use super::order::{From, Place, by_name};
use super::view::Viewer;
use super::{digests, token};
use crate::app::caller::{AppCaller, store};
use crate::app::channel::Channel;
use crate::app::pages;

mod attention;
mod by_id;

/// Sessions in a page when the caller does not say.
const DEFAULT_PAGE: usize = 100;
/// Sessions in a page at most.
pub(crate) const MAX_PAGE: usize = 1000;
/// Bytes of a page at most, unless its first session alone has more.
const PAGE_BYTES: usize = 1024 * 1024;
/// Sessions that are looked at for a page at most.
const BUDGET: usize = 2000;
/// Sessions that are asked of the store at a time.
const SLICE: usize = 200;
/// Sessions that are asked of it at first at least.
const LITTLE: usize = 16;

/// Which sessions, and in which order.
pub(super) struct Search {
    pub(super) filter: Filter,
    pub(super) order: SessionOrder,
    pub(super) page: usize,
    /// Bytes of a page at most, unless its first session alone has more.
    pub(super) bytes: usize,
}

/// Some of the sessions that are wanted, and where the rest begins; no place at the end.
pub(super) type Found = (Vec<Arc<SessionSummary>>, Option<Place>);

/// What a session is to a search.
enum Look {
    /// The caller may not see it, or it is not there: the two are the same.
    Hidden,
    /// It may be seen, and is not wanted.
    Unwanted,
    /// It is wanted.
    Wanted(Arc<SessionSummary>),
}

/// A page while it is being filled.
struct Page<'s> {
    search: &'s Search,
    taken: Vec<Arc<SessionSummary>>,
    bytes: usize,
    looked_at: usize,
}

impl AppCaller {
    pub(super) async fn list(&self, request: ListSessions) -> Result<SessionPage, CallError> {
        let filter = parsed(&request.filter)?;
        let page = pages::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
        let tenant = &self.principal().tenant;
        let question = digests::of_question(tenant, &request.filter, request.order.as_str());
        let place = match request.page_token.as_deref().filter(|it| !it.is_empty()) {
            None => Place::Start,
            Some(told) => {
                let place = token::place("page_token", &question, told)?;
                Place::decode(place).ok_or_else(|| token::wrong("page_token"))?
            }
        };
        let order = request.order;
        let search = Search {
            filter,
            order,
            page,
            bytes: PAGE_BYTES,
        };
        let (sessions, next) = self.viewer().page(&search, place).await?;
        Ok(SessionPage {
            // Most of them were made for this page alone, and are only moved.
            sessions: sessions.into_iter().map(Arc::unwrap_or_clone).collect(),
            next: next.map(|place| token::make(&question, &place.encode())),
        })
    }
}

/// A filter as a caller spelled it.
pub(super) fn parsed(filter: &str) -> Result<Filter, CallError> {
    Filter::parse(filter).map_err(|error| CallError::invalid("filter", error.to_string()))
}

impl Page<'_> {
    /// Whether its order is that of ids from the newest on.
    fn descends(&self) -> bool {
        matches!(
            self.search.order,
            SessionOrder::IdDescending | SessionOrder::Attention
        )
    }

    fn is_full(&self) -> bool {
        self.taken.len() >= self.search.page || self.looked_at >= BUDGET
    }

    /// What is asked of the store for it, of which so many were read. A short page asks for little at
    /// first: most of what it is given may be wanted; and for one more, to see whether there is a rest.
    fn query(
        &self,
        viewer: &Viewer,
        term: &StoredTerm,
        after: Option<SessionPlace>,
        read: usize,
    ) -> SessionQuery {
        let room = self.search.page.saturating_sub(self.taken.len());
        let left = BUDGET.saturating_sub(self.looked_at);
        let wished = room.saturating_add(1).max(LITTLE + read);
        SessionQuery {
            tenant: viewer.principal.tenant.clone(),
            term: term.clone(),
            after,
            descending: self.descends(),
            max: SLICE.min(left.saturating_add(1)).min(wished).max(1),
        }
    }

    /// Whether a session that is wanted has room; if not, the page ends before it.
    fn has_room_for(&self, session: &SessionSummary) -> bool {
        self.taken.is_empty() || self.bytes + session.weight() <= self.search.bytes
    }

    fn take(&mut self, session: Arc<SessionSummary>) {
        self.bytes += session.weight();
        self.taken.push(session);
    }
}

impl Viewer {
    /// A page of what is searched, from a place on.
    pub(super) async fn page(&self, search: &Search, place: Place) -> Result<Found, CallError> {
        let mut page = Page {
            search,
            taken: Vec::new(),
            bytes: 0,
            looked_at: 0,
        };
        let next = match (search.order, search.filter.index_term()) {
            (_, IndexTerm::Name(name)) => {
                self.one(&mut page, SessionRef::Name(name), &place).await?
            }
            (_, IndexTerm::ExternalKey(key)) => {
                self.one(&mut page, SessionRef::ExternalKey(key), &place)
                    .await?
            }
            (SessionOrder::Attention, term) => self.by_attention(&mut page, term, place).await?,
            (SessionOrder::Name, IndexTerm::Live) => self.live_by_name(&mut page, place).await?,
            (_, IndexTerm::Live) => self.live_by_id(&mut page, place).await?,
            (SessionOrder::Name, IndexTerm::Stored(term)) => {
                let prefix = match term {
                    StoredTerm::NamePrefix(prefix) => prefix,
                    _ => String::new(),
                };
                self.stored(&mut page, StoredTerm::NamePrefix(prefix), place, |_| true)
                    .await?
            }
            (_, IndexTerm::Stored(term)) => {
                let from = place.by_id();
                let every = StoredTerm::Every;
                let next = self.by_id(&mut page, [term, every], from, |_| true).await?;
                next.map(From::place)
            }
        };
        Ok((page.taken, next))
    }

    /// Takes the only session that can be wanted: what leads to it is looked up, like for who names it.
    async fn one(
        &self,
        page: &mut Page<'_>,
        session: SessionRef,
        place: &Place,
    ) -> Result<Option<Place>, CallError> {
        // There is no second page of it.
        if *place != Place::Start {
            return Ok(None);
        }
        let (tenant, repository) = (&self.principal.tenant, &self.context.ports.repository);
        let found = repository.resolve(tenant, &session).await.map_err(store)?;
        if let Some(id) = found {
            let summary = self.summary(id).await?;
            let wanted = self.wanted(page.search, summary).await;
            let by_name = page.search.order == SessionOrder::Name;
            if let Some(session) = wanted.filter(|it| it.name.is_some() || !by_name) {
                page.take(session);
            }
        }
        Ok(None)
    }

    /// Takes what is wanted of the sessions that an index of the store has, in its order. What the caller
    /// may not see is passed over as if it were not there: it takes no place in the page, none of what is
    /// looked at for one, and no place begins at it or is told for its sake.
    async fn stored(
        &self,
        page: &mut Page<'_>,
        term: StoredTerm,
        place: Place,
        fits: impl Fn(&SessionSummary) -> bool + Send + Sync,
    ) -> Result<Option<Place>, CallError> {
        let mut after = match place {
            Place::After(place) => Some(place),
            _ => None,
        };
        // Also before the first of them: what was taken before may have filled the page.
        let rest = |after: Option<SessionPlace>| Some(after.map_or(Place::Start, Place::After));
        let (mut reached, mut read) = (after.clone(), 0);
        loop {
            let (query, ticket) = (page.query(self, &term, reached.take(), read), self.ticket());
            let (max, ticket) = (query.max, ticket.await?);
            let repository = &self.context.ports.repository;
            let found = repository.find(query).await.map_err(store)?;
            let last = found.len() < max;
            read += found.len();
            for stored in found {
                let Some(here) = in_index(&term, &stored.session) else {
                    continue;
                };
                reached = Some(here.clone());
                let summary = self.found(stored, ticket).await?;
                let session = match self.look(page.search, summary).await {
                    Look::Hidden => continue,
                    // Only now: nothing is said of a rest that has nothing to be seen in it.
                    _ if page.is_full() => return Ok(rest(after)),
                    Look::Unwanted => None,
                    Look::Wanted(session) => Some(session).filter(|it| fits(it)),
                };
                page.looked_at += 1;
                if let Some(session) = session {
                    if !page.has_room_for(&session) {
                        return Ok(rest(after));
                    }
                    page.take(session);
                }
                after = Some(here);
            }
            if last {
                return Ok(None);
            }
        }
    }

    /// A session as it is to a search of the caller.
    async fn look(&self, search: &Search, summary: Option<Arc<SessionSummary>>) -> Look {
        let Some(session) = summary else {
            return Look::Hidden;
        };
        if !self.may_read(&session).await {
            return Look::Hidden;
        }
        if search.filter.wants(&session) {
            Look::Wanted(session)
        } else {
            Look::Unwanted
        }
    }

    /// A session, if the search wants it and the caller may see it.
    async fn wanted(
        &self,
        search: &Search,
        summary: Option<Arc<SessionSummary>>,
    ) -> Option<Arc<SessionSummary>> {
        let session = summary.filter(|session| search.filter.wants(session))?;
        self.may_read(&session).await.then_some(session)
    }

    /// Those with a task, in the order of ids.
    async fn live_by_id(
        &self,
        page: &mut Page<'_>,
        place: Place,
    ) -> Result<Option<Place>, CallError> {
        let descending = page.search.order == SessionOrder::IdDescending;
        let mut after = match place {
            Place::After(SessionPlace::Id(id)) => Some(id),
            _ => None,
        };
        let next = |after: Option<SessionId>| after.map(|id| Place::After(SessionPlace::Id(id)));
        let mut reached = after;
        loop {
            let (channels, tenant) = (&self.context.channels, &self.principal.tenant);
            let channels = channels.beside(tenant, reached, descending, SLICE);
            let last = channels.len() < SLICE;
            for channel in channels {
                reached = Some(channel.session());
                let session = match self.look(page.search, self.shown(&channel)).await {
                    Look::Hidden => continue,
                    _ if page.is_full() => return Ok(next(after)),
                    Look::Unwanted => None,
                    Look::Wanted(session) => Some(session),
                };
                page.looked_at += 1;
                if let Some(session) = session {
                    if !page.has_room_for(&session) {
                        return Ok(next(after));
                    }
                    page.take(session);
                }
                after = Some(channel.session());
            }
            if last {
                return Ok(None);
            }
        }
    }

    /// What a channel shows of a session of the caller's tenant.
    fn shown(&self, channel: &Channel) -> Option<Arc<SessionSummary>> {
        let mine = *channel.tenant() == self.principal.tenant;
        mine.then(|| channel.shown()).flatten()
    }

    /// All sessions that are in memory and wanted, in no order. There are as many as fit there.
    async fn live(&self, search: &Search) -> Vec<Arc<SessionSummary>> {
        let mut live = Vec::new();
        for channel in self.context.channels.all() {
            let wanted = self.wanted(search, self.shown(&channel)).await;
            live.extend(wanted);
        }
        live
    }

    async fn live_by_name(
        &self,
        page: &mut Page<'_>,
        place: Place,
    ) -> Result<Option<Place>, CallError> {
        let after = match place {
            Place::After(SessionPlace::Name(name)) => Some(name),
            _ => None,
        };
        let mut live = self.live(page.search).await;
        live.retain(|session| session.name.is_some() && session.name > after);
        live.sort_by(|a, b| by_name(a, b));
        let place = |session: &SessionSummary| {
            let name = session.name.clone();
            name.map(|name| Place::After(SessionPlace::Name(name)))
        };
        Ok(fill(page, live, place))
    }
}

/// Takes sessions that are in order, as many as the page has room for. Returns where the rest begins.
fn fill(
    page: &mut Page<'_>,
    sessions: Vec<Arc<SessionSummary>>,
    place: impl Fn(&SessionSummary) -> Option<Place>,
) -> Option<Place> {
    let mut last = None;
    for session in sessions {
        if page.is_full() || !page.has_room_for(&session) {
            return last;
        }
        last = place(&session);
        page.take(session);
    }
    None
}

/// Where a session stands in an index.
fn in_index(term: &StoredTerm, stored: &StoredSession) -> Option<SessionPlace> {
    match term {
        StoredTerm::NamePrefix(_) => stored.record.metadata.name.clone().map(SessionPlace::Name),
        _ => Some(SessionPlace::Id(stored.record.id)),
    }
}
