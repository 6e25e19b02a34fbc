//! What the engine is given: nothing before it is durable, one input at a time, none twice.

use std::collections::BTreeMap;

use super::asking::Asking;
use super::durable::Durable;
use crate::domain::ids::InputId;
use crate::domain::input::{InputFate, InputRecord};
use crate::domain::invariants::{Held, ensure};
use crate::domain::lease::Holder;
use crate::domain::lifecycle::{EngineTag, Input};
use crate::domain::rendering::rendered;
use crate::ports::engine::{EngineCommand, EngineEvent};

/// What the engine was given since the session is served.
#[derive(Clone, Debug, Default)]
pub(super) struct Handing {
    open: Option<EngineTag>,
    /// The number of the last prompt since then.
    prompt: u32,
    outstanding: Option<InputId>,
    /// How often an input may still be handed: once, and once more each time it came back.
    allowed: BTreeMap<InputId, u32>,
    aborted: Option<EngineTag>,
    asking: Asking,
    /// It came to its own end and was given no prompt since.
    stopped: bool,
    /// It went away by itself; what a burst led to is done only after all of it was stepped.
    gone: Option<EngineTag>,
}

impl Handing {
    pub(super) fn stepping(&mut self, input: &Input) {
        self.asking.stepping(input);
        match input {
            Input::Engine { tag, event, .. } if self.open == Some(*tag) => self.reported(event),
            Input::EngineGone { tag, .. } if self.open == Some(*tag) => {
                self.dropping(*tag);
                self.gone = Some(*tag);
            }
            _ => {}
        }
    }

    fn reported(&mut self, event: &EngineEvent) {
        match event {
            EngineEvent::InputShown { input } if self.outstanding == Some(*input) => {
                self.outstanding = None;
            }
            EngineEvent::InputTakenBack { input } if self.outstanding == Some(*input) => {
                self.outstanding = None;
                *self.allowed.entry(*input).or_default() += 1;
            }
            EngineEvent::Stopped { prompt, .. } if *prompt == self.prompt => {
                self.outstanding = None;
                self.stopped = true;
            }
            _ => {}
        }
    }

    pub(super) fn dropping(&mut self, tag: EngineTag) {
        if self.open == Some(tag) {
            self.open = None;
            self.outstanding = None;
        }
    }

    pub(super) fn opening(&mut self, tag: EngineTag, durable: &Durable) -> Held {
        active(tag, durable)?;
        ensure(self.open.is_none(), "T14", || {
            format!("{:?} is open and {tag:?} is opened", self.open)
        })?;
        self.open = Some(tag);
        self.stopped = false;
        self.prompt = 0;
        Ok(())
    }

    pub(super) fn telling(
        &mut self,
        tag: EngineTag,
        command: &EngineCommand,
        durable: &Durable,
    ) -> Held {
        active(tag, durable)?;
        // The run's own prompt may meet an engine that is gone by now: it is an entry already. So
        // may what it is told of a question, which is recorded already, and a compaction's command,
        // which has written nothing.
        let late = self.gone == Some(tag)
            && matches!(
                command,
                EngineCommand::Prompt { input: None, .. }
                    | EngineCommand::Answer { .. }
                    | EngineCommand::Compact { .. }
            );
        ensure(late || self.open == Some(tag), "T14", || {
            format!("{tag:?} is not open: {:?}", self.open)
        })?;
        ensure(self.aborted != Some(tag), "T16", || {
            format!("after an abort comes {command:?}")
        })?;
        if let EngineCommand::Prompt { number, .. } = command {
            ensure(*number == self.prompt + 1, "T15", || {
                format!("prompt {number} follows prompt {}", self.prompt)
            })?;
            self.prompt = *number;
        }
        match command {
            EngineCommand::Prompt { .. } => self.stopped = false,
            EngineCommand::Steer { input, .. } => ensure(!self.stopped, "T20", || {
                format!("{input} is handed to an engine that is known to have stopped")
            })?,
            EngineCommand::Abort | EngineCommand::Compact { .. } | EngineCommand::Answer { .. } => {
            }
        }
        match command {
            EngineCommand::Abort => self.aborted = Some(tag),
            EngineCommand::Prompt { input: None, .. } | EngineCommand::Compact { .. } => {}
            EngineCommand::Answer { ask, answer } => {
                self.asking.answering(tag, ask, answer.as_ref(), durable)?;
            }
            EngineCommand::Prompt {
                input: Some(id),
                text,
                ..
            }
            | EngineCommand::Steer {
                input: id, text, ..
            } => {
                let stored = durable.inputs.get(id);
                let accepted = stored
                    .is_some_and(|input| input.fate == InputFate::Pending && shows(input, text));
                ensure(accepted, "T14", || {
                    format!("{id} is handed, stored is {stored:?}")
                })?;
                let allowed = self.allowed.entry(*id).or_insert(1);
                ensure(self.outstanding.is_none() && *allowed > 0, "T15", || {
                    format!(
                        "{id} is handed again, or while {:?} is outstanding",
                        self.outstanding
                    )
                })?;
                *allowed -= 1;
                self.outstanding = Some(*id);
            }
        }
        Ok(())
    }
}

/// What is handed over is what was accepted, by its trust.
fn shows(input: &InputRecord, text: &str) -> bool {
    *rendered(&input.text, &input.origin, input.data.as_deref()) == *text
}

/// What the engine is used for holds the session in the store.
fn active(tag: EngineTag, durable: &Durable) -> Held {
    let lease = Some((Holder::from(tag.run), tag.token));
    ensure(durable.lease == lease, "T14", || {
        format!(
            "the engine is used for {tag:?}, and the store's lease is {:?}",
            durable.lease
        )
    })
}
