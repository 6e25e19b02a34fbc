//! What waits behind a commit in flight, and what must.

use std::collections::VecDeque;

use super::input::{Input, StreamId};
use super::state::Session;
use crate::ports::engine::EngineEvent;

/// What the shell holds of the engine, and has not stepped yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unread {
    /// Engine inputs ([`Input::is_engine`]), wherever they wait.
    pub reports: usize,
    /// Those among them that are known to say that the engine has come to an end, or is gone.
    pub ends: usize,
}

impl Unread {
    /// What is there when these inputs are held.
    pub fn of<'i>(inputs: impl IntoIterator<Item = &'i Input>) -> Self {
        let mut unread = Self::default();
        for input in inputs {
            unread.add(input);
        }
        unread
    }

    /// An input is held from now on.
    pub fn add(&mut self, input: &Input) {
        self.reports += usize::from(input.is_engine());
        self.ends += usize::from(input.ends_work());
    }

    /// An input is held no more.
    pub fn take(&mut self, input: &Input) {
        self.reports -= usize::from(input.is_engine());
        self.ends -= usize::from(input.ends_work());
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            reports: self.reports + other.reports,
            ends: self.ends + other.ends,
        }
    }
}

/// Inputs that are stepped after the commit in flight, in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Waiting {
    inputs: VecDeque<Input>,
    unread: Unread,
}

impl Waiting {
    /// Adds one behind the others.
    pub fn push(&mut self, input: Input) {
        self.unread.add(&input);
        self.inputs.push_back(input);
    }

    /// The one that is stepped next, once nothing is in flight. None where none waits, or where it
    /// has to wait for the round that is being gathered as well.
    pub fn pop(&mut self, session: &Session) -> Option<Input> {
        if session.must_follow(self.inputs.front()?) {
            return None;
        }
        let input = self.inputs.pop_front()?;
        self.unread.take(&input);
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

    /// Those of them that are the engine's.
    #[must_use]
    pub fn unread(&self) -> Unread {
        self.unread
    }

    fn holds_invoke_of(&self, stream: StreamId) -> bool {
        self.inputs
            .iter()
            .any(|input| matches!(input, Input::Invoke { facts, .. } if facts.stream == stream))
    }
}

impl Session {
    /// Whether an input that arrives must wait until what is in flight, if anything is, or the round
    /// that is being gathered is durable. Everything else is stepped at once.
    #[must_use]
    pub fn must_wait(&self, input: &Input, waiting: &Waiting, in_flight: bool) -> bool {
        if self.must_follow(input) {
            return true;
        }
        // Something waits although nothing is in flight: for the round that is being gathered.
        if !in_flight && waiting.is_empty() {
            return false;
        }
        match input {
            // Who leaves leaves after the invoke that it made, or nothing would ever end its run.
            Input::Detach { stream, .. } => waiting.holds_invoke_of(*stream),
            // The run's end is decided: nothing can join it any more, and that is said at once.
            Input::Dispatch { .. } if self.is_settling() => false,
            // One engine's reports keep their order: a live one waits behind one that waits.
            _ => !input.is_live() || (input.is_engine() && waiting.unread.reports > 0),
        }
    }

    /// Whether an input would be told before what it comes after: the start of a compaction while
    /// the end of the one before is not durable (there is a commit that will make it so), and whatever
    /// is asked of a session while it is being deleted.
    fn must_follow(&self, input: &Input) -> bool {
        // What becomes of the session is not known yet.
        if self.deletion().is_some() && input.asks_of_session() {
            return true;
        }
        let Input::Engine { tag, event, .. } = input else {
            return false;
        };
        let run = self.active.run().filter(|run| run.tag() == *tag);
        *event == EngineEvent::CompactionStarted
            && run.is_some_and(|run| run.compacted_in > self.durable_round)
    }
}
