//! What runs wait for somebody's answer to, over all sessions.

use std::sync::Arc;

use sessionplane_core::contract::fleet::{FleetInteraction, InteractionPage, ListInteractions};
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::InteractionId;
use sessionplane_core::domain::interaction::Interaction;
use sessionplane_core::domain::time::Timestamp;

use super::list::{MAX_PAGE, parsed};
use super::{digests, token};
use crate::app::caller::AppCaller;
use crate::app::pages;

/// Questions in a page when the caller does not say.
const DEFAULT_PAGE: usize = 100;
/// Bytes of a page at most, unless its first question alone has more.
const PAGE_BYTES: usize = 1024 * 1024;

/// Questions in the order in which they were asked.
type Asked = (Timestamp, InteractionId);

impl AppCaller {
    pub(super) async fn interactions(
        &self,
        request: ListInteractions,
    ) -> Result<InteractionPage, CallError> {
        let filter = parsed(&request.filter)?;
        let page = pages::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
        let (viewer, tenant) = (self.viewer(), &self.principal().tenant);
        let question = digests::of_question(tenant, &request.filter, "questions");
        let after = match request.page_token.as_deref().filter(|it| !it.is_empty()) {
            None => None,
            Some(told) => {
                let place = token::place("page_token", &question, told)?;
                Some(decode(place).ok_or_else(|| token::wrong("page_token"))?)
            }
        };
        let mut open = Vec::new();
        for channel in self.context.channels.all() {
            let Some(session) = channel.shown().filter(|_| channel.tenant() == tenant) else {
                continue;
            };
            let asks = !session.questions.is_empty() && filter.wants(&session);
            if asks && viewer.may(&session, Action::Observe).await {
                let later = |it: &Interaction| after.is_none_or(|after| asked(it) > after);
                let places = 0..session.questions.len();
                let places = places.filter(|at| later(&session.questions[*at]));
                open.extend(places.map(|at| Open(session.clone(), at)));
            }
        }
        open.sort_by_key(|it| asked(it.question()));
        let room = room(&open, page);
        let last = open.get(room.wrapping_sub(1)).filter(|_| room < open.len());
        let next = last.map(|it| token::make(&question, &encode(asked(it.question()))));
        Ok(InteractionPage {
            interactions: open[..room].iter().map(Open::told).collect(),
            next,
        })
    }
}

/// An open question of a session, by its place among them: only those of the page are copied.
struct Open(Arc<SessionSummary>, usize);

impl Open {
    fn question(&self) -> &Interaction {
        &self.0.questions[self.1]
    }

    fn told(&self) -> FleetInteraction {
        FleetInteraction {
            session: self.0.id,
            name: self.0.name.clone(),
            interaction: self.question().clone(),
        }
    }
}

/// How many of these a page takes.
fn room(open: &[Open], page: usize) -> usize {
    let mut bytes = 0;
    let fits = open.iter().take(page).enumerate().take_while(|(at, it)| {
        bytes += it.question().weight();
        *at == 0 || bytes <= PAGE_BYTES
    });
    fits.count()
}

fn asked(interaction: &Interaction) -> Asked {
    (interaction.asked_at, interaction.id)
}

fn encode((at, id): Asked) -> String {
    format!("{}.{id}", at.as_millis())
}

fn decode(place: &str) -> Option<Asked> {
    let (at, id) = place.split_once('.')?;
    Some((Timestamp::from_millis(at.parse().ok()?), id.parse().ok()?))
}
