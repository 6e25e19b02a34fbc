//! Live events.

use sessionplane::v1::{self, queue_changed::Change, session_event::Payload};
use sessionplane_core::contract::EventItem;
use sessionplane_core::domain::compaction::{CompactionOutcome, CompactionTrigger};
use sessionplane_core::domain::event::{
    Event, EventBody, EventEnvelope, OutputChannel, QueueChange,
};
use sessionplane_core::domain::position::Position;
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::settings::{Resolved, SettingsOverride};
use sessionplane_core::domain::text::BoundedText;

use super::field::{Malformed, bounded, duration, id, optional_id, required, time};
use super::observation::Received;
use super::{entry, interaction, origin, pending, run, usage};

/// An event with its place.
pub(crate) fn read(envelope: v1::SessionEventEnvelope) -> Result<Received, Malformed> {
    let v1::SessionEventEnvelope { epoch, seq, .. } = envelope;
    let event = required("event", envelope.event)?;
    let body = match event.payload {
        Some(payload) => body(payload)?,
        None => None,
    };
    let Some(body) = body else {
        return Ok(Received::Unknown {
            event_type: event.r#type,
            position: Position { epoch, seq },
        });
    };
    Ok(Received::Item(EventItem::Event(EventEnvelope {
        session: id("session_id", &envelope.session_id)?,
        epoch,
        seq,
        event: Event {
            at: time("event.time", event.time)?,
            run: optional_id("event.run_id", &event.run_id)?,
            body,
        },
    })))
}

/// What happened; none if this client does not know a word of it that matters.
fn body(payload: Payload) -> Result<Option<EventBody>, Malformed> {
    Ok(Some(match payload {
        Payload::MessageDelta(delta) => return Ok(message_delta(delta)),
        Payload::EntryAppended(appended) => {
            let entry = entry::read(required("entry", appended.entry)?)?;
            return Ok(entry.map(|entry| EventBody::EntryAppended {
                entry: Box::new(entry),
            }));
        }
        Payload::QueueChanged(changed) => return queue_changed(changed),
        Payload::RunStarted(started) => run_started(started)?,
        Payload::RunSettled(settled) => EventBody::RunSettled {
            run: Box::new(run::read(required("run", settled.run)?)?),
        },
        Payload::TurnStarted(turn) => EventBody::TurnStarted { turn: turn.turn },
        Payload::TurnFinished(turn) => EventBody::TurnFinished { turn: turn.turn },
        Payload::MessageStarted(message) => EventBody::MessageStarted {
            message: message.message_id,
        },
        Payload::MessageFinished(message) => EventBody::MessageFinished {
            message: message.message_id,
        },
        Payload::ToolStarted(tool) => tool_started(tool),
        Payload::ToolProgress(tool) => EventBody::ToolProgress {
            call: tool.tool_call_id,
            output: bounded(tool.text, tool.omitted_bytes),
        },
        Payload::ToolFinished(tool) => tool_finished(tool)?,
        Payload::InputDelivered(input) => EventBody::InputDelivered {
            input: id("input_delivered.input_id", &input.input_id)?,
            entry: id("input_delivered.entry_id", &input.entry_id)?,
        },
        Payload::InputDiscarded(input) => EventBody::InputDiscarded {
            cause: pending::cause(input.cause()),
            input: id("input_discarded.input_id", &input.input_id)?,
        },
        Payload::RetryScheduled(retry) => EventBody::RetryScheduled {
            attempt: retry.attempt,
            max_attempts: retry.max_attempts,
            delay: duration(retry.delay),
            reason: retry.reason,
        },
        Payload::UsageUpdated(updated) => EventBody::UsageUpdated {
            usage: usage::read(updated.usage),
            session: usage::read(updated.session_usage),
        },
        Payload::InteractionRequested(requested) => return interaction_requested(requested),
        Payload::InteractionResolved(resolved) => interaction_resolved(resolved)?,
        Payload::CompactionStarted(started) => compaction_started(started),
        Payload::CompactionFinished(finished) => compaction_finished(&finished)?,
        Payload::StateChanged(changed) => state_changed(changed)?,
        Payload::ServingError(lost) => EventBody::ServingError {
            reason: lost.reason,
        },
    }))
}

fn run_started(started: v1::RunStarted) -> Result<EventBody, Malformed> {
    Ok(EventBody::RunStarted {
        origin: origin::read("run_started.origin", started.origin)?,
        entry: id("run_started.entry_id", &started.entry_id)?,
        agent: id("run_started.agent", &started.agent)?,
        settings: run::settings(started.model, started.thinking_level),
    })
}

/// A channel this client does not know is not shown as text, so the piece is no known event.
fn message_delta(delta: v1::MessageDelta) -> Option<EventBody> {
    let channel = match delta.channel() {
        v1::DeltaChannel::Text => OutputChannel::Text,
        v1::DeltaChannel::Thinking => OutputChannel::Thinking,
        v1::DeltaChannel::Unspecified => return None,
    };
    Some(EventBody::MessageDelta {
        message: delta.message_id,
        channel,
        text: delta.text.into(),
    })
}

