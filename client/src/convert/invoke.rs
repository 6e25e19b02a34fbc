//! Invokes and what they stream.

use sessionplane::v1::{self, invoke_event::Event as Wire};
use sessionplane_core::contract::{InvokeEvent, InvokeRequest, OnDisconnect};
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::RequestId;

use super::event::{finished_tool, started_tool};
use super::field::{Malformed, duration, id, required};
use super::{data, entry, interaction, position, run, session};

/// Writes an invoke.
pub(crate) fn request(request: InvokeRequest, request_id: &RequestId) -> v1::InvokeRequest {
    let on_disconnect = match request.on_disconnect {
        OnDisconnect::Cancel => v1::OnDisconnect::Cancel,
        OnDisconnect::Detach => v1::OnDisconnect::Detach,
    };
    let (parent_session, branch_hints) = match request.parent {
        None => (None, None),
        Some(parent) => (
            Some(session::reference(&parent.session)),
            parent.entry.map(|entry| v1::BranchHints {
                from_entry_id: entry.to_string(),
            }),
        ),
    };
    v1::InvokeRequest {
        parent_session,
        branch_hints,
        session: Some(session::reference(&request.session)),
        prompt: Some(v1::Prompt {
            text: request.prompt,
            typed: request.given.typed,
            trust: data::at_most(&request.given),
            data: data::given(&request.given),
        }),
        request_id: request_id.to_string(),
        agent: request
            .agent
            .map_or_else(String::new, |agent| agent.to_string()),
        must_exist: request.must_exist,
        on_disconnect: on_disconnect.into(),
    }
}

/// Reads one event; none if this client does not know it.
pub(crate) fn event(response: v1::InvokeResponse) -> Result<Option<InvokeEvent>, Malformed> {
    match required("event", response.event)?.event {
        None => Ok(None),
        // A question of an unknown kind is no known event: another client answers it.
        Some(Wire::InteractionRequested(requested)) => {
            let asked = required("interaction", requested.interaction)?;
            let asked = interaction::read(asked)?;
            Ok(asked.map(|asked| InvokeEvent::InteractionRequested {
                interaction: Box::new(asked),
            }))
        }
        Some(event) => known(event),
    }
}

fn known(event: Wire) -> Result<Option<InvokeEvent>, Malformed> {
    Ok(Some(match event {
        Wire::InteractionRequested(_) => return Ok(None),
        Wire::InteractionResolved(resolved) => {
            let resolution = required("resolved.resolution", resolved.resolution)?;
            InvokeEvent::InteractionResolved {
                id: id("resolved.interaction_id", &resolved.interaction_id)?,
                resolution: Box::new(interaction::resolution(resolution)?),
            }
        }
        Wire::Accepted(accepted) => InvokeEvent::Accepted {
            session: id("accepted.session_id", &accepted.session_id)?,
            run: id("accepted.run_id", &accepted.run_id)?,
            position: position::read("accepted.position", accepted.position)?,
            joined: accepted.joined,
        },
        Wire::Resumed(resumed) => InvokeEvent::Resumed {
            skipped: resumed.skipped,
        },
        Wire::Text(delta) => piece(OutputChannel::Text, delta.message_id, delta.text),
        Wire::Thinking(delta) => piece(OutputChannel::Thinking, delta.message_id, delta.text),
        Wire::ToolStarted(tool) => {
            let (call, name, input_json) = started_tool(tool);
            InvokeEvent::ToolStarted {
                call,
                name,
                input_json,
            }
        }
        Wire::ToolEnded(tool) => {
            let artifact = entry::artifact(tool.artifact.clone())?;
            let (call, failed, output) = finished_tool(tool);
            InvokeEvent::ToolEnded {
                call,
                failed,
                output,
                artifact,
            }
        }
        Wire::Retrying(retry) => InvokeEvent::Retrying {
            attempt: retry.attempt,
            max_attempts: retry.max_attempts,
            delay: duration(retry.delay),
            reason: retry.reason,
        },
        Wire::Completed(completed) => InvokeEvent::Completed {
            run: Box::new(run::read(required("completed.run", completed.run)?)?),
        },
        Wire::Failed(failed) => InvokeEvent::Failed {
            code: failed.code,
            details: failed.details,
            retryable: failed.retryable,
            run: failed.run.map(run::read).transpose()?.map(Box::new),
        },
    }))
}

fn piece(channel: OutputChannel, message: String, text: String) -> InvokeEvent {
    InvokeEvent::Delta {
        message,
        channel,
        text,
    }
}
