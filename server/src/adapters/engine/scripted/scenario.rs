//! What a scenario can say, as values. Nothing here reads text or acts.

use std::time::Duration;

use sessionplane_core::domain::interaction::Question;
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::usage::Usage;

/// One step of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Step {
    /// Answer text, in one piece.
    Say(String),
    /// Thinking, in one piece.
    Think(String),
    /// Numbered words, a piece each; `by` of them at a time.
    SayWords {
        count: u64,
        every: Duration,
        by: u64,
    },
    /// Answer text of a size.
    Big { bytes: u64 },
    /// Answer text that no display or store likes.
    Odd,
    /// Says back the instruction that was last shown.
    Echo,
    /// Says back all that was last shown, byte for byte.
    Received,
    /// Says what it knew when it was opened.
    Recall,
    /// Ends the open message.
    Message,
    /// Ends the open message and tells what it used.
    Usage(Usage),
    /// A tool call.
    Tool(ToolStep),
    /// A turn boundary.
    Turn,
    /// A turn boundary that waits for a steer.
    WaitSteer,
    /// A scheduled retry and its delay.
    Retry {
        attempt: u32,
        max_attempts: u32,
        delay: Duration,
        reason: String,
    },
    /// A question. It does not wait for the answer.
    Ask(Box<AskStep>),
    /// Waits until it knows what became of every open question.
    WaitAnswers,
    /// Takes the question of this name back.
    Withdraw(String),
    /// Compacts the transcript.
    Compact(CompactStep),
    /// Says with what model and level it was opened.
    Settings,
    /// The run fails.
    Fail(Failure),
    /// The run completes, whatever was handed over.
    Stop,
    /// The engine is gone.
    Crash,
    /// Nothing, until an abort.
    Hang,
    /// Nothing, for some time.
    Wait(Duration),
    /// From now on, a delay before each step.
    Slow(Duration),
    /// A tool call that does something in the world outside of the engine.
    Deed(Deed),
}

/// What a tool can do outside of the engine: only one in a process of its own has hands for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    /// Reads a file.
    ReadFile { path: String },
    /// Writes a file, in the place of what is there.
    WriteFile { path: String, text: String },
    /// Runs a command in a shell, and waits for it.
    Shell { command: String },
}

/// A question.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct AskStep {
    /// What the question is called, and its answer after it.
    pub(super) name: String,
    pub(super) question: Question,
    /// How long it may stay open.
    pub(super) within: Option<Duration>,
}

/// A compaction.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct CompactStep {
    pub(super) summary: String,
    /// How long it takes.
    pub(super) after: Duration,
    /// How many of the newest entries it keeps, of those that were known at opening.
    pub(super) kept: usize,
    /// It fails; nothing changes.
    pub(super) failure: Option<Failure>,
}

/// A tool call.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ToolStep {
    pub(super) name: String,
    pub(super) input_json: String,
    /// How many times it reports progress.
    pub(super) progress: u32,
    /// The delay before each report.
    pub(super) every: Duration,
    pub(super) output: ToolOutput,
    pub(super) failed: bool,
}

/// What a tool gives back.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ToolOutput {
    /// Its progress lines, or `ok`.
    Progress,
    /// This text.
    Text(String),
    /// Text of a size.
    Bytes(u64),
}

/// What is wrong with a scenario, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(super) struct ScenarioError {
    /// The line in the text, from 1.
    pub(super) line: usize,
    /// What is wrong with it.
    pub(super) problem: String,
}
