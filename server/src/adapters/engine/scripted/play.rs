//! Plays scenarios: one run after the other, until nobody listens or a scenario crashes it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::provenance::Channel;
use sessionplane_core::domain::rendering::{Reading, Speaker, read};
use sessionplane_core::domain::run::{Failure, RunSettings};
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::domain::withholding::Withheld;
use sessionplane_core::ports::engine::{EngineEvent, MAX_UNSETTLED_ASKS, StopReason};

use super::ask::Questions;
use super::compact::Summary;
use super::hands;
use super::odd;
use super::parse::parse;
use super::scenario::{AskStep, Deed, Step, ToolStep};
use super::tool;
use crate::adapters::engine::link::{Halt, Link, Prompt, Steer, Work};
use crate::adapters::engine::memory::Memory;

/// A finished message carries its whole text up to this size; of a longer one the deltas are it.
const WHOLE_TEXT_BYTES: usize = 64 * 1024;
/// The command that a person may type after a slash: it plays the verb of that name.
pub(super) const RECALL: &str = "recall";

/// How a run, or a compaction, ends.
pub(super) enum End {
    Stop(StopReason),
    Crash,
    Gone,
}

impl From<Halt> for End {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Aborted => Self::Stop(StopReason::Aborted),
            Halt::Gone => Self::Gone,
        }
    }
}

/// The end of a run whose scenario cannot be played.
pub(super) fn bad_scenario(details: String) -> End {
    End::Stop(StopReason::Failed(Failure {
        code: "bad_scenario".to_owned(),
        details,
        retryable: false,
    }))
}

/// A message that is being said.
struct Message {
    id: String,
    /// What was said so far, while it is short enough to be told whole.
    text: Option<String>,
}

pub(super) struct Player {
    pub(super) link: Link,
    pub(super) memory: Memory,
    /// With what it was opened.
    settings: RunSettings,
    /// The instruction that the model was last shown.
    shown: Arc<str>,
    /// All that it was last shown, byte for byte.
    received: Arc<str>,
    /// What it goes without.
    withheld: Withheld,
    /// The numbers of the last message and call. They never start again: a follow-up continues
    /// its run, within which ids are unique.
    messages: u64,
    calls: u64,
    message: Option<Message>,
    questions: Questions,
    /// While it compacts, at rest: what it says is this, and no message.
    pub(super) summary: Option<Summary>,
    slow: Duration,
    /// Whether it may do something outside of itself.
    hands: bool,
}

/// A tool call.
enum Call {
    /// The scenario says how it goes.
    Played(ToolStep),
    /// It is done.
    Done(Deed),
}

impl Call {
    /// The name that it is known by.
    fn name(&self) -> &str {
        match self {
            Self::Played(tool) => &tool.name,
            Self::Done(deed) => hands::name(deed),
        }
    }
}

impl Player {
    pub(super) fn new(link: Link, memory: Memory, settings: RunSettings) -> Self {
        let shown = memory.texts.back().map(|said| said.text.clone());
        Self {
            link,
            memory,
            settings,
            received: Arc::default(),
            withheld: Withheld::Nothing,
            shown: shown.unwrap_or_default(),
            messages: 0,
            calls: 0,
            message: None,
            questions: Questions::default(),
            summary: None,
            slow: Duration::ZERO,
            hands: false,
        }
    }

    /// One that may do something outside of itself: it has a process of its own.
    pub(super) fn with_hands(mut self) -> Self {
        self.hands = true;
        self
    }

    /// Does everything that it is told, until the other end is gone or a scenario crashes.
    pub(super) async fn run(mut self) {
        while let Some(work) = self.link.next_work().await {
            let done = match work {
                Work::Prompt(prompt) => self.answer(prompt).await,
                Work::Compact { instructions } => self.condense(instructions).await,
            };
            if done.is_err() {
                return;
            }
            self.message = None;
            self.questions = Questions::default();
        }
    }

    /// Plays a prompt and reports how it ended. An error: the engine is gone.
    async fn answer(&mut self, prompt: Prompt) -> Result<(), Halt> {
        let reason = match self.perform(prompt).await {
            Ok(()) => StopReason::Completed,
            Err(End::Stop(reason)) => reason,
            Err(End::Crash | End::Gone) => return Err(Halt::Gone),
        };
        self.link.stop(reason).await
    }

    async fn perform(&mut self, prompt: Prompt) -> Result<(), End> {
        tracing::debug!(run = %prompt.run, input = ?prompt.input, "plays a prompt");
        let mut steps = if let Some(input) = prompt.input {
            self.show(Steer {
                input,
                text: prompt.text,
                withheld: prompt.withheld,
            })
            .await?
        } else {
            // Another run begins.
            self.slow = Duration::ZERO;
            self.withheld = prompt.withheld;
            self.read(prompt.text)?
        };
        self.link.emit(EngineEvent::TurnStarted).await?;
        loop {
            self.play(std::mem::take(&mut steps)).await?;
            self.end_turn().await?;
            if self.link.next_steer()?.is_none() {
                self.questions.withdraw_all(&mut self.link).await?;
            }
            // The end of a turn is a boundary too: what was handed over goes on as another turn.
            let Some(steer) = self.link.next_steer()? else {
                return Ok(());
            };
            steps = self.show(steer).await?;
            self.link.emit(EngineEvent::TurnStarted).await?;
        }
    }

