//! A run as it is being told: deltas become running text, tools and retries lines beside it.

use std::time::Duration;

use sessionplane_core::contract::{InvokeEvent, SessionState};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::{Event, EventBody, OutputChannel};
use sessionplane_core::domain::ids::{EntryId, RunId, SessionRef};
use sessionplane_core::domain::run::RunSettings;
use sessionplane_core::domain::text::BoundedText;

use super::entry::{cut_off, entry_block, tool_line, tool_output};
use super::event::{JOINED_MESSAGE, compaction_words, joined_tool, last_line, whole_message};
use super::interaction::{Desk, asked, resolved};
use super::live::{Live, Telling, Told};
use super::run::settled_line;
use super::state::model_words;
use super::thread::Thread;
use super::time::age;
use crate::cli::markdown::Blocks;
use crate::cli::screen::Piece;

/// Longest line that is held back, in bytes.
const LINE_BYTES: usize = 4096;

/// How a text is told that is laid out where that is possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Blocks,
    /// As it is: where a block began was not seen.
    Lines,
}

/// What is being told at the moment.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The message and channel whose text is running.
    speaking: Option<(String, OutputChannel)>,
    /// The tool call whose line was the last one to be told.
    heading: Option<String>,
    live: Live,
    thread: Thread,
    /// Model and level of the calls to come, as far as was told.
    settings: Option<RunSettings>,
    /// Where questions are answered.
    desk: Desk,
    /// An answer's text is told block by block, so that it can be laid out.
    by_blocks: bool,
    blocks: Blocks,
    /// The line that is not told yet of what is told line by line where text is told by blocks:
    /// what is below it can be seen meanwhile.
    line: String,
    /// What the tool that runs has told last.
    progress: Option<String>,
}

impl Flow {
    /// For somebody who has given this session a prompt.
    pub(crate) fn of(session: SessionRef) -> Self {
        Self {
            desk: Desk::Shell(session),
            ..Self::default()
        }
    }

    /// For somebody who is there: questions are answered where they are shown, and a text is laid
    /// out if the screen is `rich`. The entries after this one are shown.
    pub(crate) fn attended(rich: bool, entries_since: Option<EntryId>) -> Self {
        Self {
            thread: Thread::after(entries_since),
            desk: Desk::Here,
            by_blocks: rich,
            ..Self::default()
        }
    }

    /// What is under way and not told yet, on one line.
    pub(crate) fn under_way(&self) -> Option<&str> {
        let line = (!self.line.is_empty()).then_some(self.line.as_str());
        let written = self.blocks.tail().or(line);
        written.or(self.progress.as_deref())
    }

    /// What an invoke's event adds to the screen. Nothing for the first and the last one.
    pub(crate) fn invoked(&mut self, event: &InvokeEvent) -> Vec<Piece> {
        match event {
            InvokeEvent::Delta {
                message,
                channel,
                text,
            } => self.delta(message, *channel, text, By::Blocks),
            InvokeEvent::ToolStarted {
                call,
                name,
                input_json,
            } => self.tool_started(None, call, (name, input_json)),
            InvokeEvent::ToolEnded {
                call,
                failed,
                output,
                ..
            } => {
                self.live.end(None, call);
                self.result(None, call, (*failed, output))
            }
            InvokeEvent::Retrying {
                attempt,
                max_attempts,
                delay,
                reason,
            } => self.beside(retry(*attempt, *max_attempts, *delay, reason)),
            InvokeEvent::Resumed { skipped } => {
                self.live = Live::default();
                self.beside(skipped_line(*skipped))
            }
            // They are told once they are durable, which may be in the midst of a text that is not.
            InvokeEvent::InteractionRequested { interaction } => {
                self.interjected(asked(interaction, &self.desk))
            }
            InvokeEvent::InteractionResolved { id, resolution } => {
                self.interjected(resolved(*id, resolution))
            }
            InvokeEvent::Completed { .. } | InvokeEvent::Failed { .. } => self.settled(None),
            InvokeEvent::Accepted { .. } => self.pause(),
        }
    }

