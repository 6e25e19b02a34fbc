//! `Dispatch`: bound answer, session, permission, capability, payload, run; then the session's task.

use sessionplane_core::contract::{CallOptions, DispatchRequest};
use sessionplane_core::domain::access::Action;
use sessionplane_core::domain::binding::{Binding, BoundAnswer, Method};
use sessionplane_core::domain::capabilities::Capabilities;
use sessionplane_core::domain::command::{
    Acceptance, AcceptedInput, Command, CommandKind, DispatchAnswer, Rejection, RejectionCode,
};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::lifecycle::{Answer, DispatchFacts};
use sessionplane_core::domain::provenance::Channel;
use tokio::sync::oneshot;

use super::caller::{AppCaller, check_text, store};
use super::digest;
use super::session_mail::{Mail, NoReply};

impl AppCaller {
    pub(crate) async fn dispatch_command(
        &self,
        request: DispatchRequest,
        options: &CallOptions,
    ) -> Result<DispatchAnswer, CallError> {
        let action = action(request.command.kind());
        let bound = self.bound(Method::Dispatch, options).await?;
        let digest = digest::of_dispatch(&request);
        if let Some(binding) = &bound.binding {
            self.authorize_session(binding.session, action).await?;
            check_same(binding, digest)?;
            return self.present_answer(binding).await;
        }
        let (session, decision) = self.session(&request.session, action).await?;
        let kind = request.command.kind();
        if !self.session_capabilities(session).await?.allows(kind) {
            return Ok(DispatchAnswer::Rejected(unsupported(kind)));
        }
        let (field, channel, text) = match &request.command {
            Command::Steer { text } => ("steer.text", Channel::Steer, &**text),
            Command::FollowUp { text } => ("follow_up.text", Channel::FollowUp, &**text),
            Command::Abort => ("", Channel::Steer, ""),
        };
        if kind != CommandKind::Abort {
            check_text(field, text)?;
        }
        let expected_run = request.expected_run;
        let facts = DispatchFacts {
            call: self.facts(&bound, digest, decision),
            origin: self.origin(channel, text, &bound),
            command: request.command,
            expected_run,
        };
        let (reply, answer) = oneshot::channel();
        let mail = Mail::Dispatch {
            facts: Box::new(facts),
            reply,
            flight: bound.flight,
        };
        if self.context.residents.send(session, mail).await.is_err() {
            // A session without a task has no run, once the one that a crash cut is settled.
            self.context.settled(session).await?;
            return Ok(DispatchAnswer::Rejected(Rejection::no_active_run(
                expected_run,
            )));
        }
        match answer.await {
            Ok(Ok(reply)) => judged(reply.answer),
            Ok(Err(no)) => Err(lost(&no)),
            Err(_) => Err(lost(&NoReply::Lost("its task ended".to_owned()))),
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
                record.map(|record| AcceptedInput {
                    id,
                    fate: record.fate,
                })
            }
        };
        Ok(DispatchAnswer::Accepted(Acceptance { run, input }))
    }

    /// What the session's engine can do, without a read where the session is in memory.
    pub(crate) async fn session_capabilities(
        &self,
        session: SessionId,
    ) -> Result<Capabilities, CallError> {
        let agent = if let Some(channel) = self.context.channels.get(session) {
            channel.with_view(|view| view.session.agent.clone())
        } else {
            let stored = self
                .context
                .ports
                .repository
                .session(session)
                .await
                .map_err(store)?;
            stored.ok_or_else(CallError::no_such_session)?.record.agent
        };
        Ok(self
            .context
            .agents
            .engine(&agent)?
            .describe()
            .capabilities
            .clone())
    }
}

fn judged(answer: Answer) -> Result<DispatchAnswer, CallError> {
    match answer {
        Answer::Dispatched(answer) => Ok(answer),
        Answer::Refused(error) => Err(error),
        Answer::Admitted { .. } | Answer::Busy { .. } | Answer::Attached { .. } => {
            Err(CallError::unknown(
                Reason::Internal,
                "the session answered something else than was asked",
            ))
        }
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
        NoReply::NameTaken | NoReply::Lost(_) => {
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
