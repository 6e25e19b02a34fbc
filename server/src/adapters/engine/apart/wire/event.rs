//! Reports.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::IdError;
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::optional;
use super::question::ToldQuestion;

/// A report. Delays are in microseconds.
#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(in crate::adapters::engine::apart) enum ToldEvent {
    TurnStarted,
    TurnFinished,
    MessageStarted {
        message: String,
    },
    MessageDelta {
        message: String,
        thinking: bool,
        text: String,
    },
    MessageFinished {
        message: String,
        text: Option<String>,
        usage: ToldUsage,
    },
    ToolStarted {
        call: String,
        name: String,
        input_json: String,
    },
    ToolProgress {
        call: String,
        output: String,
    },
    ToolFinished {
        call: String,
        output: String,
        failed: bool,
    },
    Asked {
        ask: String,
        question: ToldQuestion,
        timeout: Option<u64>,
    },
    AskWithdrawn {
        ask: String,
    },
    CompactionStarted,
    CompactionFinished {
        compacted: Option<ToldCompacted>,
        failure: Option<ToldFailure>,
    },
    InputShown {
        input: String,
    },
    InputTakenBack {
        input: String,
    },
    RetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay: u64,
        reason: String,
    },
    Stopped {
        prompt: u32,
        reason: ToldStop,
    },
}

#[derive(Serialize, Deserialize)]
pub(in crate::adapters::engine::apart) struct ToldUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    cost_usd: Option<f64>,
}

#[derive(Serialize, Deserialize)]
pub(in crate::adapters::engine::apart) struct ToldCompacted {
    summary: String,
    first_kept: Option<String>,
    tokens_before: Option<u64>,
    tokens_after: Option<u64>,
}

#[derive(Serialize, Deserialize)]
pub(in crate::adapters::engine::apart) struct ToldFailure {
    code: String,
    details: String,
    retryable: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::adapters::engine::apart) enum ToldStop {
    Completed,
    Failed(ToldFailure),
    Aborted,
}

fn micros(delay: Duration) -> u64 {
    u64::try_from(delay.as_micros()).unwrap_or(u64::MAX)
}

impl From<EngineEvent> for ToldEvent {
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of report")]
    fn from(event: EngineEvent) -> Self {
        match event {
            EngineEvent::TurnStarted => Self::TurnStarted,
            EngineEvent::TurnFinished => Self::TurnFinished,
            EngineEvent::MessageStarted { message } => Self::MessageStarted { message },
            EngineEvent::MessageDelta {
                message,
                channel,
                text,
            } => Self::MessageDelta {
                message,
                thinking: channel == OutputChannel::Thinking,
                text,
            },
            EngineEvent::MessageFinished {
                message,
                text,
                usage,
            } => Self::MessageFinished {
                message,
                text,
                usage: usage.into(),
            },
            EngineEvent::ToolStarted {
                call,
                name,
                input_json,
            } => Self::ToolStarted {
                call,
                name,
                input_json,
            },
            EngineEvent::ToolProgress { call, output } => Self::ToolProgress { call, output },
            EngineEvent::ToolFinished {
                call,
                output,
                failed,
            } => Self::ToolFinished {
                call,
                output,
                failed,
            },
            EngineEvent::Asked {
                ask,
                question,
                timeout,
            } => Self::Asked {
                ask,
                question: question.into(),
                timeout: timeout.map(micros),
            },
            EngineEvent::AskWithdrawn { ask } => Self::AskWithdrawn { ask },
            EngineEvent::CompactionStarted => Self::CompactionStarted,
            EngineEvent::CompactionFinished(Ok(compacted)) => Self::CompactionFinished {
                compacted: Some(compacted.into()),
                failure: None,
            },
            EngineEvent::CompactionFinished(Err(failure)) => Self::CompactionFinished {
                compacted: None,
                failure: Some(failure.into()),
            },
            EngineEvent::InputShown { input } => Self::InputShown {
                input: input.to_string(),
            },
            EngineEvent::InputTakenBack { input } => Self::InputTakenBack {
                input: input.to_string(),
            },
            EngineEvent::RetryScheduled {
                attempt,
                max_attempts,
                delay,
                reason,
            } => Self::RetryScheduled {
                attempt,
                max_attempts,
                delay: micros(delay),
                reason,
            },
            EngineEvent::Stopped { prompt, reason } => Self::Stopped {
                prompt,
                reason: match reason {
                    StopReason::Completed => ToldStop::Completed,
                    StopReason::Failed(failure) => ToldStop::Failed(failure.into()),
                    StopReason::Aborted => ToldStop::Aborted,
                },
            },
        }
    }
}

