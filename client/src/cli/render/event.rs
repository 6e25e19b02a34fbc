//! Items of a watch, one line each.

use sessionplane_core::domain::event::{EventBody, EventEnvelope, OutputChannel, QueueChange};

use super::WIDTH;
use super::run::{settled_line, usage_words};
use super::state::summary;
use super::time::age;
use crate::cli::visible;
use crate::watch::WatchItem;

/// A watch's item on one line; none for what a person need not see.
pub(crate) fn event_line(item: &WatchItem) -> Option<String> {
    let line = match item {
        WatchItem::Subscribed { session, epoch } => {
            format!("subscribed to {session}, epoch {epoch}")
        }
        WatchItem::Reconnecting { error, .. } => {
            format!("connection lost ({error}), reconnecting")
        }
        WatchItem::Reconnected { resumed: true } => "reconnected, nothing was missed".to_owned(),
        WatchItem::Reconnected { resumed: false } => "reconnected".to_owned(),
        WatchItem::EpochChanged { from, to } => format!("served anew: epoch {from}, now {to}"),
        WatchItem::Gap => "live events were missed; no entry was".to_owned(),
        WatchItem::Entries { entries, .. } => {
            let ids = entries.first().zip(entries.last());
            let range = ids.map(|(first, last)| format!(", {} to {}", first.id, last.id.seq));
            format!("{} entries{}", entries.len(), range.unwrap_or_default())
        }
        WatchItem::Snapshot(state) => format!("snapshot, {}", summary(&state.view)),
        WatchItem::Event(envelope) => event(envelope),
        WatchItem::Unknown {
            event_type,
            position,
        } => format!("{}:{} {event_type} (unknown)", position.epoch, position.seq),
        WatchItem::Heartbeat(_) => return None,
    };
    Some(visible::clipped(&line, WIDTH))
}

fn event(envelope: &EventEnvelope) -> String {
    let EventEnvelope { epoch, seq, .. } = envelope;
    let body = &envelope.event.body;
    let line = format!("{epoch}:{seq} {} {}", body.event_type(), words(body));
    line.trim_end().to_owned()
}

fn words(body: &EventBody) -> String {
    match body {
        EventBody::RunStarted { origin, agent, .. } => {
            format!("agent {agent}, from {}", origin.principal)
        }
        EventBody::RunSettled { run } => settled_line(run),
        EventBody::TurnStarted { turn } | EventBody::TurnFinished { turn } => turn.to_string(),
        EventBody::MessageStarted { message } | EventBody::MessageFinished { message } => {
            message.clone()
        }
        EventBody::MessageDelta { channel, text, .. } => match channel {
            OutputChannel::Text => format!("text {text}"),
            OutputChannel::Thinking => format!("thinking {text}"),
        },
        EventBody::ToolStarted {
            name, input_json, ..
        } => format!("{name} {}", input_json.text),
        EventBody::ToolProgress { output, .. } => last_line(&output.text),
        EventBody::ToolFinished { failed, output, .. } => {
            let failed = if *failed { "failed: " } else { "" };
            format!("{failed}{}", last_line(&output.text))
        }
        EventBody::QueueChanged { change, depth } => queue(change, *depth),
        EventBody::InputDelivered { input, entry } => format!("{input} as entry {}", entry.seq),
        EventBody::InputDiscarded { input, cause } => format!("{input}: {}", cause.as_str()),
        EventBody::RetryScheduled { delay, reason, .. } => format!("in {}: {reason}", age(*delay)),
        EventBody::EntryAppended { entry } => format!("{} {}", entry.id.seq, entry.body.kind()),
        EventBody::UsageUpdated { usage, .. } => usage_words(usage).unwrap_or_default(),
        EventBody::ServingError { reason } => reason.clone(),
    }
}

fn queue(change: &QueueChange, depth: u32) -> String {
    let what = match change {
        QueueChange::Added(input) => format!("added {} {}", input.kind.as_str(), input.id),
        QueueChange::Handed(input) => format!("handed {input}"),
        QueueChange::Removed(input) => format!("removed {input}"),
    };
    format!("{what}, {depth} waiting")
}

fn last_line(text: &str) -> String {
    text.trim_end()
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned()
}
