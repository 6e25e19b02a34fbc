//! `Dispatch`: bound answer, session, permission, capability, payload, run; then the session's task.

use std::sync::Arc;

use sessionplane_core::contract::{CallOptions, DispatchRequest};
use sessionplane_core::domain::access::{Action, PolicyContext};
use sessionplane_core::domain::binding::{Binding, BoundAnswer, Method};
use sessionplane_core::domain::command::{
    Acceptance, AcceptedInput, Command, CommandKind, DispatchAnswer, Rejection, RejectionCode,
};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{AgentName, EntryId, SessionId};
use sessionplane_core::domain::lifecycle::{AgentFacts, Answer, DispatchFacts, NavigationTarget};
use sessionplane_core::domain::limits::{
    MAX_ANSWER_BYTES, MAX_INSTRUCTIONS_BYTES, MAX_LABEL_BYTES,
};
use sessionplane_core::domain::provenance::Channel;
use sessionplane_core::domain::settings::SettingsOverride;
use tokio::sync::oneshot;

use super::caller::{AppCaller, store};
use super::digest;
use super::fleet::barred;
use super::given;
use super::session_loss::Loss;
use super::session_mail::{Mail, NoReply};
use super::single_flight::Flight;

impl AppCaller {
    pub(crate) async fn dispatch_command(
        &self,
        request: DispatchRequest,
        options: &CallOptions,
    ) -> Result<DispatchAnswer, CallError> {
        let action = action(request.command.kind());
        let bound = self.bound(Method::Dispatch, options).await?;
        let digest = digest::of_dispatch(&request, &self.context.ports.digest_key);
        let command = request.command.clone();
        let context = self.command_context(&command);
        if let Some(binding) = &bound.binding {
            self.authorize_session_for(binding.session, action, &context)
                .await?;
            check_same(binding, digest)?;
            return self.present_answer(binding).await;
        }
        let (session, decision) = self.session_for(&request.session, action, &context).await?;
        let kind = request.command.kind();
        let agent = self.session_agent(session).await?;
        let agent = self.context.agents.facts(&agent)?.clone();
        if !agent.capabilities.allows(kind) {
            return Ok(DispatchAnswer::Rejected(unsupported(kind)));
        }
        let (channel, text) = checked_text(&request.command)?;
        let text = Arc::from(text);
        if kind == CommandKind::Compact
            && let Some(no) = self.barred(session, &agent).await?
        {
            return Ok(DispatchAnswer::Rejected(no));
        }
        let target = self.navigation_target(session, &request.command).await?;
        let expected_run = request.expected_run;
        let given = given_of(&request.command);
        let told = self.told(channel, text, &given, &agent, &bound).await?;
        let data = told.data.clone();
        let facts = DispatchFacts {
            call: self.facts(&bound, digest, decision),
            origin: told.origin,
            data: told.data,
            command: with_text(request.command, told.text),
            expected_run,
            agent,
            // The session's task gives it one, in the order in which it steps commands.
            token: None,
            target,
            // The session's task knows it when it steps this.
            paused: false,
        };
        let answer = self.asked(session, facts, bound.flight).await;
        let taken = match &answer {
            Ok(DispatchAnswer::Accepted(_)) => true,
            Ok(DispatchAnswer::Rejected(_)) => false,
            Err(error) => error.outcome != Outcome::Refused,
        };
        if !taken {
            self.forget(data.as_deref()).await;
        }
        answer
    }

    /// Has the session's task judge a command.
    async fn asked(
        &self,
        session: SessionId,
        facts: DispatchFacts,
        flight: Option<Flight>,
    ) -> Result<DispatchAnswer, CallError> {
        let (kind, expected_run) = (facts.command.kind(), facts.expected_run);
        let (reply, answer) = oneshot::channel();
        let mail = Mail::Dispatch {
            facts: Box::new(facts),
            reply,
            flight,
        };
        let residents = &self.context.residents;
        if kind.is_boundary() {
            residents.deliver(&self.context, session, None, mail).await;
        } else if residents.send(session, mail).await.is_err() {
            // A session without a task has no run, once the one that a crash cut is settled, and
            // asks nothing.
            self.context.settled(session).await?;
            return Ok(DispatchAnswer::Rejected(match kind {
                CommandKind::Respond => no_such_interaction(),
                _ => Rejection::no_active_run(expected_run),
            }));
        }
        match answer.await {
            Ok(Ok(reply)) => judged(reply.answer),
            Ok(Err(no)) => Err(lost(&no)),
            Err(_) => Err(lost(&NoReply::Lost(Loss::Right))),
        }
    }

