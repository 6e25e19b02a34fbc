//! The items of both kinds of stream, and what this client adds to them when one is lost.

use std::time::Duration;

use serde_json::{Value, json};
use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::artifact::ArtifactRef;
use sessionplane_core::domain::compaction::CompactionOutcome;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::event::{EventBody, EventEnvelope, OutputChannel, QueueChange};
use sessionplane_core::domain::ids::{EntryId, InteractionId};
use sessionplane_core::domain::interaction::Resolution;
use sessionplane_core::domain::text::BoundedText;

use super::field::{artifact, duration, maybe, origin, position, text, time, usage};
use super::interaction::{interaction, resolution};
use super::{entry, run, state};
use crate::watch::WatchItem;

/// An event of an invoke, in the field that names it.
pub(crate) fn invoked(event: &InvokeEvent) -> Value {
    match event {
        InvokeEvent::Accepted {
            session,
            run,
            position: at,
            joined,
        } => json!({ "accepted": {
            "session_id": text(session),
            "run_id": text(run),
            "position": position(*at),
            "joined": joined,
        }}),
        InvokeEvent::Resumed { skipped } => json!({ "resumed": { "skipped": skipped } }),
        InvokeEvent::Delta {
            message,
            channel,
            text,
        } => json!({ channel_word(*channel): { "message_id": message, "text": text } }),
        InvokeEvent::ToolStarted {
            call,
            name,
            input_json,
        } => json!({ "tool_started": tool_started(call, name, input_json) }),
        InvokeEvent::ToolEnded {
            call,
            failed,
            output,
            artifact,
        } => json!({ "tool_ended": tool_finished(call, *failed, output, artifact.as_ref()) }),
        InvokeEvent::InteractionRequested { interaction: asked } => {
            json!({ "interaction_requested": { "interaction": interaction(asked) } })
        }
        InvokeEvent::InteractionResolved {
            id,
            resolution: end,
        } => {
            json!({ "interaction_resolved": resolved(*id, end) })
        }
        InvokeEvent::Retrying {
            attempt,
            max_attempts,
            delay,
            reason,
        } => json!({ "retrying": retry(*attempt, *max_attempts, *delay, reason) }),
        InvokeEvent::Completed { run: record } => json!({ "completed": { "run": run(record) } }),
        InvokeEvent::Failed {
            code,
            details,
            retryable,
            run: record,
        } => json!({ "failed": {
            "code": code,
            "details": details,
            "retryable": retryable,
            "run": record.as_deref().map(run),
        }}),
    }
}

/// The stream of a run was lost.
pub(crate) fn rejoining(attempt: u32, delay: Duration, error: &CallError) -> Value {
    json!({ "rejoining": lost(attempt, delay, error) })
}

/// The run was rejoined.
pub(crate) fn rejoined() -> Value {
    json!({ "rejoined": {} })
}

/// Not all that a run told has come; `null` if nobody counted what was left out.
pub(crate) fn missed(skipped: Option<u64>) -> Value {
    json!({ "missed": { "skipped": skipped } })
}

/// The entries that follow are all from the first: those that were told before count no more.
pub(crate) fn full_backfill() -> Value {
    json!({ "full_backfill": true })
}

/// The rest of a message's text, as its entry holds it. `missing_bytes` are lost: they come after
/// the `seen_bytes` that were told, and before `text`.
pub(crate) fn missed_text(
    entry: EntryId,
    message: &str,
    (seen, missing): (u64, u64),
    rest: &str,
) -> Value {
    json!({ "missed_text": {
        "entry_id": text(entry),
        "message_id": message,
        "seen_bytes": seen,
        "missing_bytes": missing,
        "text": rest,
    }})
}

