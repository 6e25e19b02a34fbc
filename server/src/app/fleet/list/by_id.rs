//! In the order of ids, through the index that has the fewest sessions.
//!
//! Each of several terms may have all sessions that are wanted. Which one has fewer is seen by looking:
//! where one ends at once there is no more to be looked at. A page may go through another one than the
//! page before, since all of them are in the order of ids; but for that of names, which is read as a
//! whole and put in order, as long as it is small.

use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::ports::repository::{FoundSession, SessionPlace, SessionQuery};

use super::super::order::{From, Place};
use super::super::view::Viewer;
use super::{BUDGET, Page};
use crate::app::caller::store;
use crate::app::channels::Ticket;

/// Sessions of a term that are read to see whether it has few.
const FEW: usize = 64;

impl Viewer {
    /// Takes what fits of the sessions that each of two terms has, the first one being the filter's own.
    pub(super) async fn by_id(
        &self,
        page: &mut Page<'_>,
        [own, other]: [StoredTerm; 2],
        from: From,
        fits: impl Fn(&SessionSummary) -> bool + Send + Sync,
    ) -> Result<Option<From>, CallError> {
        let mut from = from;
        let mut terms = vec![own.clone(), other];
        if let StoredTerm::NamePrefix(_) = own {
            terms.remove(0);
            if !from.wide && !self.has_few(page, &terms[0], from).await? {
                let ticket = self.ticket().await?;
                let found = self.find(page, &own, None, BUDGET).await?;
                if found.len() < BUDGET {
                    return self.sorted(page, found, ticket, from, fits).await;
                }
                // It is not read again, for as long as the listing goes on.
                from.wide = true;
            }
        }
        // The one that is likely to have fewer, unless the other is seen to.
        terms.sort();
        let mut narrow = terms.swap_remove(0);
        for term in terms {
            if term != narrow
                && term != StoredTerm::Every
                && self.has_few(page, &term, from).await?
            {
                narrow = term;
            }
        }
        let after = from
            .after
            .map_or(Place::Start, |id| Place::After(SessionPlace::Id(id)));
        let next = self.stored(page, narrow, after, fits).await?;
        Ok(next.map(|next| From {
            wide: from.wide,
            ..next.by_id()
        }))
    }

    /// Whether a term has few sessions after a place.
    async fn has_few(
        &self,
        page: &Page<'_>,
        term: &StoredTerm,
        from: From,
    ) -> Result<bool, CallError> {
        let after = from.after.map(SessionPlace::Id);
        let found = self.find(page, term, after, FEW).await?;
        Ok(found.len() < FEW)
    }

    async fn find(
        &self,
        page: &Page<'_>,
        term: &StoredTerm,
        after: Option<SessionPlace>,
        max: usize,
    ) -> Result<Vec<FoundSession>, CallError> {
        let descending = page.descends() && !matches!(term, StoredTerm::NamePrefix(_));
        let query = SessionQuery {
            tenant: self.principal.tenant.clone(),
            term: term.clone(),
            after,
            descending,
            max,
        };
        let repository = &self.context.ports.repository;
        repository.find(query).await.map_err(store)
    }

    /// All of an index in another order.
    async fn sorted(
        &self,
        page: &mut Page<'_>,
        found: Vec<FoundSession>,
        ticket: Ticket,
        from: From,
        fits: impl Fn(&SessionSummary) -> bool,
    ) -> Result<Option<From>, CallError> {
        let descends = page.descends();
        let follows = |id: SessionId| match from.after {
            None => true,
            Some(after) if descends => id < after,
            Some(after) => id > after,
        };
        let mut wanted = Vec::new();
        for stored in found {
            if follows(stored.session.record.id) {
                let summary = self.found(stored, ticket).await?;
                let session = self.wanted(page.search, summary).await;
                wanted.extend(session.filter(|it| fits(it)));
            }
        }
        wanted.sort_by_key(|session| session.id);
        if descends {
            wanted.reverse();
        }
        let mut after = from.after;
        for session in wanted {
            if page.is_full() || !page.has_room_for(&session) {
                return Ok(Some(From { after, ..from }));
            }
            after = Some(session.id);
            page.take(session);
        }
        Ok(None)
    }
}
