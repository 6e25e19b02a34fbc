//! Live events.

use std::time::Duration;

use sessionplane::v1 as wire;
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::compaction::{CompactionOutcome, CompactionTrigger};
use sessionplane_core::domain::event::{
    Event, EventBody, EventEnvelope, OutputChannel, QueueChange,
};
use sessionplane_core::domain::ids::{AgentName, EntryId, InputId, InteractionId, SessionName};
use sessionplane_core::domain::input::DiscardCause;
use sessionplane_core::domain::interaction::{Interaction, Resolution};
use sessionplane_core::domain::provenance::Origin;
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::domain::settings::{Resolved, SettingsOverride};
use sessionplane_core::domain::text::BoundedText;
use wire::queue_changed::Change;
use wire::session_event::Payload;

use super::{entry, input, interaction, origin, run, time, usage};

/// An event with its place in the stream.
pub(crate) fn envelope(envelope: &EventEnvelope) -> wire::SessionEventEnvelope {
    wire::SessionEventEnvelope {
        session_id: envelope.session.to_string(),
        epoch: envelope.epoch,
        seq: envelope.seq,
        event: Some(event(&envelope.event)),
    }
}

/// A tool that begins, as both streams tell it.
pub(crate) fn tool_started(call: &str, name: &str, input: &BoundedText) -> wire::ToolStarted {
    wire::ToolStarted {
        tool_call_id: call.to_owned(),
        name: name.to_owned(),
        input_json: input.text.clone(),
        omitted_bytes: input.omitted_bytes,
    }
}

/// A tool that is done, as both streams tell it.
pub(crate) fn tool_finished(
    call: &str,
    failed: bool,
    output: &BoundedText,
    artifact: Option<&ArtifactRef>,
) -> wire::ToolFinished {
    wire::ToolFinished {
        tool_call_id: call.to_owned(),
        failed,
        output: output.text.clone(),
        omitted_bytes: output.omitted_bytes,
        artifact: artifact.map(entry::artifact_ref),
    }
}

/// A question, as both streams tell it.
pub(crate) fn interaction_requested(asked: &Interaction) -> wire::InteractionRequested {
    wire::InteractionRequested {
        interaction: Some(interaction::to_wire(asked)),
    }
}

/// A question's end, as both streams tell it.
pub(crate) fn interaction_resolved(
    id: InteractionId,
    resolution: &Resolution,
) -> wire::InteractionResolved {
    wire::InteractionResolved {
        interaction_id: id.to_string(),
        resolution: Some(interaction::resolution(resolution)),
    }
}

/// A repeat to come, as both streams tell it.
pub(crate) fn retry_scheduled(
    attempt: u32,
    max_attempts: u32,
    delay: Duration,
    reason: &str,
) -> wire::RetryScheduled {
    wire::RetryScheduled {
        attempt,
        max_attempts,
        delay: Some(time::duration(delay)),
        reason: reason.to_owned(),
    }
}

fn event(event: &Event) -> wire::SessionEvent {
    wire::SessionEvent {
        r#type: event.body.event_type().to_owned(),
        time: Some(time::timestamp(event.at)),
        run_id: event.run.map(|id| id.to_string()).unwrap_or_default(),
        payload: Some(payload(&event.body)),
    }
}

