//! Ephemeral live progress of a session. Never presented as history.
//!
//! No event but `entry_appended` implies that something is durable; those that tell of durable
//! facts are nevertheless published only after the sync of the commit that holds them.

use std::sync::Arc;
use std::time::Duration;

use super::artifact::ArtifactRef;
use super::compaction::{CompactionOutcome, CompactionTrigger};
use super::entry::Entry;
use super::ids::{AgentName, EntryId, InputId, InteractionId, RunId, SessionId, SessionName};
use super::input::{DiscardCause, InputKind, InputRecord, UndeliveredInput};
use super::interaction::{Interaction, Resolution};
use super::limits::MAX_PREVIEW_BYTES;
use super::provenance::Origin;
use super::run::{Failure, RunOutcome, RunRecord, RunSettings};
use super::settings::{Resolved, SettingsOverride};
use super::text::{BoundedText, head};
use super::time::Timestamp;
use super::usage::Usage;

/// One event as it is published: numbered by the session's publisher.
#[derive(Clone, PartialEq, Debug)]
pub struct EventEnvelope {
    /// The session.
    pub session: SessionId,
    /// The serving incarnation that numbered it.
    pub epoch: u64,
    /// Grows by one for every event of the session within an epoch.
    pub seq: u64,
    /// The event.
    pub event: Event,
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// When it was decided.
    pub at: Timestamp,
    /// The run concerned.
    pub run: Option<RunId>,
    /// What happened.
    pub body: EventBody,
}

/// A channel of model output. Thinking is never folded into text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OutputChannel {
    /// The answer.
    Text,
    /// Thinking aloud.
    Thinking,
}

/// An input that waits in a run's queue, as observers see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingInput {
    /// Its id.
    pub id: InputId,
    /// How it joins the run.
    pub kind: InputKind,
    /// The beginning of its text.
    pub preview: String,
    /// The text's length in bytes.
    pub bytes: u64,
    /// Who sent it.
    pub origin: Origin,
    /// It was handed to the engine, which has not shown it yet.
    pub handed: bool,
}

impl PendingInput {
    /// What observers see of a queued input.
    #[must_use]
    pub fn of(record: &InputRecord, handed: bool) -> Self {
        Self {
            id: record.id,
            kind: record.kind,
            preview: head(&record.text, MAX_PREVIEW_BYTES).to_owned(),
            bytes: record.text.len() as u64,
            origin: record.origin.clone(),
            handed,
        }
    }
}

/// How a run's queue changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueChange {
    /// An input was accepted.
    Added(Box<PendingInput>),
    /// An input was handed to the engine.
    Handed(InputId),
    /// The engine gave an input back unshown: it waits again, in its place.
    Returned(InputId),
    /// An input left the queue: delivered or discarded, told by an event of its own.
    Removed(InputId),
}

