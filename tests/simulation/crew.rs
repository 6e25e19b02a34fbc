//! Whoever works with the fleet: creates, names, labels, pauses, deletes and lists sessions, and works in
//! them, while others do the same (C3, C15, C40, C45 to C47, C61).

use sessionplane_core::contract::fleet::{
    ChangeDirectory, ChangeDirectoryAnswer, CreateSession, DeleteAnswer, DeleteSession, Fleet as _,
    UpdateSession,
};
use sessionplane_core::contract::{CallOptions, Parent};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::fleet::labels::{LabelKey, LabelValue, Labels, Priority};
use sessionplane_core::domain::fleet::metadata::{LabelsChange, MetadataChange};
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{RequestId, SessionId, SessionName, SessionRef};

use crate::client::{Client, Place};
use crate::grounds::place;
use crate::ledger::{Known, metadata};
use crate::reader::Shared;
use crate::rng::Rng;
use crate::server::{Broken, Connection};

/// A call that can be repeated.
#[derive(Clone, Debug)]
enum Call {
    Create(CreateSession),
    Update(UpdateSession),
    Delete(DeleteSession),
    Move(ChangeDirectory),
    Pause(SessionId, bool),
}

/// What a call that was answered came to.
#[derive(Debug)]
enum Done {
    Session(Box<SessionSummary>),
    Deleted(DeleteAnswer),
    Moved(ChangeDirectoryAnswer),
}

/// Somebody who works with the fleet.
pub(crate) struct Crew {
    pub(crate) shared: Shared,
    pub(crate) who: String,
    /// Sessions that live on: they are paused and labelled, and keep their names.
    places: Vec<Place>,
    /// Sessions that come and go, by the names that they may have.
    stock: Vec<Place>,
    hands: Client,
    pub(crate) rng: Rng,
    calls: u64,
    repeats: Vec<(RequestId, Call)>,
}

impl Crew {
    pub(crate) fn new(
        shared: Shared,
        who: String,
        (places, stock): (Vec<Place>, Vec<Place>),
        mut rng: Rng,
    ) -> Self {
        let hands = Client::new(
            shared.clone(),
            format!("{who}-hands"),
            stock.clone(),
            rng.fork(),
        );
        Self {
            shared,
            who,
            places,
            stock,
            hands,
            rng,
            calls: 0,
            repeats: Vec::new(),
        }
    }

    /// Acts so many times.
    pub(crate) async fn run(mut self, actions: u32) {
        for _ in 0..actions {
            let pause = if self.rng.one_in(8) { 3_000 } else { 100 };
            let pause = self.rng.millis(pause);
            self.shared.host.executor.sleep(pause).await;
            self.act().await;
        }
    }

    async fn act(&mut self) {
        match self.rng.below(24) {
            0..=3 => self.create().await,
            4..=7 => self.update().await,
            8..=9 => self.delete().await,
            10 => self.change_directory().await,
            11..=12 => self.hold().await,
            13..=16 => {
                let at = self.rng.index(self.stock.len());
                let place = self.stock[at].clone();
                self.hands.work(&place).await;
            }
            17..=18 => self.get().await,
            19..=20 => self.list().await,
            21 => self.questions().await,
            _ => self.repeat().await,
        }
    }

    fn some_name(&mut self) -> SessionName {
        let at = self.rng.index(self.stock.len());
        self.stock[at].name.clone()
    }

    /// A session of the world, if there is one; one that comes and goes if that is asked for.
    pub(crate) fn some_session(&mut self, comes_and_goes: bool) -> Option<SessionId> {
        let places = if comes_and_goes || self.rng.one_in(2) {
            &self.stock
        } else {
            &self.places
        };
        let at = self.rng.index(places.len());
        let books = self.shared.books.read();
        books.names.get(&places[at].name).copied()
    }

    fn options(&mut self) -> CallOptions {
        self.calls += 1;
        let id = format!("{}-{}", self.who, self.calls);
        CallOptions {
            request_id: (!self.rng.one_in(4)).then(|| RequestId::parse(&id).expect("a request id")),
            deadline: self.hands.deadline(),
        }
    }

