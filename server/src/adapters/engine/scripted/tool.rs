//! Plays a tool call.

use sessionplane_core::ports::engine::EngineEvent;

use super::odd::filler;
use super::scenario::{ToolOutput, ToolStep};
use crate::adapters::engine::link::{Halt, Link};

/// How much of what a tool said so far is kept, in bytes.
const MOST_BYTES: usize = 4096;

/// Starts the tool, reports its progress (each report says all lines that are kept so far) and
/// finishes it.
pub(super) async fn play(link: &mut Link, call: String, tool: ToolStep) -> Result<(), Halt> {
    link.emit(EngineEvent::ToolStarted {
        call: call.clone(),
        name: tool.name,
        input_json: tool.input_json,
    })
    .await?;
    let mut lines = String::new();
    for done in 1..=tool.progress {
        link.pause(tool.every).await?;
        let report = format!("{done}/{}\n", tool.progress);
        lines.push_str(&report);
        // What a long tool said is kept in its end, so that a million reports stay cheap. A line
        // is never cut.
        if lines.len() > MOST_BYTES {
            let from = lines.len() - MOST_BYTES / 2;
            let end = lines[from..]
                .find('\n')
                .map_or(lines.len(), |at| from + at + 1);
            lines.drain(..end);
        }
        link.emit(EngineEvent::ToolProgress {
            call: call.clone(),
            output: lines.clone(),
        })
        .await?;
    }
    let output = match tool.output {
        ToolOutput::Text(text) => text,
        ToolOutput::Bytes(bytes) => filler(bytes).collect(),
        ToolOutput::Progress if lines.is_empty() => "ok".to_owned(),
        ToolOutput::Progress => lines,
    };
    link.emit(EngineEvent::ToolFinished {
        call,
        output,
        failed: tool.failed,
    })
    .await
}

/// A call of a tool that the engine goes without: nothing is done.
pub(super) async fn refuse(link: &mut Link, call: String, name: &str) -> Result<(), Halt> {
    link.emit(EngineEvent::ToolStarted {
        call: call.clone(),
        name: name.to_owned(),
        input_json: "{}".to_owned(),
    })
    .await?;
    link.emit(EngineEvent::ToolFinished {
        call,
        output: format!("{name} is withheld after untrusted data"),
        failed: true,
    })
    .await
}