    /// What an observed event adds to the screen.
    pub(crate) fn observed(&mut self, event: &Event) -> Vec<Piece> {
        match &event.body {
            EventBody::MessageDelta { .. }
            | EventBody::MessageStarted { .. }
            | EventBody::MessageFinished { .. } => self.message(event),
            EventBody::ToolStarted { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::ToolFinished { .. } => self.tool(event),
            EventBody::RetryScheduled {
                attempt,
                max_attempts,
                delay,
                reason,
            } => self.beside(retry(*attempt, *max_attempts, *delay, reason)),
            EventBody::InteractionRequested { interaction } => {
                self.beside(asked(interaction, &self.desk))
            }
            EventBody::InteractionResolved { id, resolution } => {
                self.beside(resolved(*id, resolution))
            }
            EventBody::CompactionStarted { trigger } => {
                self.aside(&format!("! compacting ({})", trigger.as_str()))
            }
            EventBody::CompactionFinished { outcome } => {
                self.aside(&format!("! compaction {}", compaction_words(outcome)))
            }
            EventBody::StateChanged {
                leaf,
                resolved,
                renamed,
                ..
            } => {
                let mut pieces = self.changed(*leaf, &resolved.settings);
                if let Some(name) = renamed {
                    let words = match name {
                        Some(name) => format!("! the session is named {name} now\n"),
                        None => "! the session has no name any more\n".to_owned(),
                    };
                    pieces.extend(self.beside(Piece::Aside(words)));
                }
                pieces
            }
            EventBody::EntryAppended { entry } => self.appended(entry),
            EventBody::RunSettled { run: record } => {
                let mut pieces = self.settled(event.run);
                let line = format!("-- {} --\n", settled_line(record));
                pieces.push(Piece::Aside(line));
                pieces
            }
            EventBody::InputDiscarded { input, cause } => self.beside(Piece::Aside(format!(
                "! input {input} was not shown to the model: {}\n",
                cause.as_str()
            ))),
            EventBody::ServingError { reason } => {
                self.beside(Piece::Aside(format!("! {reason}\n")))
            }
            EventBody::RunStarted { settings, .. } => {
                self.settings = Some(settings.clone());
                Vec::new()
            }
            EventBody::TurnStarted { .. }
            | EventBody::TurnFinished { .. }
            | EventBody::QueueChanged { .. }
            | EventBody::InputDelivered { .. }
            | EventBody::UsageUpdated { .. } => Vec::new(),
        }
    }

    fn message(&mut self, event: &Event) -> Vec<Piece> {
        let run = event.run;
        match &event.body {
            EventBody::MessageDelta {
                message,
                channel,
                text,
            } => {
                let telling = self.live.delta(run, message, (*channel, text));
                let mut pieces = match telling {
                    Telling::Joined => self.aside(JOINED_MESSAGE),
                    Telling::Goes | Telling::Follows => Vec::new(),
                };
                // Whether code is open in the middle of a text nobody knows.
                let by = match telling {
                    Telling::Goes => By::Blocks,
                    Telling::Joined | Telling::Follows => By::Lines,
                };
                pieces.extend(self.delta(message, *channel, text, by));
                pieces
            }
            EventBody::MessageStarted { message } => {
                self.live.begin(run, message, None);
                Vec::new()
            }
            EventBody::MessageFinished { message } => {
                self.live.end(run, message);
                self.rest_of_block()
            }
            _ => Vec::new(),
        }
    }

    fn tool(&mut self, event: &Event) -> Vec<Piece> {
        let run = event.run;
        match &event.body {
            EventBody::ToolStarted {
                call,
                name,
                input_json,
            } => self.tool_started(run, call, (name, input_json)),
            EventBody::ToolProgress { call, output } => match self.live.piece(run, call) {
                Telling::Joined => self.aside(&joined_tool(call, &output.text)),
                Telling::Goes | Telling::Follows => {
                    let name = self.live.tool(run, call).unwrap_or("tool");
                    self.progress = Some(format!("* {name}: {}", last_line(&output.text)));
                    Vec::new()
                }
            },
            EventBody::ToolFinished {
                call,
                failed,
                output,
                ..
            } if self.live.end(run, call) => self.result(run, call, (*failed, output)),
            _ => Vec::new(),
        }
    }

    /// A state as a whole, which is shown elsewhere.
    pub(crate) fn knows(&mut self, state: &SessionState) {
        self.settings = Some(state.view.resolved.settings.clone());
    }

    /// Where the conversation goes on, unless that is after the entry that was shown last, and what
    /// with, if that is something else than before.
    fn changed(&mut self, leaf: Option<EntryId>, settings: &RunSettings) -> Vec<Piece> {
        let place = match leaf {
            _ if leaf == self.thread.last() => None,
            Some(leaf) => Some(format!("at entry {}", leaf.seq)),
            None => Some("at the beginning".to_owned()),
        };
        let before = self.settings.replace(settings.clone());
        let with = model_words(settings).filter(|_| before.as_ref() != Some(settings));
        let with = with.map(|words| format!("model {words}"));
        let words: Vec<_> = [place, with].into_iter().flatten().collect();
        if words.is_empty() {
            return Vec::new();
        }
        self.aside(&format!("! {}", words.join(", ")))
    }

    /// Events were missed: what was shown may not be whole, so that its entry is worth showing.
    pub(crate) fn forget(&mut self) -> Vec<Piece> {
        self.live.forget();
        self.pause()
    }

    /// All entries come again: nothing counts as shown.
    pub(crate) fn start_over(&mut self) -> Vec<Piece> {
        self.live = Live::default();
        self.thread = Thread::default();
        self.heading = None;
        self.pause()
    }

    /// A run settled, which no event told.
    pub(crate) fn missed_end(&mut self, run: RunId) -> Vec<Piece> {
        self.settled(Some(run))
    }

    /// Ends a running text.
    pub(crate) fn pause(&mut self) -> Vec<Piece> {
        let mut pieces = self.rest_of_block();
        pieces.extend(self.speaking.take().map(|_| Piece::Break));
        pieces
    }

    /// What was held back of a text.
    fn rest_of_block(&mut self) -> Vec<Piece> {
        self.progress = None;
        let line = std::mem::take(&mut self.line);
        let line = (!line.is_empty()).then(|| self.running(line));
        let text = self.blocks.finish().map(Piece::Prose);
        line.into_iter().chain(text).collect()
    }

    /// A part of the text that is running, as it is.
    fn running(&self, text: String) -> Piece {
        match self.speaking {
            Some((_, OutputChannel::Thinking)) => Piece::Aside(text),
            _ => Piece::Answer(text),
        }
    }

    /// What has nothing to do with the answer's text: it does not end that, which may go on after it.
    pub(crate) fn interjected(&mut self, line: Piece) -> Vec<Piece> {
        let text_runs = matches!(self.speaking, Some((_, OutputChannel::Text)));
        let mut pieces = if text_runs { Vec::new() } else { self.pause() };
        pieces.push(line);
        pieces
    }

    fn delta(&mut self, message: &str, channel: OutputChannel, text: &str, by: By) -> Vec<Piece> {
        let goes_on = self
            .speaking
            .as_ref()
            .is_some_and(|(id, on)| id == message && *on == channel);
        self.heading = None;
        let mut pieces = Vec::new();
        if !goes_on {
            pieces.extend(self.pause());
            self.speaking = Some((message.to_owned(), channel));
        }
        match (channel, by) {
            _ if !self.by_blocks => pieces.push(self.running(text.to_owned())),
            (OutputChannel::Text, By::Blocks) => {
                let whole = self.blocks.push(text).into_iter();
                pieces.extend(whole.map(Piece::Prose));
            }
            (OutputChannel::Text, By::Lines) | (OutputChannel::Thinking, _) => {
                pieces.extend(self.lines(text));
            }
        }
        pieces
    }

    /// The lines that a piece makes whole.
    fn lines(&mut self, text: &str) -> Option<Piece> {
        self.line.push_str(text);
        let whole = match self.line.rfind('\n') {
            Some(end) => end + 1,
            None if self.line.len() > LINE_BYTES => self.line.len(),
            None => 0,
        };
        let rest = self.line.split_off(whole);
        let lines = std::mem::replace(&mut self.line, rest);
        (whole > 0).then(|| self.running(lines))
    }

    /// A line beside the text.
    fn beside(&mut self, line: Piece) -> Vec<Piece> {
        self.heading = None;
        let mut pieces = self.pause();
        pieces.push(line);
        pieces
    }

    /// A dimmed line beside the text.
    fn aside(&mut self, line: &str) -> Vec<Piece> {
        self.beside(Piece::Aside(format!("{line}\n")))
    }

    fn tool_started(
        &mut self,
        run: Option<RunId>,
        call: &str,
        (name, input_json): (&str, &BoundedText),
    ) -> Vec<Piece> {
        self.live.begin(run, call, Some(name));
        let pieces = self.beside(tool_line(name, input_json));
        self.heading = Some(call.to_owned());
        pieces
    }

    /// What a tool gave back, under its line: told again if something else was told since.
    fn result(
        &mut self,
        run: Option<RunId>,
        call: &str,
        (failed, output): (bool, &BoundedText),
    ) -> Vec<Piece> {
        let mut pieces = self.pause();
        if self.heading.take().is_none_or(|last| last != call) {
            let line = match self.live.tool(run, call) {
                Some(name) => format!("* {name}\n"),
                None => format!("{}\n", joined_tool(call, "")),
            };
            pieces.push(Piece::Aside(line));
        }
        pieces.push(tool_output(output, failed));
        pieces
    }

    /// A run settled: what never came to its end is marked.
    fn settled(&mut self, run: Option<RunId>) -> Vec<Piece> {
        let mut pieces = self.pause();
        let tools = self.live.settle(run).into_iter();
        pieces.extend(tools.map(|name| Piece::Aside(format!("* {name} (not finished)\n"))));
        pieces
    }

    /// An entry adds what was not shown while it came to be.
    pub(crate) fn appended(&mut self, entry: &Entry) -> Vec<Piece> {
        let turn = self.thread.turn(entry);
        let mut pieces = turn.map_or_else(Vec::new, |line| self.aside(&line));
        pieces.extend(self.rest_of_entry(entry));
        pieces
    }

    fn rest_of_entry(&mut self, entry: &Entry) -> Vec<Piece> {
        let told = self.live.entry(entry);
        let mut rest = match (told, &entry.body) {
            (Told::Nothing, _) => entry_block(entry),
            (Told::Parts, _) => {
                let mut pieces = self.aside(whole_message(entry));
                pieces.extend(entry_block(entry));
                return pieces;
            }
            (
                Told::Beginning,
                EntryBody::Tool {
                    call_id,
                    output,
                    failed,
                    ..
                },
            ) => return self.result(entry.run, call_id, (*failed, output)),
            (_, EntryBody::Assistant { partial: true, .. }) => vec![cut_off()],
            _ => return Vec::new(),
        };
        let mut pieces = self.pause();
        self.heading = None;
        pieces.append(&mut rest);
        pieces
    }
}

fn retry(attempt: u32, max_attempts: u32, delay: Duration, reason: &str) -> Piece {
    let of = if max_attempts > 0 {
        format!(" of {max_attempts}")
    } else {
        String::new()
    };
    let delay = age(delay);
    Piece::Aside(format!("! retry {attempt}{of} in {delay}: {reason}\n"))
}

fn skipped_line(skipped: u64) -> Piece {
    let how_many = match skipped {
        0 => "some events".to_owned(),
        skipped => format!("{skipped} events"),
    };
    Piece::Aside(format!(
        "! {how_many} of the run were missed; its entries hold what is kept\n"
    ))
}

#[cfg(test)]
mod tests;
