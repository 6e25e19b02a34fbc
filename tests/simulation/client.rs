//! A client: draws what to do next, does it, and judges the answer.

use std::time::Duration;

use futures_util::future::join;
use sessionplane_core::contract::{
    Agent as _, CallOptions, DispatchRequest, InvokeEvent, InvokeRequest, OnDisconnect, Parent,
    ResultStream, SessionControl as _,
};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::error::{CallError, Outcome};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{
    AgentName, EntryId, InteractionId, RequestId, RunId, SessionId, SessionName, SessionRef,
};
use sessionplane_core::domain::settings::Model;

use crate::executor::lock;
use crate::invoking::Invoking;
use crate::reader::Shared;
use crate::rng::Rng;
use crate::scenario::{Author, Kind};
use crate::server::Connection;

/// A session of the world: its name and the agent that it is created with.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) name: SessionName,
    pub(crate) agent: AgentName,
    /// The session that it branches off.
    pub(crate) parent: Option<SessionName>,
}

impl Place {
    pub(crate) fn reference(&self) -> SessionRef {
        SessionRef::Name(self.name.clone())
    }
}

/// A call that can be repeated.
#[derive(Clone)]
enum Call {
    Invoke(InvokeRequest),
    Dispatch(DispatchRequest),
}

/// A client.
pub(crate) struct Client {
    pub(crate) shared: Shared,
    pub(crate) who: String,
    pub(crate) places: Vec<Place>,
    pub(crate) rng: Rng,
    author: Author,
    calls: u64,
    repeats: Vec<(RequestId, Call)>,
    pub(crate) answered: Vec<(SessionName, InteractionId)>,
}