/// One arm per event type; those with more than a line have a function of their own.
fn payload(body: &EventBody) -> Payload {
    use EventBody as Body;
    match body {
        Body::RunStarted {
            origin,
            entry,
            agent,
            settings,
        } => Payload::RunStarted(run_started(origin, *entry, agent, settings)),
        Body::RunSettled { run } => Payload::RunSettled(wire::RunSettled {
            run: Some(run::record(run)),
        }),
        &Body::TurnStarted { turn } => Payload::TurnStarted(wire::TurnStarted { turn }),
        &Body::TurnFinished { turn } => Payload::TurnFinished(wire::TurnFinished { turn }),
        Body::MessageStarted { message } => Payload::MessageStarted(wire::MessageStarted {
            message_id: message.clone(),
        }),
        Body::MessageDelta {
            message,
            channel,
            text,
        } => Payload::MessageDelta(message_delta(message, *channel, text)),
        Body::MessageFinished { message } => Payload::MessageFinished(wire::MessageFinished {
            message_id: message.clone(),
        }),
        Body::ToolStarted {
            call,
            name,
            input_json,
        } => Payload::ToolStarted(tool_started(call, name, input_json)),
        Body::ToolProgress { call, output } => Payload::ToolProgress(tool_progress(call, output)),
        Body::ToolFinished {
            call,
            failed,
            output,
            artifact,
        } => Payload::ToolFinished(tool_finished(call, *failed, output, artifact.as_ref())),
        Body::RetryScheduled {
            attempt,
            max_attempts,
            delay,
            reason,
        } => Payload::RetryScheduled(retry_scheduled(*attempt, *max_attempts, *delay, reason)),
        Body::UsageUpdated { usage, session } => Payload::UsageUpdated(wire::UsageUpdated {
            usage: Some(usage::to_wire(*usage)),
            session_usage: Some(usage::to_wire(*session)),
        }),
        other => of_the_session(other),
    }
}

/// What is told of the session itself: its queue, its entries, its settings, its questions.
fn of_the_session(body: &EventBody) -> Payload {
    use EventBody as Body;
    match body {
        Body::QueueChanged { change, depth } => {
            Payload::QueueChanged(queue_changed(change, *depth))
        }
        Body::InputDelivered { input, entry } => {
            Payload::InputDelivered(input_delivered(*input, *entry))
        }
        Body::InputDiscarded { input, cause } => {
            Payload::InputDiscarded(input_discarded(*input, *cause))
        }
        Body::CompactionStarted { trigger } => {
            Payload::CompactionStarted(compaction_started(*trigger))
        }
        Body::CompactionFinished { outcome } => {
            Payload::CompactionFinished(compaction_finished(outcome))
        }
        Body::StateChanged {
            leaf,
            chosen,
            resolved,
            renamed,
        } => {
            let changed = state_changed(*leaf, chosen, resolved, renamed.as_ref());
            Payload::StateChanged(changed)
        }
        Body::InteractionRequested { interaction } => {
            Payload::InteractionRequested(interaction_requested(interaction))
        }
        Body::InteractionResolved { id, resolution } => {
            Payload::InteractionResolved(interaction_resolved(*id, resolution))
        }
        Body::EntryAppended { entry } => Payload::EntryAppended(wire::EntryAppended {
            entry: Some(entry::to_wire(entry)),
        }),
        Body::ServingError { reason } => Payload::ServingError(wire::ServingError {
            reason: reason.clone(),
        }),
        Body::RunStarted { .. }
        | Body::RunSettled { .. }
        | Body::TurnStarted { .. }
        | Body::TurnFinished { .. }
        | Body::MessageStarted { .. }
        | Body::MessageDelta { .. }
        | Body::MessageFinished { .. }
        | Body::ToolStarted { .. }
        | Body::ToolProgress { .. }
        | Body::ToolFinished { .. }
        | Body::RetryScheduled { .. }
        | Body::UsageUpdated { .. } => payload(body),
    }
}

fn compaction_started(trigger: CompactionTrigger) -> wire::CompactionStarted {
    let trigger = match trigger {
        CompactionTrigger::Manual => wire::CompactionTrigger::Manual,
        CompactionTrigger::Overflow => wire::CompactionTrigger::Overflow,
    };
    wire::CompactionStarted {
        trigger: trigger.into(),
    }
}