/// What happened, by type.
#[derive(Clone, PartialEq, Debug)]
pub enum EventBody {
    /// A run was admitted.
    RunStarted {
        /// Who sent the prompt.
        origin: Origin,
        /// The prompt's entry.
        entry: EntryId,
        /// The agent that runs.
        agent: AgentName,
        /// Model and level used.
        settings: RunSettings,
    },
    /// A run settled, exactly once.
    RunSettled {
        /// The run's record, as it is durable from now on; of the undelivered inputs at most
        /// [`super::limits::MAX_TOLD_UNDELIVERED`].
        run: Box<RunRecord>,
    },
    /// The model is called.
    TurnStarted {
        /// The turn's number within the run, from 1.
        turn: u32,
    },
    /// The model's turn and its tools are over.
    TurnFinished {
        /// The turn's number.
        turn: u32,
    },
    /// The model starts a message.
    MessageStarted {
        /// The message's id within the run.
        message: String,
    },
    /// A piece of a message.
    MessageDelta {
        /// The message.
        message: String,
        /// Answer or thinking.
        channel: OutputChannel,
        /// The piece.
        text: Arc<str>,
    },
    /// A message is complete.
    MessageFinished {
        /// The message.
        message: String,
    },
    /// A tool is called.
    ToolStarted {
        /// The engine's id of the call.
        call: String,
        /// The tool's name.
        name: String,
        /// Its arguments as JSON text.
        input_json: BoundedText,
    },
    /// A tool's output so far. Replaces what an earlier one said.
    ToolProgress {
        /// The call.
        call: String,
        /// The output so far: its tail.
        output: BoundedText,
    },
    /// A tool came back.
    ToolFinished {
        /// The call.
        call: String,
        /// It reported a failure.
        failed: bool,
        /// What it gave back: its tail.
        output: BoundedText,
        /// The whole of it, where it is more than an event carries.
        artifact: Option<ArtifactRef>,
    },
    /// The run's queue changed.
    QueueChanged {
        /// How.
        change: QueueChange,
        /// How many wait after it.
        depth: u32,
    },
    /// An input was shown to the model.
    InputDelivered {
        /// The input.
        input: InputId,
        /// The entry that shows it.
        entry: EntryId,
    },
    /// An input will never be shown to the model.
    InputDiscarded {
        /// The input.
        input: InputId,
        /// Why.
        cause: DiscardCause,
    },
    /// The engine compacts its transcript.
    CompactionStarted {
        /// Why.
        trigger: CompactionTrigger,
    },
    /// A compaction ended.
    CompactionFinished {
        /// How.
        outcome: CompactionOutcome,
    },
    /// The engine waits before it calls the model again.
    RetryScheduled {
        /// The attempt to come, from 1.
        attempt: u32,
        /// How many there will be at most; 0 when the engine does not say.
        max_attempts: u32,
        /// How long it waits.
        delay: Duration,
        /// What went wrong.
        reason: String,
    },
    /// The leaf, the settings or the session's name are others than before, by a command.
    StateChanged {
        /// The entry that the next run goes on from.
        leaf: Option<EntryId>,
        /// What people chose.
        chosen: SettingsOverride,
        /// What that comes to.
        resolved: Resolved,
        /// The session has another name from here on; within, none if it has none any more.
        renamed: Option<Option<SessionName>>,
    },
    /// The run is suspended on a question.
    InteractionRequested {
        /// The question.
        interaction: Box<Interaction>,
    },
    /// A question is answered, or needs no answer any more.
    InteractionResolved {
        /// The question.
        id: InteractionId,
        /// How it ended.
        resolution: Box<Resolution>,
    },
    /// An entry is durable.
    EntryAppended {
        /// The entry, long texts reduced to their tails. Boxed, because most events are deltas and
        /// every event is as large as the largest.
        entry: Box<Entry>,
    },
    /// What the run has used so far.
    UsageUpdated {
        /// The running total of the run.
        usage: Usage,
        /// The running total of the session, this run included.
        session: Usage,
    },
    /// This face lost the session's owner; the stream ends.
    ServingError {
        /// Why, for a person.
        reason: String,
    },
}

/// Every type an event of this version can have, in the order of the contract's vocabulary.
pub const EVENT_TYPES: [&str; 22] = [
    "run_started",
    "run_settled",
    "turn_started",
    "turn_finished",
    "message_started",
    "message_delta",
    "message_finished",
    "tool_started",
    "tool_progress",
    "tool_finished",
    "queue_changed",
    "input_delivered",
    "input_discarded",
    "compaction_started",
    "compaction_finished",
    "retry_scheduled",
    "state_changed",
    "interaction_requested",
    "interaction_resolved",
    "entry_appended",
    "usage_updated",
    "serving_error",
];