impl Client {
    pub(crate) fn new(shared: Shared, who: String, places: Vec<Place>, mut rng: Rng) -> Self {
        let author = Author::new(who.clone(), rng.fork());
        Self {
            shared,
            who,
            places,
            rng,
            author,
            calls: 0,
            repeats: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Acts so many times.
    pub(crate) async fn run(mut self, actions: u32) {
        for _ in 0..actions {
            let pause = if self.rng.one_in(8) { 3_000 } else { 60 };
            let pause = self.rng.millis(pause);
            self.shared.host.executor.sleep(pause).await;
            let at = self.rng.index(self.places.len());
            let place = self.places[at].clone();
            self.act(&place).await;
        }
    }

    async fn act(&mut self, place: &Place) {
        match self.rng.below(44) {
            0..=8 => self.invoke(place).await,
            9..=11 => self.input(place, true).await,
            12..=14 => self.input(place, false).await,
            15 => self.dispatch(place, Command::Abort).await,
            16..=23 => self.answer(place).await,
            24..=25 => {
                let instructions = self.author.compaction().map(Into::into);
                self.dispatch(place, Command::Compact { instructions })
                    .await;
            }
            26 => self.set_model(place).await,
            27 => self.set_thinking(place).await,
            28..=29 => self.navigate(place).await,
            30..=31 => self.repeat().await,
            32 => self.list_entries(place).await,
            33 => self.list_runs(place).await,
            34 => self.wait_run().await,
            35..=36 => self.later_state(place).await,
            37 => self.capabilities(place).await,
            _ => {
                self.state(place, None).await;
            }
        }
    }

    /// Acts on a session that others rename and delete.
    pub(crate) async fn work(&mut self, place: &Place) {
        match self.rng.below(8) {
            0..=3 => self.invoke(place).await,
            4 => self.input(place, true).await,
            5 => self.input(place, false).await,
            6 => self.dispatch(place, Command::Abort).await,
            _ => {
                let instructions = self.author.compaction().map(Into::into);
                self.dispatch(place, Command::Compact { instructions })
                    .await;
            }
        }
    }

    pub(crate) fn id_of(&self, place: &Place) -> Option<SessionId> {
        self.shared.books.read().names.get(&place.name).copied()
    }

    /// A run of the world, if there is one.
    pub(crate) fn some_run(&mut self) -> Option<(RunId, SessionId)> {
        let runs: Vec<(RunId, SessionId)> = {
            let books = self.shared.books.read();
            books
                .runs
                .values()
                .map(|run| (run.id, run.session))
                .collect()
        };
        self.rng.pick(&runs).copied()
    }

    /// An entry of a session, or now and then one that there is not.
    pub(crate) fn some_entry(&mut self, place: &Place) -> Option<EntryId> {
        let session = self.id_of(place)?;
        let entries = {
            let books = self.shared.books.read();
            books
                .sessions
                .get(&session)
                .map_or(0, |it| it.entries.len())
        };
        let seq = 1 + self.rng.below(entries as u64 + 1);
        Some(EntryId { session, seq })
    }

    fn options(&mut self, keyed: u64) -> CallOptions {
        self.calls += 1;
        let id = format!("{}-{}", self.who, self.calls);
        CallOptions {
            request_id: (self.rng.below(10) < keyed)
                .then(|| RequestId::parse(&id).expect("a request id")),
            deadline: self.deadline(),
        }
    }

    pub(crate) fn deadline(&mut self) -> Option<Duration> {
        self.rng
            .one_in(10)
            .then(|| self.rng.millis(40) + Duration::from_millis(1))
    }

    pub(crate) fn refused(&self, error: &CallError) {
        self.shared.refused(&self.who, error);
    }

    async fn invoke(&mut self, place: &Place) {
        let session = place.reference();
        let parent = self.parent(place);
        let prompt = self.author.write(Kind::Prompt);
        let on_disconnect = if self.rng.one_in(2) {
            OnDisconnect::Cancel
        } else {
            OnDisconnect::Detach
        };
        let request = InvokeRequest {
            session,
            prompt,
            given: Given::default(),
            agent: Some(place.agent.clone()),
            parent,
            must_exist: self.rng.one_in(20),
            on_disconnect,
        };
        let options = self.options(7);
        self.send_invoke(request, options).await;
    }

    /// The leaf of another session, or one of its entries.
    fn parent(&mut self, place: &Place) -> Option<Parent> {
        let name = place.parent.as_ref()?;
        let parent = self.places.iter().find(|it| it.name == *name)?.clone();
        let entry = if self.rng.one_in(2) {
            self.some_entry(&parent)
        } else {
            None
        };
        Some(Parent {
            session: parent.reference(),
            entry,
        })
    }

    async fn send_invoke(&mut self, request: InvokeRequest, options: CallOptions) {
        self.shared.log.tell(&self.who, (&request, &options));
        let connection = self.shared.host.connect().await;
        let caller = connection.caller();
        let id = options.request_id.clone();
        if id.is_some() && self.rng.one_in(8) {
            return self.send_twice(request, options, &connection).await;
        }
        let call = connection.call(caller.invoke(request.clone(), options));
        let answer = self.patiently(call).await;
        let unknown = match answer {
            Some(Ok(Ok(stream))) => {
                self.listen(stream, connection, id.clone());
                // Sometimes the same is asked again while it runs.
                self.rng.one_in(4)
            }
            Some(Ok(Err(error))) => {
                self.refused(&error);
                error.outcome == Outcome::Unknown
            }
            Some(Err(_)) | None => true,
        };
        if let Some(id) = id.filter(|_| unknown) {
            self.repeats.push((id, Call::Invoke(request)));
        }
    }

    /// C11: two calls with one id at a time are one.
    async fn send_twice(
        &mut self,
        request: InvokeRequest,
        options: CallOptions,
        connection: &Connection,
    ) {
        let caller = connection.caller();
        let sooner = caller.invoke(request.clone(), options.clone());
        let later = caller.invoke(request, options.clone());
        let Ok((one, other)) = connection.call(join(sooner, later)).await else {
            return;
        };
        for answer in [one, other] {
            match answer {
                Ok(stream) => self.listen(stream, connection.clone(), options.request_id.clone()),
                Err(error) => self.refused(&error),
            }
        }
    }

    fn listen(
        &mut self,
        stream: ResultStream<InvokeEvent>,
        connection: Connection,
        id: Option<RequestId>,
    ) {
        let rng = self.rng.fork();
        let who = format!("{}/{}", self.who, self.calls);
        let invoking = Invoking::new(self.shared.clone(), who, id, rng);
        let executor = self.shared.host.executor.clone();
        let ended = executor.go(invoking.listen(stream, connection));
        lock(&self.shared.listeners).push(ended);
    }

    /// What a call comes to, unless the client gives up before.
    pub(crate) async fn patiently<T>(&mut self, call: impl Future<Output = T>) -> Option<T> {
        if self.rng.one_in(12) {
            let limit = self.rng.millis(30);
            let executor = self.shared.host.executor.clone();
            executor.within(limit, call).await
        } else {
            Some(call.await)
        }
    }

    async fn input(&mut self, place: &Place, steers: bool) {
        let text = self.author.write(Kind::Input).into();
        let command = if steers {
            Command::Steer {
                text,
                given: Given::default(),
            }
        } else {
            Command::FollowUp {
                text,
                given: Given::default(),
            }
        };
        self.dispatch(place, command).await;
    }

    /// What an agent may choose, and what it may not.
    async fn set_model(&mut self, place: &Place) {
        let mut models = vec![None, Some("none".to_owned())];
        models.extend(self.models(place).into_iter().map(|it| Some(it.spec)));
        let model = self.rng.pick(&models).cloned().flatten();
        self.dispatch(place, Command::SetModel { model }).await;
    }

    async fn set_thinking(&mut self, place: &Place) {
        let mut levels = vec![None, Some("absurd".to_owned())];
        let all = self.models(place).into_iter();
        levels.extend(all.flat_map(|it| it.thinking_levels).map(Some));
        let level = self.rng.pick(&levels).cloned().flatten();
        self.dispatch(place, Command::SetThinking { level }).await;
    }

    fn models(&self, place: &Place) -> Vec<Model> {
        let books = self.shared.books.read();
        let policy = books.models.get(&place.agent);
        policy.map(|it| it.models.clone()).unwrap_or_default()
    }

    async fn navigate(&mut self, place: &Place) {
        if let Some(entry) = self.some_entry(place) {
            self.dispatch(place, Command::Navigate { entry }).await;
        }
    }

    async fn dispatch(&mut self, place: &Place, command: Command) {
        let expected_run = if self.rng.one_in(8) {
            self.some_run().map(|(run, _)| run)
        } else {
            None
        };
        let request = DispatchRequest {
            session: place.reference(),
            command,
            expected_run,
        };
        let options = self.options(6);
        self.send_dispatch(request, options).await;
    }

    pub(crate) async fn respond(&mut self, place: &Place, command: Command) {
        let request = DispatchRequest {
            session: place.reference(),
            command,
            expected_run: None,
        };
        // A key tells two calls apart that answer the same.
        let options = self.options(10);
        self.send_dispatch(request, options).await;
    }

    async fn send_dispatch(&mut self, request: DispatchRequest, options: CallOptions) {
        self.shared.log.tell(&self.who, (&request, &options));
        let connection = self.shared.host.connect().await;
        let caller = connection.caller();
        let id = options.request_id.clone();
        let call = connection.call(caller.dispatch(request.clone(), options));
        let answer = self.patiently(call).await;
        drop(connection);
        let unknown = match answer {
            Some(Ok(Ok(answer))) => {
                self.shared.log.tell(&self.who, &answer);
                self.judge_answer(&request, id.as_ref(), &answer);
                self.rng.one_in(6)
            }
            Some(Ok(Err(error))) => {
                self.refused(&error);
                error.outcome == Outcome::Unknown
            }
            Some(Err(_)) | None => true,
        };
        if let Some(id) = id.filter(|_| unknown) {
            self.repeats.push((id, Call::Dispatch(request)));
        }
    }

    fn judge_answer(
        &self,
        request: &DispatchRequest,
        id: Option<&RequestId>,
        answer: &DispatchAnswer,
    ) {
        let DispatchAnswer::Accepted(accepted) = answer else {
            return;
        };
        let input = accepted.input.map(|input| input.id);
        let what = format!("{:?} {:?}", request.command.kind(), accepted.run);
        self.shared.books.dispatched(id, input, &what);
        if let (Command::Respond { interaction, .. }, Some(id)) = (&request.command, id) {
            self.shared.books.responded(*interaction, id);
        }
    }

    /// Repeats a call of which it does not know what became, or that was accepted already.
    async fn repeat(&mut self) {
        if self.repeats.is_empty() {
            return;
        }
        let at = self.rng.index(self.repeats.len());
        let (id, call) = self.repeats.swap_remove(at);
        let options = CallOptions {
            request_id: Some(id),
            deadline: self.deadline(),
        };
        match call {
            Call::Invoke(request) => self.send_invoke(request, options).await,
            Call::Dispatch(request) => self.send_dispatch(request, options).await,
        }
    }
}
