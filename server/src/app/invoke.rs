//! `Invoke`: joins the run that the request id started, or has the session's task admit a new one.

mod streams;

use std::sync::Arc;

use futures_util::stream;
use sessionplane_core::contract::{CallOptions, InvokeEvent, InvokeRequest, Parent, ResultStream};
use sessionplane_core::domain::access::{Action, Decision, PolicyContext, Resource, SessionFacts};
use sessionplane_core::domain::binding::{Binding, BoundAnswer, Method};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::ids::{AgentName, RunId, SessionId, SessionRef};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{Answer, InvokeFacts, StreamId};
use sessionplane_core::domain::place::{Checkout, Place};
use sessionplane_core::domain::provenance::Channel;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::session::{Lineage, SessionRecord, StoredSession};
use tokio::sync::oneshot;

use super::caller::{AppCaller, Bound, store};
use super::channel::Channel as EventChannel;
use super::digest;
use super::dispatch::{check_same, lost};
use super::fleet::{Ground, barred, check_name, usual};
use super::given::{self, Told};
use super::invoke_stream::Attachment;
use super::session_loss::Loss;
use super::session_mail::{Mail, NoReply, Reply};
pub(crate) use streams::terminal;
use streams::{admitted, busy, failed, joined, missing, unavailable};

/// How often an invoke looks again after another call created the session of the same name.
const ATTEMPTS: usize = 4;

/// The session that an invoke is for.
struct Target {
    id: SessionId,
    decision: Decision,
    agent: AgentName,
    /// Where it works, or is to.
    place: Option<Place>,
    /// What version control last said there.
    checkout: Option<Checkout>,
    /// The record to create it with, if it does not exist.
    unborn: Option<SessionRecord>,
}

impl AppCaller {
    pub(crate) async fn start_or_join(
        &self,
        request: InvokeRequest,
        options: &CallOptions,
    ) -> Result<ResultStream<InvokeEvent>, CallError> {
        for _ in 0..ATTEMPTS {
            let bound = self.bound(Method::Invoke, options).await?;
            if let Some(binding) = &bound.binding {
                let said = self.text_context(Channel::Invoke, &request.prompt, &request.given);
                self.authorize_session_for(binding.session, Action::Invoke, &said)
                    .await?;
                check_same(binding, digest::of_invoke(&request))?;
                return self.join(binding.session, binding, &request).await;
            }
            if let Some(stream) = self.start(&request, bound).await? {
                return Ok(stream);
            }
        }
        let message = "sessions of this name kept being created and changed; try again";
        Err(CallError::refused(Reason::Overloaded, message))
    }

    /// Starts a run. Nothing if another call created the session meanwhile.
    async fn start(
        &self,
        request: &InvokeRequest,
        mut bound: Bound,
    ) -> Result<Option<ResultStream<InvokeEvent>>, CallError> {
        let target = self.target(request).await?;
        given::check("prompt", &request.prompt, &request.given)?;
        let place = target.place.clone();
        let agent = self.context.agents.facts(&target.agent)?;
        if let Some(told) = place.as_ref().and_then(|place| barred(agent, place)) {
            return Ok(Some(failed(unavailable(told))));
        }
        let ground = match &target.unborn {
            Some(_) => self.context.ground(place).await,
            None => self.context.saved_ground(place).await,
        };
        let ground = match ground {
            Ok(ground) => ground,
            Err(error) => return Ok(Some(failed(unavailable(missing(&error))))),
        };
        let server_ends = self.caller.server_ends.clone();
        let (attachment, gone) = Attachment::new(self.context.clone(), server_ends);
        let flight = bound.flight.take();
        let text = request.prompt.as_str().into();
        let told = self
            .told(Channel::Invoke, text, &request.given, agent, &bound)
            .await?;
        let data = told.data.clone();
        let facts =
            self.invoke_facts(request, &bound, &target, ground, attachment.stream(), told)?;
        let (reply, answer) = oneshot::channel();
        let mail = Mail::Invoke {
            facts: Box::new(facts),
            reply,
            gone,
            flight,
        };
        self.context
            .residents
            .deliver(&self.context, target.id, target.unborn.as_ref(), mail)
            .await;
        let answer = answer.await;
        if !may_be_taken(&answer) {
            self.forget(data.as_deref()).await;
        }
        self.begun(answer, attachment, request)
    }

