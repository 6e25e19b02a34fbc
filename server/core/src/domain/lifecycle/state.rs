//! The state of one session: its head, its active run and that run's queue. Never the transcript.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::conflate::Conflation;
use super::input::{EngineTag, StreamId, Timer};
use super::open::Finished;
use super::placing::Deletion;
use super::waiting::Unread;
use crate::contract::OnDisconnect;
use crate::domain::capabilities::Capabilities;
use crate::domain::ids::{EntryId, InputId, SessionId};
use crate::domain::input::{InputKind, InputRecord};
use crate::domain::interaction::{Interaction, InteractionAnswer};
use crate::domain::lease::LeaseToken;
use crate::domain::limits::Limits;
use crate::domain::run::{RunRecord, RunSettings};
use crate::domain::session::{SessionHead, SessionRecord, StoredSession};
use crate::domain::text::BoundedText;
use crate::domain::time::Timestamp;
use crate::domain::withholding::Withheld;

/// A session as its one task holds it.
#[derive(Clone, PartialEq, Debug)]
pub struct Session {
    pub(super) record: SessionRecord,
    /// The session is in the store, or a commit that creates it was stepped.
    pub(in crate::domain) exists: bool,
    /// As the next commit will find it: ahead of the store by what is in flight.
    pub(super) head: SessionHead,
    pub(super) active: Active,
    pub(in crate::domain) limits: Limits,
    /// The number that the next round to be sent to the store will have.
    pub(in crate::domain) next_round: u64,
    /// The last round that is durable.
    pub(in crate::domain) durable_round: u64,
    /// Engine inputs that the shell held when it gave the last input.
    pub(in crate::domain) unread: Unread,
}

impl Session {
    /// A session as the store holds it, with nothing running.
    #[must_use]
    pub fn stored(stored: StoredSession, limits: Limits) -> Self {
        Self::new(stored.record, stored.head, true, limits)
    }

    /// A session that its first admission creates.
    #[must_use]
    pub fn unborn(record: SessionRecord, limits: Limits) -> Self {
        Self::new(record, SessionHead::empty(), false, limits)
    }

    fn new(record: SessionRecord, head: SessionHead, exists: bool, limits: Limits) -> Self {
        Self {
            record,
            exists,
            head,
            active: Active::Nothing,
            limits,
            next_round: 1,
            durable_round: 0,
            unread: Unread::default(),
        }
    }

    /// Who the session is.
    #[must_use]
    pub fn record(&self) -> &SessionRecord {
        &self.record
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.record.id
    }

    /// Where it stands, ahead of the store by what is in flight.
    #[must_use]
    pub fn head(&self) -> &SessionHead {
        &self.head
    }

    /// The active run.
    #[must_use]
    pub fn run(&self) -> Option<&ActiveRun> {
        self.active.run()
    }

    /// The compaction that holds the session outside of a run.
    #[must_use]
    pub fn compaction(&self) -> Option<&ActiveCompaction> {
        self.active.compaction()
    }

    /// Whether nothing holds the session.
    #[must_use]
    pub fn is_free(&self) -> bool {
        matches!(self.active, Active::Nothing)
    }

    /// Whether the end of what is active is decided and not yet durable: nothing joins it any more.
    #[must_use]
    pub fn is_settling(&self) -> bool {
        let phase = match &self.active {
            Active::Nothing | Active::Deletion(_) => return false,
            Active::Run(run) => run.phase,
            Active::Compaction(compaction) => compaction.phase,
        };
        matches!(phase, Phase::Settling { .. })
    }

    /// Numbers the round that the shell is about to send to the store. What is stepped from here
    /// on joins the one after it.
    pub fn seal_round(&mut self) -> u64 {
        let round = self.next_round;
        self.next_round += 1;
        if let Some(run) = self.active.run_mut() {
            run.sealed_depth = super::dispatch::depth(run);
        }
        round
    }
}

/// What holds the session: at most one thing does.
#[derive(Clone, PartialEq, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one a session, and the large variant is the common one"
)]
pub(super) enum Active {
    Nothing,
    Run(ActiveRun),
    Compaction(ActiveCompaction),
    Deletion(Deletion),
}

impl Active {
    pub(super) fn run(&self) -> Option<&ActiveRun> {
        match self {
            Self::Run(run) => Some(run),
            Self::Nothing | Self::Compaction(_) | Self::Deletion(_) => None,
        }
    }

    pub(super) fn run_mut(&mut self) -> Option<&mut ActiveRun> {
        match self {
            Self::Run(run) => Some(run),
            Self::Nothing | Self::Compaction(_) | Self::Deletion(_) => None,
        }
    }

    pub(super) fn compaction(&self) -> Option<&ActiveCompaction> {
        match self {
            Self::Compaction(compaction) => Some(compaction),
            Self::Nothing | Self::Run(_) | Self::Deletion(_) => None,
        }
    }

