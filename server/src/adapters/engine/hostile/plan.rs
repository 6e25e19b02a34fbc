//! What a hostile engine would say if it behaved: a run of messages and tools, drawn by chance.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::options::LabelManner;

/// How long a huge label is, in bytes.
const HUGE: usize = 64 * 1024;
/// The longest pause before an event.
const PAUSE: Duration = Duration::from_millis(50);

/// An event and the pause before it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Beat {
    pub(super) pause: Duration,
    pub(super) event: EngineEvent,
}

/// Gives names to messages, calls, tools and failures.
pub(super) struct Labels {
    manner: LabelManner,
    last: u64,
}

impl Labels {
    pub(super) fn new(manner: LabelManner) -> Self {
        Self { manner, last: 0 }
    }

    pub(super) fn next(&mut self, kind: &str) -> String {
        self.last += 1;
        match self.manner {
            LabelManner::Plain => format!("{kind}{}", self.last),
            LabelManner::Empty => String::new(),
            LabelManner::Huge => {
                let tail = format!("\n\0\u{202e}{kind}{}", self.last);
                "\u{e9}".repeat((HUGE - tail.len()) / 2) + &tail
            }
        }
    }
}

/// Draws a run that behaves: it says something first, uses a tool, and completes
/// the prompt of this number.
pub(super) fn draw(chance: &mut StdRng, labels: &mut Labels, prompt: u32) -> Vec<Beat> {
    let mut events = vec![EngineEvent::TurnStarted];
    message(chance, labels, &mut events);
    tool(chance, labels, &mut events);
    for _ in 0..chance.random_range(0..4) {
        if chance.random() {
            tool(chance, labels, &mut events);
        } else {
            events.push(EngineEvent::TurnFinished);
            events.push(EngineEvent::TurnStarted);
            message(chance, labels, &mut events);
        }
    }
    events.push(EngineEvent::TurnFinished);
    events.push(EngineEvent::Stopped {
        prompt,
        reason: StopReason::Completed,
    });
    let paused = |event| Beat {
        pause: PAUSE.mul_f64(chance.random()),
        event,
    };
    events.into_iter().map(paused).collect()
}

fn message(chance: &mut StdRng, labels: &mut Labels, events: &mut Vec<EngineEvent>) {
    let id = labels.next("m");
    let started = EngineEvent::MessageStarted {
        message: id.clone(),
    };
    events.push(started);
    let mut whole = String::new();
    for number in 0..chance.random_range(2..12) {
        let channel = if number > 0 && chance.random_ratio(1, 4) {
            OutputChannel::Thinking
        } else {
            OutputChannel::Text
        };
        let text = format!("word{number} ");
        if channel == OutputChannel::Text {
            whole.push_str(&text);
        }
        events.push(EngineEvent::MessageDelta {
            message: id.clone(),
            channel,
            text,
        });
    }
    events.push(EngineEvent::MessageFinished {
        message: id,
        text: Some(whole),
        usage: Usage {
            input_tokens: chance.random_bool(0.5).then_some(7),
            output_tokens: chance.random_bool(0.5).then_some(11),
            ..Usage::default()
        },
    });
}

fn tool(chance: &mut StdRng, labels: &mut Labels, events: &mut Vec<EngineEvent>) {
    let call = labels.next("c");
    events.push(EngineEvent::ToolStarted {
        call: call.clone(),
        name: labels.next("tool"),
        input_json: "{}".to_owned(),
    });
    let mut output = String::new();
    for number in 0..chance.random_range(0..4) {
        let said = format!("line {number}\n");
        output.push_str(&said);
        events.push(EngineEvent::ToolProgress {
            call: call.clone(),
            output: output.clone(),
        });
    }
    events.push(EngineEvent::ToolFinished {
        call,
        output,
        failed: chance.random_ratio(1, 4),
    });
}
