//! Changes of the session itself: its metadata, which have a revision of their own and are committed
//! beside whatever runs; its end, which the store judges once nothing else is being written; and what
//! version control says after a run.
//!
//! They are done here and not in their callers' futures: a caller who leaves does not leave a change that
//! is durable and that nobody was told of.

use std::collections::VecDeque;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::audit::{AuditAction, AuditRecord};
use sessionplane_core::domain::binding::{Binding, BoundAnswer, SessionAnswer};
use sessionplane_core::domain::commit::MetadataCommit;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::metadata::{Metadata, MetadataChange};
use sessionplane_core::domain::ids::{SessionId, TenantId};
use sessionplane_core::domain::lifecycle::{Answer, CallFacts, Deletion, Input, Unread};
use sessionplane_core::domain::place::{Checkout, Place};
use sessionplane_core::ports::clock::BoxFuture;
use sessionplane_core::ports::repository::CommitError;

use super::{End, SessionTask};
use crate::app::caller::store;
use crate::app::context::Ports;
use crate::app::fleet::{has_children, mismatch};
use crate::app::session_loss::Loss;
use crate::app::session_mail::{Chore, NoReply, Reply, ReplyTo};
use crate::app::single_flight::Flight;

/// How often a change is decided anew after another writer of the metadata was first.
const ATTEMPTS: usize = 8;

/// A change of metadata that waits for the one before it.
struct Pending {
    call: CallFacts,
    action: Action,
    change: MetadataChange,
    etag: Option<u64>,
    reply: ReplyTo,
    flight: Option<Flight>,
}

/// What was done beside the session's commits.
pub(super) enum Done {
    /// A change of metadata was judged.
    Changed(Result<Metadata, Refused>, ReplyTo, Option<Flight>),
    /// The deletion was judged.
    Deleted(Result<(), CommitError>),
    /// A place was looked at.
    Looked(Place, Option<Checkout>),
}

/// Why metadata were not changed.
pub(super) enum Refused {
    /// Nothing happened.
    Call(CallError),
    /// The name is taken. Not everybody may know that.
    NameTaken,
    /// The store failed: nobody knows.
    Store(CommitError),
}

/// What goes on beside the session's commits.
#[derive(Default)]
pub(super) struct Chores {
    waiting: VecDeque<Pending>,
    running: FuturesUnordered<BoxFuture<Done>>,
    changing: bool,
    deleting: bool,
}

impl Chores {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// How many wait for others.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether one is being written.
    pub(super) fn write(&self) -> bool {
        self.changing || self.deleting
    }

    /// The next that is done. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Done> {
        self.running.next().await
    }
}

impl SessionTask {
    /// From here on a run would find something in memory, for as long as the task stays.
    pub(super) fn warm_up(&mut self) {
        if !std::mem::replace(&mut self.warm, true) {
            let now = self.context.ports.clock.now();
            self.channel.keeps(true, now);
        }
    }

    /// Nothing would be found any more.
    pub(super) fn cool_down(&mut self) {
        if std::mem::take(&mut self.warm) {
            let now = self.context.ports.clock.now();
            self.channel.keeps(false, now);
        }
    }

    pub(super) async fn chore(&mut self, chore: Chore, reply: ReplyTo, flight: Option<Flight>) {
        if let Chore::Change {
            call,
            action,
            change,
            etag,
        } = chore
        {
            self.chores.waiting.push_back(Pending {
                call: *call,
                action,
                change: *change,
                etag,
                reply,
                flight,
            });
            return self.start_change();
        }
        // Minted here, in the order in which what it is for is stepped.
        let token = match self.context.ports.leases.mint().await {
            Ok(token) => token,
            Err(error) => {
                // A caller that left does not miss its answer.
                let _ = reply.send(Err(NoReply::Refused(store(error))));
                return;
            }
        };
        let reply = self.expect(reply, flight);
        let input = match chore {
            Chore::Create(mut facts) => {
                facts.token = token;
                Input::Create { reply, facts }
            }
            Chore::Move(mut facts) => {
                facts.token = token;
                Input::Move { reply, facts }
            }
            Chore::Delete { call, etag } => Input::Delete {
                reply,
                call,
                token,
                etag,
            },
            Chore::Change { .. } => return,
        };
        self.offer([input]);
    }

