//! What the engine has open, a message or a tool call between its start and its finish, inside
//! bounds.

use std::collections::VecDeque;

use super::conflate::Lane;
use super::engine_output::ignore;
use super::input::EngineTag;
use super::state::{ActiveRun, OpenTool};
use super::turn::Turn;
use crate::domain::artifact::ArtifactRef;
use crate::domain::audit::AuditAction;
use crate::domain::entry::EntryBody;
use crate::domain::event::EventBody;
use crate::domain::limits::{
    MAX_ENTRY_TEXT_BYTES, MAX_EVENT_TEXT_BYTES, MAX_FINISHED_KEPT, MAX_OPEN_BYTES_PER_RUN,
    MAX_OPEN_PER_RUN,
};
use crate::domain::text::BoundedText;

/// The newest ids that finished, so that a line that is repeated is told from one that is new.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Finished(VecDeque<(String, u32)>);

impl Finished {
    /// It finished in this turn of the run.
    pub(super) fn remember(&mut self, id: String, turn: u32) {
        self.forget(&id);
        if self.0.len() == MAX_FINISHED_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((id, turn));
    }

    /// It finished not long ago: what finishes it now is a repeat.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.0.iter().any(|(known, _)| known == id)
    }

    /// It finished in this very turn: what starts it now is a repeat. In a later turn it is a
    /// careless engine that uses an id again, and what it says then is new.
    pub(super) fn knows_in(&self, id: &str, turn: u32) -> bool {
        self.0
            .iter()
            .any(|(known, in_turn)| known == id && *in_turn == turn)
    }

    pub(super) fn forget(&mut self, id: &str) {
        self.0.retain(|(known, _)| known != id);
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The bound on what is open is reached: what would be one more is not kept, and the conversation
/// says so, once a run.
pub(super) fn refuse(turn: &mut Turn<'_>, tag: EngineTag) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let told = std::mem::replace(&mut run.told_refusal, true);
    ignore(
        turn,
        tag,
        "more messages or tool calls are open than are kept",
    );
    if told {
        return;
    }
    let body = EntryBody::Notice {
        code: "output_dropped".to_owned(),
        text: format!(
            "the agent has {MAX_OPEN_PER_RUN} unfinished messages or tool calls; further ones of \
             this run are kept only where it repeats them whole when they finish"
        ),
    };
    turn.append(tag.run, tag.token, body);
    turn.audit(
        tag.run,
        tag.token,
        AuditAction::EngineOutput,
        None,
        "accepted",
    );
}

/// The turn and its tools are over: those that the engine forgot to finish are cut, so that they
/// neither look as if they ran on nor take the place of later ones.
pub(super) fn cut_tools(turn: &mut Turn<'_>, tag: EngineTag) {
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    let forgotten = std::mem::take(&mut run.tools);
    if forgotten.is_empty() {
        return;
    }
    for (call, tool) in forgotten {
        let nothing = Returned {
            output: "",
            failed: true,
            artifact: None,
        };
        finish_tool(turn, tag, call, tool, nothing);
    }
    turn.audit(
        tag.run,
        tag.token,
        AuditAction::EngineOutput,
        None,
        "accepted",
    );
}

/// What a tool call came back with.
pub(super) struct Returned<'a> {
    pub(super) output: &'a str,
    pub(super) failed: bool,
    /// Where the output is kept whole, if it is more than an event carries.
    pub(super) artifact: Option<ArtifactRef>,
}

/// Tells and writes that a tool call is over. The caller writes the audit record.
pub(super) fn finish_tool(
    turn: &mut Turn<'_>,
    tag: EngineTag,
    call: String,
    tool: OpenTool,
    returned: Returned<'_>,
) {
    let Returned {
        output,
        failed,
        artifact,
    } = returned;
    let Some(run) = turn.live_run(tag) else {
        return;
    };
    // Nothing older than its finish may follow it.
    run.conflation.forget(&Lane::Tool(call.clone()));
    run.finished_tools.remember(call.clone(), run.turn);
    let shown = BoundedText::new(output, MAX_EVENT_TEXT_BYTES);
    turn.publish(
        tag.run,
        EventBody::ToolFinished {
            call: call.clone(),
            failed,
            output: shown,
            artifact: artifact.clone(),
        },
    );
    let body = EntryBody::Tool {
        call_id: call,
        name: tool.name,
        input_json: tool.input_json,
        output: BoundedText::new(output, MAX_ENTRY_TEXT_BYTES),
        failed,
        artifact,
    };
    turn.append(tag.run, tag.token, body);
}

/// Shortens the longest open texts until all of them together keep the bound: each keeps its end,
/// and says how much went.
pub(super) fn fit(run: &mut ActiveRun) {
    while run.open_bytes() > MAX_OPEN_BYTES_PER_RUN {
        let Some(longest) = texts(run).max_by_key(|text| text.text.len()) else {
            return;
        };
        *longest = longest.narrowed(longest.text.len() / 2);
    }
}

fn texts(run: &mut ActiveRun) -> impl Iterator<Item = &mut BoundedText> {
    let messages = run.messages.values_mut();
    let tools = run.tools.values_mut();
    messages
        .flat_map(|message| [&mut message.text, &mut message.thinking])
        .chain(tools.map(|tool| &mut tool.input_json))
}
