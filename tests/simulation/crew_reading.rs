//! What who works with the fleet reads of it: sessions, lists, open questions (C25, C46, C47).

use std::collections::BTreeMap;

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{
    Fleet as _, ListInteractions, ListSessions, SessionOrder,
};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::filter::Filter;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{SessionId, SessionName, SessionRef};

use crate::crew::Crew;
use crate::ledger::Known;
use crate::reader::Shared;
use crate::server::{Broken, Connection};

/// What sessions are looked for by.
const FILTERS: [&str; 10] = [
    "",
    "",
    "phase = WORKING",
    "phase = NEEDS_INPUT OR phase = PAUSED",
    "paused = true",
    "NOT phase = DORMANT",
    "name = \"f*\"",
    "name = f1",
    "labels.kind = k1",
    "agent = scripted AND priority > 0",
];

/// Sessions with the names that they have.
type Names = BTreeMap<SessionId, Option<SessionName>>;

impl Crew {
    pub(crate) async fn get(&mut self) {
        let Some(id) = self.some_session(false) else {
            return;
        };
        let connection = self.shared.host.connect().await;
        let known = self.shared.ledger.known();
        let caller = connection.caller();
        let call = caller.get_session(SessionRef::Id(id), CallOptions::default());
        match connection.call(call).await {
            Err(Broken) => {}
            Ok(Ok(session)) => {
                self.shared.log.tell(&self.who, &session);
                self.shared.ledger.told(&session, &known);
            }
            Ok(Err(error)) => {
                self.shared.refused(&self.who, &error);
                self.unknown(id, &error, &known);
            }
        }
    }

    pub(crate) async fn list(&mut self) {
        let orders = [
            SessionOrder::Id,
            SessionOrder::IdDescending,
            SessionOrder::Name,
            SessionOrder::Attention,
        ];
        let (filter, order) = (
            FILTERS[self.rng.index(FILTERS.len())],
            orders[self.rng.index(4)],
        );
        let known = self.shared.ledger.known();
        let before = self.names(&known);
        let connection = self.shared.host.connect().await;
        let size = 1 + u32::try_from(self.rng.below(4)).unwrap_or(0);
        let listed = pages(&self.shared, &connection, (filter, order, size)).await;
        let listed = match listed {
            None => return,
            Some(Err(error)) => return self.shared.refused(&self.who, &error),
            Some(Ok(listed)) => listed,
        };
        self.shared
            .log
            .tell(&self.who, (filter, order, listed.len()));
        let wanted = Filter::parse(filter).expect("a filter");
        if let Some(wrong) = listed.iter().find(|it| !wanted.wants(it)) {
            self.wrong(&format!("C47: {filter:?} does not want {wrong:?}"));
        }
        let exact = order != SessionOrder::Attention && filter.is_empty();
        if exact {
            self.judge_list(order, &listed, (before, self.names(&known)));
        }
    }

    /// The sessions that somebody knew of and that are there, with their names.
    fn names(&self, known: &Known) -> Names {
        let books = self.shared.books.read();
        let alive = books.alive().into_iter();
        let alive = alive.filter(|id| known.revisions.contains_key(id));
        alive.map(|id| (id, books.name(id).cloned())).collect()
    }

    /// C47: what matched throughout is listed once.
    fn judge_list(
        &self,
        order: SessionOrder,
        listed: &[SessionSummary],
        (before, after): (Names, Names),
    ) {
        for (id, name) in before {
            let by_name = order == SessionOrder::Name;
            let throughout = match after.get(&id) {
                None => false,
                // It may have been renamed, and back again.
                Some(later) => !by_name || (name.is_none() && later.is_none()),
            };
            let times = listed.iter().filter(|it| it.id == id).count();
            let right = usize::from(!by_name);
            if throughout && times != right {
                self.wrong(&format!("C47: {id} was listed {times} times by {order:?}"));
            }
        }
    }

    pub(crate) async fn questions(&mut self) {
        let connection = self.shared.host.connect().await;
        let caller = connection.caller();
        let (mut page_token, mut last) = (None, None);
        loop {
            let request = ListInteractions {
                page_token,
                page_size: 1 + u32::try_from(self.rng.below(3)).unwrap_or(0),
                ..ListInteractions::default()
            };
            let call = caller.list_interactions(request, CallOptions::default());
            let page = match connection.call(call).await {
                Err(Broken) => return,
                Ok(Err(error)) => return self.shared.refused(&self.who, &error),
                Ok(Ok(page)) => page,
            };
            for it in page.interactions {
                let place = Some((it.interaction.asked_at, it.interaction.id));
                if last >= place {
                    self.wrong(&format!("C25: out of order: {it:?}"));
                }
                if self.shared.books.read().asked(it.interaction.id).is_none() {
                    self.wrong(&format!("C39: it is not durable: {it:?}"));
                }
                last = place;
            }
            page_token = page.next;
            if page_token.is_none() {
                return;
            }
        }
    }
}

/// All pages of a list; each session in them is judged. Nothing if the server is gone before the last.
pub(crate) async fn pages(
    shared: &Shared,
    connection: &Connection,
    (filter, order, page_size): (&str, SessionOrder, u32),
) -> Option<Result<Vec<SessionSummary>, CallError>> {
    let caller = connection.caller();
    let (mut sessions, mut page_token) = (Vec::new(), None);
    loop {
        let known = shared.ledger.known();
        let request = ListSessions {
            filter: filter.to_owned(),
            order,
            page_token,
            page_size,
        };
        let call = caller.list_sessions(request, CallOptions::default());
        let page = match connection.call(call).await.ok()? {
            Err(error) => return Some(Err(error)),
            Ok(page) => page,
        };
        for session in &page.sessions {
            shared.ledger.told(session, &known);
        }
        sessions.extend(page.sessions);
        page_token = page.next;
        if page_token.is_none() {
            return Some(Ok(sessions));
        }
    }
}
