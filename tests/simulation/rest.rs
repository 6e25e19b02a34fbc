//! The fleet of a world: who works with it and watches it, and what it is once all is at rest (C45, C46,
//! C47).

use std::time::Duration;

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{Fleet as _, SessionOrder};
use sessionplane_core::domain::fleet::phase::Phase;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{AgentName, SessionName, SessionRef};
use sessionplane_core::ports::repository::Repository as _;
use tokio_util::sync::CancellationToken;

use crate::client::Place;
use crate::crew::Crew;
use crate::crew_reading::pages;
use crate::ledger::{View, at_rest};
use crate::lookout::Lookout;
use crate::world::{REST, World};

/// Acts of who works with the fleet.
const ACTIONS: u32 = 24;
/// Names that sessions which come and go may have.
const NAMES: usize = 4;

impl World {
    /// One faithful watcher, and some that come and go.
    pub(crate) fn lookouts(&mut self) -> Vec<CancellationToken> {
        let mut lookouts = Vec::new();
        for number in 0..=1 + self.rng.below(3) {
            let lookout = Lookout::new(
                self.shared.clone(),
                format!("w{number}"),
                number == 0,
                self.rng.fork(),
            );
            lookouts.push(self.shared.host.executor.go(lookout.run()));
        }
        lookouts
    }

    pub(crate) fn crews(&mut self) -> Vec<CancellationToken> {
        let stock = (0..NAMES).map(|number| Place {
            name: SessionName::parse(&format!("f{number}")).expect("a name"),
            agent: AgentName::parse("scripted").expect("an agent's name"),
            parent: None,
        });
        let stock: Vec<_> = stock.collect();
        let mut crews = Vec::new();
        for number in 0..self.rng.below(4) {
            let crew = Crew::new(
                self.shared.clone(),
                format!("f{number}"),
                (self.places.clone(), stock.clone()),
                self.rng.fork(),
            );
            crews.push(self.shared.host.executor.go(crew.run(ACTIONS)));
        }
        crews
    }

    /// All sessions, in pages.
    pub(crate) async fn fleet(&mut self) -> Option<Vec<SessionSummary>> {
        let connection = self.shared.host.connect().await;
        let size = 1 + u32::try_from(self.rng.below(5)).unwrap_or(0);
        let listed = pages(&self.shared, &connection, ("", SessionOrder::Id, size)).await;
        listed?.ok()
    }

    /// Aborts what still runs, and resumes what is paused. Returns whether anything was.
    pub(crate) async fn rest_of_the_fleet(&mut self) -> bool {
        let Some(sessions) = self.fleet().await else {
            return true;
        };
        let mut busy = false;
        for session in sessions {
            let id = SessionRef::Id(session.id);
            if session.phase.is_active() {
                busy = true;
                self.abort(id.clone()).await;
            }
            if session.paused {
                busy = true;
                self.shared.books.resuming(session.id);
                let connection = self.shared.host.connect().await;
                let caller = connection.caller();
                // Whatever the answer, the next look says whether it helped.
                let _ = connection
                    .call(caller.resume_session(id, CallOptions::default()))
                    .await;
            }
        }
        busy
    }

    /// At rest the list, the watchers and the books know one fleet, and nothing is left of what was
    /// deleted.
    pub(crate) async fn look_over_the_fleet(&mut self) {
        let executor = self.shared.host.executor.clone();
        let patience = executor.elapsed() + REST;
        loop {
            let listed = self.fleet().await.unwrap_or_default();
            let view: View = listed.iter().map(|it| (it.id, it.clone())).collect();
            let behind = self.shared.ledger.behind(&view);
            let erased = self.shared.host.store().deleted(None).await == Ok(None);
            if behind.is_none() && erased {
                return self.judge_fleet(&listed);
            }
            if executor.elapsed() > patience {
                let what = format!("C47, C61: erased {erased}; {behind:?}, and listed is {view:?}");
                return self.shared.log.wrong(what);
            }
            executor.sleep(Duration::from_secs(1)).await;
        }
    }

    fn judge_fleet(&self, listed: &[SessionSummary]) {
        let books = self.shared.books.read();
        let alive: Vec<_> = books.alive().into_iter().collect();
        let ids: Vec<_> = listed.iter().map(|it| it.id).collect();
        let wrong = listed.iter().find(|it| {
            let head = books.sessions.get(&it.id).map(|it| &it.head);
            let ended = head.is_some_and(|head| head.last_run == it.last_run);
            let quiet = it.questions.is_empty() && it.queued == 0 && it.active_run.is_none();
            !ended || !quiet || it.phase.is_active() || books.name(it.id) != it.name.as_ref()
        });
        let wrong = wrong.map(|it| format!("{it:?}"));
        drop(books);
        self.shared.log.ensure(alive == ids, || {
            format!("C47: there are {alive:?}, and listed are {ids:?}")
        });
        self.shared
            .log
            .ensure(wrong.is_none(), || format!("C46: at rest: {wrong:?}"));
    }

    /// C45: what a start shows of the fleet is what the one before did.
    pub(crate) async fn same_fleet(&mut self, before: Option<Vec<SessionSummary>>) {
        let after = self.fleet().await;
        let same = |sessions: &Option<Vec<SessionSummary>>| {
            let sessions = sessions.as_ref()?.iter();
            let dormant = |it: &SessionSummary| SessionSummary {
                phase: Phase::Dormant,
                ..at_rest(it)
            };
            Some(sessions.map(dormant).collect::<Vec<_>>())
        };
        self.shared.log.ensure(same(&before) == same(&after), || {
            format!("C45: before the start {before:?}, after it {after:?}")
        });
    }
}