    /// The stream that an answer stands for. Nothing if another call created or moved the session meanwhile.
    fn begun(
        &self,
        answer: Answered,
        attachment: Attachment,
        request: &InvokeRequest,
    ) -> Result<Option<ResultStream<InvokeEvent>>, CallError> {
        match answer {
            Ok(Ok(Reply {
                answer: Answer::Admitted { run },
                position,
                channel,
                ..
            })) => {
                let stream = admitted(channel.clone(), run, position, attachment);
                Ok(Some(self.while_allowed(stream, channel, request)))
            }
            Ok(Ok(Reply {
                answer: Answer::Busy { run },
                ..
            })) => Ok(Some(busy(run))),
            Ok(Ok(Reply {
                answer: Answer::Failed(failure),
                ..
            })) => Ok(Some(failed(failure))),
            Ok(Ok(Reply {
                answer: Answer::Refused(error),
                ..
            })) => Err(error),
            Ok(
                Ok(Reply {
                    answer: Answer::Elsewhere,
                    ..
                })
                | Err(NoReply::NameTaken),
            ) => Ok(None),
            Ok(Ok(_)) => Err(CallError::unknown(
                Reason::Internal,
                "the session answered something else than was asked",
            )),
            Ok(Err(no)) => Err(lost(&no)),
            Err(_) => Err(lost(&NoReply::Lost(Loss::Right))),
        }
    }

    async fn target(&self, request: &InvokeRequest) -> Result<Target, CallError> {
        let said = self.text_context(Channel::Invoke, &request.prompt, &request.given);
        if let Some(subject) = self.subject(&request.session).await? {
            let id = subject.id();
            let decided = self.authorize_subject(&subject, Action::Invoke, &said);
            let decision = match decided.await {
                Ok(decision) => decision,
                Err(error) => return Err(self.as_if_unborn(request, error).await),
            };
            let stored = self
                .context
                .ports
                .repository
                .session(id)
                .await
                .map_err(store)?;
            let StoredSession { record, head } = stored.ok_or_else(CallError::no_such_session)?;
            return Ok(Target {
                id,
                decision,
                agent: record.agent,
                place: head.place,
                checkout: head.checkout,
                unborn: None,
            });
        }
        let (name, external_key) = match &request.session {
            _ if request.must_exist => return Err(CallError::no_such_session()),
            SessionRef::Id(_) => return Err(CallError::no_such_session()),
            SessionRef::Name(name) => (Some(name.clone()), None),
            SessionRef::ExternalKey(key) => (None, Some(key.clone())),
        };
        self.may_be_born(request).await?;
        check_name("session.name", name.as_ref())?;
        let parent = self.parent(request.parent.as_ref()).await?;
        let (lineage, parents_agent) = parent.map_or((None, None), |(lineage, agent)| {
            (Some(lineage), Some(agent))
        });
        let default = || self.context.agents.default_agent().clone();
        let named = request.agent.clone().or(parents_agent);
        let agent = named.unwrap_or_else(default);
        let ports = &self.context.ports;
        let now = ports.clock.now();
        let id = SessionId::mint(now, ports.entropy.random());
        let tenant = self.principal().tenant.clone();
        let record = SessionRecord {
            id,
            tenant,
            metadata: Metadata::first(name, now),
            external_key,
            agent: agent.clone(),
            created_at: now,
            lineage,
        };
        let place = usual(self.context.agents.facts(&agent)?);
        self.may_create(&record, place.as_ref()).await?;
        let unborn = Resource::Session(SessionFacts::of_record(&record, place.as_ref()));
        Ok(Target {
            id,
            decision: self.authorize_unborn(&unborn, &said).await?,
            place,
            checkout: None,
            agent,
            unborn: Some(record),
        })
    }

    /// C4: what is said of a session that the caller must not know of is what would be said if there
    /// were none. Only who may create one learns that its name is taken.
    async fn as_if_unborn(&self, request: &InvokeRequest, refused: CallError) -> CallError {
        let creates = !request.must_exist && !matches!(request.session, SessionRef::Id(_));
        if refused.reason != Reason::NoSuchSession || !creates {
            return refused;
        }
        let may = self.may_be_born(request).await;
        may.err().unwrap_or(refused)
    }

