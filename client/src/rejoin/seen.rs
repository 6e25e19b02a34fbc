//! What of a run was yielded already, so that a replay after a rejoin adds only what is new.
//!
//! A replay tells the run's events again from its start, in the same order and pieces. Events of
//! an invoke have no number, so pieces are told apart by their message and the bytes before them.

use std::collections::VecDeque;

use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::InteractionId;

/// Most messages, tool calls and questions that are remembered, of each; of more, the newest.
const REMEMBERED: usize = 4096;

/// What was yielded.
#[derive(Debug, Default)]
pub(super) struct Seen {
    messages: Newest<Message>,
    tools: Newest<Tool>,
    questions: Newest<Asked>,
    retries: Count,
    /// The replay lacks its beginning.
    cut: Cut,
    /// The present stream has told anything of what the run did.
    told: bool,
}

/// How much of one channel of a message was yielded.
#[derive(Debug)]
struct Message {
    id: String,
    channel: OutputChannel,
    bytes: Count,
    /// The message was in the middle when a replay began: its bytes cannot be counted.
    unaligned: bool,
}

/// Which events of a tool call were yielded.
#[derive(Debug)]
struct Tool {
    call: String,
    started: bool,
    ended: bool,
}

/// What was yielded of a question.
#[derive(Debug)]
struct Asked {
    id: InteractionId,
    requested: bool,
    resolved: bool,
}

/// How much was yielded, and how much of that the replay has told again.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    seen: u64,
    told: u64,
}

impl Count {
    /// Counts `amount` more; how much of it is new.
    fn add(&mut self, amount: u64) -> u64 {
        self.told += amount;
        let new = self.told.saturating_sub(self.seen).min(amount);
        self.seen = self.seen.max(self.told);
        new
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
enum Cut {
    /// The replay tells everything.
    #[default]
    None,
    /// Events are left out before what comes next.
    Here,
    /// Events are left out, and this message may have been in the middle.
    Within(String),
}

impl Seen {
    /// From now on everything is told again from the start.
    pub(super) fn replay(&mut self) {
        self.cut = Cut::None;
        self.told = false;
        self.retries.told = 0;
        self.messages.replay();
        self.tools.replay();
        self.questions.replay();
        for message in &mut self.messages.all {
            message.bytes.told = 0;
        }
    }

    /// Whether a stream that joined a run has not told again all that was told before, or has
    /// told nothing at all, without having said that it leaves events out.
    pub(super) fn lacks_its_replay(&self) -> bool {
        let mut counts = self.messages.all.iter().map(|message| message.bytes);
        self.cut == Cut::None && (!self.told || counts.any(|count| count.told < count.seen))
    }

    /// How many bytes of a message's text were yielded.
    pub(super) fn text(&self, id: &str) -> Option<u64> {
        let mut known = self.messages.all.iter();
        let message = known.find(|m| m.id == id && m.channel == OutputChannel::Text)?;
        (!message.unaligned).then_some(message.bytes.seen)
    }

    /// What of an event is new.
    pub(super) fn admit(&mut self, event: InvokeEvent) -> Option<InvokeEvent> {
        self.told |= !matches!(event, InvokeEvent::Accepted { .. });
        match event {
            InvokeEvent::Delta {
                message,
                channel,
                text,
            } => self.delta(message, channel, text),
            InvokeEvent::Resumed { .. } => {
                self.cut = Cut::Here;
                self.messages.was_told = false;
                self.tools.was_told = false;
                self.questions.was_told = false;
                Some(event)
            }
            InvokeEvent::ToolStarted { ref call, .. } => {
                let tool = self.tool(call)?;
                (!std::mem::replace(&mut tool.started, true)).then_some(event)
            }
            InvokeEvent::ToolEnded { ref call, .. } => {
                let tool = self.tool(call)?;
                (!std::mem::replace(&mut tool.ended, true)).then_some(event)
            }
            InvokeEvent::Retrying { .. } => {
                let new = self.retries.add(1) > 0;
                (new || self.cut != Cut::None).then_some(event)
            }
            InvokeEvent::InteractionRequested { ref interaction } => {
                let asked = self.question(interaction.id)?;
                (!std::mem::replace(&mut asked.requested, true)).then_some(event)
            }
            InvokeEvent::InteractionResolved { id, .. } => {
                let asked = self.question(id)?;
                (!std::mem::replace(&mut asked.resolved, true)).then_some(event)
            }
            InvokeEvent::Accepted { .. }
            | InvokeEvent::Completed { .. }
            | InvokeEvent::Failed { .. } => Some(event),
        }
    }

    fn delta(
        &mut self,
        message: String,
        channel: OutputChannel,
        text: String,
    ) -> Option<InvokeEvent> {
        if self.cut == Cut::Here {
            self.cut = Cut::Within(message.clone());
        }
        let cut = matches!(&self.cut, Cut::Within(id) if *id == message);
        let known = self.message(&message, channel)?;
        known.unaligned |= cut;
        let new = known.bytes.add(text.len() as u64);
        let text = if known.unaligned {
            text
        } else {
            let old = text.len() - usize::try_from(new).unwrap_or(text.len());
            // Pieces are whole characters and come again as they came: a cut within a character
            // means that this is another text, which is better repeated than lost.
            text.get(old..).unwrap_or(&text).to_owned()
        };
        (!text.is_empty()).then_some(InvokeEvent::Delta {
            message,
            channel,
            text,
        })
    }

    /// A message; none if it was told and forgotten.
    fn message(&mut self, id: &str, channel: OutputChannel) -> Option<&mut Message> {
        self.messages.find(
            |message| message.id == id && message.channel == channel,
            || Message {
                id: id.to_owned(),
                channel,
                bytes: Count::default(),
                unaligned: false,
            },
        )
    }

    /// A question; none if it was told and forgotten.
    fn question(&mut self, id: InteractionId) -> Option<&mut Asked> {
        self.questions.find(
            |asked| asked.id == id,
            || Asked {
                id,
                requested: false,
                resolved: false,
            },
        )
    }

    /// A tool call; none if it was told and forgotten.
    fn tool(&mut self, call: &str) -> Option<&mut Tool> {
        self.tools.find(
            |tool| tool.call == call,
            || Tool {
                call: call.to_owned(),
                started: false,
                ended: false,
            },
        )
    }
}

/// The newest of what was told, in the order in which it began.
#[derive(Debug)]
struct Newest<T> {
    all: VecDeque<T>,
    /// Older ones were told and forgotten.
    forgot: bool,
    /// A replay has not come to the oldest one that is remembered: what it tells before that was
    /// forgotten, and is not new. Were it remembered again, the replay would push out, one by one,
    /// all that it is about to tell.
    was_told: bool,
}

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self {
            all: VecDeque::new(),
            forgot: false,
            was_told: false,
        }
    }
}

impl<T> Newest<T> {
    /// From now on everything is told again from the start.
    fn replay(&mut self) {
        self.was_told = self.forgot;
    }

    /// The one that is meant, added if it is new; none if it was told and forgotten.
    fn find(&mut self, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> Option<&mut T> {
        let at = match self.all.iter().rposition(is) {
            Some(at) => {
                self.was_told = false;
                at
            }
            None if self.was_told => return None,
            None => self.add(new()),
        };
        self.all.get_mut(at)
    }

    /// Adds to the end, forgetting the oldest when there are too many; where it was added.
    fn add(&mut self, one: T) -> usize {
        if self.all.len() == REMEMBERED {
            self.all.pop_front();
            self.forgot = true;
        }
        self.all.push_back(one);
        self.all.len() - 1
    }
}

#[cfg(test)]
mod tests;