    /// Plays steps, and those that come of them.
    pub(super) async fn play(&mut self, mut steps: VecDeque<Step>) -> Result<(), End> {
        while let Some(step) = steps.pop_front() {
            self.link.pause(self.slow).await?;
            self.step(step, &mut steps).await?;
        }
        Ok(())
    }

    /// Plays one step. Every step is named here, so that none can be forgotten.
    async fn step(&mut self, step: Step, steps: &mut VecDeque<Step>) -> Result<(), End> {
        match step {
            Step::Say(text) => self.say(OutputChannel::Text, text).await,
            Step::Think(text) => self.say(OutputChannel::Thinking, text).await,
            Step::SayWords { count, every, by } => self.say_words(count, every, by).await,
            Step::Big { bytes } => self.say_all(odd::filler(bytes)).await,
            Step::Odd => self.say_all(odd::pieces()).await,
            Step::Echo => self.say_text(self.shown.to_string()).await,
            Step::Received => self.say_text(self.received.to_string()).await,
            Step::Recall => self.say_text(self.recollection()).await,
            Step::Settings => self.say_text(self.spell_settings()).await,
            Step::Message => self.end_message(Usage::default()).await,
            Step::Usage(usage) => {
                self.open_message().await?;
                self.end_message(usage).await
            }
            Step::Tool(tool) => self.call(Call::Played(tool), steps).await,
            Step::Deed(deed) => self.call(Call::Done(deed), steps).await,
            Step::Turn => {
                self.end_turn().await?;
                self.next_turn(VecDeque::new(), steps).await
            }
            Step::WaitSteer => {
                self.end_turn().await?;
                let steer = self.link.wait_steer().await?;
                let shown = self.show(steer).await?;
                self.next_turn(shown, steps).await
            }
            Step::Retry {
                attempt,
                max_attempts,
                delay,
                reason,
            } => {
                let retry = EngineEvent::RetryScheduled {
                    attempt,
                    max_attempts,
                    delay,
                    reason,
                };
                self.retry(retry, delay).await
            }
            Step::Ask(step) => self.ask(*step).await,
            Step::WaitAnswers => self.wait_answers().await,
            Step::Withdraw(name) => {
                self.end_message(Usage::default()).await?;
                Ok(self.questions.withdraw(&mut self.link, name).await?)
            }
            Step::Compact(step) => self.compact(step).await,
            Step::Fail(failure) => Err(self.end(StopReason::Failed(failure)).await),
            Step::Stop => Err(self.end(StopReason::Completed).await),
            Step::Crash => Err(End::Crash),
            Step::Hang => Ok(self.link.until(std::future::pending()).await?),
            Step::Wait(delay) => Ok(self.link.pause(delay).await?),
            Step::Slow(delay) => {
                self.slow = delay;
                Ok(())
            }
        }
    }

    async fn ask(&mut self, step: AskStep) -> Result<(), End> {
        self.end_message(Usage::default()).await?;
        if self.questions.is_full() {
            let problem =
                format!("more than {MAX_UNSETTLED_ASKS} questions wait for their answers");
            return Err(bad_scenario(problem));
        }
        Ok(self.questions.ask(&mut self.link, step).await?)
    }

    /// Says what became of each open question, a message each.
    async fn wait_answers(&mut self) -> Result<(), End> {
        self.end_message(Usage::default()).await?;
        while let Some(told) = self.questions.next(&mut self.link).await? {
            self.say_text(told).await?;
            self.end_message(Usage::default()).await?;
        }
        Ok(())
    }

    /// Calls a tool. What was handed over meanwhile is shown in a turn of its own.
    async fn call(&mut self, call: Call, steps: &mut VecDeque<Step>) -> Result<(), End> {
        self.end_message(Usage::default()).await?;
        self.calls += 1;
        let id = format!("c{}", self.calls);
        match call {
            call if self.withheld.withholds(call.name()) => {
                tool::refuse(&mut self.link, id, call.name()).await?;
            }
            Call::Played(tool) => tool::play(&mut self.link, id, tool).await?,
            Call::Done(deed) if self.hands => hands::play(&mut self.link, id, deed).await?,
            Call::Done(_) => return Err(bad_scenario(hands::MISSING.to_owned())),
        }
        if let Some(steer) = self.link.next_steer()? {
            self.end_turn().await?;
            let shown = self.show(steer).await?;
            self.next_turn(shown, steps).await?;
        }
        Ok(())
    }