/// An item of a watch, in the field that names it.
pub(crate) fn watched(item: &WatchItem) -> Value {
    match item {
        WatchItem::Subscribed { session, epoch } => {
            json!({ "subscribed": { "session_id": text(session), "epoch": epoch } })
        }
        WatchItem::Reconnecting {
            attempt,
            delay,
            error,
        } => json!({ "reconnecting": lost(*attempt, *delay, error) }),
        WatchItem::Reconnected { resumed } => json!({ "reconnected": { "resumed": resumed } }),
        WatchItem::EpochChanged { from, to } => {
            json!({ "epoch_changed": { "from": from, "to": to } })
        }
        WatchItem::Gap => json!({ "gap": {} }),
        WatchItem::Entries {
            entries,
            full_backfill,
        } => json!({ "entries": {
            "entries": entries.iter().map(entry).collect::<Vec<_>>(),
            "full_backfill": full_backfill,
        }}),
        WatchItem::Snapshot(snapshot) => json!({ "snapshot": {
            "state": state(snapshot),
            "leaf_entry_id": maybe(snapshot.view.leaf),
            "position": position(snapshot.position),
        }}),
        WatchItem::Event(envelope) => json!({ "event": enveloped(envelope) }),
        WatchItem::Unknown {
            event_type,
            position,
        } => json!({ "event": {
            "epoch": position.epoch,
            "seq": position.seq,
            "event": { "type": event_type },
        }}),
        WatchItem::Heartbeat(at) => json!({ "heartbeat": { "position": position(*at) } }),
    }
}

fn enveloped(envelope: &EventEnvelope) -> Value {
    let event = &envelope.event;
    let event_type = event.body.event_type();
    let mut inner = json!({
        "type": event_type,
        "time": time(event.at),
        "run_id": maybe(event.run),
    });
    inner[event_type] = payload(&event.body);
    json!({
        "session_id": text(envelope.session),
        "epoch": envelope.epoch,
        "seq": envelope.seq,
        "event": inner,
    })
}

fn payload(body: &EventBody) -> Value {
    match body {
        EventBody::RunStarted {
            origin: from,
            entry,
            agent,
            settings,
        } => json!({
            "origin": origin(from),
            "entry_id": text(entry),
            "agent": text(agent),
            "model": settings.model,
            "thinking_level": settings.thinking_level,
        }),
        EventBody::RunSettled { run: record } => json!({ "run": run(record) }),
        EventBody::TurnStarted { turn } | EventBody::TurnFinished { turn } => {
            json!({ "turn": turn })
        }
        EventBody::MessageStarted { message } | EventBody::MessageFinished { message } => {
            json!({ "message_id": message })
        }
        EventBody::MessageDelta {
            message,
            channel,
            text,
        } => json!({
            "message_id": message,
            "channel": channel_word(*channel),
            "text": **text,
        }),
        EventBody::ToolStarted {
            call,
            name,
            input_json,
        } => tool_started(call, name, input_json),
        EventBody::ToolProgress { call, output } => json!({
            "tool_call_id": call,
            "text": output.text,
            "omitted_bytes": output.omitted_bytes,
        }),
        EventBody::ToolFinished {
            call,
            failed,
            output,
            artifact,
        } => tool_finished(call, *failed, output, artifact.as_ref()),
        EventBody::RetryScheduled {
            attempt,
            max_attempts,
            delay,
            reason,
        } => retry(*attempt, *max_attempts, *delay, reason),
        EventBody::EntryAppended { entry: appended } => json!({ "entry": entry(appended) }),
        EventBody::UsageUpdated {
            usage: used,
            session,
        } => {
            json!({ "usage": usage(used), "session_usage": usage(session) })
        }
        EventBody::ServingError { reason } => json!({ "reason": reason }),
        EventBody::QueueChanged { .. }
        | EventBody::InputDelivered { .. }
        | EventBody::InputDiscarded { .. } => input(body),
        EventBody::CompactionStarted { .. }
        | EventBody::CompactionFinished { .. }
        | EventBody::StateChanged { .. }
        | EventBody::InteractionRequested { .. }
        | EventBody::InteractionResolved { .. } => change(body),
    }
}

