//! A run as it is being told: deltas become running text, tools and retries lines beside it.

use std::time::Duration;

use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::{EventBody, OutputChannel};

use super::entry::{entry_block, tool_line, tool_output};
use super::run::settled_line;
use super::time::age;
use crate::cli::screen::Piece;

/// Most messages and tool calls that are remembered as shown.
const REMEMBERED: usize = 1024;

/// What is being told at the moment.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The message and channel whose text is running.
    speaking: Option<(String, OutputChannel)>,
    /// Messages and tool calls that were shown from their beginning, newest last.
    shown: Vec<String>,
}

impl Flow {
    /// What an invoke's event adds to the screen. Nothing for the first and the last one.
    pub(crate) fn invoked(&mut self, event: &InvokeEvent) -> Vec<Piece> {
        match event {
            InvokeEvent::Delta {
                message,
                channel,
                text,
            } => self.delta(message, *channel, text),
            InvokeEvent::ToolStarted {
                name, input_json, ..
            } => self.beside(tool_line(name, &input_json.text)),
            InvokeEvent::ToolEnded { failed, output, .. } => {
                self.beside(tool_output(&output.text, *failed))
            }
            InvokeEvent::Retrying {
                attempt,
                max_attempts,
                delay,
                reason,
            } => self.beside(retry(*attempt, *max_attempts, *delay, reason)),
            InvokeEvent::Resumed { skipped } => self.beside(skipped_line(*skipped)),
            InvokeEvent::Accepted { .. }
            | InvokeEvent::Completed { .. }
            | InvokeEvent::Failed { .. } => self.pause(),
        }
    }

