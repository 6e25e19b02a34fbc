//! Items of a watch as lines: what is live, and the contents of entries that were not told live.

use sessionplane_core::contract::EventFilter;
use sessionplane_core::domain::compaction::CompactionOutcome;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::{Event, EventBody, OutputChannel, QueueChange};
use sessionplane_core::domain::ids::EntryId;

use super::WIDTH;
use super::entry::{call_words, entry_lines, settings_words};
use super::live::{Live, Telling, Told};
use super::run::{settled_line, settled_lines, usage_words};
use super::state::summary;
use super::thread::Thread;
use super::time::age;
use crate::cli::visible;
use crate::cli::wrap::wrapped;
use crate::watch::WatchItem;

/// What is said where a message is joined in the middle.
pub(super) const JOINED_MESSAGE: &str = "… joined in the middle of a message";

/// What is said before a message of which some was told, but not all.
pub(super) fn whole_message(entry: &Entry) -> &'static str {
    match &entry.body {
        EntryBody::Assistant { text, thinking, .. }
            if text.omitted_bytes + thinking.omitted_bytes > 0 =>
        {
            "-- the message, as far as this tells it --"
        }
        _ => "-- the whole message --",
    }
}

/// What is said where all entries are sent again.
pub(crate) const STARTS_OVER: &str =
    "! the server does not know the last entry; all entries from the first:";

/// What is said where a tool call is joined in the middle: its name is not known yet.
pub(super) fn joined_tool(call: &str, output: &str) -> String {
    let line = match last_line(output) {
        line if line.is_empty() => format!("… joined in the middle of tool call {call}"),
        line => format!("… joined in the middle of tool call {call}: {line}"),
    };
    visible::clipped(&line, WIDTH)
}

/// A loss of the connection with its reason, or its end, on as many lines as it takes; none for any other item.
pub(crate) fn connection_line(item: &WatchItem) -> Option<String> {
    let line = match item {
        WatchItem::Reconnecting { error, .. } => {
            format!("connection lost ({error}), reconnecting")
        }
        WatchItem::Reconnected { resumed: true } => "reconnected, nothing was missed".to_owned(),
        WatchItem::Reconnected { resumed: false } => "reconnected".to_owned(),
        WatchItem::Gap => "live events were missed; no entry was".to_owned(),
        _ => return None,
    };
    Some(wrapped(&visible::line(&line), 0, WIDTH, "  "))
}

/// A session's events as lines, in the order in which they come.
#[derive(Debug)]
pub(crate) struct Log {
    live: Live,
    thread: Thread,
    /// What a message's entry tells need not be told as it comes, and the other way round.
    pairs_messages: bool,
    /// The same of a tool call.
    pairs_tools: bool,
    /// How wide a line may be.
    width: usize,
}

impl Log {
    /// The events that a filter lets through, and the entries after this one.
    ///
    /// Something is told once, live or by its entry, only where its beginning, its pieces and its
    /// entry are all let through. Otherwise each of them says what it has to say.
    pub(crate) fn of(filter: &EventFilter, since: Option<EntryId>, width: usize) -> Self {
        let comes = |name: &str| filter.types.is_empty() || filter.types.contains(name);
        let entries = comes("entry_appended");
        Self {
            live: Live::default(),
            thread: Thread::after(since),
            pairs_messages: entries && comes("message_started") && comes("message_delta"),
            pairs_tools: entries && comes("tool_started") && comes("tool_finished"),
            width,
        }
    }

    /// A watch's item: a line, after it the contents of entries that were not told by events.
    pub(crate) fn lines(&mut self, item: &WatchItem) -> Vec<String> {
        let (mut before, mut contents) = (Vec::new(), Vec::new());
        let line = match item {
            WatchItem::Subscribed { session, .. } => format!("subscribed to {session}"),
            WatchItem::EpochChanged { .. } => {
                "the server was started anew; events are numbered from 1 again".to_owned()
            }
            WatchItem::Entries {
                entries,
                full_backfill,
            } => {
                if *full_backfill {
                    self.live = Live::default();
                    self.thread = Thread::default();
                    before.push(STARTS_OVER.to_owned());
                }
                for entry in entries {
                    contents.extend(self.thread.turn(entry));
                    if self.live.entry(entry) == Told::Parts {
                        contents.push(whole_message(entry).to_owned());
                    }
                    contents.extend(entry_lines(entry));
                }
                let ids = entries.first().zip(entries.last());
                match (ids, entries.len()) {
                    (Some((first, _)), 1) => format!("1 entry, {}", first.id),
                    (Some((first, last)), count) => {
                        format!("{count} entries, {} to {}", first.id, last.id.seq)
                    }
                    (None, _) => "no entries".to_owned(),
                }
            }
            WatchItem::Snapshot(state) => format!("snapshot, {}", summary(&state.view)),
            WatchItem::Event(envelope) => {
                before.extend(self.joins(&envelope.event).map(str::to_owned));
                let words = self.event(&envelope.event, &mut contents);
                let event_type = envelope.event.body.event_type();
                format!("{} {event_type} {words}", envelope.seq)
            }
            WatchItem::Unknown {
                event_type,
                position,
            } => format!("{} {event_type} (unknown)", position.seq),
            WatchItem::Reconnecting { .. } | WatchItem::Reconnected { .. } | WatchItem::Gap => {
                if matches!(item, WatchItem::Gap) {
                    self.live.forget();
                }
                return connection_line(item).into_iter().collect();
            }
            WatchItem::Heartbeat(_) => return Vec::new(),
        };
        before.push(visible::clipped(line.trim_end(), self.width));
        before.append(&mut contents);
        before
    }

