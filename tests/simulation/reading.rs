//! What a client reads: states, entries, runs, questions (C16, C25, C27, C29).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join;
use sessionplane_core::contract::{
    Agent as _, CallOptions, CapabilityTarget, CommandTarget, DispatchRequest, ListEntriesRequest,
    ListRunsRequest, SessionControl as _, SessionState,
};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::error::Reason;
use sessionplane_core::domain::ids::{RequestId, RunId, SessionId};
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer, Shape};
use sessionplane_core::domain::lease::Holder;
use sessionplane_core::domain::position::Position;

use crate::client::{Client, Place};

impl Client {
    fn wrong(&self, what: &str) {
        self.shared.log.wrong(format!("{}: {what}", self.who));
    }

    /// Reads the state and judges it.
    pub(crate) async fn state(
        &mut self,
        place: &Place,
        min: Option<Position>,
    ) -> Option<SessionState> {
        let connection = self.shared.host.connect().await;
        let before = self.id_of(place).map(|id| {
            let newest = self.shared.chronicle.newest(id);
            (newest, self.shared.books.known(id))
        });
        let caller = connection.caller();
        let call = caller.get_state(place.reference(), min, CallOptions::default());
        let state = match connection.call(call).await {
            Err(_) => return None,
            Ok(Ok(state)) => state,
            Ok(Err(error)) => {
                self.refused(&error);
                let seen = before.and_then(|(newest, _)| newest);
                if error.reason == Reason::PositionNotReached && min <= seen {
                    self.wrong(&format!("C27: {min:?} was seen and is not reached"));
                }
                return None;
            }
        };
        self.shared.log.tell(&self.who, &state);
        let id = state.view.session.id;
        self.shared.chronicle.state(id, &state);
        let (newest, held) = before.unwrap_or((None, None));
        if newest.max(min) > Some(state.position) {
            self.wrong(&format!(
                "C27: {newest:?} was seen, and then {:?}",
                state.position
            ));
        }
        if held.is_some() && held == self.shared.books.known(id) {
            let busy = match held.map(|lease| lease.holder) {
                Some(Holder::Run(run)) => state.view.active_run == Some(run),
                Some(Holder::Boundary) => state.view.compacting,
                None => true,
            };
            if !busy {
                self.wrong(&format!("C27: {held:?}, and the state is {state:?}"));
            }
        }
        self.judge_leaf(id, &state);
        Some(state)
    }

    /// C29: the leaf is among the entries, and they are durable.
    fn judge_leaf(&self, id: SessionId, state: &SessionState) {
        let newest = state.view.entries;
        let durable = newest == 0 || self.shared.books.entry(id, newest).is_some();
        let known = state
            .view
            .leaf
            .is_none_or(|leaf| (1..=newest).contains(&leaf.seq));
        if !durable || !known {
            self.wrong(&format!("C29: {state:?}"));
        }
    }

    /// Asks for a place that was seen, or for one that may never be.
    pub(crate) async fn later_state(&mut self, place: &Place) {
        let id = self.id_of(place);
        let newest = id.and_then(|id| self.shared.chronicle.newest(id));
        let min = newest.map(|newest| Position {
            seq: newest.seq + self.rng.below(3) * self.rng.below(4),
            ..newest
        });
        self.state(place, min).await;
    }