    fn label(&mut self) -> (LabelKey, LabelValue) {
        let key = LabelKey::parse("kind").expect("a key");
        let value = format!("k{}", self.rng.below(3));
        (key, LabelValue::parse(&value).expect("a value"))
    }

    async fn create(&mut self) {
        let parent = self.some_session(false).filter(|_| self.rng.one_in(4));
        let request = CreateSession {
            name: (!self.rng.one_in(6)).then(|| self.some_name()),
            labels: Labels::of([self.label()]).expect("few labels"),
            priority: self.priority(),
            paused: self.rng.one_in(5),
            parent: parent.map(|id| Parent {
                session: SessionRef::Id(id),
                entry: None,
            }),
            ..CreateSession::default()
        };
        let options = self.options();
        self.send(Call::Create(request), options).await;
    }

    fn priority(&mut self) -> Priority {
        let number = i64::try_from(self.rng.below(5)).unwrap_or(0) - 2;
        Priority::parse(number).expect("a priority")
    }

    async fn update(&mut self) {
        let comes_and_goes = self.rng.one_in(2);
        let Some(id) = self.some_session(comes_and_goes) else {
            return;
        };
        let (key, value) = self.label();
        let value = (!self.rng.one_in(3)).then_some(value);
        let change = MetadataChange {
            name: (comes_and_goes && self.rng.one_in(2)).then(|| Some(self.some_name())),
            labels: Some(LabelsChange::Merge(vec![(key, value)])),
            priority: self.rng.one_in(2).then(|| self.priority()),
            paused: None,
        };
        let request = UpdateSession {
            session: SessionRef::Id(id),
            change,
            etag: self.etag(id),
        };
        let options = self.options();
        self.send(Call::Update(request), options).await;
    }

    /// The newest revision that somebody was told, now and then; it may be old by now.
    fn etag(&mut self, id: SessionId) -> Option<u64> {
        let told = self.shared.ledger.known();
        let revision = told.revisions.get(&id)?.1;
        self.rng.one_in(3).then_some(revision)
    }

    async fn delete(&mut self) {
        let Some(id) = self.some_session(true) else {
            return;
        };
        let request = DeleteSession {
            session: SessionRef::Id(id),
            etag: self.etag(id),
            abort: self.rng.one_in(2),
        };
        let options = self.options();
        self.send(Call::Delete(request), options).await;
    }

    async fn change_directory(&mut self) {
        let Some(session) = self.some_session(false) else {
            return;
        };
        let to = place(self.rng.index(6));
        let request = ChangeDirectory {
            session: SessionRef::Id(session),
            workspace: (!self.rng.one_in(4)).then_some(to.workspace),
            directory: to.directory,
        };
        let options = self.options();
        self.send(Call::Move(request), options).await;
    }

    /// C15: paused for a while, and resumed.
    async fn hold(&mut self) {
        let Some(id) = self.some_session(false) else {
            return;
        };
        let options = self.options();
        self.send(Call::Pause(id, true), options).await;
        let pause = self.rng.millis(400);
        self.shared.host.executor.sleep(pause).await;
        let options = self.options();
        self.send(Call::Pause(id, false), options).await;
    }

    async fn repeat(&mut self) {
        if self.repeats.is_empty() {
            return;
        }
        let at = self.rng.index(self.repeats.len());
        let (id, call) = self.repeats.swap_remove(at);
        let options = CallOptions {
            request_id: Some(id),
            deadline: self.hands.deadline(),
        };
        self.send(call, options).await;
    }