    /// One at a time, none before the session's creation is told (it may be found before its task hears
    /// that it is durable), and none once the session, or its task, is to end: those that always follow
    /// would keep a stop from being seen.
    pub(super) fn start_change(&mut self) {
        let waits = self.chores.write() || self.channel.shown().is_none();
        let ends = self.session.deletion().is_some() || self.context.stopping.is_cancelled();
        if waits || ends {
            return;
        }
        let Some(pending) = self.chores.waiting.pop_front() else {
            return;
        };
        self.chores.changing = true;
        let ports = self.context.ports.clone();
        let (id, tenant) = (self.session.id(), self.channel.tenant().clone());
        let metadata = self.channel.metadata();
        self.chores.running.push(Box::pin(async move {
            let changed = change(&ports, id, tenant, metadata, &pending).await;
            Done::Changed(changed, pending.reply, pending.flight)
        }));
    }

    /// Asks the store for the session's end: no commit is in flight or being gathered.
    pub(super) fn start_deletion(&mut self) {
        if self.chores.write() {
            return;
        }
        let metadata = self.channel.metadata().revision;
        let now = self.context.ports.clock.now();
        let Some(commit) = self.session.deletion_commit(metadata, now) else {
            return;
        };
        let etag = self.session.deletion().and_then(Deletion::etag);
        if let Some(etag) = etag.filter(|etag| *etag != metadata) {
            return self.keep(mismatch(etag, metadata));
        }
        self.chores.deleting = true;
        let repository = self.context.ports.repository.clone();
        self.chores.running.push(Box::pin(async move {
            Done::Deleted(repository.delete(commit).await)
        }));
    }

    pub(super) async fn done(&mut self, done: Done) -> Result<(), End> {
        match done {
            Done::Changed(changed, reply, flight) => {
                self.chores.changing = false;
                self.changed(changed, reply)?;
                drop(flight);
                self.start_change();
                if self.in_flight.is_none() && self.round.is_empty() {
                    self.start_deletion();
                }
                Ok(())
            }
            Done::Deleted(judged) => {
                self.chores.deleting = false;
                self.deleted(judged)
            }
            Done::Looked(place, checkout) => {
                self.looked(place, checkout).await;
                Ok(())
            }
        }
    }

    fn changed(&mut self, changed: Result<Metadata, Refused>, reply: ReplyTo) -> Result<(), End> {
        let position = self.channel.position();
        let answer = match changed {
            Ok(metadata) => {
                let now = self.context.ports.clock.now();
                self.channel.change(metadata, now);
                Answer::Changed
            }
            Err(Refused::Call(error)) => Answer::Refused(error),
            Err(Refused::NameTaken) => {
                let _ = reply.send(Err(NoReply::NameTaken));
                return Ok(());
            }
            Err(Refused::Store(error)) => {
                let _ = reply.send(Err(NoReply::Lost(Loss::of(&error))));
                return Err(self.fail(&error));
            }
        };
        // A caller that left does not miss its answer.
        let _ = reply.send(Ok(Reply::of(&self.channel, answer, position)));
        Ok(())
    }

    fn deleted(&mut self, judged: Result<(), CommitError>) -> Result<(), End> {
        let error = match judged {
            Ok(()) => {
                // First of all: who hears that it is gone finds it nowhere.
                self.channel.gone();
                self.context.channels.forget(self.session.id());
                self.answer_deletion(Answer::Changed);
                return Err(End::Deleted);
            }
            Err(error) => error,
        };
        let refusal = match &error {
            // Whether its caller may see them is looked at when it is answered.
            CommitError::HasChildren { .. } => has_children(None),
            // Another writer of the metadata was first: nothing was meant for what they are now.
            CommitError::MetadataConflict { .. } => CallError::refused(
                Reason::EtagMismatch,
                "the session's metadata changed meanwhile; look again, and repeat",
            ),
            CommitError::NoSuchSession => CallError::no_such_session(),
            CommitError::Fenced { .. }
            | CommitError::Conflict { .. }
            | CommitError::AlreadyExists
            | CommitError::AlreadyBound
            | CommitError::NoParent
            | CommitError::Malformed(_)
            | CommitError::Store(_) => return Err(self.fail(&error)),
        };
        self.keep(refusal);
        Ok(())
    }

    /// The session goes on, and so does whoever waited to hear whether it would.
    fn keep(&mut self, refusal: CallError) {
        self.answer_deletion(Answer::Refused(refusal));
        let mut effects = Vec::new();
        self.step(Input::Kept, Unread::default(), &mut effects);
        self.go_on(effects);
        self.start_change();
    }