    pub(crate) async fn list_entries(&mut self, place: &Place) {
        let connection = self.shared.host.connect().await;
        let caller = connection.caller();
        let since = self.some_entry(place).filter(|_| self.rng.one_in(2));
        let (mut since, mut after) = (since.map(|id| id.to_string()), since.map_or(0, |id| id.seq));
        loop {
            let request = ListEntriesRequest {
                session: place.reference(),
                since: since.clone(),
                page_size: 1 + u32::try_from(self.rng.below(9)).unwrap_or(0),
            };
            let call = caller.list_entries(request, CallOptions::default());
            let page = match connection.call(call).await {
                Err(_) => return,
                Ok(Err(error)) => return self.refused(&error),
                Ok(Ok(page)) => page,
            };
            self.shared.log.tell(
                &self.who,
                (page.entries.len(), &page.next_since, page.has_more),
            );
            if page.full_backfill {
                after = 0;
            }
            for entry in &page.entries {
                after += 1;
                if self.shared.books.entry(entry.id.session, after).as_ref() != Some(entry) {
                    return self.wrong(&format!("C29: entry {after} is listed as {entry:?}"));
                }
            }
            if !page.has_more {
                if page.leaf.is_some_and(|leaf| leaf.seq > after) {
                    self.wrong(&format!(
                        "C29: the leaf {:?} comes after {after}",
                        page.leaf
                    ));
                }
                return;
            }
            if page.entries.is_empty() {
                return self.wrong("C29: a page with nothing in it, and more to come");
            }
            since = page.next_since;
        }
    }

    pub(crate) async fn list_runs(&mut self, place: &Place) {
        let connection = self.shared.host.connect().await;
        let caller = connection.caller();
        let mut expected = self.synced_runs(place);
        let (mut before, mut listed) = (None::<RunId>, BTreeSet::new());
        loop {
            let request = ListRunsRequest {
                session: place.reference(),
                before,
                page_size: 1 + u32::try_from(self.rng.below(4)).unwrap_or(0),
            };
            let call = caller.list_runs(request, CallOptions::default());
            let page = match connection.call(call).await {
                Err(_) => return,
                Ok(Err(error)) => return self.refused(&error),
                Ok(Ok(page)) => page,
            };
            for run in &page.runs {
                if !listed.insert(run.id) {
                    return self.wrong(&format!("C16: {:?} is listed twice", run.id));
                }
                expected.remove(&run.id);
            }
            before = page.runs.last().map(|run| run.id);
            if !page.has_more {
                break;
            }
        }
        self.shared.log.tell(&self.who, listed.len());
        if !expected.is_empty() {
            self.wrong(&format!("C16: {expected:?} are not listed"));
        }
    }

    fn synced_runs(&self, place: &Place) -> BTreeSet<RunId> {
        let id = self.id_of(place);
        let books = self.shared.books.read();
        let mine = books.runs.values().filter(|run| Some(run.session) == id);
        let synced = mine.filter(|run| books.is_run_synced(run.id));
        synced.map(|run| run.id).collect()
    }

    /// C26: what is listed is what is offered.
    pub(crate) async fn capabilities(&mut self, place: &Place) {
        let connection = self.shared.host.connect().await;
        let caller = connection.caller();
        let target = CapabilityTarget::Session(place.reference());
        let report = caller.get_capabilities(target.clone(), CallOptions::default());
        let offered = caller.list_commands(target, CallOptions::default());
        let Ok((report, offered)) = connection.call(join(report, offered)).await else {
            return;
        };
        let (report, offered) = match (report, offered) {
            (Ok(report), Ok(offered)) => (report, offered),
            (Err(error), _) | (_, Err(error)) => return self.refused(&error),
        };
        self.shared.log.tell(&self.who, &report);
        let ours = offered.iter().filter_map(|it| match it.target {
            CommandTarget::Dispatch(kind) => Some(kind),
            CommandTarget::Prompt => None,
        });
        if !ours.eq(report.commands.iter().copied()) {
            self.wrong(&format!("C26: {offered:?} are offered, {report:?}"));
        }
    }

