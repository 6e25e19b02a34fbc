//! What drives a model or an agent program on behalf of a session.
//!
//! The port is shaped for engines that steer between turns, that preempt text, that cannot steer,
//! that die, that lose or spend their queue, that answer an abort late, and that repeat or
//! reorder their lines. Acceptance, delivery and completion are three moments: the control plane
//! accepts; the engine *shows* an input when it reaches the model; the engine *stops* when it has
//! come to its own end.
//!
//! An engine connection is one run's, or one compaction's: it is opened and revalidated for it, takes
//! the run's prompt and what continues it, or the order to compact, and is dropped when that is
//! settled (decision 0006). It may be dropped at any time before; what an engine keeps in between is
//! a cache.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::capabilities::Capabilities;
use crate::domain::compaction::Compacted;
use crate::domain::entry::Entry;
use crate::domain::event::OutputChannel;
use crate::domain::ids::{EntryId, InputId, RunId, SessionId};
use crate::domain::interaction::{InteractionAnswer, Question};
use crate::domain::limits::MAX_OPEN_INTERACTIONS;
use crate::domain::place::Place;
use crate::domain::run::{Failure, RunSettings};
use crate::domain::settings::ModelPolicy;
use crate::domain::usage::Usage;
use crate::domain::withholding::Withheld;

/// What an engine says of itself before anything is opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineDescription {
    /// A name for logs. No code may branch on it.
    pub name: String,
    /// The engine's own version.
    pub version: String,
    /// What it can do.
    pub capabilities: Capabilities,
    /// The models that it may use, and what a run uses unless overridden.
    pub models: ModelPolicy,
    /// The commands of its own that a person may type at the start of a prompt, for a composer to
    /// offer.
    pub commands: Vec<EngineSlashCommand>,
}

/// A command of an engine's own: text that it gives a meaning to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineSlashCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it does, in one line.
    pub description: String,
}

/// How to open a session's engine for one run, or for one compaction.
#[derive(Clone)]
pub struct OpenSession {
    /// The session.
    pub session: SessionId,
    /// The durable leaf, before the prompt if it is for a run, which the engine's own transcript must agree with.
    /// While a session that goes on from another's has no entry of its own, it is the other's.
    pub leaf: Option<EntryId>,
    /// Model and level to use.
    pub settings: RunSettings,
    /// Where it works; none where the session has no place of its own.
    pub place: Option<Place>,
    /// Reads the session's durable conversation, so that an engine without a transcript of its
    /// own, or one behind ours, can rebuild it.
    pub transcript: Arc<dyn Transcript>,
}

/// A page-wise reader of what a model has to know of a session: the active path in its order, the
/// past that was taken over from a parent session first, from the newest compaction on. What that
/// compaction kept comes right after it, in the order in which it was read before: perhaps with an
/// earlier summary, which stands before what that one kept.
#[async_trait]
pub trait Transcript: Send + Sync {
    /// The entries from the `from`th on (0: from the start), at most a bounded page; empty at the
    /// end.
    async fn page(&self, from: usize) -> Result<Vec<Entry>, EngineError>;

    /// The newest `max` of these entries, in their order. Costs as much as it returns, however
    /// long the conversation is and however heavy its entries are.
    async fn newest(&self, max: usize) -> Result<Vec<Entry>, EngineError>;
}

/// Why an engine could not be opened or driven.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct EngineError(pub String);

/// How an engine's own transcript stood against the durable leaf when it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Revalidation {
    /// It agrees, or the engine keeps none.
    Current,
    /// It was behind and was rebuilt from our entries.
    Rebuilt,
    /// It could not be rebuilt; the engine starts without the earlier conversation.
    Replaced,
}

/// An opened engine: two halves, so that commands never wait for output to be read.
pub struct EngineConnection {
    /// Takes commands.
    pub commands: Box<dyn EngineCommands>,
    /// Gives output, in the engine's order.
    pub output: Box<dyn EngineOutput>,
    /// How its transcript stood.
    pub revalidation: Revalidation,
}