    /// What an observed event adds to the screen.
    pub(crate) fn observed(&mut self, body: &EventBody) -> Vec<Piece> {
        match body {
            EventBody::MessageDelta {
                message,
                channel,
                text,
            } => self.delta(message, *channel, text),
            EventBody::MessageStarted { message } => {
                self.remember(message);
                Vec::new()
            }
            EventBody::ToolStarted {
                call,
                name,
                input_json,
            } => {
                self.remember(call);
                self.beside(tool_line(name, &input_json.text))
            }
            EventBody::ToolFinished { failed, output, .. } => {
                self.beside(tool_output(&output.text, *failed))
            }
            EventBody::RetryScheduled {
                attempt,
                max_attempts,
                delay,
                reason,
            } => self.beside(retry(*attempt, *max_attempts, *delay, reason)),
            EventBody::EntryAppended { entry } => self.appended(entry),
            EventBody::RunSettled { run } => {
                self.beside(Piece::Aside(format!("-- {} --\n", settled_line(run))))
            }
            EventBody::InputDiscarded { input, cause } => self.beside(Piece::Aside(format!(
                "! input {input} was not shown to the model: {}\n",
                cause.as_str()
            ))),
            EventBody::ServingError { reason } => {
                self.beside(Piece::Aside(format!("! {reason}\n")))
            }
            EventBody::RunStarted { .. }
            | EventBody::TurnStarted { .. }
            | EventBody::TurnFinished { .. }
            | EventBody::MessageFinished { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::QueueChanged { .. }
            | EventBody::InputDelivered { .. }
            | EventBody::UsageUpdated { .. } => Vec::new(),
        }
    }

    /// Events were missed: what was shown may not be whole, so that its entry is worth showing.
    pub(crate) fn forget(&mut self) -> Vec<Piece> {
        self.shown.clear();
        self.pause()
    }

    /// Ends a running text.
    pub(crate) fn pause(&mut self) -> Vec<Piece> {
        match self.speaking.take() {
            Some(_) => vec![Piece::Break],
            None => Vec::new(),
        }
    }

    fn delta(&mut self, message: &str, channel: OutputChannel, text: &str) -> Vec<Piece> {
        let goes_on = self
            .speaking
            .as_ref()
            .is_some_and(|(id, on)| id == message && *on == channel);
        let mut pieces = Vec::new();
        if !goes_on {
            pieces.extend(self.pause());
            self.speaking = Some((message.to_owned(), channel));
        }
        pieces.push(match channel {
            OutputChannel::Text => Piece::Answer(text.to_owned()),
            OutputChannel::Thinking => Piece::Aside(text.to_owned()),
        });
        pieces
    }

    /// A line beside the text.
    fn beside(&mut self, line: Piece) -> Vec<Piece> {
        let mut pieces = self.pause();
        pieces.push(line);
        pieces
    }

    /// An entry is shown unless it was shown while it came to be.
    fn appended(&mut self, entry: &Entry) -> Vec<Piece> {
        let live = match &entry.body {
            EntryBody::Assistant { message, .. } => Some(message),
            EntryBody::Tool { call_id, .. } => Some(call_id),
            EntryBody::User { .. } | EntryBody::Notice { .. } => None,
        };
        if live.is_some_and(|id| self.shown.contains(id)) {
            return Vec::new();
        }
        let mut pieces = self.pause();
        pieces.extend(entry_block(entry));
        pieces
    }

    fn remember(&mut self, id: &str) {
        if self.shown.last().is_some_and(|last| last == id) {
            return;
        }
        if !self.shown.iter().any(|shown| shown == id) {
            if self.shown.len() == REMEMBERED {
                self.shown.remove(0);
            }
            self.shown.push(id.to_owned());
        }
    }
}

fn retry(attempt: u32, max_attempts: u32, delay: Duration, reason: &str) -> Piece {
    let of = if max_attempts > 0 {
        format!(" of {max_attempts}")
    } else {
        String::new()
    };
    let delay = age(delay);
    Piece::Aside(format!("! retry {attempt}{of} in {delay}: {reason}\n"))
}

fn skipped_line(skipped: u64) -> Piece {
    let how_many = match skipped {
        0 => "some events".to_owned(),
        skipped => format!("{skipped} events"),
    };
    Piece::Aside(format!(
        "! {how_many} of the run were missed; its entries hold all texts\n"
    ))
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::text::BoundedText;

    use super::*;

    fn delta(channel: OutputChannel, text: &str) -> InvokeEvent {
        InvokeEvent::Delta {
            message: "m1".to_owned(),
            channel,
            text: text.to_owned(),
        }
    }

    #[test]
    fn thinking_is_never_part_of_the_answer() {
        let mut flow = Flow::default();
        let events = [
            delta(OutputChannel::Thinking, "hm"),
            delta(OutputChannel::Text, "yes"),
        ];
        let pieces: Vec<_> = events
            .iter()
            .flat_map(|event| flow.invoked(event))
            .collect();
        assert_eq!(
            pieces,
            [
                Piece::Aside("hm".to_owned()),
                Piece::Break,
                Piece::Answer("yes".to_owned()),
            ]
        );
    }

    #[test]
    fn a_tool_interrupts_the_text_and_shows_its_end() {
        let mut flow = Flow::default();
        let output = (1..=8).map(|n| format!("line {n}")).collect::<Vec<_>>();
        let events = [
            delta(OutputChannel::Text, "let me look"),
            InvokeEvent::ToolStarted {
                call: "t1".to_owned(),
                name: "sh".to_owned(),
                input_json: BoundedText::new(&format!("{{\"cmd\":\"{}\"}}", "x".repeat(90)), 4096),
            },
            InvokeEvent::ToolEnded {
                call: "t1".to_owned(),
                failed: true,
                output: BoundedText::new(&output.join("\n"), 4096),
            },
        ];
        let pieces = events.iter().flat_map(|event| flow.invoked(event));
        let said: String = pieces
            .map(|piece| match piece {
                Piece::Answer(text) | Piece::Aside(text) => text,
                Piece::Break => "\n".to_owned(),
            })
            .collect();
        insta::assert_snapshot!(said);
    }

    #[test]
    fn an_entry_is_shown_unless_it_was_seen_from_its_beginning() {
        let entry = Entry {
            id: "01K00000000000000000000001-1".parse().unwrap(),
            parent: None,
            run: "01K00000000000000000000002".parse().unwrap(),
            at: sessionplane_core::domain::time::Timestamp::default(),
            body: EntryBody::Assistant {
                message: "m1".to_owned(),
                model: None,
                text: BoundedText::new("the whole", 100),
                thinking: BoundedText::default(),
                partial: false,
                usage: sessionplane_core::domain::usage::Usage::default(),
            },
        };
        let start = EventBody::MessageStarted {
            message: "m1".to_owned(),
        };
        let piece = EventBody::MessageDelta {
            message: "m1".to_owned(),
            channel: OutputChannel::Text,
            text: "whole".into(),
        };
        let appended = EventBody::EntryAppended {
            entry: Box::new(entry),
        };
        let mut late = Flow::default();
        late.observed(&piece);
        assert!(
            !late.observed(&appended).is_empty(),
            "only its end was seen"
        );
        let mut flow = Flow::default();
        flow.observed(&start);
        flow.observed(&piece);
        assert_eq!(flow.observed(&appended), []);
        flow.forget();
        assert!(!flow.observed(&appended).is_empty(), "events were missed");
    }
}