    pub(crate) async fn wait_run(&mut self) {
        let Some((run, _)) = self.some_run() else {
            return;
        };
        let connection = self.shared.host.connect().await;
        let caller = connection.caller();
        let options = CallOptions {
            request_id: None,
            deadline: Some(Duration::from_secs(2)),
        };
        match connection.call(caller.wait_run(run, options)).await {
            Err(_) => {}
            Ok(Err(error)) => self.refused(&error),
            Ok(Ok(record)) => {
                self.shared.log.tell(&self.who, &record);
                // Acknowledged or not: the store shows what is on the disk.
                let stored = self.shared.books.read().runs.get(&run).cloned();
                if record.settled.is_none() || stored.and_then(|it| it.settled) != record.settled {
                    self.wrong(&format!("C16: {record:?} was waited for"));
                }
            }
        }
    }

    /// Answers an open question: rightly, wrongly, twice at a time, or one that was answered before.
    pub(crate) async fn answer(&mut self, place: &Place) {
        let stale = self.answered.clone();
        if self.rng.one_in(6)
            && let Some((name, interaction)) = self.rng.pick(&stale).cloned()
            && let Some(place) = self.places.iter().find(|it| it.name == name).cloned()
        {
            let answer = InteractionAnswer::Confirmed(true);
            return self
                .respond(
                    &place,
                    Command::Respond {
                        interaction,
                        answer,
                    },
                )
                .await;
        }
        let Some(state) = self.state(place, None).await else {
            return;
        };
        let open: Vec<Interaction> = state.view.open_interactions().cloned().collect();
        let Some(question) = self.rng.pick(&open).cloned() else {
            return;
        };
        let interaction = question.id;
        self.answered.push((place.name.clone(), interaction));
        let answer = self.some_answer(&question);
        if self.rng.one_in(3) {
            let other = self.some_answer(&question);
            return self.race(place, interaction, [answer, other]).await;
        }
        self.respond(
            place,
            Command::Respond {
                interaction,
                answer,
            },
        )
        .await;
    }

    fn some_answer(&mut self, question: &Interaction) -> InteractionAnswer {
        if self.rng.one_in(8) {
            return InteractionAnswer::Choice("none of these".to_owned());
        }
        match &question.question.shape {
            Shape::Approval(choices) | Shape::Select(choices) => {
                let at = self.rng.index(choices.len());
                InteractionAnswer::Choice(choices[at].id.clone())
            }
            Shape::Confirm => InteractionAnswer::Confirmed(self.rng.one_in(2)),
            Shape::Input { .. } => InteractionAnswer::Text(format!("t{}", self.rng.below(99))),
            Shape::Form(_) => {
                let zone = ("zone".to_owned(), "north".to_owned());
                let fields = BTreeMap::from([zone]);
                InteractionAnswer::Fields(fields)
            }
        }
    }

    /// C25: of two answers at a time one counts.
    async fn race(
        &mut self,
        place: &Place,
        interaction: sessionplane_core::domain::ids::InteractionId,
        answers: [InteractionAnswer; 2],
    ) {
        let connection = self.shared.host.connect().await;
        let caller = connection.caller();
        let number = self.rng.next();
        let mut calls = Vec::new();
        for (at, answer) in answers.into_iter().enumerate() {
            let id = format!("{}-race-{number}-{at}", self.who);
            let id = RequestId::parse(&id).expect("a request id");
            let request = DispatchRequest {
                session: place.reference(),
                command: Command::Respond {
                    interaction,
                    answer,
                },
                expected_run: None,
            };
            let options = CallOptions {
                request_id: Some(id.clone()),
                deadline: None,
            };
            calls.push((id, caller.dispatch(request, options)));
        }
        let (Some((second, later)), Some((first, sooner))) = (calls.pop(), calls.pop()) else {
            return;
        };
        let both = connection.call(join(sooner, later)).await;
        let Ok((one, other)) = both else {
            return;
        };
        for (id, answer) in [(first, one), (second, other)] {
            self.shared.log.tell(&self.who, (&id, &answer));
            match answer {
                Ok(DispatchAnswer::Accepted(_)) => self.shared.books.responded(interaction, &id),
                Ok(DispatchAnswer::Rejected(_)) => {}
                Err(error) => self.refused(&error),
            }
        }
    }
}
