//! What an engine may say, in small words that meet.

use std::time::Duration;

use proptest::prelude::*;
use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::{EntryId, InputId};
use sessionplane_core::domain::lifecycle::EngineTag;
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use crate::driver::facts;
use crate::driver::questions::some_question;
use crate::driver::rng::Rng;

/// What the engine says; names come from a small set, so that they meet.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Turn(bool),
    Started(u8),
    Delta(u8, OutputChannel, String),
    Finished(u8, Option<String>, Option<u64>),
    ToolStarted(u8),
    Progress(u8),
    ToolFinished(u8, bool),
    Shown(u32),
    TakenBack(u32),
    Retry,
    /// This question, this kind of it, and after so many milliseconds nobody needs to answer.
    Asked(u8, u64, Option<u64>),
    Withdrawn(u8),
    CompactionStarted,
    /// With a summary, or without.
    Compacted(Option<String>),
    /// How, and of which prompt.
    Stopped(u8, u32),
}

impl Said {
    pub(crate) fn event(self, tag: EngineTag) -> EngineEvent {
        let input = |ordinal| InputId {
            run: tag.run.unwrap_or(facts::run_id(0)),
            ordinal,
        };
        let (message, call) = (|n: u8| format!("m{n}"), |n: u8| format!("c{n}"));
        let ask = |n: u8| format!("q{n}");
        match self {
            Self::Turn(true) => EngineEvent::TurnStarted,
            Self::Turn(false) => EngineEvent::TurnFinished,
            Self::Started(n) => EngineEvent::MessageStarted {
                message: message(n),
            },
            Self::Delta(n, channel, text) => EngineEvent::MessageDelta {
                message: message(n),
                channel,
                text,
            },
            Self::Finished(n, text, output_tokens) => EngineEvent::MessageFinished {
                message: message(n),
                text,
                usage: Usage {
                    output_tokens,
                    ..Usage::default()
                },
            },
            Self::ToolStarted(n) => EngineEvent::ToolStarted {
                call: call(n),
                name: "shell".to_owned(),
                input_json: "{}".to_owned(),
            },
            Self::Progress(n) => EngineEvent::ToolProgress {
                call: call(n),
                output: "so far".to_owned(),
            },
            Self::ToolFinished(n, failed) => EngineEvent::ToolFinished {
                call: call(n),
                output: "done".to_owned(),
                failed,
            },
            Self::Shown(ordinal) => EngineEvent::InputShown {
                input: input(ordinal),
            },
            Self::TakenBack(ordinal) => EngineEvent::InputTakenBack {
                input: input(ordinal),
            },
            Self::Asked(n, seed, timeout) => EngineEvent::Asked {
                ask: ask(n),
                question: some_question(&mut Rng::new(seed)),
                timeout: timeout.map(Duration::from_millis),
            },
            Self::Withdrawn(n) => EngineEvent::AskWithdrawn { ask: ask(n) },
            Self::CompactionStarted => EngineEvent::CompactionStarted,
            Self::Compacted(summary) => EngineEvent::CompactionFinished(compacted(summary)),
            Self::Retry => EngineEvent::RetryScheduled {
                attempt: 1,
                max_attempts: 0,
                delay: Duration::from_secs(1),
                reason: "overloaded".to_owned(),
            },
            Self::Stopped(how, prompt) => EngineEvent::Stopped {
                prompt,
                reason: stop_reason(how),
            },
        }
    }
}

fn compacted(summary: Option<String>) -> Result<Compacted, Failure> {
    let session = facts::record().id;
    summary
        .map(|summary| Compacted {
            summary,
            first_kept: Some(EntryId { session, seq: 2 }),
            tokens_before: None,
            tokens_after: None,
        })
        .ok_or_else(|| Failure {
            code: "overloaded".to_owned(),
            details: String::new(),
            retryable: true,
        })
}

fn stop_reason(how: u8) -> StopReason {
    match how {
        0 => StopReason::Aborted,
        1 => StopReason::Failed(Failure {
            code: String::new(),
            details: "no".to_owned(),
            retryable: false,
        }),
        _ => StopReason::Completed,
    }
}

pub(crate) fn said() -> impl Strategy<Value = Said> {
    let channel = prop_oneof![Just(OutputChannel::Text), Just(OutputChannel::Thinking)];
    let prompt = prop_oneof![6 => Just(1_u32), 2 => 2_u32..4, 1 => 0_u32..9];
    let text = prop_oneof![9 => "\\PC{0,8}", 1 => Just("é".repeat(20_000))];
    prop_oneof![
        1 => any::<bool>().prop_map(Said::Turn),
        1 => (0_u8..3).prop_map(Said::Started),
        1 => (0_u8..3, channel, text).prop_map(|(n, channel, text)| Said::Delta(n, channel, text)),
        1 => (0_u8..3, prop::option::of("\\PC{0,8}"), prop::option::of(0_u64..100))
            .prop_map(|(n, text, tokens)| Said::Finished(n, text, tokens)),
        1 => (0_u8..3).prop_map(Said::ToolStarted),
        3 => (0_u8..3).prop_map(Said::Progress),
        1 => (0_u8..3, any::<bool>()).prop_map(|(n, failed)| Said::ToolFinished(n, failed)),
        2 => (1_u32..6).prop_map(Said::Shown),
        1 => (1_u32..6).prop_map(Said::TakenBack),
        3 => (0_u8..3, 0_u64..40, prop::option::of(0_u64..20_000))
            .prop_map(|(n, seed, timeout)| Said::Asked(n, seed, timeout)),
        1 => (0_u8..3).prop_map(Said::Withdrawn),
        1 => Just(Said::CompactionStarted),
        2 => prop::option::of("[a-z]{0,4}").prop_map(Said::Compacted),
        1 => Just(Said::Retry),
        2 => (0_u8..6, prompt).prop_map(|(how, prompt)| Said::Stopped(how, prompt)),
    ]
}
