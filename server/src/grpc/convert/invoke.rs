//! Invokes and what they stream.

use sessionplane::v1 as wire;
use sessionplane_core::contract::{InvokeEvent, InvokeRequest, OnDisconnect, Parent};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::run::RunRecord;
use wire::invoke_event::Event;

use super::{data, event, field, position, run, session};

/// A request for a run.
pub(crate) fn request(request: wire::InvokeRequest) -> Result<InvokeRequest, CallError> {
    let prompt = request.prompt.unwrap_or_default();
    Ok(InvokeRequest {
        session: session::reference(request.session)?,
        given: data::given("prompt", prompt.typed, prompt.trust, prompt.data)?,
        prompt: prompt.text,
        agent: field::optional_id("agent", &request.agent)?,
        parent: parent(request.parent_session, request.branch_hints)?,
        must_exist: request.must_exist,
        on_disconnect: on_disconnect(request.on_disconnect)?,
    })
}

fn parent(
    session: Option<wire::SessionRef>,
    hints: Option<wire::BranchHints>,
) -> Result<Option<Parent>, CallError> {
    let from = hints.map(|hints| hints.from_entry_id).unwrap_or_default();
    let entry = field::optional_id("branch_hints.from_entry_id", &from)?;
    match session {
        None if entry.is_some() => Err(CallError::invalid(
            "branch_hints",
            "is set without `parent_session`; name the session to branch off",
        )),
        None => Ok(None),
        Some(_) => Ok(Some(Parent {
            session: session::reference_at("parent_session", session)?,
            entry,
        })),
    }
}

/// Unspecified is the careful choice. A value from a newer client is refused: a guess could abort
/// a run that should live, or the other way around.
fn on_disconnect(value: i32) -> Result<OnDisconnect, CallError> {
    match wire::OnDisconnect::try_from(value) {
        Ok(wire::OnDisconnect::Unspecified | wire::OnDisconnect::Cancel) => {
            Ok(OnDisconnect::Cancel)
        }
        Ok(wire::OnDisconnect::Detach) => Ok(OnDisconnect::Detach),
        Err(_) => Err(CallError::invalid(
            "on_disconnect",
            format!("{value} is not known to this server; use 1 (CANCEL) or 2 (DETACH)"),
        )),
    }
}

/// One event of a run.
pub(crate) fn response(event: &InvokeEvent) -> wire::InvokeResponse {
    let event = wire::InvokeEvent {
        event: Some(to_wire(event)),
    };
    wire::InvokeResponse { event: Some(event) }
}

fn to_wire(event: &InvokeEvent) -> Event {
    match event {
        InvokeEvent::Accepted {
            session,
            run,
            position,
            joined,
        } => Event::Accepted(wire::InvokeAccepted {
            session_id: session.to_string(),
            run_id: run.to_string(),
            position: Some(position::to_wire(*position)),
            joined: *joined,
        }),
        &InvokeEvent::Resumed { skipped } => Event::Resumed(wire::InvokeResumed { skipped }),
        InvokeEvent::Delta {
            message,
            channel,
            text,
        } => delta(message, *channel, text),
        InvokeEvent::ToolStarted {
            call,
            name,
            input_json,
        } => Event::ToolStarted(event::tool_started(call, name, input_json)),
        InvokeEvent::ToolEnded {
            call,
            failed,
            output,
            artifact,
        } => Event::ToolEnded(event::tool_finished(
            call,
            *failed,
            output,
            artifact.as_ref(),
        )),
        InvokeEvent::InteractionRequested { interaction } => {
            Event::InteractionRequested(event::interaction_requested(interaction))
        }
        InvokeEvent::InteractionResolved { id, resolution } => {
            Event::InteractionResolved(event::interaction_resolved(*id, resolution))
        }
        InvokeEvent::Retrying {
            attempt,
            max_attempts,
            delay,
            reason,
        } => Event::Retrying(event::retry_scheduled(
            *attempt,
            *max_attempts,
            *delay,
            reason,
        )),
        InvokeEvent::Completed { run } => Event::Completed(wire::InvokeCompleted {
            data: None,
            run: Some(run::record(run)),
        }),
        InvokeEvent::Failed {
            code,
            details,
            retryable,
            run,
        } => Event::Failed(failed(code, details, *retryable, run.as_deref())),
    }
}

fn delta(message: &str, channel: OutputChannel, text: &str) -> Event {
    let (message_id, text) = (message.to_owned(), text.to_owned());
    match channel {
        OutputChannel::Text => Event::Text(wire::TextDelta { message_id, text }),
        OutputChannel::Thinking => Event::Thinking(wire::ThinkingDelta { message_id, text }),
    }
}

fn failed(
    code: &str,
    details: &str,
    retryable: bool,
    run: Option<&RunRecord>,
) -> wire::InvokeFailed {
    wire::InvokeFailed {
        code: code.to_owned(),
        details: details.to_owned(),
        retryable,
        run: run.map(run::record),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire_request() -> wire::InvokeRequest {
        let name = wire::session_ref::Ref::Name("a".into());
        wire::InvokeRequest {
            session: Some(wire::SessionRef { r#ref: Some(name) }),
            prompt: Some(wire::Prompt {
                text: "hello".into(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn c13_an_unspecified_on_disconnect_is_cancel_and_an_unknown_one_is_refused() {
        assert_eq!(
            request(wire_request()).unwrap().on_disconnect,
            OnDisconnect::Cancel
        );
        for (value, meaning) in [(1, OnDisconnect::Cancel), (2, OnDisconnect::Detach)] {
            let asked = wire::InvokeRequest {
                on_disconnect: value,
                ..wire_request()
            };
            assert_eq!(request(asked).unwrap().on_disconnect, meaning);
        }
        let asked = wire::InvokeRequest {
            on_disconnect: 7,
            ..wire_request()
        };
        assert_eq!(
            request(asked).unwrap_err().violations[0].field,
            "on_disconnect"
        );
    }

    #[test]
    fn c08_thinking_is_never_sent_as_text() {
        assert!(matches!(
            delta("m", OutputChannel::Text, "x"),
            Event::Text(_)
        ));
        assert!(matches!(
            delta("m", OutputChannel::Thinking, "x"),
            Event::Thinking(_)
        ));
    }
}