    /// What policies may know of a command, before its text is judged.
    fn command_context<'c>(&self, command: &'c Command) -> PolicyContext<'c> {
        let bare = Given::default();
        match command {
            Command::Steer { text, given } => self.text_context(Channel::Steer, text, given),
            Command::FollowUp { text, given } => self.text_context(Channel::FollowUp, text, given),
            Command::Compact { instructions } => {
                let text = instructions.as_deref().unwrap_or_default();
                self.text_context(Channel::Control, text, &bare)
            }
            Command::Respond { answer, .. } => PolicyContext {
                size: Some(answer.weight() as u64),
                ..self.text_context(Channel::Respond, "", &bare)
            },
            Command::SetModel { model } => PolicyContext {
                model: model.as_deref(),
                ..PolicyContext::default()
            },
            Command::SetThinking { level } => PolicyContext {
                level: level.as_deref(),
                ..PolicyContext::default()
            },
            Command::Abort | Command::Navigate { .. } => PolicyContext::default(),
        }
    }

    /// The answer that a bound dispatch got, with what has become of its input since.
    async fn present_answer(&self, binding: &Binding) -> Result<DispatchAnswer, CallError> {
        let BoundAnswer::Dispatched { run, input } = binding.answer else {
            return Err(CallError::unknown(
                Reason::Internal,
                "the request id is bound to an answer of another method",
            ));
        };
        let input = match input {
            None => None,
            Some(id) => {
                let record = self
                    .context
                    .ports
                    .repository
                    .input(id)
                    .await
                    .map_err(store)?;
                // With its session its record was erased.
                let record = record.ok_or_else(|| CallError::session_deleted(binding.session))?;
                Some(AcceptedInput {
                    id,
                    fate: record.fate,
                })
            }
        };
        Ok(DispatchAnswer::Accepted(Acceptance { run, input }))
    }

    /// The agent that a session runs, without a read where the session is in memory.
    pub(crate) async fn session_agent(&self, session: SessionId) -> Result<AgentName, CallError> {
        if let Some(channel) = self.context.channels.get(session) {
            return Ok(channel.with_view(|view| view.session.agent.clone()));
        }
        let stored = self
            .context
            .ports
            .repository
            .session(session)
            .await
            .map_err(store)?;
        Ok(stored.ok_or_else(CallError::no_such_session)?.record.agent)
    }

    /// C53: what takes an engine does not begin where the session's agent may not work (any more).
    async fn barred(
        &self,
        session: SessionId,
        agent: &AgentFacts,
    ) -> Result<Option<Rejection>, CallError> {
        let channel = self.context.channel(session).await?;
        let place = channel.and_then(|channel| channel.placed().0);
        let told = place.and_then(|place| barred(agent, &place));
        Ok(told.map(|message| Rejection {
            code: RejectionCode::BoundaryCommandFailed,
            message,
            retryable: true,
        }))
    }

    /// What a `navigate` needs to know of its entry; nothing if the session does not have it.
    /// Entries never change, so what is read here stays true.
    async fn navigation_target(
        &self,
        session: SessionId,
        command: &Command,
    ) -> Result<Option<NavigationTarget>, CallError> {
        let Command::Navigate { entry: id } = command else {
            return Ok(None);
        };
        if id.session != session {
            return Ok(None);
        }
        let repository = &self.context.ports.repository;
        let Some(entry) = repository.entry(*id).await.map_err(store)? else {
            return Ok(None);
        };
        let chosen = match entry.path.settings {
            None => SettingsOverride::default(),
            Some(seq) => {
                let settings = EntryId { session, seq };
                match repository.entry(settings).await.map_err(store)? {
                    Some(Entry {
                        body: EntryBody::Settings { chosen },
                        ..
                    }) => chosen,
                    _ => SettingsOverride::default(),
                }
            }
        };
        Ok(Some(NavigationTarget {
            entry: *id,
            path: entry.path,
            chosen,
        }))
    }
}

fn judged(answer: Answer) -> Result<DispatchAnswer, CallError> {
    match answer {
        Answer::Dispatched(answer) => Ok(answer),
        Answer::Refused(error) => Err(error),
        Answer::Admitted { .. }
        | Answer::Busy { .. }
        | Answer::Failed(_)
        | Answer::Elsewhere
        | Answer::Changed
        | Answer::Attached { .. } => Err(CallError::unknown(
            Reason::Internal,
            "the session answered something else than was asked",
        )),
    }
}

/// The same request id with another payload is refused.
pub(crate) fn check_same(
    binding: &Binding,
    digest: sessionplane_core::domain::provenance::Digest,
) -> Result<(), CallError> {
    if binding.digest == digest {
        return Ok(());
    }
    let message = "this request_id was accepted with another payload; use a new one for a new call";
    Err(CallError::refused(Reason::RequestIdReused, message))
}

