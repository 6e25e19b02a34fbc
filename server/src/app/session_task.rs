//! The one task of an active session: owns the state, steps it, and executes what it says.
//!
//! At most one commit is in flight. While it is, inputs that [must wait](Session::must_wait) do so in
//! order and the others are stepped at once; then all that waited are stepped into one round.

mod chores;
mod leaving;
mod rounds;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::lifecycle::{
    DetachCause, DispatchFacts, Effect, EngineTag, Input, ReplyId, Round, Session, StreamId, Timer,
    Waiting,
};
use sessionplane_core::ports::clock::BoxFuture;
use sessionplane_core::ports::repository::CommitError;
use tokio::sync::mpsc;

use super::caller::store;
use super::channel::Channel;
use super::context::Context;
use super::engine_host::{EngineLink, Report, Seat};
use super::residents::Departed;
use super::session_loss::{Loss, lose, turn_away};
use super::session_mail::{self, Birth, Gone, Mail, NoReply, ReplyTo};
use super::session_timers::SessionTimers;
use super::single_flight::Flight;
use super::work::AtWork;
use chores::{Chores, Done};

/// Inputs that wait behind a commit at most; then neither the mailbox nor the engine is read. (The
/// last words of an engine that is given up are: as many as its channel holds.)
const WAITING: usize = 256;
/// Engine reports that are taken in one go at most.
const BURST: usize = 64;

/// The state of a session, and the channel that it is told in.
type Loaded = (Session, Arc<Channel>);
type Detached = BoxFuture<(RunId, StreamId, DetachCause)>;

struct InFlight {
    round: u64,
    after: Vec<Effect>,
    commit: BoxFuture<Result<(), CommitError>>,
}

/// The task.
pub(crate) struct SessionTask {
    pub(super) context: Arc<Context>,
    pub(super) session: Session,
    pub(super) channel: Arc<Channel>,
    mailbox: mpsc::Receiver<Mail>,
    round: Round,
    in_flight: Option<InFlight>,
    waiting: Waiting,
    /// By age: where all are told the same, they are told in the order in which they asked.
    pub(super) replies: BTreeMap<ReplyId, (ReplyTo, Option<Flight>)>,
    next_reply: u64,
    pub(super) engine: Option<EngineLink>,
    pub(super) seat: Seat,
    pub(super) timers: SessionTimers,
    detached: FuturesUnordered<Detached>,
    chores: Chores,
    /// A run would find something here: the session is shown as ready.
    warm: bool,
    /// It was sent something: until then its sender is on the way.
    served: bool,
    /// Held from before the first mail is looked at until there is nothing to do.
    at_work: Option<AtWork>,
}

/// What woke the task.
enum Wake {
    Committed(Result<(), CommitError>),
    Chore(Done),
    Mail(Option<Mail>),
    Timer(EngineTag, Timer),
    Detached(Input),
    Engine(Vec<Report>),
    Idle,
    Stop,
}

/// Why the task ends.
enum End {
    Idle(Departed),
    Failed(Loss),
    /// Another session took the name or key that this one was to be created under, or what it was to
    /// branch off is gone.
    Unborn,
    /// The session exists no more.
    Deleted,
    Stopping,
}

impl SessionTask {
    /// Runs until the session is idle for long enough, its commit fails, or the server stops.
    pub(crate) async fn run(context: Arc<Context>, birth: Birth, mailbox: mpsc::Receiver<Mail>) {
        let id = match &birth {
            Birth::Stored(id) => *id,
            Birth::Unborn(record) => record.id,
        };
        let seat = Seat::default();
        let living = async {
            match Self::load(&context, birth).await {
                Ok(loaded) => {
                    let task = Self::new(context.clone(), loaded, mailbox, seat.clone());
                    task.serve().await;
                }
                Err(error) => {
                    tracing::warn!(session = %id, %error, "the session could not be loaded");
                    turn_away(&context, id, mailbox, &error).await;
                }
            }
        };
        // The state that a panic broke is gone with the task; what is left is in the store.
        if AssertUnwindSafe(living).catch_unwind().await.is_err() {
            tracing::error!(session = %id, "the session's task panicked");
            seat.vacated(context.ports.clock.as_ref()).await;
            lose(&context, id, Loss::Right).await;
        }
    }

