//! What waits behind a commit in flight, and what must.

use std::collections::VecDeque;

use super::input::{Input, StreamId};
use super::state::Session;

/// Inputs that are stepped after the commit in flight, in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Waiting {
    inputs: VecDeque<Input>,
    reports: usize,
}

impl Waiting {
    /// Adds one behind the others.
    pub fn push(&mut self, input: Input) {
        self.reports += usize::from(input.is_engine());
        self.inputs.push_back(input);
    }

    /// The one that is stepped next, once nothing is in flight.
    pub fn pop(&mut self) -> Option<Input> {
        let input = self.inputs.pop_front()?;
        self.reports -= usize::from(input.is_engine());
        Some(input)
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// How many of them are the engine's.
    #[must_use]
    pub fn reports(&self) -> usize {
        self.reports
    }

    fn holds_invoke_of(&self, stream: StreamId) -> bool {
        self.inputs
            .iter()
            .any(|input| matches!(input, Input::Invoke { facts, .. } if facts.stream == stream))
    }
}

impl Session {
    /// Whether an input that arrives while a commit is in flight must wait until it is durable.
    /// Everything else is stepped at once.
    #[must_use]
    pub fn must_wait(&self, input: &Input, waiting: &Waiting) -> bool {
        match input {
            // Who leaves leaves after the invoke that it made, or nothing would ever end its run.
            Input::Detach { stream, .. } => waiting.holds_invoke_of(*stream),
            // The run's end is decided: nothing can join it any more, and that is said at once.
            Input::Dispatch { .. } if self.is_settling() => false,
            // One engine's reports keep their order: a live one waits behind one that waits.
            _ => !input.is_live() || (input.is_engine() && waiting.reports > 0),
        }
    }
}