/// Questions of which an engine has not taken what became of them, at most: those that a run may have
/// open, and more that it asked in one go although nobody could be asked. An engine that has more is
/// given up: what it is to be told would have no place to wait.
pub const MAX_UNSETTLED_ASKS: usize = 4 * MAX_OPEN_INTERACTIONS;

/// Commands that wait at most until an engine takes them: what became of every question, which may
/// come all at once, and of what else there is one at a time (a prompt, a steer, an abort) with room
/// for repeats. An engine that leaves more untaken is given up; no command is ever left out.
pub const MAX_WAITING_COMMANDS: usize = MAX_UNSETTLED_ASKS + 16;

/// What the control plane tells an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineCommand {
    /// Starts or, with an input, continues the run: the engine is at rest.
    Prompt {
        /// Counts the prompts since the engine was opened, from 1. The report of its end names it.
        number: u32,
        /// The run.
        run: RunId,
        /// The text to show the model, rendered by its trust (docs/rendering.md).
        text: Arc<str>,
        /// The dispatched input that this is; the engine reports `InputShown` for it. `None` for
        /// the invoke's own prompt, which is already an entry.
        input: Option<InputId>,
        /// What it may not use from here on.
        withheld: Withheld,
    },
    /// Shows the model this text at the next boundary of the running turn. At most one is
    /// outstanding at a time.
    Steer {
        /// The input; the engine reports `InputShown` when the model sees it.
        input: InputId,
        /// The text to show the model, rendered by its trust (docs/rendering.md).
        text: Arc<str>,
        /// What it may not use from when this is shown on.
        withheld: Withheld,
    },
    /// Replaces the earlier part of the transcript by a summary, and reports `CompactionFinished`.
    /// Until then nothing of the transcript may be lost.
    Compact {
        /// What the summary should keep.
        instructions: Option<Arc<str>>,
    },
    /// Answers a question.
    Answer {
        /// The question, as `Asked` named it.
        ask: String,
        /// The answer; none where nobody answered: what the question was for must not be done.
        answer: Option<InteractionAnswer>,
    },
    /// Takes back what it can (reporting `InputTakenBack`), then stops as soon as it can.
    Abort,
}

/// The command half. Dropping it lets the engine end.
#[async_trait]
pub trait EngineCommands: Send {
    /// Hands a command over. Returns once the engine's side holds it, not once it acted on it.
    ///
    /// # Errors
    /// When the engine is gone.
    async fn send(&mut self, command: EngineCommand) -> Result<(), EngineError>;
}

/// The output half.
#[async_trait]
pub trait EngineOutput: Send {
    /// The next event; `None` once the engine is gone. Cancel-safe: dropping the future loses
    /// nothing.
    async fn next(&mut self) -> Option<EngineEvent>;
}

/// How a run came to the engine's own end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// There was nothing more to do.
    Completed,
    /// It failed.
    Failed(Failure),
    /// It stopped because it was told to.
    Aborted,
}

