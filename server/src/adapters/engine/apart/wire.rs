//! What stands on a line.

mod command;
mod event;
mod question;

use serde::{Deserialize, Serialize};
use sessionplane_core::domain::ids::IdError;
use sessionplane_core::domain::run::RunSettings;

pub(super) use command::ToldCommand;
pub(super) use event::ToldEvent;

use crate::adapters::engine::memory::{Memory, Remembered};

/// The first line to an engine: what it has to know.
#[derive(Serialize, Deserialize)]
pub(in crate::adapters::engine) struct Opening {
    memory: Remembered,
    model: Option<String>,
    thinking_level: Option<String>,
}

impl Opening {
    pub(super) fn of(memory: &Memory, settings: &RunSettings) -> Self {
        Self {
            memory: memory.told(),
            model: settings.model.clone(),
            thinking_level: settings.thinking_level.clone(),
        }
    }

    /// What the engine remembers, and what it is to use.
    pub(in crate::adapters::engine) fn taken(self) -> Result<(Memory, RunSettings), IdError> {
        let settings = RunSettings {
            model: self.model,
            thinking_level: self.thinking_level,
        };
        Ok((Memory::of(self.memory)?, settings))
    }
}

/// One thing as a line, its end included.
pub(super) fn line(what: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(what).map_err(std::io::Error::other)?;
    line.push(b'\n');
    Ok(line)
}

/// An id from its text, where there is one.
fn optional<T: std::str::FromStr>(text: Option<&String>) -> Result<Option<T>, T::Err> {
    text.map(|text| text.parse()).transpose()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sessionplane_core::domain::compaction::Compacted;
    use sessionplane_core::domain::event::OutputChannel;
    use sessionplane_core::domain::ids::{EntryId, InputId, RunId, SessionId};
    use sessionplane_core::domain::interaction::{
        Choice, FieldKind, FormField, InteractionAnswer, Question, Shape,
    };
    use sessionplane_core::domain::run::Failure;
    use sessionplane_core::domain::time::Timestamp;
    use sessionplane_core::domain::usage::Usage;
    use sessionplane_core::domain::withholding::Withheld;
    use sessionplane_core::ports::engine::{EngineCommand, EngineEvent, StopReason};

    use super::*;

    fn input() -> InputId {
        InputId {
            run: RunId::mint(Timestamp::default(), 3),
            ordinal: 2,
        }
    }

    fn failure() -> Failure {
        Failure {
            code: "full".to_owned(),
            details: "no \"room\"\n\u{0}".to_owned(),
            retryable: true,
        }
    }

    fn answers() -> Vec<InteractionAnswer> {
        vec![
            InteractionAnswer::Choice("a".to_owned()),
            InteractionAnswer::Confirmed(false),
            InteractionAnswer::Text("t".to_owned()),
            InteractionAnswer::Fields([("k".to_owned(), "v".to_owned())].into()),
        ]
    }

    fn questions() -> Vec<Question> {
        let choice = || {
            vec![Choice {
                id: "a".to_owned(),
                label: "A".to_owned(),
            }]
        };
        let kinds = [
            FieldKind::Text,
            FieldKind::Number,
            FieldKind::Boolean,
            FieldKind::Select(choice()),
        ];
        let field = |kind| FormField {
            name: "n".to_owned(),
            label: "l".to_owned(),
            kind,
            required: true,
        };
        let shapes = [
            Shape::Approval(choice()),
            Shape::Select(choice()),
            Shape::Confirm,
            Shape::Input { secret: true },
            Shape::Form(kinds.into_iter().map(field).collect()),
        ];
        let question = |shape| Question {
            title: "t".to_owned(),
            details: "d".to_owned(),
            shape,
            default: answers().pop(),
        };
        shapes.into_iter().map(question).collect()
    }

    fn events() -> Vec<EngineEvent> {
        let text = || "a\u{2028}\"b\"\n".to_owned();
        let entry = EntryId {
            session: SessionId::mint(Timestamp::default(), 1),
            seq: 9,
        };
        let compacted = Compacted {
            summary: text(),
            first_kept: Some(entry),
            tokens_before: Some(5),
            tokens_after: None,
        };
        let stopped = |reason| EngineEvent::Stopped { prompt: 4, reason };
        let delta = |channel| EngineEvent::MessageDelta {
            message: text(),
            channel,
            text: text(),
        };
        let mut events = vec![
            EngineEvent::TurnStarted,
            EngineEvent::TurnFinished,
            EngineEvent::MessageStarted { message: text() },
            delta(OutputChannel::Text),
            delta(OutputChannel::Thinking),
            EngineEvent::MessageFinished {
                message: text(),
                text: None,
                usage: Usage {
                    input_tokens: Some(1),
                    cost_usd: Some(0.25),
                    ..Usage::default()
                },
            },
            EngineEvent::ToolStarted {
                call: text(),
                name: text(),
                input_json: text(),
            },
            EngineEvent::ToolProgress {
                call: text(),
                output: text(),
            },
            EngineEvent::ToolFinished {
                call: text(),
                output: text(),
                failed: true,
            },
            EngineEvent::AskWithdrawn { ask: text() },
            EngineEvent::CompactionStarted,
            EngineEvent::CompactionFinished(Ok(compacted)),
            EngineEvent::CompactionFinished(Err(failure())),
            EngineEvent::InputShown { input: input() },
            EngineEvent::InputTakenBack { input: input() },
            EngineEvent::RetryScheduled {
                attempt: 1,
                max_attempts: 2,
                delay: Duration::from_micros(3),
                reason: text(),
            },
            stopped(StopReason::Completed),
            stopped(StopReason::Failed(failure())),
            stopped(StopReason::Aborted),
        ];
        events.extend(questions().into_iter().map(|question| EngineEvent::Asked {
            ask: text(),
            question,
            timeout: Some(Duration::from_millis(7)),
        }));
        events
    }

    #[test]
    fn every_report_arrives_as_it_was_told_on_one_line() {
        for event in events() {
            let line = line(&ToldEvent::from(event.clone())).expect("a line");
            assert_eq!(
                line.iter().position(|byte| *byte == b'\n'),
                Some(line.len() - 1)
            );
            let told: ToldEvent = serde_json::from_slice(&line).expect("a report");
            assert_eq!(EngineEvent::try_from(told), Ok(event));
        }
    }

    #[test]
    fn every_command_arrives_as_it_was_given_on_one_line() {
        let answer = |answer| EngineCommand::Answer {
            ask: "a\nb".to_owned(),
            answer,
        };
        let mut commands = vec![
            EngineCommand::Prompt {
                number: 1,
                run: input().run,
                text: "a\nb".into(),
                input: Some(input()),
                withheld: Withheld::All,
            },
            EngineCommand::Steer {
                input: input(),
                text: "a".into(),
                withheld: Withheld::Tools(["sh".to_owned()].into()),
            },
            EngineCommand::Compact {
                instructions: Some("i".into()),
            },
            EngineCommand::Abort,
            answer(None),
        ];
        commands.extend(answers().into_iter().map(Some).map(answer));
        for command in commands {
            let line = line(&ToldCommand::from(command.clone())).expect("a line");
            assert_eq!(
                line.iter().position(|byte| *byte == b'\n'),
                Some(line.len() - 1)
            );
            let told: ToldCommand = serde_json::from_slice(&line).expect("a command");
            assert_eq!(EngineCommand::try_from(told), Ok(command));
        }
    }
}
