//! Commands.

use serde::{Deserialize, Serialize};
use sessionplane_core::domain::ids::IdError;
use sessionplane_core::domain::withholding::Withheld;
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
        withheld: ToldWithheld,
    },
    Steer {
        input: String,
        text: String,
        withheld: ToldWithheld,
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

/// What may not be used.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::adapters::engine::apart) enum ToldWithheld {
    Nothing,
    Tools(Vec<String>),
    All,
}

impl From<Withheld> for ToldWithheld {
    fn from(withheld: Withheld) -> Self {
        match withheld {
            Withheld::Nothing => Self::Nothing,
            Withheld::Tools(tools) => Self::Tools(tools.to_vec()),
            Withheld::All => Self::All,
        }
    }
}

impl From<ToldWithheld> for Withheld {
    fn from(told: ToldWithheld) -> Self {
        match told {
            ToldWithheld::Nothing => Self::Nothing,
            ToldWithheld::Tools(tools) => Self::Tools(tools.into()),
            ToldWithheld::All => Self::All,
        }
    }
}

impl From<EngineCommand> for ToldCommand {
    fn from(command: EngineCommand) -> Self {
        match command {
            EngineCommand::Prompt {
                number,
                run,
                text,
                input,
                withheld,
            } => Self::Prompt {
                number,
                run: run.to_string(),
                text: text.to_string(),
                input: input.map(|input| input.to_string()),
                withheld: withheld.into(),
            },
            EngineCommand::Steer {
                input,
                text,
                withheld,
            } => Self::Steer {
                input: input.to_string(),
                text: text.to_string(),
                withheld: withheld.into(),
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
                withheld,
            } => Self::Prompt {
                number,
                run: run.parse()?,
                text: text.into(),
                input: optional(input.as_ref())?,
                withheld: withheld.into(),
            },
            ToldCommand::Steer {
                input,
                text,
                withheld,
            } => Self::Steer {
                input: input.parse()?,
                text: text.into(),
                withheld: withheld.into(),
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
