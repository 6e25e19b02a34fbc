//! What of a run was yielded already, so that a replay after a rejoin adds only what is new.
//!
//! A replay tells the run's events again from its start, in the same order and pieces. Events of
//! an invoke have no number, so pieces are told apart by their message and the bytes before them.

use std::collections::VecDeque;

use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::event::OutputChannel;

/// Most messages and most tool calls that are remembered; of more, the newest.
const REMEMBERED: usize = 4096;

/// What was yielded.
#[derive(Debug, Default)]
pub(super) struct Seen {
    messages: Newest<Message>,
    tools: Newest<Tool>,
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
            InvokeEvent::InteractionRequested { .. }
            | InvokeEvent::InteractionResolved { .. }
            | InvokeEvent::Accepted { .. }
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
mod tests {
    use super::*;

    fn delta(message: &str, text: &str) -> InvokeEvent {
        InvokeEvent::Delta {
            message: message.to_owned(),
            channel: OutputChannel::Text,
            text: text.to_owned(),
        }
    }

    fn tool(call: &str) -> InvokeEvent {
        InvokeEvent::ToolStarted {
            call: call.to_owned(),
            name: "sh".to_owned(),
            input_json: sessionplane_core::domain::text::BoundedText::default(),
        }
    }

    fn text_of(seen: &mut Seen, events: impl IntoIterator<Item = InvokeEvent>) -> String {
        let new = events.into_iter().filter_map(|event| seen.admit(event));
        new.map(|event| match event {
            InvokeEvent::Delta { text, .. } => text,
            InvokeEvent::ToolStarted { call, .. } => format!("[{call}]"),
            _ => "~".to_owned(),
        })
        .collect()
    }

    #[test]
    fn c12_a_replay_adds_only_what_is_new() {
        let mut seen = Seen::default();
        let first = [delta("a", "one "), tool("t1"), delta("b", "tw")];
        assert_eq!(text_of(&mut seen, first.clone()), "one [t1]tw");
        seen.replay();
        let more = [delta("b", "o "), tool("t2"), delta("c", "three")];
        let again = first.into_iter().chain(more);
        assert_eq!(text_of(&mut seen, again), "o [t2]three");
        assert_eq!(seen.text("b"), Some(4));
    }

    #[test]
    fn c12_after_a_loss_only_the_message_that_was_cut_may_repeat() {
        let mut seen = Seen::default();
        text_of(
            &mut seen,
            [delta("a", "one "), delta("b", "two "), delta("c", "thr")],
        );
        seen.replay();
        let again = [
            InvokeEvent::Resumed { skipped: 2 },
            delta("b", "wo "),
            delta("c", "thr"),
            delta("c", "ee"),
        ];
        assert_eq!(text_of(&mut seen, again), "~wo ee");
        assert_eq!(seen.text("b"), None);
        assert_eq!(seen.text("c"), Some(5));
    }

    #[test]
    fn a_replay_that_stops_before_what_was_seen_is_no_replay() {
        let mut seen = Seen::default();
        text_of(&mut seen, [delta("a", "one "), delta("b", "two")]);
        seen.replay();
        assert!(seen.lacks_its_replay(), "nothing was told again");
        text_of(&mut seen, [delta("a", "one ")]);
        assert!(seen.lacks_its_replay(), "half was told again");
        text_of(&mut seen, [delta("b", "two")]);
        assert!(!seen.lacks_its_replay());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut seen = Seen::default();
        for message in 0..REMEMBERED * 2 {
            seen.admit(delta(&message.to_string(), "x"));
        }
        assert_eq!(seen.messages.all.len(), REMEMBERED);
    }

    #[test]
    fn c12_a_replay_of_more_than_is_remembered_tells_nothing_twice() {
        let mut seen = Seen::default();
        let many = REMEMBERED + 3;
        let all = || (0..many).flat_map(|n| [delta(&n.to_string(), "x"), tool(&n.to_string())]);
        assert_eq!(text_of(&mut seen, all()).matches('x').count(), many);
        for _ in 0..2 {
            seen.replay();
            let more = [delta("new", "y"), tool("t")];
            let again = text_of(&mut seen, all().chain(more));
            assert!(
                ["y[t]", ""].contains(&again.as_str()),
                "{} bytes",
                again.len()
            );
        }
        seen.replay();
        let cut = [
            InvokeEvent::Resumed { skipped: 1 },
            delta("unheard of", "z"),
        ];
        assert_eq!(text_of(&mut seen, cut), "~z", "rather twice than never");
    }
}