    pub(super) fn compaction_mut(&mut self) -> Option<&mut ActiveCompaction> {
        match self {
            Self::Compaction(compaction) => Some(compaction),
            Self::Nothing | Self::Run(_) | Self::Deletion(_) => None,
        }
    }
}

/// A compaction outside of a run, from its admission until its end is durable.
#[derive(Clone, PartialEq, Debug)]
pub struct ActiveCompaction {
    pub(super) token: LeaseToken,
    pub(super) phase: Phase,
    pub(super) engine: EngineStatus,
    /// The round that admits it.
    pub(in crate::domain) admitted_in: u64,
    pub(super) instructions: Option<Arc<str>>,
    /// Model and level that the engine is opened with.
    pub(super) settings: RunSettings,
}

impl ActiveCompaction {
    /// How far it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What is known of its engine.
    #[must_use]
    pub fn engine(&self) -> EngineStatus {
        self.engine
    }

    /// The token that it works under.
    #[must_use]
    pub fn token(&self) -> LeaseToken {
        self.token
    }

    /// Model and level that its engine is opened with.
    #[must_use]
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    pub(super) fn tag(&self) -> EngineTag {
        EngineTag {
            run: None,
            token: self.token,
            generation: 1,
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It takes inputs.
    Active,
    /// It was told to stop.
    Aborting,
    /// Its end is decided and joins this round; the state stays `running` until it is durable.
    Settling {
        /// The round.
        round: u64,
    },
}

/// What is known of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineStatus {
    /// Not asked for yet: the admission is not durable.
    Unopened,
    /// Being opened.
    Opening,
    /// It has a prompt.
    Working,
    /// It came to an end of its own, and inputs wait that will continue the run.
    Resting,
    /// It was given up, and what it had said by then is still to be judged.
    Dropped,
    /// It is gone, or was given up.
    Gone,
}

/// An input in the queue.
#[derive(Clone, PartialEq, Debug)]
pub struct QueuedInput {
    /// Its record, still pending.
    pub record: InputRecord,
    /// The round that makes its acceptance durable: it is not handed over before.
    pub accepted_in: u64,
    /// The engine was handed it and has not shown it yet.
    pub handed: bool,
    /// The engine gave it back; it is not handed over again before the turn is over.
    pub held: bool,
    /// How often the engine gave it back.
    pub returns: u32,
}

/// A message that the engine is writing.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct OpenMessage {
    pub(super) text: BoundedText,
    pub(super) thinking: BoundedText,
}

/// A tool that the engine is waiting for.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct OpenTool {
    pub(super) name: String,
    pub(super) input_json: BoundedText,
}

/// A question that the run is suspended on.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct OpenAsk {
    /// The engine's name of it.
    pub(super) ask: String,
    /// Its record, unresolved.
    pub(super) record: Interaction,
}

/// What the engine is to be told of a question.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct OwedAnswer {
    /// The engine's name of it.
    pub(super) ask: String,
    /// None where nobody answered.
    pub(super) answer: Option<InteractionAnswer>,
    /// The round that makes it durable: the engine is not told before.
    pub(super) decided_in: u64,
}

/// A run from its admission until its settlement is durable.
#[derive(Clone, PartialEq, Debug)]
pub struct ActiveRun {
    pub(super) record: RunRecord,
    /// The prompt, as the engine gets it.
    pub(super) prompt: Arc<str>,
    /// What it goes without from the prompt on.
    pub(super) withheld: Withheld,
    /// What the agent goes without after data.
    pub(super) withholds: Withheld,
    /// The leaf that the run goes on from: what the engine's own transcript must agree with.
    pub(super) base: Option<EntryId>,
    pub(super) token: LeaseToken,
    pub(super) generation: u32,
    pub(super) phase: Phase,
    pub(super) engine: EngineStatus,
    /// How many prompts the engine was given since it was opened.
    pub(super) prompts: u32,
    pub(in crate::domain) capabilities: Capabilities,
    /// In order of acceptance.
    pub(super) queue: VecDeque<QueuedInput>,
    pub(in crate::domain) next_ordinal: u32,
    /// So many reports of the engine are judged before anything is handed over: those that were
    /// already there when it could have been.
    pub(super) judge_first: Option<usize>,
    /// The queue's length when the round in flight was sealed: observers count so many once that
    /// round is durable.
    pub(super) sealed_depth: u32,
    /// The queue's length as observers count it, behind ours by what is not durable yet.
    pub(super) told_depth: u32,
    /// The round that admits the run.
    pub(in crate::domain) admitted_in: u64,
    pub(super) turn: u32,
    pub(super) messages: BTreeMap<String, OpenMessage>,
    pub(super) tools: BTreeMap<String, OpenTool>,
    /// Questions that are open, by their number.
    pub(super) asks: BTreeMap<u32, OpenAsk>,
    /// Answers that are not durable yet.
    pub(super) answers: Vec<OwedAnswer>,
    pub(in crate::domain) next_question: u32,
    /// When a question of the run ended last.
    pub(super) last_end: Option<Timestamp>,
    /// The engine compacts its transcript within the run.
    pub(super) compacting: bool,
    /// The round that makes its last summary durable, and with it the compaction's end; 0 before
    /// the first.
    pub(super) compacted_in: u64,
    pub(super) finished_messages: Finished,
    pub(super) finished_tools: Finished,
    /// The conversation says that some output is not kept.
    pub(super) told_refusal: bool,
    pub(super) conflation: Conflation,
    pub(super) on_disconnect: OnDisconnect,
    pub(super) streams: BTreeSet<StreamId>,
    /// Within these, somebody who left may still come back. They run also while others listen.
    pub(super) graces: BTreeSet<Timer>,
}