/// The largest text of one report, in bytes: 4 MiB. An adapter cuts a longer one to its end and
/// says in its first line how much it left out. Ids, names and codes are far shorter.
pub const MAX_REPORT_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// What an engine reports. No text in it is longer than [`MAX_REPORT_TEXT_BYTES`]. Late, repeated or unknown reports are tolerated and told by a log line.
#[derive(Clone, PartialEq, Debug)]
pub enum EngineEvent {
    /// The model is called.
    TurnStarted,
    /// The turn and its tools are over.
    TurnFinished,
    /// The model starts a message.
    MessageStarted {
        /// An id that is unique within the run.
        message: String,
    },
    /// A piece of a message.
    MessageDelta {
        /// The message.
        message: String,
        /// Answer or thinking.
        channel: OutputChannel,
        /// The piece.
        text: String,
    },
    /// A message is complete.
    MessageFinished {
        /// The message.
        message: String,
        /// The whole text, where the engine gives it; else the deltas are it.
        text: Option<String>,
        /// What this message used.
        usage: Usage,
    },
    /// A tool is called.
    ToolStarted {
        /// An id that is unique within the run.
        call: String,
        /// The tool's name.
        name: String,
        /// Its arguments as JSON text.
        input_json: String,
    },
    /// A tool's whole output so far.
    ToolProgress {
        /// The call.
        call: String,
        /// The output so far.
        output: String,
    },
    /// A tool came back.
    ToolFinished {
        /// The call.
        call: String,
        /// What it gave back.
        output: String,
        /// It reported a failure.
        failed: bool,
    },
    /// The engine waits for an answer before it goes on with whatever asked. At most
    /// [`MAX_UNSETTLED_ASKS`] questions may wait for what becomes of them.
    Asked {
        /// An id that is unique within the run. Of more than
        /// [`MAX_LABEL_BYTES`](crate::domain::limits::MAX_LABEL_BYTES) the question is answered at
        /// once with none; an engine whose ids have more than
        /// [`MAX_ASK_BYTES`](crate::domain::limits::MAX_ASK_BYTES) is given up.
        ask: String,
        /// The question.
        question: Question,
        /// How long it may stay open.
        timeout: Option<Duration>,
    },
    /// The engine no longer waits for an answer.
    AskWithdrawn {
        /// The question.
        ask: String,
    },
    /// Within a run: the engine compacts its transcript because the context is full.
    CompactionStarted,
    /// A compaction ended, one that was asked for or one of its own.
    CompactionFinished(Result<Compacted, Failure>),
    /// The model has been shown a handed input.
    InputShown {
        /// The input.
        input: InputId,
    },
    /// The engine gave a handed input back unshown.
    InputTakenBack {
        /// The input.
        input: InputId,
    },
    /// The engine waits before it calls the model again.
    RetryScheduled {
        /// The attempt to come, from 1.
        attempt: u32,
        /// At most so many; 0 when it does not say.
        max_attempts: u32,
        /// How long it waits.
        delay: Duration,
        /// What went wrong.
        reason: String,
    },
    /// The engine came to its end with a prompt: it is at rest and takes another. Of several such
    /// reports about one prompt the first counts, and one about an earlier prompt ends nothing.
    Stopped {
        /// The number of the prompt that it has done with.
        prompt: u32,
        /// How it came to its end.
        reason: StopReason,
    },
}

impl EngineEvent {
    /// Its texts: ids, names, words, output. There are at most three; the others are empty.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let texts: [&str; 3] = match self {
            Self::TurnStarted
            | Self::TurnFinished
            | Self::InputShown { .. }
            | Self::InputTakenBack { .. }
            | Self::CompactionStarted
            | Self::Stopped {
                reason: StopReason::Completed | StopReason::Aborted,
                ..
            } => [""; 3],
            Self::MessageStarted { message } => [message, "", ""],
            Self::MessageDelta { message, text, .. } => [message, text, ""],
            Self::MessageFinished { message, text, .. } => {
                [message, text.as_deref().unwrap_or_default(), ""]
            }
            Self::ToolStarted {
                call,
                name,
                input_json,
            } => [call, name, input_json],
            Self::ToolProgress { call, output } | Self::ToolFinished { call, output, .. } => {
                [call, output, ""]
            }
            Self::RetryScheduled { reason, .. } => [reason, "", ""],
            // The question's own texts have a bound of their own: what exceeds it is not asked.
            Self::Asked { ask, question, .. } => [ask, &question.title, &question.details],
            Self::AskWithdrawn { ask } => [ask, "", ""],
            Self::CompactionFinished(Ok(compacted)) => [&compacted.summary, "", ""],
            Self::CompactionFinished(Err(Failure { code, details, .. }))
            | Self::Stopped {
                reason: StopReason::Failed(Failure { code, details, .. }),
                ..
            } => [code, details, ""],
        };
        texts.into_iter()
    }
}

/// An engine: opens connections.
#[async_trait]
pub trait Engine: Send + Sync {
    /// What it is and what it can do.
    fn describe(&self) -> &EngineDescription;
    /// Opens a connection for one run or one compaction of a session and revalidates it against the durable leaf.
    async fn open(&self, open: OpenSession) -> Result<EngineConnection, EngineError>;
}
