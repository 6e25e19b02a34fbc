//! Plays compactions: those of a scenario, within a run, and those that the engine is asked for.

use std::sync::Arc;

use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::limits::MAX_ENTRY_TEXT_BYTES;
use sessionplane_core::domain::text::head;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::parse::parse;
use super::play::{End, Player, bad_scenario};
use super::scenario::{CompactStep, Step};
use crate::adapters::engine::link::{Halt, cut_short};

/// The longest summary: more than an entry holds, so that what cuts it is not us.
const SUMMARY_BYTES: usize = 2 * MAX_ENTRY_TEXT_BYTES;

/// What was said so far while the engine compacts.
#[derive(Default)]
pub(super) struct Summary {
    text: String,
    /// How many of the newest entries are kept.
    kept: usize,
}

impl Summary {
    pub(super) fn push(&mut self, text: &str) {
        let room = SUMMARY_BYTES - self.text.len();
        self.text.push_str(head(text, room));
    }
}

impl Player {
    /// A step of a scenario. Where the engine was asked to compact, it is what it says.
    pub(super) async fn compact(&mut self, step: CompactStep) -> Result<(), End> {
        if self.summary.is_none() {
            self.end_message(Usage::default()).await?;
            self.link.emit(EngineEvent::CompactionStarted).await?;
        }
        self.link.pause(step.after).await?;
        let CompactStep {
            summary,
            kept,
            failure,
            ..
        } = step;
        match (&mut self.summary, failure) {
            (Some(_), Some(failure)) => Err(End::Stop(StopReason::Failed(failure))),
            (Some(said), None) => {
                said.push(&summary);
                said.kept = kept;
                Ok(())
            }
            (None, Some(failure)) => {
                let failed = EngineEvent::CompactionFinished(Err(failure));
                Ok(self.link.emit(failed).await?)
            }
            (None, None) => {
                let compacted = self.compacted(summary, kept);
                let finished = EngineEvent::CompactionFinished(Ok(compacted.clone()));
                self.link.emit(finished).await?;
                self.forget(&compacted);
                Ok(())
            }
        }
    }

    /// Compacts on request, and reports how that ended. An error: the engine is gone.
    pub(super) async fn condense(&mut self, instructions: Option<Arc<str>>) -> Result<(), Halt> {
        self.summary = Some(Summary::default());
        let end = self.summarize(instructions.as_deref()).await;
        let said = self.summary.take().unwrap_or_default();
        let result = match end {
            Ok(()) | Err(End::Stop(StopReason::Completed)) => {
                Ok(self.compacted(said.text, said.kept))
            }
            Err(End::Stop(StopReason::Failed(failure))) => Err(failure),
            Err(End::Stop(StopReason::Aborted)) => Err(cut_short()),
            Err(End::Crash | End::Gone) => return Err(Halt::Gone),
        };
        let compacted = result.clone().ok();
        // An abort that is heard only now ends it as aborted: then nothing is forgotten.
        let told = self.link.compacted(result).await?;
        if let Some(compacted) = compacted.filter(|_| told) {
            self.forget(&compacted);
        }
        Ok(())
    }

    async fn summarize(&mut self, instructions: Option<&str>) -> Result<(), End> {
        let steps = parse(instructions.unwrap_or_default());
        let steps = steps.map_err(|error| bad_scenario(error.to_string()))?;
        let Some(steps) = steps else {
            let mut text = format!("summary up to entry {}", self.memory.leaf);
            if let Some(instructions) = instructions {
                text = format!("{text}: {instructions}");
            }
            return self.say_text(text).await;
        };
        if steps.iter().any(needs_a_run) {
            let problem = "a compaction calls no tool, ends no turn and asks nobody";
            return Err(bad_scenario(problem.to_owned()));
        }
        self.play(steps.into()).await
    }

    fn compacted(&self, summary: String, kept: usize) -> Compacted {
        Compacted {
            summary,
            first_kept: self.memory.first_kept(kept),
            tokens_before: None,
            tokens_after: None,
        }
    }

    /// From here on the summary stands for what came before.
    fn forget(&mut self, compacted: &Compacted) {
        let Compacted {
            summary,
            first_kept,
            ..
        } = compacted;
        // Without a summary nothing stands for what would be forgotten.
        if !summary.is_empty() {
            self.memory.compact(summary, *first_kept);
        }
    }
}

/// Steps that report what only a run has.
fn needs_a_run(step: &Step) -> bool {
    match step {
        Step::Usage(_)
        | Step::Tool(_)
        | Step::Deed(_)
        | Step::Turn
        | Step::WaitSteer
        | Step::Retry { .. }
        | Step::Ask(_)
        | Step::WaitAnswers
        | Step::Withdraw(_) => true,
        Step::Say(_)
        | Step::Think(_)
        | Step::SayWords { .. }
        | Step::Big { .. }
        | Step::Odd
        | Step::Echo
        | Step::Received
        | Step::Recall
        | Step::Message
        | Step::Compact(_)
        | Step::Settings
        | Step::Fail(_)
        | Step::Stop
        | Step::Crash
        | Step::Hang
        | Step::Wait(_)
        | Step::Slow(_) => false,
    }
}