impl TryFrom<ToldEvent> for EngineEvent {
    type Error = IdError;

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of report")]
    fn try_from(told: ToldEvent) -> Result<Self, IdError> {
        Ok(match told {
            ToldEvent::TurnStarted => Self::TurnStarted,
            ToldEvent::TurnFinished => Self::TurnFinished,
            ToldEvent::MessageStarted { message } => Self::MessageStarted { message },
            ToldEvent::MessageDelta {
                message,
                thinking,
                text,
            } => Self::MessageDelta {
                message,
                channel: if thinking {
                    OutputChannel::Thinking
                } else {
                    OutputChannel::Text
                },
                text,
            },
            ToldEvent::MessageFinished {
                message,
                text,
                usage,
            } => Self::MessageFinished {
                message,
                text,
                usage: usage.into(),
            },
            ToldEvent::ToolStarted {
                call,
                name,
                input_json,
            } => Self::ToolStarted {
                call,
                name,
                input_json,
            },
            ToldEvent::ToolProgress { call, output } => Self::ToolProgress { call, output },
            ToldEvent::ToolFinished {
                call,
                output,
                failed,
            } => Self::ToolFinished {
                call,
                output,
                failed,
            },
            ToldEvent::Asked {
                ask,
                question,
                timeout,
            } => Self::Asked {
                ask,
                question: question.into(),
                timeout: timeout.map(Duration::from_micros),
            },
            ToldEvent::AskWithdrawn { ask } => Self::AskWithdrawn { ask },
            ToldEvent::CompactionStarted => Self::CompactionStarted,
            ToldEvent::CompactionFinished { compacted, failure } => {
                Self::CompactionFinished(match (compacted, failure) {
                    (Some(compacted), None) => Ok(compacted.taken()?),
                    (_, failure) => Err(failure.unwrap_or_default().into()),
                })
            }
            ToldEvent::InputShown { input } => Self::InputShown {
                input: input.parse()?,
            },
            ToldEvent::InputTakenBack { input } => Self::InputTakenBack {
                input: input.parse()?,
            },
            ToldEvent::RetryScheduled {
                attempt,
                max_attempts,
                delay,
                reason,
            } => Self::RetryScheduled {
                attempt,
                max_attempts,
                delay: Duration::from_micros(delay),
                reason,
            },
            ToldEvent::Stopped { prompt, reason } => Self::Stopped {
                prompt,
                reason: match reason {
                    ToldStop::Completed => StopReason::Completed,
                    ToldStop::Failed(failure) => StopReason::Failed(failure.into()),
                    ToldStop::Aborted => StopReason::Aborted,
                },
            },
        })
    }
}

impl From<Usage> for ToldUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cost_usd: usage.cost_usd,
        }
    }
}

impl From<ToldUsage> for Usage {
    fn from(told: ToldUsage) -> Self {
        Self {
            input_tokens: told.input_tokens,
            output_tokens: told.output_tokens,
            cached_tokens: told.cached_tokens,
            cost_usd: told.cost_usd,
        }
    }
}

impl From<Compacted> for ToldCompacted {
    fn from(compacted: Compacted) -> Self {
        Self {
            summary: compacted.summary,
            first_kept: compacted.first_kept.map(|entry| entry.to_string()),
            tokens_before: compacted.tokens_before,
            tokens_after: compacted.tokens_after,
        }
    }
}

impl ToldCompacted {
    fn taken(self) -> Result<Compacted, IdError> {
        Ok(Compacted {
            summary: self.summary,
            first_kept: optional(self.first_kept.as_ref())?,
            tokens_before: self.tokens_before,
            tokens_after: self.tokens_after,
        })
    }
}

impl Default for ToldFailure {
    fn default() -> Self {
        Self {
            code: "engine_failed".to_owned(),
            details: "the agent did not say why".to_owned(),
            retryable: false,
        }
    }
}

impl From<Failure> for ToldFailure {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code,
            details: failure.details,
            retryable: failure.retryable,
        }
    }
}

impl From<ToldFailure> for Failure {
    fn from(told: ToldFailure) -> Self {
        Self {
            code: told.code,
            details: told.details,
            retryable: told.retryable,
        }
    }
}