impl ActiveRun {
    /// The run's record so far.
    #[must_use]
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// How far it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What is known of its engine.
    #[must_use]
    pub fn engine(&self) -> EngineStatus {
        self.engine
    }

    /// The number of the prompt that its engine was last given; 0 before the first.
    #[must_use]
    pub fn last_prompt(&self) -> u32 {
        self.prompts
    }

    /// The leaf before the run's prompt: what the engine's own transcript must agree with.
    #[must_use]
    pub fn base(&self) -> Option<EntryId> {
        self.base
    }

    /// Inputs that wait, in order of acceptance.
    pub fn queue(&self) -> impl Iterator<Item = &QueuedInput> {
        self.queue.iter()
    }

    /// The token that it runs under.
    #[must_use]
    pub fn token(&self) -> LeaseToken {
        self.token
    }

    /// How many messages the engine is writing.
    pub(in crate::domain) fn open_messages(&self) -> usize {
        self.messages.len()
    }

    /// How many tools the engine is waiting for.
    pub(in crate::domain) fn open_tools(&self) -> usize {
        self.tools.len()
    }

    /// How many questions are open, or answered and the engine not told.
    pub(in crate::domain) fn open_asks(&self) -> usize {
        self.asks.len() + self.answers.len()
    }

    /// The questions that are open, by their number.
    pub(in crate::domain) fn asked(&self) -> impl Iterator<Item = (u32, &Interaction)> {
        let open = self.asks.iter();
        open.map(|(ordinal, open)| (*ordinal, &open.record))
    }

    /// The rounds that make answers durable which the engine was not told yet.
    pub(in crate::domain) fn owed(&self) -> impl Iterator<Item = u64> {
        self.answers.iter().map(|owed| owed.decided_in)
    }

    /// How much text is kept of both, in bytes.
    pub(in crate::domain) fn open_bytes(&self) -> usize {
        let message = |open: &OpenMessage| open.text.text.len() + open.thinking.text.len();
        let tool = |open: &OpenTool| open.input_json.text.len();
        self.messages.values().map(message).sum::<usize>()
            + self.tools.values().map(tool).sum::<usize>()
    }

    /// How many ids of finished ones are remembered.
    pub(in crate::domain) fn remembered(&self) -> usize {
        self.finished_messages.len() + self.finished_tools.len()
    }

    /// How many kinds of progress are being conflated.
    pub(in crate::domain) fn lanes(&self) -> usize {
        self.conflation.lanes()
    }

    pub(super) fn tag(&self) -> EngineTag {
        EngineTag {
            run: Some(self.record.id),
            token: self.token,
            generation: self.generation,
        }
    }

    /// The number of the prompt that the engine is given now.
    pub(super) fn next_prompt(&mut self) -> u32 {
        self.prompts = self.prompts.saturating_add(1);
        self.prompts
    }

    pub(super) fn is_handing(&self) -> bool {
        self.queue.iter().any(|input| input.handed)
    }

    /// The first durable, unhanded input of a kind.
    pub(super) fn next_of(&self, kind: InputKind, durable_round: u64) -> Option<usize> {
        // Only the first of its kind may go: a later one never overtakes it.
        let at = self
            .queue
            .iter()
            .position(|input| input.record.kind == kind && !input.handed)?;
        let input = &self.queue[at];
        (input.accepted_in <= durable_round && !input.held).then_some(at)
    }

    /// The turn is over: what the engine gave back may be handed over again.
    pub(super) fn release(&mut self) {
        for input in &mut self.queue {
            input.held = false;
        }
    }

    pub(super) fn position_of(&self, id: InputId) -> Option<usize> {
        self.queue.iter().position(|input| input.record.id == id)
    }
}
