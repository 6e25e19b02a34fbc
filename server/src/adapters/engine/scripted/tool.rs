//! Plays a tool call.

use sessionplane_core::ports::engine::EngineEvent;

use super::odd::filler;
use super::scenario::{ToolOutput, ToolStep};
use crate::adapters::engine::link::{Halt, Link};

/// Starts the tool, reports its progress (each report says all there is so far) and finishes it.
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
        // What a long tool said is kept in its end, so that a million reports stay cheap.
        if lines.len() > 4096 {
            lines.drain(..2048);
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