    async fn send(&mut self, call: Call, options: CallOptions) {
        self.shared.log.tell(&self.who, (&call, &options));
        let connection = self.shared.host.connect().await;
        let known = self.shared.ledger.known();
        let resumes = match call {
            Call::Pause(id, true) => self.shared.books.pausing(id),
            Call::Pause(id, false) => {
                self.shared.books.resuming(id);
                0
            }
            _ => 0,
        };
        let id = options.request_id.clone();
        let making = make(&connection, call.clone(), options);
        let answer = self.hands.patiently(making).await;
        let answer = answer.unwrap_or(Err(Broken));
        let refused = matches!(&answer, Ok(Err(error)) if error.outcome == Outcome::Refused);
        if let Call::Pause(session, false) = call
            && (refused || matches!(answer, Ok(Ok(_))))
        {
            self.shared.books.resumed(session);
        }
        let again = match answer {
            Ok(Ok(done)) => {
                self.judge(&call, &done, id.as_ref(), (&known, resumes));
                self.rng.one_in(5)
            }
            Ok(Err(error)) => {
                self.refused(&call, &error, &known);
                !refused
            }
            Err(Broken) => true,
        };
        if let Some(id) = id.filter(|_| again) {
            self.repeats.push((id, call));
        }
    }

    fn judge(
        &self,
        call: &Call,
        done: &Done,
        id: Option<&RequestId>,
        (known, resumes): (&Known, u64),
    ) {
        self.shared.log.tell(&self.who, done);
        let (session, what) = match done {
            Done::Session(session) => {
                self.shared.ledger.answered(session, known);
                (session.id, format!("changed to {:?}", metadata(session)))
            }
            Done::Moved(ChangeDirectoryAnswer::Moved { session, .. }) => {
                self.shared.ledger.answered(session, known);
                (session.id, format!("moved to {:?}", session.place))
            }
            Done::Deleted(DeleteAnswer::Rejected(_))
            | Done::Moved(ChangeDirectoryAnswer::Rejected(_)) => return,
            Done::Deleted(DeleteAnswer::Deleted) => {
                let Call::Delete(DeleteSession {
                    session: SessionRef::Id(session),
                    ..
                }) = call
                else {
                    return;
                };
                self.shared.ledger.deleted(*session);
                (*session, "deleted".to_owned())
            }
        };
        if let Some(id) = id {
            self.shared.books.bound(id, &format!("{what} {session}"));
        }
        if let (Call::Pause(_, true), Done::Session(session)) = (call, done)
            && session.paused
            && session.revision > 0
        {
            let now = self.shared.host.executor.clock().now();
            self.shared.books.paused(session.id, resumes, now);
        }
    }

    /// Who knows of a session is not told that there is none.
    fn refused(&self, call: &Call, error: &CallError, known: &Known) {
        self.shared.refused(&self.who, error);
        let (Call::Update(UpdateSession {
            session: SessionRef::Id(id),
            ..
        })
        | Call::Pause(id, _)) = call
        else {
            return;
        };
        self.unknown(*id, error, known);
    }

    pub(crate) fn unknown(&self, id: SessionId, error: &CallError, known: &Known) {
        let lost = matches!(error.reason, Reason::NoSuchSession | Reason::SessionDeleted)
            && known.revisions.contains_key(&id);
        if lost && self.shared.books.read().alive().contains(&id) {
            self.wrong(&format!("C45: {id} is there, and was not found"));
        }
    }

    pub(crate) fn wrong(&self, what: &str) {
        self.shared.log.wrong(format!("{}: {what}", self.who));
    }
}

async fn make(
    connection: &Connection,
    call: Call,
    options: CallOptions,
) -> Result<Result<Done, CallError>, Broken> {
    let caller = connection.caller();
    let session = |it| Done::Session(Box::new(it));
    let making = async {
        match call {
            Call::Create(request) => caller.create_session(request, options).await.map(session),
            Call::Update(request) => caller.update_session(request, options).await.map(session),
            Call::Delete(request) => caller
                .delete_session(request, options)
                .await
                .map(Done::Deleted),
            Call::Move(request) => caller
                .change_directory(request, options)
                .await
                .map(Done::Moved),
            Call::Pause(id, true) => caller
                .pause_session(SessionRef::Id(id), options)
                .await
                .map(session),
            Call::Pause(id, false) => caller
                .resume_session(SessionRef::Id(id), options)
                .await
                .map(session),
        }
    };
    connection.call(making).await
}
