//! More words for stories: what changes a session between runs, and what a run asks.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::command::Command;
use sessionplane_core::domain::compaction::Compacted;
use sessionplane_core::domain::ids::{EntryId, InteractionId, RunId};
use sessionplane_core::domain::interaction::{Interaction, InteractionAnswer, Question, Shape};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{DispatchFacts, EngineTag, Input, ReplyId};
use sessionplane_core::domain::run::Failure;
use sessionplane_core::ports::engine::{EngineEvent, Revalidation};

use super::story::Story;
use crate::driver::facts;

pub(crate) fn confirm(default: Option<bool>) -> Question {
    Question {
        title: "Go on?".to_owned(),
        details: String::new(),
        shape: Shape::Confirm,
        default: default.map(InteractionAnswer::Confirmed),
    }
}

pub(crate) fn failure(code: &str) -> Failure {
    Failure {
        code: code.to_owned(),
        details: "no".to_owned(),
        retryable: true,
    }
}

/// The id of the session's `seq`th entry.
pub(crate) fn entry(seq: u64) -> EntryId {
    let session = facts::record().id;
    EntryId { session, seq }
}

/// What an engine made of a transcript, from its second entry on.
pub(crate) fn summary(text: &str) -> Compacted {
    Compacted {
        summary: text.to_owned(),
        first_kept: Some(entry(2)),
        tokens_before: Some(900),
        tokens_after: Some(90),
    }
}

impl Story {
    /// A session with one settled run of one message.
    pub(crate) fn rested() -> Self {
        let mut story = Self::working();
        story.starts_message("m1", "hello");
        story.finishes_message("m1", None);
        story.land();
        story.stops();
        story.shell.settle_disk();
        story.shell.done.clear();
        story
    }

    /// A command that changes the session outside of a run.
    pub(crate) fn changes(&mut self, command: Command) -> ReplyId {
        self.changes_with(command, |_| ())
    }

    /// The same without a request id.
    pub(crate) fn changes_unkeyed(&mut self, command: Command) -> ReplyId {
        self.changes_with(command, |facts| {
            facts.call.request_id = None;
            facts.call.binding = None;
        })
    }

    /// The same, meant for one run only.
    pub(crate) fn changes_for(&mut self, command: Command, run: RunId) -> ReplyId {
        self.changes_with(command, |facts| facts.expected_run = Some(run))
    }

    fn changes_with(
        &mut self,
        command: Command,
        change: impl FnOnce(&mut DispatchFacts),
    ) -> ReplyId {
        let token = LeaseToken(self.shell.mint());
        let target = match &command {
            Command::Navigate { entry } => self.shell.store.target(*entry),
            _ => None,
        };
        self.dispatch_with(command.kind(), |facts| {
            facts.command = command;
            facts.token = Some(token);
            facts.target = target;
            change(facts);
        })
    }

    pub(crate) fn sets_model(&mut self, model: Option<&str>) -> ReplyId {
        let model = model.map(str::to_owned);
        self.changes(Command::SetModel { model })
    }

    pub(crate) fn sets_thinking(&mut self, level: Option<&str>) -> ReplyId {
        let level = level.map(str::to_owned);
        self.changes(Command::SetThinking { level })
    }

    pub(crate) fn navigates(&mut self, seq: u64) -> ReplyId {
        self.changes(Command::Navigate { entry: entry(seq) })
    }

    pub(crate) fn compacts(&mut self) -> ReplyId {
        let instructions = Some(Arc::from("keep the names"));
        self.changes(Command::Compact { instructions })
    }

    fn compaction_tag(&self) -> EngineTag {
        let compaction = self.shell.session().compaction();
        let compaction = compaction.expect("a compaction holds the session");
        EngineTag {
            run: None,
            token: compaction.token(),
            generation: 1,
        }
    }

    pub(crate) fn opens_to_compact(&mut self) {
        let tag = self.compaction_tag();
        let revalidation = Revalidation::Current;
        self.shell.send(Input::EngineOpened { tag, revalidation });
    }

    pub(crate) fn says_of_compaction(&mut self, event: EngineEvent) {
        let tag = self.compaction_tag();
        let artifact = None;
        self.shell.send(Input::Engine {
            tag,
            event,
            artifact,
        });
    }

    pub(crate) fn compaction_ends(&mut self, result: Result<&str, Failure>) {
        let result = result.map(summary);
        self.says_of_compaction(EngineEvent::CompactionFinished(result));
    }

    pub(crate) fn compaction_engine_dies(&mut self) {
        let tag = self.compaction_tag();
        let reason = "exit status 1".to_owned();
        self.shell.send(Input::EngineGone { tag, reason });
    }

    pub(crate) fn asks(&mut self, ask: &str, question: Question, within: Option<Duration>) {
        // No two are alike, so that the answer to one is not taken for that to another.
        let title = format!("{}{ask}", question.title);
        self.says(EngineEvent::Asked {
            ask: ask.to_owned(),
            question: Question { title, ..question },
            timeout: within,
        });
    }

    pub(crate) fn question(&self, ordinal: u32) -> InteractionId {
        let run = self.run();
        InteractionId { run, ordinal }
    }

    pub(crate) fn answers(&mut self, ordinal: u32, answer: InteractionAnswer) -> ReplyId {
        let interaction = self.question(ordinal);
        let command = Command::Respond {
            interaction,
            answer,
        };
        self.dispatch_with(command.kind(), |facts| facts.command = command)
    }

    /// The question as it is stored.
    pub(crate) fn stored_question(&self, ordinal: u32) -> &Interaction {
        let id = self.question(ordinal);
        let stored = self.shell.store.interactions.get(&id);
        stored.expect("the question is durable")
    }
}
