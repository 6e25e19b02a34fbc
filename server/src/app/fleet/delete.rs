//! The end of a session: what is active in it first, if the caller says so.

use sessionplane_core::contract::fleet::{DeleteAnswer, DeleteSession};
use sessionplane_core::contract::{CallOptions, DispatchRequest};
use sessionplane_core::domain::access::{Action, Decision};
use sessionplane_core::domain::binding::Method;
use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::fleet::filter::StoredTerm;
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{RunId, SessionId, SessionRef};
use sessionplane_core::domain::lifecycle::DispatchFacts;
use sessionplane_core::domain::provenance::Channel;
use sessionplane_core::domain::view::{SessionView, Status};
use sessionplane_core::ports::repository::SessionQuery;
use tokio::sync::oneshot;

use super::answers::{Judged, decided, has_children, mismatch, unexpected};
use super::digests;
use crate::app::caller::{AppCaller, Bound, store};
use crate::app::channel::Channel as EventChannel;
use crate::app::digest;
use crate::app::dispatch::{check_same, lost};
use crate::app::permission::Subject;
use crate::app::session_loss::Loss;
use crate::app::session_mail::{Chore, Mail, NoReply};

/// How often what is active is aborted: others may begin something between the abort and the end.
const ATTEMPTS: usize = 8;

/// Sessions that branch off one which are looked at for one that may be named.
const CHILDREN: usize = 16;

/// What holds a session.
type At = (Status, Option<RunId>);

impl AppCaller {
    pub(super) async fn delete(
        &self,
        request: DeleteSession,
        options: &CallOptions,
    ) -> Result<DeleteAnswer, CallError> {
        let (action, digest) = (Action::Delete, digests::of_delete(&request));
        let mut bound = self.bound(Method::DeleteSession, options).await?;
        if let Some(binding) = bound.binding.take() {
            self.authorize_session(binding.session, action).await?;
            check_same(&binding, digest)?;
            decided(binding)?;
            return Ok(DeleteAnswer::Deleted);
        }
        let (id, decision) = self.session(&request.session, action).await?;
        let mut aborts = false;
        if request.abort {
            self.come_to_rest(id, request.etag, &decision, &mut aborts)
                .await
                .map_err(|error| after(aborts, error))?;
        }
        let flight = bound.flight.take();
        let chore = Chore::Delete {
            call: Box::new(self.facts(&bound, digest, decision)),
            etag: request.etag,
        };
        let mut judged = self.have_done(id, None, chore, flight).await;
        if let Err(error) = &judged
            && error.reason == Reason::HasChildren
        {
            judged = Err(self.child_of(id).await?.unwrap_or_else(|| error.clone()));
        }
        match judged.map_err(|error| after(aborts, error))? {
            Judged::Done(_) => Ok(DeleteAnswer::Deleted),
            // Somebody began something after what was active had ended: that was not meant.
            Judged::Rejected(no) => Ok(DeleteAnswer::Rejected(no)),
            Judged::Taken | Judged::Elsewhere => Err(unexpected()),
        }
    }

    /// Ends what is active, and what others begin meanwhile, a bounded number of times. What would be
    /// refused anyway is refused before that, and what is active goes on.
    async fn come_to_rest(
        &self,
        session: SessionId,
        etag: Option<u64>,
        decision: &Decision,
        aborts: &mut bool,
    ) -> Result<(), CallError> {
        let channel = self.context.channel(session).await?;
        let channel = channel.ok_or_else(CallError::no_such_session)?;
        for _ in 0..ATTEMPTS {
            let was = channel.with_view(at);
            if was.0 == Status::Idle || channel.loss().is_some() {
                break;
            }
            self.check_may_end(&channel, etag).await?;
            *aborts = true;
            self.end_what_is_active(&channel, was, decision).await?;
        }
        Ok(())
    }

    /// What the store would refuse a deletion for, as far as it can be told before. It judges it again.
    async fn check_may_end(
        &self,
        channel: &EventChannel,
        etag: Option<u64>,
    ) -> Result<(), CallError> {
        let revision = channel.metadata().revision;
        if let Some(etag) = etag.filter(|etag| *etag != revision) {
            return Err(mismatch(etag, revision));
        }
        match self.child_of(channel.session()).await? {
            Some(refused) => Err(refused),
            None => Ok(()),
        }
    }

    /// The refusal to delete a session that others branch off, if any does.
    async fn child_of(&self, session: SessionId) -> Result<Option<CallError>, CallError> {
        let query = SessionQuery {
            tenant: self.principal().tenant.clone(),
            term: StoredTerm::Parent(session),
            after: None,
            descending: false,
            max: CHILDREN,
        };
        let found = self.context.ports.repository.find(query).await;
        let found = found.map_err(store)?;
        for child in &found {
            let subject = Subject::Stored(child.session.clone());
            if self.may_know(&subject).await {
                return Ok(Some(has_children(Some(subject.id()))));
            }
        }
        Ok((!found.is_empty()).then(|| has_children(None)))
    }

    /// Aborts the run or the compaction, and waits for its end. It is part of the deletion: who may
    /// delete a session may abort what is active in it.
    async fn end_what_is_active(
        &self,
        channel: &EventChannel,
        was: At,
        decision: &Decision,
    ) -> Result<(), CallError> {
        let session = channel.session();
        let facts = self.abort_facts(channel, decision)?;
        let (reply, answer) = oneshot::channel();
        let mail = Mail::Dispatch {
            facts: Box::new(facts),
            reply,
            flight: None,
        };
        // Without a task nothing is active any more.
        if self.context.residents.send(session, mail).await.is_err() {
            return Ok(());
        }
        match answer.await {
            // Whether it took the command or was ending already: its end comes.
            Ok(Ok(_)) => {}
            Ok(Err(no)) => return Err(lost(&no)),
            Err(_) => return Err(lost(&NoReply::Lost(Loss::Right))),
        }
        let mut wake = channel.subscribe();
        let ended = wake.wait_for(|_| channel.loss().is_some() || channel.with_view(at) != was);
        // The channel lives as long as this does, so it ends by what is told alone.
        let _ = ended.await;
        Ok(())
    }

    fn abort_facts(
        &self,
        channel: &EventChannel,
        decision: &Decision,
    ) -> Result<DispatchFacts, CallError> {
        let bound = Bound {
            key: None,
            flight: None,
            binding: None,
        };
        let request = DispatchRequest {
            session: SessionRef::Id(channel.session()),
            command: Command::Abort,
            expected_run: None,
        };
        let digest = digest::of_dispatch(&request, &self.context.ports.digest_key);
        let call = self.facts(&bound, digest, decision.clone());
        let agent = channel.with_view(|view| view.session.agent.clone());
        Ok(DispatchFacts {
            call,
            origin: self.origin(Channel::Control, "", &Given::default(), &bound),
            data: None,
            command: request.command,
            expected_run: None,
            agent: self.context.agents.facts(&agent)?.clone(),
            token: None,
            target: None,
            paused: false,
        })
    }
}

/// C2: who was refused after something was aborted for it must not take that for nothing, unless what it
/// was is gone, too.
fn after(aborts: bool, error: CallError) -> CallError {
    match error.outcome {
        Outcome::Refused if aborts && error.reason != Reason::NoSuchSession => CallError {
            outcome: Outcome::Unknown,
            ..error
        },
        _ => error,
    }
}

fn at(view: &SessionView) -> At {
    (view.status(), view.active_run)
}
