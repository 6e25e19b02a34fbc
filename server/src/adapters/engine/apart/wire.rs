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