fn tool_started(tool: v1::ToolStarted) -> EventBody {
    let (call, name, input_json) = started_tool(tool);
    EventBody::ToolStarted {
        call,
        name,
        input_json,
    }
}

fn tool_finished(tool: v1::ToolFinished) -> Result<EventBody, Malformed> {
    let artifact = entry::artifact(tool.artifact.clone())?;
    let (call, failed, output) = finished_tool(tool);
    Ok(EventBody::ToolFinished {
        call,
        failed,
        output,
        artifact,
    })
}

/// A question of an unknown kind is no known event: another client answers it.
fn interaction_requested(
    requested: v1::InteractionRequested,
) -> Result<Option<EventBody>, Malformed> {
    let asked = interaction::read(required("interaction", requested.interaction)?)?;
    Ok(asked.map(|asked| EventBody::InteractionRequested {
        interaction: Box::new(asked),
    }))
}

fn interaction_resolved(resolved: v1::InteractionResolved) -> Result<EventBody, Malformed> {
    let resolution = required("interaction_resolved.resolution", resolved.resolution)?;
    Ok(EventBody::InteractionResolved {
        id: id(
            "interaction_resolved.interaction_id",
            &resolved.interaction_id,
        )?,
        resolution: Box::new(interaction::resolution(resolution)?),
    })
}

/// A trigger this client does not know is told by the run that the event is of, or is not.
fn compaction_started(started: v1::CompactionStarted) -> EventBody {
    let trigger = match started.trigger() {
        v1::CompactionTrigger::Overflow => CompactionTrigger::Overflow,
        v1::CompactionTrigger::Manual | v1::CompactionTrigger::Unspecified => {
            CompactionTrigger::Manual
        }
    };
    EventBody::CompactionStarted { trigger }
}

/// An outcome this client does not know is a failure.
fn compaction_finished(finished: &v1::CompactionFinished) -> Result<EventBody, Malformed> {
    let outcome = match finished.outcome() {
        v1::CompactionOutcome::Completed => {
            CompactionOutcome::Completed(id("compaction_finished.entry_id", &finished.entry_id)?)
        }
        v1::CompactionOutcome::Aborted => CompactionOutcome::Aborted,
        v1::CompactionOutcome::Failed | v1::CompactionOutcome::Unspecified => {
            CompactionOutcome::Failed(Failure {
                code: finished.code.clone(),
                details: finished.details.clone(),
                retryable: finished.retryable,
            })
        }
    };
    Ok(EventBody::CompactionFinished { outcome })
}

fn state_changed(changed: v1::StateChanged) -> Result<EventBody, Malformed> {
    Ok(EventBody::StateChanged {
        leaf: optional_id("state_changed.leaf_entry_id", &changed.leaf_entry_id)?,
        chosen: SettingsOverride {
            model: changed.model_override,
            thinking_level: changed.thinking_level_override,
        },
        resolved: Resolved {
            settings: run::settings(changed.model, changed.thinking_level),
            available_levels: changed.available_thinking_levels,
        },
        renamed: changed
            .session_name
            .map(|name| optional_id("state_changed.session_name", &name))
            .transpose()?,
    })
}

/// A tool's call, name and arguments, as both kinds of stream tell them.
pub(crate) fn started_tool(tool: v1::ToolStarted) -> (String, String, BoundedText) {
    let input = bounded(tool.input_json, tool.omitted_bytes);
    (tool.tool_call_id, tool.name, input)
}

/// A tool's call, failure and output, as both kinds of stream tell them.
pub(crate) fn finished_tool(tool: v1::ToolFinished) -> (String, bool, BoundedText) {
    let output = bounded(tool.output, tool.omitted_bytes);
    (tool.tool_call_id, tool.failed, output)
}

fn queue_changed(changed: v1::QueueChanged) -> Result<Option<EventBody>, Malformed> {
    let depth = changed.depth;
    let change = match changed.change {
        Some(Change::Added(input)) => QueueChange::Added(Box::new(pending::read(input)?)),
        Some(Change::Handed(input)) => QueueChange::Handed(id("queue_changed.handed", &input)?),
        Some(Change::Returned(input)) => {
            QueueChange::Returned(id("queue_changed.returned", &input)?)
        }
        Some(Change::Removed(input)) => QueueChange::Removed(id("queue_changed.removed", &input)?),
        None => return Ok(None),
    };
    Ok(Some(EventBody::QueueChanged { change, depth }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c19_an_input_that_the_engine_gave_back_is_told_as_returned() {
        let text = "01K00000000000000000000002-i7";
        let changed = v1::QueueChanged {
            change: Some(Change::Returned(text.to_owned())),
            depth: 3,
        };
        let told = queue_changed(changed).expect("it is well formed");
        assert!(
            matches!(
                &told,
                Some(EventBody::QueueChanged { change: QueueChange::Returned(id), depth: 3 })
                    if id.to_string() == text
            ),
            "{told:?}"
        );
    }
}