impl EventBody {
    /// The event's type as it stands beside the typed payload.
    #[must_use]
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::RunSettled { .. } => "run_settled",
            Self::TurnStarted { .. } => "turn_started",
            Self::TurnFinished { .. } => "turn_finished",
            Self::MessageStarted { .. } => "message_started",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageFinished { .. } => "message_finished",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolProgress { .. } => "tool_progress",
            Self::ToolFinished { .. } => "tool_finished",
            Self::QueueChanged { .. } => "queue_changed",
            Self::InputDelivered { .. } => "input_delivered",
            Self::InputDiscarded { .. } => "input_discarded",
            Self::CompactionStarted { .. } => "compaction_started",
            Self::CompactionFinished { .. } => "compaction_finished",
            Self::RetryScheduled { .. } => "retry_scheduled",
            Self::StateChanged { .. } => "state_changed",
            Self::InteractionRequested { .. } => "interaction_requested",
            Self::InteractionResolved { .. } => "interaction_resolved",
            Self::EntryAppended { .. } => "entry_appended",
            Self::UsageUpdated { .. } => "usage_updated",
            Self::ServingError { .. } => "serving_error",
        }
    }

    /// Roughly the bytes that it keeps alive beyond its own size: its texts, and a flat share for
    /// each thing in a list. What is kept in memory of events is bounded by this, so a new type of
    /// event has to say what it weighs.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::TurnStarted { .. }
            | Self::TurnFinished { .. }
            | Self::InputDelivered { .. }
            | Self::InputDiscarded { .. }
            | Self::CompactionStarted { .. }
            | Self::UsageUpdated { .. } => 0,
            Self::RunStarted { settings, .. } => settings_weight(settings),
            Self::RunSettled { run } => run_weight(run),
            Self::MessageStarted { message } | Self::MessageFinished { message } => message.len(),
            Self::MessageDelta { message, text, .. } => message.len() + text.len(),
            Self::ToolStarted {
                call,
                name,
                input_json,
            } => call.len() + name.len() + input_json.text.len(),
            Self::ToolProgress { call, output } | Self::ToolFinished { call, output, .. } => {
                call.len() + output.text.len()
            }
            Self::QueueChanged { change, .. } => match change {
                QueueChange::Added(input) => size_of::<PendingInput>() + input.preview.len(),
                QueueChange::Handed(_) | QueueChange::Returned(_) | QueueChange::Removed(_) => 0,
            },
            Self::CompactionFinished { outcome } => match outcome {
                CompactionOutcome::Failed(failure) => failure_weight(failure),
                CompactionOutcome::Completed(_) | CompactionOutcome::Aborted => 0,
            },
            Self::StateChanged {
                chosen,
                resolved,
                renamed,
                ..
            } => {
                let levels = resolved.available_levels.iter();
                length(chosen.model.as_ref())
                    + length(chosen.thinking_level.as_ref())
                    + settings_weight(&resolved.settings)
                    + levels.map(|level| 32 + level.len()).sum::<usize>()
                    + renamed
                        .iter()
                        .flatten()
                        .map(|name| name.as_str().len())
                        .sum::<usize>()
            }
            Self::InteractionRequested { interaction } => interaction.weight(),
            Self::InteractionResolved { resolution, .. } => resolution.weight(),
            Self::EntryAppended { entry } => entry.weight(),
            Self::RetryScheduled { reason, .. } | Self::ServingError { reason } => reason.len(),
        }
    }
}

fn run_weight(run: &RunRecord) -> usize {
    let undelivered = run.undelivered.iter();
    let undelivered: usize = undelivered
        .map(|input| size_of::<UndeliveredInput>() + input.text.as_ref().map_or(0, |it| it.len()))
        .sum();
    let failure = match run.settled.as_ref().map(|settled| &settled.outcome) {
        Some(RunOutcome::Failed(failure)) => failure_weight(failure),
        Some(RunOutcome::Completed | RunOutcome::Aborted) | None => 0,
    };
    undelivered + failure + settings_weight(&run.settings)
}

fn failure_weight(failure: &Failure) -> usize {
    failure.code.len() + failure.details.len()
}

fn settings_weight(settings: &RunSettings) -> usize {
    length(settings.model.as_ref()) + length(settings.thinking_level.as_ref())
}

fn length(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::super::interaction::{InteractionAnswer, Question, ResolutionCause, Shape};
    use super::*;

    const LONG: usize = 16 * 1024;

    fn long() -> String {
        "x".repeat(LONG)
    }

    fn question(details: String, default: Option<InteractionAnswer>) -> EventBody {
        let interaction = Interaction {
            id: InteractionId {
                run: RunId::from_bytes([1; 16]),
                ordinal: 1,
            },
            question: Question {
                title: "may I?".to_owned(),
                details,
                shape: Shape::Input { secret: false },
                default,
            },
            asked_at: Timestamp::default(),
            deadline: None,
            resolution: None,
        };
        EventBody::InteractionRequested {
            interaction: Box::new(interaction),
        }
    }

    #[test]
    fn c35_an_event_weighs_at_least_its_longest_texts() {
        let failure = Failure {
            code: "broken".to_owned(),
            details: long(),
            retryable: false,
        };
        let resolution = Resolution {
            at: Timestamp::default(),
            cause: ResolutionCause::Answered,
            answer: Some(InteractionAnswer::Text(long())),
            origin: None,
        };
        let id = InteractionId {
            run: RunId::from_bytes([1; 16]),
            ordinal: 1,
        };
        let output = BoundedText::new(&long(), LONG);
        for body in [
            question(long(), None),
            question(String::new(), Some(InteractionAnswer::Text(long()))),
            EventBody::InteractionResolved {
                id,
                resolution: Box::new(resolution),
            },
            EventBody::CompactionFinished {
                outcome: CompactionOutcome::Failed(failure),
            },
            EventBody::ToolProgress {
                call: "c".to_owned(),
                output,
            },
            EventBody::MessageDelta {
                message: "m".to_owned(),
                channel: OutputChannel::Text,
                text: long().into(),
            },
            EventBody::ServingError { reason: long() },
        ] {
            assert!(body.weight() >= LONG, "{}", body.event_type());
        }
        let nothing = EventBody::TurnStarted { turn: 1 };
        assert_eq!(nothing.weight(), 0);
    }
}