    async fn load(context: &Context, birth: Birth) -> Result<Loaded, CallError> {
        let ports = &context.ports;
        let limits = context.config.limits;
        match birth {
            Birth::Unborn(record) => {
                let epoch = ports.leases.mint().await.map_err(store)?.0;
                let models = context.agents.models(&record.agent);
                let channel = context.channels.unborn(&record, &models, epoch);
                Ok((Session::unborn(record, limits), channel))
            }
            Birth::Stored(id) => {
                // Before its rows are read: the settlement of a cut run changes them.
                context.settled(id).await?;
                let channel = context.open_channel(id).await.map_err(store)?;
                let stored = ports.repository.session(id).await.map_err(store)?;
                let loaded = stored.map(|stored| Session::stored(stored, limits));
                loaded.zip(channel).ok_or_else(CallError::no_such_session)
            }
        }
    }

    fn new(
        context: Arc<Context>,
        (session, channel): Loaded,
        mailbox: mpsc::Receiver<Mail>,
        seat: Seat,
    ) -> Self {
        Self {
            context,
            session,
            channel,
            mailbox,
            round: Round::default(),
            in_flight: None,
            waiting: Waiting::default(),
            replies: BTreeMap::new(),
            next_reply: 1,
            engine: None,
            seat,
            timers: SessionTimers::default(),
            detached: FuturesUnordered::new(),
            chores: Chores::default(),
            warm: false,
            served: false,
            at_work: None,
        }
    }

    async fn serve(mut self) {
        let end = loop {
            let wake = self.wake().await;
            let outcome = match wake {
                Wake::Committed(result) => self.committed(result),
                Wake::Chore(done) => self.done(done).await,
                Wake::Mail(Some(mail)) => {
                    self.mail(mail).await;
                    Ok(())
                }
                Wake::Timer(tag, timer) => {
                    self.timer(tag, timer);
                    Ok(())
                }
                Wake::Detached(input) => {
                    self.offer([input]);
                    Ok(())
                }
                Wake::Engine(reports) => {
                    self.reports(reports);
                    Ok(())
                }
                Wake::Mail(None) | Wake::Idle => match self.retire().await {
                    Some(departed) => Err(End::Idle(departed)),
                    None => Ok(()),
                },
                Wake::Stop => Err(End::Stopping),
            };
            if let Err(end) = outcome {
                break end;
            }
            if self.is_idle() {
                self.at_work = None;
            }
        };
        self.leave(end).await;
    }

    /// Waits for whatever comes first. The order is fixed, so that a simulation is repeatable; the
    /// engine comes last, because everything else is bounded and rare.
    async fn wake(&mut self) -> Wake {
        let idle = self.is_idle();
        // What only changed the session itself leaves nothing that would be worth keeping.
        let leaves = self.served && !self.warm;
        let ttl = if leaves {
            Duration::ZERO
        } else {
            self.context.config.idle_ttl
        };
        let writes = self.in_flight.is_some() || self.chores.write();
        let (clock, seat) = (self.context.ports.clock.clone(), self.seat.clone());
        let has_room = self.waiting.len() + self.chores.waiting() < WAITING;
        tokio::select! {
            biased;
            () = self.context.stopping.cancelled(), if !writes => Wake::Stop,
            result = in_flight(&mut self.in_flight), if self.in_flight.is_some() => Wake::Committed(result),
            Some(done) = self.chores.next(), if !self.chores.is_empty() => Wake::Chore(done),
            (timer, tag) = self.timers.next() => Wake::Timer(tag, timer),
            Some((run, stream, cause)) = self.detached.next(), if !self.detached.is_empty() =>
                Wake::Detached(Input::Detach { run, stream, cause }),
            mail = self.mailbox.recv(), if has_room => Wake::Mail(mail),
            reports = reports(&mut self.engine), if has_room && self.engine.is_some() => Wake::Engine(reports),
            // Lazy, so that a busy session makes no timer. The next task has a seat of its own.
            () = async move {
                drop(seat.vacated(clock.as_ref()).await);
                clock.sleep(ttl).await;
            }, if idle => Wake::Idle,
        }
    }

    fn is_idle(&self) -> bool {
        self.session.is_free()
            && self.in_flight.is_none()
            && self.chores.is_empty()
            && self.waiting.is_empty()
            && self.round.is_empty()
    }