fn compaction_finished(outcome: &CompactionOutcome) -> wire::CompactionFinished {
    let empty = wire::CompactionFinished::default();
    match outcome {
        CompactionOutcome::Completed(entry) => wire::CompactionFinished {
            outcome: wire::CompactionOutcome::Completed.into(),
            entry_id: entry.to_string(),
            ..empty
        },
        CompactionOutcome::Failed(failure) => wire::CompactionFinished {
            outcome: wire::CompactionOutcome::Failed.into(),
            code: failure.code.clone(),
            details: failure.details.clone(),
            retryable: failure.retryable,
            ..empty
        },
        CompactionOutcome::Aborted => wire::CompactionFinished {
            outcome: wire::CompactionOutcome::Aborted.into(),
            ..empty
        },
    }
}

fn state_changed(
    leaf: Option<EntryId>,
    chosen: &SettingsOverride,
    resolved: &Resolved,
    renamed: Option<&Option<SessionName>>,
) -> wire::StateChanged {
    let Resolved {
        settings,
        available_levels,
    } = resolved.clone();
    wire::StateChanged {
        leaf_entry_id: leaf.map(|id| id.to_string()).unwrap_or_default(),
        model: settings.model.unwrap_or_default(),
        thinking_level: settings.thinking_level.unwrap_or_default(),
        available_thinking_levels: available_levels,
        model_override: chosen.model.clone(),
        thinking_level_override: chosen.thinking_level.clone(),
        session_name: renamed
            .map(|name| name.as_ref().map(ToString::to_string).unwrap_or_default()),
    }
}

fn run_started(
    origin: &Origin,
    entry: EntryId,
    agent: &AgentName,
    settings: &RunSettings,
) -> wire::RunStarted {
    wire::RunStarted {
        origin: Some(origin::to_wire(origin)),
        entry_id: entry.to_string(),
        agent: agent.to_string(),
        model: settings.model.clone().unwrap_or_default(),
        thinking_level: settings.thinking_level.clone().unwrap_or_default(),
    }
}

fn message_delta(message: &str, channel: OutputChannel, text: &str) -> wire::MessageDelta {
    let channel = match channel {
        OutputChannel::Text => wire::DeltaChannel::Text,
        OutputChannel::Thinking => wire::DeltaChannel::Thinking,
    };
    wire::MessageDelta {
        message_id: message.to_owned(),
        channel: channel.into(),
        text: text.to_owned(),
    }
}

fn tool_progress(call: &str, output: &BoundedText) -> wire::ToolProgress {
    wire::ToolProgress {
        tool_call_id: call.to_owned(),
        text: output.text.clone(),
        omitted_bytes: output.omitted_bytes,
    }
}

fn queue_changed(change: &QueueChange, depth: u32) -> wire::QueueChanged {
    let change = match change {
        QueueChange::Added(input) => Change::Added(input::pending(input)),
        QueueChange::Handed(id) => Change::Handed(id.to_string()),
        QueueChange::Returned(id) => Change::Returned(id.to_string()),
        QueueChange::Removed(id) => Change::Removed(id.to_string()),
    };
    wire::QueueChanged {
        change: Some(change),
        depth,
    }
}

fn input_delivered(input: InputId, entry: EntryId) -> wire::InputDelivered {
    wire::InputDelivered {
        input_id: input.to_string(),
        entry_id: entry.to_string(),
    }
}

fn input_discarded(input: InputId, cause: DiscardCause) -> wire::InputDiscarded {
    wire::InputDiscarded {
        input_id: input.to_string(),
        cause: input::cause(cause).into(),
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::{InputId, RunId};

    use super::*;

    #[test]
    fn c19_each_change_of_the_queue_is_a_case_of_its_own() {
        let run = RunId::from_bytes([1; 16]);
        let id = InputId { run, ordinal: 7 };
        let case = |change| queue_changed(&change, 3).change;
        let text = id.to_string();
        assert_eq!(
            case(QueueChange::Handed(id)),
            Some(Change::Handed(text.clone()))
        );
        assert_eq!(
            case(QueueChange::Returned(id)),
            Some(Change::Returned(text.clone()))
        );
        assert_eq!(case(QueueChange::Removed(id)), Some(Change::Removed(text)));
    }
}
