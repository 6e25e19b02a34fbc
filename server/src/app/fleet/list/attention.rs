//! By attention: first what is in memory, as people want to see it; then paused sessions, then dormant
//! ones.

use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::filter::{IndexTerm, StoredTerm};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;

use super::super::order::{Place, Rank};
use super::super::view::Viewer;
use super::{Page, fill};

impl Viewer {
    pub(super) async fn by_attention(
        &self,
        page: &mut Page<'_>,
        term: IndexTerm,
        place: Place,
    ) -> Result<Option<Place>, CallError> {
        let mut place = place;
        if let Place::Start | Place::Ranked(_) = place {
            let next = self.ranked(page, &place).await;
            let paused = Place::Paused(super::From::default());
            if next.is_some() || page.is_full() {
                return Ok(next.or(Some(paused)));
            }
            place = paused;
        }
        let IndexTerm::Stored(term) = term else {
            return Ok(None);
        };
        if let Place::Paused(from) = place {
            let is = |session: &SessionSummary| session.phase == Phase::Paused;
            // All that are wanted here are in both.
            let terms = [term.clone(), StoredTerm::Paused];
            if let Some(next) = self.by_id(page, terms, from, is).await? {
                return Ok(Some(Place::Paused(next)));
            }
            let dormant = Place::Dormant(super::From::default());
            if page.is_full() {
                return Ok(Some(dormant));
            }
            place = dormant;
        }
        let Place::Dormant(from) = place else {
            return Ok(None);
        };
        let is = |session: &SessionSummary| session.phase == Phase::Dormant;
        let next = self.by_id(page, [term, StoredTerm::Every], from, is);
        Ok(next.await?.map(Place::Dormant))
    }

    async fn ranked(&self, page: &mut Page<'_>, place: &Place) -> Option<Place> {
        let live = self.live(page.search).await;
        let ranked = live.into_iter();
        let ranked = ranked.filter_map(|session| Some((Rank::of(&session)?, session)));
        let mut ranked: Vec<_> = match place {
            Place::Ranked(after) => ranked.filter(|(rank, _)| rank > after).collect(),
            _ => ranked.collect(),
        };
        ranked.sort_by_key(|(rank, _)| *rank);
        let sessions = ranked.into_iter().map(|(_, session)| session).collect();
        fill(page, sessions, |session| {
            Rank::of(session).map(Place::Ranked)
        })
    }
}