    async fn mail(&mut self, mail: Mail) {
        self.served = true;
        // Before the drain is looked at: either it sees this session at work, or this sees the drain.
        let (work, draining) = (&self.context.work, &self.context.draining);
        let channel = &self.channel;
        self.at_work
            .get_or_insert_with(|| work.begin(channel, draining));
        if draining.is_cancelled() && mail.begins_work() {
            return mail.refuse(session_mail::draining());
        }
        if mail.warms() {
            self.warm_up();
        }
        let input = match mail {
            Mail::Invoke {
                mut facts,
                reply,
                gone,
                flight,
            } => {
                // Minted here and not by the callers, whose mails come in any order: a run's token
                // must be greater than that of every run that was stepped before it.
                facts.token = match self.context.ports.leases.mint().await {
                    Ok(token) => token,
                    Err(error) => {
                        // A caller that left does not miss its answer.
                        let _ = reply.send(Err(NoReply::Refused(store(error))));
                        return;
                    }
                };
                let (run, stream) = (facts.run, facts.stream);
                self.watch(run, stream, gone);
                Input::Invoke {
                    reply: self.expect(reply, flight),
                    facts,
                }
            }
            Mail::Dispatch {
                facts,
                reply,
                flight,
            } => return self.dispatch(facts, reply, flight).await,
            Mail::Chore {
                chore,
                reply,
                flight,
            } => return self.chore(chore, reply, flight).await,
            Mail::Attach {
                run,
                stream,
                on_disconnect,
                reply,
                gone,
            } => {
                self.watch(run, stream, gone);
                Input::Attach {
                    reply: self.expect(reply, None),
                    run,
                    stream,
                    on_disconnect,
                }
            }
        };
        self.offer([input]);
    }

    async fn dispatch(
        &mut self,
        mut facts: Box<DispatchFacts>,
        reply: ReplyTo,
        flight: Option<Flight>,
    ) {
        // A boundary mutation writes under a token of its own, minted here like a run's. Also for a
        // session that is not free: it may be once this is stepped.
        if facts.command.kind().is_boundary() {
            facts.token = match self.context.ports.leases.mint().await {
                Ok(token) => Some(token),
                Err(error) => {
                    // A caller that left does not miss its answer.
                    let _ = reply.send(Err(NoReply::Refused(store(error))));
                    return;
                }
            };
        }
        let reply = self.expect(reply, flight);
        self.offer([Input::Dispatch { reply, facts }]);
    }

    pub(super) fn expect(&mut self, reply: ReplyTo, flight: Option<Flight>) -> ReplyId {
        let id = ReplyId(self.next_reply);
        self.next_reply += 1;
        self.replies.insert(id, (reply, flight));
        id
    }

    fn watch(&mut self, run: RunId, stream: StreamId, gone: Gone) {
        self.detached.push(Box::pin(async move {
            // A guard that vanished without a word is a caller that left.
            (run, stream, gone.await.unwrap_or(DetachCause::CallerGone))
        }));
    }

    fn timer(&mut self, tag: EngineTag, timer: Timer) {
        // The deadline ends what the engine says, and not what it has said before.
        if timer == Timer::AbortGrace
            && let Some(engine) = self.engine.as_mut().filter(|engine| engine.tag == tag)
        {
            let said = engine.last_words();
            self.reports(said);
        }
        self.offer([Input::Timer { tag, timer }]);
    }

    fn reports(&mut self, reports: Vec<Report>) {
        let Some(tag) = self.engine.as_ref().map(|engine| engine.tag) else {
            return;
        };
        let inputs = reports.into_iter().map(|report| match report {
            Report::Opened(revalidation) => Input::EngineOpened { tag, revalidation },
            Report::Event(event, artifact) => Input::Engine {
                tag,
                event,
                artifact,
            },
            Report::Gone(reason) => Input::EngineGone { tag, reason },
        });
        self.offer(inputs);
    }
}

async fn in_flight(in_flight: &mut Option<InFlight>) -> Result<(), CommitError> {
    match in_flight {
        Some(in_flight) => in_flight.commit.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn reports(engine: &mut Option<EngineLink>) -> Vec<Report> {
    match engine {
        Some(engine) => engine.next(BURST).await,
        None => std::future::pending().await,
    }
}
