//! Which messages and tool calls an observer has seen from their beginning: those are told once, as
//! they come to be. Of a message that was joined in the middle the pieces are told too, and by its
//! entry all of it. Decides only; renders nothing.

use std::collections::VecDeque;

use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::text::BoundedText;

/// Most messages and tool calls that are remembered.
const REMEMBERED: usize = 1024;

/// What is to be done with a piece of a message, or with a tool's progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Telling {
    /// It follows on what was told.
    Goes,
    /// The first sign of something that began before: worth a remark.
    Joined,
    /// Another sign of it: it follows on what was told since.
    Follows,
}

/// How much of an entry was told before it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// All of it.
    All,
    /// Its beginning: a message without its end, a tool without its result.
    Beginning,
    /// Some of a message, but not all.
    Parts,
    /// Nothing.
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Open,
    Ended,
    Joined,
    /// A message of which something was told before events were missed.
    Lost,
}

/// How many bytes of a message were told since it was joined.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    text: u64,
    thinking: u64,
}

/// A message or a tool call; ids are unique within a run only.
#[derive(Debug)]
struct Seen {
    run: Option<RunId>,
    id: String,
    /// The tool's name, if it is a call.
    tool: Option<String>,
    stage: Stage,
    bytes: Bytes,
}

/// What was seen, newest last.
#[derive(Debug, Default)]
pub(super) struct Live(VecDeque<Seen>);

impl Live {
    /// A message, or a call of the named tool, begins.
    pub(super) fn begin(&mut self, run: Option<RunId>, id: &str, tool: Option<&str>) {
        if self.find(run, id).is_none() {
            self.add(run, id, tool, Stage::Open);
        }
    }

    /// A sign of it came.
    pub(super) fn piece(&mut self, run: Option<RunId>, id: &str) -> Telling {
        match self.find(run, id) {
            Some(seen) if seen.stage == Stage::Joined => Telling::Follows,
            Some(seen) if seen.stage == Stage::Lost => {
                seen.stage = Stage::Joined;
                Telling::Joined
            }
            Some(_) => Telling::Goes,
            None => {
                self.add(run, id, None, Stage::Joined);
                Telling::Joined
            }
        }
    }

    /// A piece of a message came, and is told.
    pub(super) fn delta(
        &mut self,
        run: Option<RunId>,
        id: &str,
        (channel, text): (OutputChannel, &str),
    ) -> Telling {
        let telling = self.piece(run, id);
        if let Some(seen) = self.find(run, id) {
            let told = match channel {
                OutputChannel::Text => &mut seen.bytes.text,
                OutputChannel::Thinking => &mut seen.bytes.thinking,
            };
            *told += text.len() as u64;
        }
        telling
    }

    /// It ended; whether it is the end of something whose beginning was told, and news.
    pub(super) fn end(&mut self, run: Option<RunId>, id: &str) -> bool {
        let seen = self.find(run, id).filter(|seen| seen.stage == Stage::Open);
        seen.map(|seen| seen.stage = Stage::Ended).is_some()
    }

    /// Its entry came. From now on all of it was told.
    pub(super) fn entry(&mut self, entry: &Entry) -> Told {
        let (EntryBody::Assistant { message: id, .. } | EntryBody::Tool { call_id: id, .. }) =
            &entry.body
        else {
            return Told::Nothing;
        };
        let run = entry.run;
        let Some(seen) = self.find(run, id) else {
            self.add(run, id, None, Stage::Ended);
            return Told::Nothing;
        };
        match std::mem::replace(&mut seen.stage, Stage::Ended) {
            Stage::Ended => Told::All,
            Stage::Open => Told::Beginning,
            Stage::Joined | Stage::Lost => match &entry.body {
                EntryBody::Assistant { text, thinking, .. }
                    if size(text) <= seen.bytes.text && size(thinking) <= seen.bytes.thinking =>
                {
                    Told::All
                }
                EntryBody::Assistant { .. } => Told::Parts,
                _ => Told::Nothing,
            },
        }
    }

    /// Events were missed: a message that had not ended was not told whole. A tool call is told
    /// by its beginning and its result alone, and an entry will tell a result that was missed.
    pub(super) fn forget(&mut self) {
        let broken = |seen: &&mut Seen| seen.stage != Stage::Ended && seen.tool.is_none();
        for seen in self.0.iter_mut().filter(broken) {
            seen.stage = Stage::Lost;
            // What was told before counts no more: something between is missing.
            seen.bytes = Bytes::default();
        }
    }

    /// The name of the tool whose call this is, if its beginning was told.
    pub(super) fn tool(&mut self, run: Option<RunId>, id: &str) -> Option<&str> {
        self.find(run, id)?.tool.as_deref()
    }

    /// A run settled: the tools of it that never came back, by name.
    pub(super) fn settle(&mut self, run: Option<RunId>) -> Vec<String> {
        let open = |seen: &Seen| seen.run == run && seen.stage == Stage::Open;
        let mut unfinished = Vec::new();
        for seen in self.0.iter_mut().filter(|seen| open(seen)) {
            seen.stage = Stage::Ended;
            unfinished.extend(seen.tool.clone());
        }
        unfinished
    }

    fn find(&mut self, run: Option<RunId>, id: &str) -> Option<&mut Seen> {
        let mut seen = self.0.iter_mut().rev();
        seen.find(|seen| seen.run == run && seen.id == id)
    }

    fn add(&mut self, run: Option<RunId>, id: &str, tool: Option<&str>, stage: Stage) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Seen {
            run,
            id: id.to_owned(),
            tool: tool.map(str::to_owned),
            stage,
            bytes: Bytes::default(),
        });
    }
}

/// How many bytes a text has, those included that are not kept.
fn size(text: &BoundedText) -> u64 {
    text.omitted_bytes + text.text.len() as u64
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::time::Timestamp;

    use super::*;

    #[test]
    fn an_id_of_another_run_is_another_message() {
        let run = |n| Some(RunId::mint(Timestamp::default(), n));
        let mut live = Live::default();
        live.begin(run(1), "m1", None);
        assert_eq!(live.piece(run(1), "m1"), Telling::Goes);
        assert_eq!(live.piece(run(2), "m1"), Telling::Joined);
        assert_eq!(live.piece(run(2), "m1"), Telling::Follows);
    }

    #[test]
    fn what_ended_before_a_loss_was_told_whole() {
        let mut live = Live::default();
        live.begin(None, "ended", None);
        live.begin(None, "open", None);
        assert!(live.end(None, "ended"));
        live.forget();
        assert_eq!(live.piece(None, "ended"), Telling::Goes);
        assert_eq!(live.piece(None, "open"), Telling::Joined);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut live = Live::default();
        for call in 0..REMEMBERED * 2 {
            live.begin(None, &call.to_string(), Some("sh"));
        }
        assert_eq!(live.settle(None).len(), REMEMBERED);
    }
}