    /// Whether the caller may create what an invoke names, as far as the request says what that is.
    async fn may_be_born(&self, request: &InvokeRequest) -> Result<Decision, CallError> {
        let agents = &self.context.agents;
        let agent = request.agent.as_ref();
        let agent = agent.unwrap_or_else(|| agents.default_agent());
        let place = agents.facts(agent).ok().and_then(|facts| usual(facts));
        let name = match &request.session {
            SessionRef::Name(name) => Some(name),
            _ => None,
        };
        let context = PolicyContext {
            agent: Some(agent),
            name,
            place: place.as_ref(),
            ..PolicyContext::default()
        };
        self.authorize_tenant_for(Action::Create, &context).await
    }

    /// Where a new session's conversation branches off another's, and that one's agent: who goes on
    /// with a conversation goes on with whom it was with.
    pub(super) async fn parent(
        &self,
        parent: Option<&Parent>,
    ) -> Result<Option<(Lineage, AgentName)>, CallError> {
        let Some(Parent { session, entry }) = parent else {
            return Ok(None);
        };
        let of_parent = |error: CallError| match error.reason {
            Reason::NoSuchSession => no_parent(),
            _ => error,
        };
        let found = self.session(session, Action::Observe).await;
        let (parent, _) = found.map_err(of_parent)?;
        let repository = &self.context.ports.repository;
        let stored = repository.session(parent).await.map_err(store)?;
        let stored = stored.ok_or_else(no_parent)?;
        let lineage = |entry| Lineage { parent, entry };
        let (agent, leaf) = (stored.record.agent, stored.head.leaf);
        let Some(id) = *entry else {
            return Ok(Some((lineage(leaf), agent)));
        };
        let known = id.session == parent && repository.entry(id).await.map_err(store)?.is_some();
        if !known {
            return Err(CallError::invalid(
                "branch_hints.from_entry_id",
                "names no entry of parent_session; list them with ListEntries",
            ));
        }
        Ok(Some((lineage(Some(id)), agent)))
    }

    fn invoke_facts(
        &self,
        request: &InvokeRequest,
        bound: &Bound,
        target: &Target,
        ground: Ground,
        stream: StreamId,
        told: Told,
    ) -> Result<InvokeFacts, CallError> {
        let ports = &self.context.ports;
        let agent = self.context.agents.facts(&target.agent)?.clone();
        let digest = digest::of_invoke(request);
        Ok(InvokeFacts {
            call: self.facts(bound, digest, target.decision.clone()),
            run: RunId::mint(ports.clock.now(), ports.entropy.random()),
            // The session's task gives it one, in the order in which it steps invokes.
            token: LeaseToken(0),
            text: told.text,
            data: told.data,
            origin: told.origin,
            agent,
            stream,
            on_disconnect: request.on_disconnect,
            // The session's task knows it when it steps this.
            paused: false,
            place: ground.place,
            // A host without workspaces does not know better.
            checkout: match ports.workspaces {
                Some(_) => ground.checkout,
                None => target.checkout.clone(),
            },
        })
    }

    /// C12: the events of the run that are retained, or its recorded terminal. Never a second run.
    async fn join(
        &self,
        session: SessionId,
        binding: &Binding,
        request: &InvokeRequest,
    ) -> Result<ResultStream<InvokeEvent>, CallError> {
        let BoundAnswer::Run(run) = binding.answer else {
            return Err(CallError::unknown(
                Reason::Internal,
                "the request id is bound to an answer of another method",
            ));
        };
        let server_ends = self.caller.server_ends.clone();
        let (attachment, gone) = Attachment::new(self.context.clone(), server_ends);
        let (reply, answer) = oneshot::channel();
        let stream = attachment.stream();
        let mail = Mail::Attach {
            run,
            stream,
            on_disconnect: request.on_disconnect,
            reply,
            gone,
        };
        let answer = match self.context.residents.send(session, mail).await {
            Ok(()) => answer.await,
            // A session without a task has no run.
            Err(_) => return self.recorded(session, run).await,
        };
        if let Ok(Ok(Reply {
            answer: Answer::Attached { active: true },
            channel,
            ..
        })) = answer
            && let Some(so_far) = channel.run_so_far(run)
        {
            let stream = joined(channel.clone(), run, &so_far, attachment);
            return Ok(self.while_allowed(stream, channel, request));
        }
        self.recorded(session, run).await
    }

