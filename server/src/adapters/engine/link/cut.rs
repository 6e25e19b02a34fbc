//! What an engine reports, cut to what one report may hold.

use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::text::tail;
use sessionplane_core::ports::engine::{EngineEvent, MAX_REPORT_TEXT_BYTES, StopReason};

/// What the line takes that says how much of a text was left out, at most.
const NOTE_BYTES: usize = 64;

/// Cuts what is too long to its end. The whole text of a message goes altogether: its deltas are
/// it.
pub(in crate::adapters::engine) fn cut(event: &mut EngineEvent) {
    if event
        .texts()
        .all(|text| text.len() <= MAX_REPORT_TEXT_BYTES)
    {
        return;
    }
    match event {
        EngineEvent::MessageFinished { text, .. } => *text = None,
        EngineEvent::MessageDelta { text, .. }
        | EngineEvent::ToolStarted {
            input_json: text, ..
        }
        | EngineEvent::ToolProgress { output: text, .. }
        | EngineEvent::ToolFinished { output: text, .. }
        | EngineEvent::RetryScheduled { reason: text, .. }
        | EngineEvent::CompactionFinished(
            Ok(Compacted { summary: text, .. }) | Err(Failure { details: text, .. }),
        )
        | EngineEvent::Stopped {
            reason: StopReason::Failed(Failure { details: text, .. }),
            ..
        } => {
            let (end, left_out) = tail(text, MAX_REPORT_TEXT_BYTES - NOTE_BYTES);
            *text = format!("[{left_out} bytes before this are left out]\n{end}");
        }
        EngineEvent::TurnStarted
        | EngineEvent::TurnFinished
        | EngineEvent::MessageStarted { .. }
        | EngineEvent::InputShown { .. }
        | EngineEvent::InputTakenBack { .. }
        // A question that is too long is not asked: the control plane says so.
        | EngineEvent::Asked { .. }
        | EngineEvent::AskWithdrawn { .. }
        | EngineEvent::CompactionStarted
        | EngineEvent::Stopped { .. } => {}
    }
}