    /// What is said before a piece of a message that began before.
    fn joins(&mut self, event: &Event) -> Option<&'static str> {
        let EventBody::MessageDelta {
            message,
            channel,
            text,
        } = &event.body
        else {
            return None;
        };
        let telling = || self.live.delta(event.run, message, (*channel, text));
        let joins = self.pairs_messages.then(telling) == Some(Telling::Joined);
        joins.then_some(JOINED_MESSAGE)
    }

    /// An event in words.
    fn event(&mut self, event: &Event, contents: &mut Vec<String>) -> String {
        let run = event.run;
        match &event.body {
            EventBody::MessageStarted { message } if self.pairs_messages => {
                self.live.begin(run, message, None);
            }
            EventBody::MessageFinished { message } => {
                self.live.end(run, message);
            }
            EventBody::ToolStarted { call, name, .. } if self.pairs_tools => {
                self.live.begin(run, call, Some(name));
            }
            EventBody::ToolProgress { call, output }
                if self.pairs_tools && self.live.piece(run, call) == Telling::Joined =>
            {
                return joined_tool(call, &output.text);
            }
            EventBody::ToolFinished { call, .. }
                if self.pairs_tools && !self.live.end(run, call) =>
            {
                return call.clone();
            }
            // Nothing else may have said which call it is.
            EventBody::ToolProgress { call, .. } | EventBody::ToolFinished { call, .. }
                if !self.pairs_tools =>
            {
                return format!("{call} {}", words(&event.body));
            }
            EventBody::EntryAppended { entry } => {
                contents.extend(self.thread.turn(entry));
                let is_tool = matches!(entry.body, EntryBody::Tool { .. });
                match self.live.entry(entry) {
                    Told::All => {}
                    Told::Beginning if !is_tool => {}
                    Told::Parts => {
                        contents.push(whole_message(entry).to_owned());
                        contents.extend(entry_lines(entry));
                    }
                    Told::Beginning | Told::Nothing => contents.extend(entry_lines(entry)),
                }
            }
            EventBody::RunSettled { run: record } => {
                self.live.settle(run);
                contents.extend(settled_lines(record).into_iter().skip(1));
            }
            _ => {}
        }
        words(&event.body)
    }
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
        } => call_words(name, input_json),
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
        EventBody::CompactionStarted { trigger } => trigger.as_str().to_owned(),
        EventBody::CompactionFinished { outcome } => compaction_words(outcome),
        EventBody::StateChanged {
            renamed: Some(name),
            ..
        } => match name {
            Some(name) => format!("named {name}"),
            None => "has no name any more".to_owned(),
        },
        EventBody::StateChanged { leaf, chosen, .. } => match leaf {
            Some(leaf) => format!("at entry {}, {}", leaf.seq, settings_words(chosen)),
            None => settings_words(chosen),
        },
        EventBody::InteractionRequested { interaction } => {
            format!("{}: {}", interaction.id, interaction.question.title)
        }
        EventBody::InteractionResolved { id, resolution } => {
            format!("{id}: {}", resolution.cause.as_str())
        }
        EventBody::ServingError { reason } => reason.clone(),
    }
}

/// How a compaction ended.
pub(crate) fn compaction_words(outcome: &CompactionOutcome) -> String {
    match outcome {
        CompactionOutcome::Completed(entry) => format!("completed, entry {}", entry.seq),
        CompactionOutcome::Failed(failure) => {
            let details = visible::line(&failure.details);
            format!("failed ({}: {details})", failure.code)
        }
        CompactionOutcome::Aborted => "aborted".to_owned(),
    }
}

fn queue(change: &QueueChange, depth: u32) -> String {
    let what = match change {
        QueueChange::Added(input) => format!("added {} {}", input.kind.as_str(), input.id),
        QueueChange::Handed(input) => format!("handed {input}"),
        QueueChange::Returned(input) => format!("given back {input}"),
        QueueChange::Removed(input) => format!("removed {input}"),
    };
    format!("{what}, {depth} waiting")
}

pub(super) fn last_line(text: &str) -> String {
    text.trim_end()
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests;