    /// C55: the stream of a run, for as long as its caller may have started it.
    fn while_allowed(
        &self,
        stream: ResultStream<InvokeEvent>,
        channel: Arc<EventChannel>,
        request: &InvokeRequest,
    ) -> ResultStream<InvokeEvent> {
        let said = self.text_context(Channel::Invoke, &request.prompt, &request.given);
        self.guarded(stream, channel, (Action::Invoke, said))
    }

    /// The terminal of a run that has settled.
    async fn recorded(
        &self,
        session: SessionId,
        run: RunId,
    ) -> Result<ResultStream<InvokeEvent>, CallError> {
        let record = self
            .context
            .ports
            .repository
            .run(run)
            .await
            .map_err(store)?;
        if record.is_none() {
            // With its session its record was erased.
            let stored = self.context.ports.repository.session(session).await;
            stored
                .map_err(store)?
                .ok_or_else(|| CallError::session_deleted(session))?;
        }
        let record = record
            .filter(|record| record.settled.is_some())
            .ok_or_else(|| {
                // Between the two looks the session lost its task: its run is being settled.
                CallError::unknown(
                    Reason::ServingLost,
                    "the run is being settled; repeat with the same request_id",
                )
            })?;
        let channel = self.context.channel(session).await?;
        let channel = channel.ok_or_else(|| CallError::session_deleted(session))?;
        let position = channel.position();
        let accepted = InvokeEvent::Accepted {
            session,
            run,
            position,
            joined: true,
        };
        Ok(Box::pin(stream::iter([Ok(accepted), Ok(terminal(record))])))
    }

    pub(crate) async fn run_record(&self, run: RunId) -> Result<RunRecord, CallError> {
        let unknown = || CallError::refused(Reason::NoSuchRun, "no such run");
        let record = self
            .context
            .ports
            .repository
            .run(run)
            .await
            .map_err(store)?
            .ok_or_else(unknown)?;
        // A run of another tenant, or of a hidden session, is as unknown as one that never was.
        let session = self
            .resolve(&SessionRef::Id(record.session))
            .await?
            .ok_or_else(unknown)?;
        match self.authorize_session(session, Action::Observe).await {
            Ok(_) => self.with_texts(record).await,
            Err(error) if error.reason == Reason::NoSuchSession => Err(unknown()),
            Err(error) => Err(error),
        }
    }

    /// Adds what the run's undelivered inputs said: it is durable, and nowhere else to be read.
    async fn with_texts(&self, mut record: RunRecord) -> Result<RunRecord, CallError> {
        let mut room = UNDELIVERED_TEXTS;
        for input in &mut record.undelivered {
            let stored = self
                .context
                .ports
                .repository
                .input(input.id)
                .await
                .map_err(store)?;
            let Some(text) = stored.map(|stored| stored.text) else {
                continue;
            };
            if text.len() > room {
                break;
            }
            room -= text.len();
            input.text = Some(text);
        }
        Ok(record)
    }
}

/// What a new session is to branch off is unknown, or hidden, or gone since.
pub(super) fn no_parent() -> CallError {
    CallError::no_such_session().about_field("parent_session")
}

/// The texts of undelivered inputs that one record tells at most, in bytes.
const UNDELIVERED_TEXTS: usize = 1024 * 1024;

/// What the session's task gave back.
type Answered = Result<Result<Reply, NoReply>, oneshot::error::RecvError>;

/// Whether the prompt may be in the store: only an answer that says that it is not says so.
fn may_be_taken(answer: &Answered) -> bool {
    match answer {
        Ok(Ok(reply)) => matches!(reply.answer, Answer::Admitted { .. }),
        Ok(Err(NoReply::Refused(_) | NoReply::NameTaken)) => false,
        Ok(Err(NoReply::Lost(_))) | Err(_) => true,
    }
}