/// A call that the session did not answer: refused untouched, or its commit failed, and nobody
/// knows.
pub(crate) fn lost(no: &NoReply) -> CallError {
    match no {
        NoReply::Refused(error) => error.clone(),
        NoReply::Lost(loss @ Loss::Store) => CallError::unknown(
            loss.reason(),
            format!("{}; repeat with the same request_id", loss.told()),
        ),
        NoReply::Lost(Loss::Deleted) => CallError::no_such_session(),
        NoReply::NameTaken | NoReply::Lost(Loss::Right) => {
            let message = "the server lost the session before it could answer; repeat with the same request_id";
            CallError::unknown(Reason::ServingLost, message)
        }
    }
}

fn action(kind: CommandKind) -> Action {
    match kind {
        CommandKind::Steer => Action::Steer,
        CommandKind::FollowUp => Action::FollowUp,
        CommandKind::Abort => Action::Abort,
        CommandKind::Compact => Action::Compact,
        CommandKind::SetModel => Action::SetModel,
        CommandKind::SetThinking => Action::SetThinking,
        CommandKind::Navigate => Action::Navigate,
        CommandKind::Respond => Action::Respond,
    }
}

/// The text of a command that a model or an engine will read, within its bounds, and how it came.
/// Checked here and not where it is decoded: what the capabilities lack is told first (C26).
fn checked_text(command: &Command) -> Result<(Channel, &str), CallError> {
    match command {
        Command::Steer { text, given } => {
            given::check("steer", text, given)?;
            Ok((Channel::Steer, text))
        }
        Command::FollowUp { text, given } => {
            given::check("follow_up", text, given)?;
            Ok((Channel::FollowUp, text))
        }
        Command::Compact { instructions } => {
            let text = instructions.as_deref().unwrap_or_default();
            let way_out = "say in brief what the summary should keep";
            at_most(
                "compact.instructions",
                text.len(),
                MAX_INSTRUCTIONS_BYTES,
                way_out,
            )?;
            Ok((Channel::Control, text))
        }
        // What was answered may be a secret: the origin, which entries and events carry, has no
        // digest of it. The request's own digest covers it, keyed (docs/decisions/0016).
        Command::Respond { answer, .. } => {
            let way_out = "answer in brief, and put the rest where the agent can read it";
            let bytes = answer.weight();
            at_most("respond.answer", bytes, MAX_ANSWER_BYTES, way_out)?;
            Ok((Channel::Respond, ""))
        }
        Command::SetModel { model } => {
            check_name("set_model.model", model.as_deref())?;
            Ok((Channel::Control, ""))
        }
        Command::SetThinking { level } => {
            check_name("set_thinking.level", level.as_deref())?;
            Ok((Channel::Control, ""))
        }
        Command::Abort | Command::Navigate { .. } => Ok((Channel::Control, "")),
    }
}

/// What goes with a command's text.
fn given_of(command: &Command) -> Given {
    match command {
        Command::Steer { given, .. } | Command::FollowUp { given, .. } => given.clone(),
        Command::Abort
        | Command::Compact { .. }
        | Command::SetModel { .. }
        | Command::SetThinking { .. }
        | Command::Navigate { .. }
        | Command::Respond { .. } => Given::default(),
    }
}

/// The same command, with what of its text is an instruction, and without what went with it: that has
/// become data.
fn with_text(command: Command, text: Arc<str>) -> Command {
    let given = Given::default();
    match command {
        Command::Steer { .. } => Command::Steer { text, given },
        Command::FollowUp { .. } => Command::FollowUp { text, given },
        other => other,
    }
}

fn at_most(field: &str, bytes: usize, max: usize, way_out: &str) -> Result<(), CallError> {
    if bytes <= max {
        return Ok(());
    }
    Err(CallError::too_large(field, bytes, max, way_out))
}

/// A model or a level: absent goes back to the default, and an empty text is a mistake.
fn check_name(field: &str, name: Option<&str>) -> Result<(), CallError> {
    match name {
        Some("") => Err(CallError::invalid(
            field,
            "is empty; name one, or leave it out to go back to the default",
        )),
        Some(name) => at_most(field, name.len(), MAX_LABEL_BYTES, "names are shorter"),
        None => Ok(()),
    }
}

fn no_such_interaction() -> Rejection {
    Rejection {
        code: RejectionCode::NoSuchInteraction,
        message: "no such question is open: nothing is running in this session".to_owned(),
        retryable: false,
    }
}

fn unsupported(kind: CommandKind) -> Rejection {
    let message = format!(
        "the session's agent does not support {}; see GetCapabilities",
        kind.as_str()
    );
    Rejection {
        code: RejectionCode::UnsupportedCapability,
        message,
        retryable: false,
    }
}