    fn answer_deletion(&mut self, answer: Answer) {
        let Some(id) = self.session.deletion().map(Deletion::reply) else {
            return;
        };
        if let Some((reply, flight)) = self.replies.remove(&id) {
            let position = self.channel.position();
            // A caller that left does not miss its answer.
            let _ = reply.send(Ok(Reply::of(&self.channel, answer, position)));
            drop(flight);
        }
    }

    /// Whoever waits for a session that exists no more hears so.
    pub(super) fn turn_all_away(&mut self) {
        let replies = std::mem::take(&mut self.replies).into_values();
        let replies = replies.map(|(reply, _)| reply);
        let pending = self.chores.waiting.drain(..).map(|pending| pending.reply);
        for reply in replies.chain(pending) {
            // A caller that left does not miss its answer.
            let _ = reply.send(Err(NoReply::Refused(CallError::no_such_session())));
        }
    }

    /// C45: after a run its directory may be on another branch, or at another commit.
    pub(in crate::app) fn look_at_checkout(&mut self) {
        let place = self.session.head().place.clone();
        let workspaces = self.context.ports.workspaces.clone();
        if let (Some(place), Some(workspaces)) = (place, workspaces) {
            self.chores.running.push(Box::pin(async move {
                let checkout = workspaces.checkout(&place).await;
                Done::Looked(place, checkout)
            }));
        }
    }

    async fn looked(&mut self, place: Place, checkout: Option<Checkout>) {
        if self.channel.placed().1 == checkout {
            return;
        }
        match self.context.ports.leases.mint().await {
            Ok(token) => self.offer([Input::Noted {
                token,
                place,
                checkout,
            }]),
            Err(error) => tracing::warn!(%error, "what version control says is not noted"),
        }
    }
}

/// Compares and sets, again where another writer was first, unless the caller means one revision.
async fn change(
    ports: &Ports,
    session: SessionId,
    tenant: TenantId,
    mut metadata: Metadata,
    pending: &Pending,
) -> Result<Metadata, Refused> {
    for _ in 0..ATTEMPTS {
        let expected = metadata.revision;
        if let Some(etag) = pending.etag.filter(|etag| *etag != expected) {
            return Err(Refused::Call(mismatch(etag, expected)));
        }
        let next = metadata.changed(&pending.change, ports.clock.now());
        let next = next.map_err(|error| {
            Refused::Call(CallError::invalid(
                "labels",
                format!("{error}; remove some"),
            ))
        })?;
        let commit = commit(session, &tenant, expected, &next, pending);
        match ports.repository.commit_metadata(commit).await {
            Ok(()) => return Ok(next),
            Err(CommitError::MetadataConflict { .. }) => {}
            Err(CommitError::AlreadyExists) => return Err(Refused::NameTaken),
            Err(CommitError::NoSuchSession) => {
                return Err(Refused::Call(CallError::no_such_session()));
            }
            Err(error) => return Err(Refused::Store(error)),
        }
        let stored = ports.repository.session(session).await;
        let stored = stored.map_err(|error| Refused::Call(store(error)))?;
        let stored = stored.ok_or_else(|| Refused::Call(CallError::no_such_session()))?;
        metadata = stored.record.metadata;
    }
    let message = "the session's metadata kept being changed; try again";
    Err(Refused::Call(CallError::refused(
        Reason::Overloaded,
        message,
    )))
}

fn commit(
    session: SessionId,
    tenant: &TenantId,
    expected: u64,
    metadata: &Metadata,
    pending: &Pending,
) -> MetadataCommit {
    let call = &pending.call;
    let at = metadata.updated_at;
    let binding = call.binding.clone().map(|key| Binding {
        key,
        session,
        digest: call.digest,
        answer: BoundAnswer::Session(Some(Box::new(SessionAnswer {
            metadata: Some(metadata.clone()),
            placed: None,
        }))),
        at,
    });
    MetadataCommit {
        session,
        expected,
        metadata: metadata.clone(),
        bindings: binding.into_iter().collect(),
        audit: AuditRecord {
            session,
            ordinal: metadata.revision,
            tenant: tenant.clone(),
            at,
            actor: Some(call.actor.clone()),
            action: AuditAction::Call(pending.action),
            request_digest: Some(call.digest),
            bytes: 0,
            request_id: call.request_id.clone(),
            run: None,
            entries: Vec::new(),
            outcome: "accepted",
            sandbox: None,
        },
    }
}