    async fn retry(&mut self, retry: EngineEvent, delay: Duration) -> Result<(), End> {
        self.end_message(Usage::default()).await?;
        self.link.emit(retry).await?;
        Ok(self.link.pause(delay).await?)
    }

    /// The run's own end, before which the open message is complete.
    async fn end(&mut self, reason: StopReason) -> End {
        match self.end_message(Usage::default()).await {
            Ok(()) => End::Stop(reason),
            Err(end) => end,
        }
    }

    /// Begins the next turn: first shows what was handed over, oldest first. The steps of what is
    /// shown come before those that were left.
    async fn next_turn(
        &mut self,
        mut shown: VecDeque<Step>,
        steps: &mut VecDeque<Step>,
    ) -> Result<(), End> {
        while let Some(steer) = self.link.next_steer()? {
            shown.extend(self.show(steer).await?);
        }
        shown.append(steps);
        *steps = shown;
        Ok(self.link.emit(EngineEvent::TurnStarted).await?)
    }

    async fn end_turn(&mut self) -> Result<(), End> {
        self.end_message(Usage::default()).await?;
        Ok(self.link.emit(EngineEvent::TurnFinished).await?)
    }

    /// Shows the model a dispatched input.
    async fn show(&mut self, steer: Steer) -> Result<VecDeque<Step>, End> {
        let Steer {
            input,
            text,
            withheld,
        } = steer;
        self.link.emit(EngineEvent::InputShown { input }).await?;
        self.withheld = withheld;
        self.read(text)
    }

    /// The steps of a text that is now before the model: of the instruction in it, and of no data. What
    /// is no scenario is said back.
    fn read(&mut self, received: Arc<str>) -> Result<VecDeque<Step>, End> {
        let Reading {
            speaker,
            instruction: text,
            ..
        } = read(&received);
        let steps = if text.trim().strip_prefix('/') == Some(RECALL) {
            Some(vec![Step::Recall])
        } else {
            parse(&text).map_err(|error| bad_scenario(error.to_string()))?
        };
        let steps = steps.unwrap_or_else(|| words(&text).map(Step::Say).collect());
        // It makes no difference between what came how, but for what nobody sent.
        if speaker != Speaker::Configured {
            self.memory.remember(&text, Channel::Invoke);
        }
        self.shown = text.into();
        self.received = received;
        Ok(steps.into())
    }

    fn recollection(&self) -> String {
        let texts: Vec<&str> = self.memory.texts.iter().map(|said| &*said.text).collect();
        format!(
            "opened at entry {}; the newest texts: {texts:?}",
            self.memory.leaf
        )
    }

    fn spell_settings(&self) -> String {
        let or_none = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
        let model = or_none(&self.settings.model);
        let level = or_none(&self.settings.thinking_level);
        format!("model={model} level={level}")
    }

    async fn say_words(&mut self, count: u64, every: Duration, by: u64) -> Result<(), End> {
        for number in 1..=count {
            if (number - 1) % by == 0 {
                self.link.pause(every).await?;
            }
            self.say_text(format!("w{number} ")).await?;
        }
        Ok(())
    }

    async fn say_all(&mut self, pieces: impl Iterator<Item = String>) -> Result<(), End> {
        for piece in pieces {
            self.say_text(piece).await?;
        }
        Ok(())
    }

    pub(super) async fn say_text(&mut self, text: String) -> Result<(), End> {
        self.say(OutputChannel::Text, text).await
    }

    async fn say(&mut self, channel: OutputChannel, text: String) -> Result<(), End> {
        if let Some(summary) = &mut self.summary {
            if channel == OutputChannel::Text {
                summary.push(&text);
            }
            // Nothing is emitted that could wait: others must get their turn all the same.
            tokio::task::consume_budget().await;
            return Ok(self.link.pause(Duration::ZERO).await?);
        }
        let message = self.open_message().await?;
        if channel == OutputChannel::Text {
            message.text = message
                .text
                .take()
                .filter(|said| said.len() + text.len() <= WHOLE_TEXT_BYTES)
                .map(|said| said + &text);
        }
        let message = message.id.clone();
        let delta = EngineEvent::MessageDelta {
            message,
            channel,
            text,
        };
        Ok(self.link.emit(delta).await?)
    }

    async fn open_message(&mut self) -> Result<&mut Message, End> {
        if self.message.is_none() {
            self.messages += 1;
            let id = format!("m{}", self.messages);
            let started = EngineEvent::MessageStarted {
                message: id.clone(),
            };
            self.link.emit(started).await?;
            self.message = Some(Message {
                id,
                text: Some(String::new()),
            });
        }
        self.message.as_mut().ok_or(End::Gone)
    }

    pub(super) async fn end_message(&mut self, usage: Usage) -> Result<(), End> {
        let Some(Message { id, text }) = self.message.take() else {
            return Ok(());
        };
        let finished = EngineEvent::MessageFinished {
            message: id,
            text,
            usage,
        };
        Ok(self.link.emit(finished).await?)
    }
}

/// A text word by word; joined, the words are the text.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}
