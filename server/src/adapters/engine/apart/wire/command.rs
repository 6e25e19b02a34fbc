//! Commands.

use serde::{Deserialize, Serialize};
use sessionplane_core::domain::ids::IdError;
use sessionplane_core::ports::engine::EngineCommand;

use super::optional;
use super::question::ToldAnswer;

/// A command. It is never shown: an answer may be a secret.
#[derive(Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(in crate::adapters::engine::apart) enum ToldCommand {
    Prompt {
        number: u32,
        run: String,
        text: String,
        input: Option<String>,
    },
    Steer {
        input: String,
        text: String,
    },
    Compact {
        instructions: Option<String>,
    },
    Answer {
        ask: String,
        answer: Option<ToldAnswer>,
    },
    Abort,
}

impl From<EngineCommand> for ToldCommand {
    fn from(command: EngineCommand) -> Self {
        match command {
            EngineCommand::Prompt {
                number,
                run,
                text,
                input,
            } => Self::Prompt {
                number,
                run: run.to_string(),
                text: text.to_string(),
                input: input.map(|input| input.to_string()),
            },
            EngineCommand::Steer { input, text } => Self::Steer {
                input: input.to_string(),
                text: text.to_string(),
            },
            EngineCommand::Compact { instructions } => Self::Compact {
                instructions: instructions.map(|text| text.to_string()),
            },
            EngineCommand::Answer { ask, answer } => Self::Answer {
                ask,
                answer: answer.map(ToldAnswer::from),
            },
            EngineCommand::Abort => Self::Abort,
        }
    }
}

impl TryFrom<ToldCommand> for EngineCommand {
    type Error = IdError;

    fn try_from(told: ToldCommand) -> Result<Self, IdError> {
        Ok(match told {
            ToldCommand::Prompt {
                number,
                run,
                text,
                input,
            } => Self::Prompt {
                number,
                run: run.parse()?,
                text: text.into(),
                input: optional(input.as_ref())?,
            },
            ToldCommand::Steer { input, text } => Self::Steer {
                input: input.parse()?,
                text: text.into(),
            },
            ToldCommand::Compact { instructions } => Self::Compact {
                instructions: instructions.map(Into::into),
            },
            ToldCommand::Answer { ask, answer } => Self::Answer {
                ask,
                answer: answer.map(Into::into),
            },
            ToldCommand::Abort => Self::Abort,
        })
    }
}