fn change(body: &EventBody) -> Value {
    match body {
        EventBody::CompactionStarted { trigger } => json!({ "trigger": trigger.as_str() }),
        EventBody::CompactionFinished { outcome } => compacted(outcome),
        EventBody::StateChanged {
            leaf,
            chosen,
            resolved,
            renamed,
        } => json!({
            "leaf_entry_id": maybe(*leaf),
            "model": resolved.settings.model,
            "thinking_level": resolved.settings.thinking_level,
            "available_thinking_levels": resolved.available_levels,
            "model_override": chosen.model,
            "thinking_level_override": chosen.thinking_level,
            "session_name": renamed.as_ref().map(|name| name.as_ref().map(ToString::to_string).unwrap_or_default()),
        }),
        EventBody::InteractionRequested { interaction: asked } => {
            json!({ "interaction": interaction(asked) })
        }
        EventBody::InteractionResolved {
            id,
            resolution: end,
        } => resolved(*id, end),
        _ => Value::Null,
    }
}

/// How a compaction ended.
pub(crate) fn compacted(outcome: &CompactionOutcome) -> Value {
    let (entry, failure) = match outcome {
        CompactionOutcome::Completed(entry) => (Some(*entry), None),
        CompactionOutcome::Failed(failure) => (None, Some(failure)),
        CompactionOutcome::Aborted => (None, None),
    };
    json!({
        "outcome": outcome.as_str(),
        "entry_id": maybe(entry),
        "code": failure.map(|failure| &failure.code),
        "details": failure.map(|failure| &failure.details),
        "retryable": failure.is_some_and(|failure| failure.retryable),
    })
}

fn resolved(id: InteractionId, end: &Resolution) -> Value {
    json!({ "interaction_id": text(id), "resolution": resolution(end) })
}

fn input(body: &EventBody) -> Value {
    match body {
        EventBody::QueueChanged { change, depth } => match change {
            QueueChange::Added(input) => {
                json!({ "added": state::pending(input), "depth": depth })
            }
            QueueChange::Handed(input) => json!({ "handed": text(input), "depth": depth }),
            QueueChange::Returned(input) => json!({ "returned": text(input), "depth": depth }),
            QueueChange::Removed(input) => json!({ "removed": text(input), "depth": depth }),
        },
        EventBody::InputDelivered { input, entry } => {
            json!({ "input_id": text(input), "entry_id": text(entry) })
        }
        EventBody::InputDiscarded { input, cause } => {
            json!({ "input_id": text(input), "cause": cause.as_str() })
        }
        _ => Value::Null,
    }
}

fn channel_word(channel: OutputChannel) -> &'static str {
    match channel {
        OutputChannel::Text => "text",
        OutputChannel::Thinking => "thinking",
    }
}

fn tool_started(call: &str, name: &str, input_json: &BoundedText) -> Value {
    json!({
        "tool_call_id": call,
        "name": name,
        "input_json": input_json.text,
        "omitted_bytes": input_json.omitted_bytes,
    })
}

fn tool_finished(
    call: &str,
    failed: bool,
    output: &BoundedText,
    kept: Option<&ArtifactRef>,
) -> Value {
    json!({
        "artifact": artifact(kept),
        "tool_call_id": call,
        "failed": failed,
        "output": output.text,
        "omitted_bytes": output.omitted_bytes,
    })
}

fn retry(attempt: u32, max_attempts: u32, delay: Duration, reason: &str) -> Value {
    json!({
        "attempt": attempt,
        "max_attempts": max_attempts,
        "delay": duration(delay),
        "reason": reason,
    })
}

fn lost(attempt: u32, delay: Duration, error: &CallError) -> Value {
    json!({
        "attempt": attempt,
        "delay": duration(delay),
        "reason": error.reason.as_str(),
        "message": error.message,
    })
}
