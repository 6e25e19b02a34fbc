//! How a story is told: short words for what callers, the engine and the disk do.

use std::time::Duration;

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::binding::Method;
use sessionplane_core::domain::command::{CommandKind, DispatchAnswer, RejectionCode};
use sessionplane_core::domain::event::{EventBody, OutputChannel};
use sessionplane_core::domain::ids::{InputId, RunId};
use sessionplane_core::domain::input::InputFate;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{
    ActiveRun, Answer, DetachCause, DispatchFacts, Effect, EngineTag, Input, InvokeFacts, ReplyId,
    StreamId,
};
use sessionplane_core::domain::place::Place;
use sessionplane_core::domain::run::{RunOutcome, RunRecord};
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineCommand, EngineEvent, Revalidation, StopReason};

use crate::driver::facts;
use crate::driver::shell::Shell;

pub(crate) struct Story {
    pub(crate) shell: Shell,
    calls: u64,
    tag: Option<EngineTag>,
}

impl Story {
    /// A session that does not exist yet.
    pub(crate) fn new() -> Self {
        Self {
            shell: Shell::new(facts::limits()),
            calls: 0,
            tag: None,
        }
    }

    /// A detached run whose engine has its prompt; what led here is forgotten.
    pub(crate) fn working() -> Self {
        let mut story = Self::new();
        story.invoke(false, OnDisconnect::Detach);
        story.land();
        story.open();
        story.shell.done.clear();
        story
    }

    fn call(&mut self) -> (u64, ReplyId) {
        self.calls += 1;
        (self.calls, ReplyId(self.calls))
    }

    /// An invoke; its run is the one that the other words are about, if it is admitted.
    pub(crate) fn invoke(&mut self, keyed: bool, on_disconnect: OnDisconnect) -> ReplyId {
        self.invoke_with(keyed, on_disconnect, |_| ())
    }

    pub(crate) fn invoke_with(
        &mut self,
        keyed: bool,
        on_disconnect: OnDisconnect,
        change: impl FnOnce(&mut InvokeFacts),
    ) -> ReplyId {
        let (call, reply) = self.call();
        let mut facts = facts::invoke(call, self.shell.mint(), keyed, on_disconnect);
        facts.place.clone_from(&self.shell.session().head().place);
        change(&mut facts);
        if self.shell.session().is_free() {
            self.tag = Some(EngineTag {
                run: Some(facts.run),
                token: facts.token,
                generation: 1,
            });
        }
        let facts = Box::new(facts);
        self.shell.send(Input::Invoke { reply, facts });
        reply
    }

    pub(crate) fn tag(&self) -> EngineTag {
        self.tag.expect("the story has a run")
    }

    pub(crate) fn run(&self) -> RunId {
        self.tag().run.expect("it is a run's")
    }

    /// The id of the run's `ordinal`th input.
    pub(crate) fn input(&self, ordinal: u32) -> InputId {
        let run = self.run();
        InputId { run, ordinal }
    }

    /// The session is created at rest.
    pub(crate) fn creates(&mut self, place: Option<Place>) -> ReplyId {
        let (call, reply) = self.call();
        let facts = facts::placing(call, self.shell.mint(), Method::CreateSession, place);
        let facts = Box::new(facts);
        self.shell.send(Input::Create { reply, facts });
        reply
    }

    pub(crate) fn moves(&mut self, to: &str) -> ReplyId {
        self.moves_within(to, None)
    }

    /// The move is meant only while the session works in that workspace.
    pub(crate) fn moves_within(&mut self, to: &str, within: Option<&str>) -> ReplyId {
        let (call, reply) = self.call();
        let place = Some(facts::place(to));
        let mut facts = facts::placing(call, self.shell.mint(), Method::ChangeDirectory, place);
        facts.within = within.map(|it| it.parse().expect("a workspace"));
        let facts = Box::new(facts);
        self.shell.send(Input::Move { reply, facts });
        reply
    }

    pub(crate) fn deletes(&mut self) -> ReplyId {
        self.deletes_at(None)
    }

    /// The deletion is meant for one revision of the metadata.
    pub(crate) fn deletes_at(&mut self, etag: Option<u64>) -> ReplyId {
        let (call, reply) = self.call();
        let token = LeaseToken(self.shell.mint());
        let call = Box::new(facts::call(call, Method::DeleteSession, true));
        self.shell.send(Input::Delete {
            reply,
            call,
            token,
            etag,
        });
        reply
    }

    /// Version control says this of a directory.
    pub(crate) fn notes(&mut self, directory: &str, branch: &str) {
        let token = LeaseToken(self.shell.mint());
        self.shell.send(Input::Noted {
            token,
            place: facts::place(directory),
            checkout: Some(facts::checkout(branch)),
        });
    }

    pub(crate) fn dispatch(&mut self, kind: CommandKind) -> ReplyId {
        self.dispatch_with(kind, |_| ())
    }

    pub(crate) fn dispatch_with(
        &mut self,
        kind: CommandKind,
        change: impl FnOnce(&mut DispatchFacts),
    ) -> ReplyId {
        let (call, reply) = self.call();
        let mut facts = facts::dispatch(call, kind, true, None);
        change(&mut facts);
        let facts = Box::new(facts);
        self.shell.send(Input::Dispatch { reply, facts });
        reply
    }

    pub(crate) fn steer(&mut self) -> ReplyId {
        self.dispatch(CommandKind::Steer)
    }

    pub(crate) fn follow_up(&mut self) -> ReplyId {
        self.dispatch(CommandKind::FollowUp)
    }

    pub(crate) fn abort(&mut self) -> ReplyId {
        self.dispatch(CommandKind::Abort)
    }

    pub(crate) fn attach(&mut self, stream: u64, on_disconnect: OnDisconnect) -> ReplyId {
        let (_, reply) = self.call();
        let run = self.run();
        self.shell.send(Input::Attach {
            reply,
            run,
            stream: StreamId(stream),
            on_disconnect,
        });
        reply
    }

    /// The stream that the first invoke listens on is number 1.
    pub(crate) fn detach(&mut self, stream: u64, cause: DetachCause) {
        let run = self.run();
        let stream = StreamId(stream);
        self.shell.send(Input::Detach { run, stream, cause });
    }

    pub(crate) fn open(&mut self) {
        let tag = self.tag();
        let revalidation = Revalidation::Current;
        self.shell.send(Input::EngineOpened { tag, revalidation });
    }

    pub(crate) fn gone(&mut self) {
        let tag = self.tag();
        let reason = "exit status 1".to_owned();
        self.shell.send(Input::EngineGone { tag, reason });
    }

    pub(crate) fn says(&mut self, event: EngineEvent) {
        let tag = self.tag();
        let artifact = None;
        self.shell.send(Input::Engine {
            tag,
            event,
            artifact,
        });
    }

    /// What the engine says in one go.
    pub(crate) fn bursts<const N: usize>(&mut self, events: [EngineEvent; N]) {
        let tag = self.tag();
        let inputs = events.map(|event| Input::Engine {
            tag,
            event,
            artifact: None,
        });
        self.shell.send_burst(inputs);
    }

    pub(crate) fn shows(&mut self, ordinal: u32) {
        let input = self.input(ordinal);
        self.says(EngineEvent::InputShown { input });
    }

    pub(crate) fn takes_back(&mut self, ordinal: u32) {
        let input = self.input(ordinal);
        self.says(EngineEvent::InputTakenBack { input });
    }

    pub(crate) fn stops(&mut self) {
        self.stops_with(StopReason::Completed);
    }

    /// The engine comes to its end with the prompt that it was given last.
    pub(crate) fn stops_with(&mut self, reason: StopReason) {
        let run = self.shell.session().run();
        let prompt = run.map_or(1, ActiveRun::last_prompt);
        self.says(EngineEvent::Stopped { prompt, reason });
    }

    pub(crate) fn starts_message(&mut self, message: &str, text: &str) {
        self.says(EngineEvent::MessageStarted {
            message: message.to_owned(),
        });
        self.continues_message(message, text);
    }

    pub(crate) fn continues_message(&mut self, message: &str, text: &str) {
        self.says(EngineEvent::MessageDelta {
            message: message.to_owned(),
            channel: OutputChannel::Text,
            text: text.to_owned(),
        });
    }

    pub(crate) fn finishes_message(&mut self, message: &str, output_tokens: Option<u64>) {
        self.says(EngineEvent::MessageFinished {
            message: message.to_owned(),
            text: None,
            usage: Usage {
                output_tokens,
                ..Usage::default()
            },
        });
    }

    pub(crate) fn starts_tool(&mut self, call: &str) {
        self.says(EngineEvent::ToolStarted {
            call: call.to_owned(),
            name: "shell".to_owned(),
            input_json: "{}".to_owned(),
        });
    }

    pub(crate) fn progresses(&mut self, call: &str, output: &str) {
        self.says(EngineEvent::ToolProgress {
            call: call.to_owned(),
            output: output.to_owned(),
        });
    }

    pub(crate) fn finishes_tool(&mut self, call: &str) {
        self.says(EngineEvent::ToolFinished {
            call: call.to_owned(),
            output: "done".to_owned(),
            failed: false,
        });
    }

    pub(crate) fn passes(&mut self, time: Duration) {
        self.shell.advance(time);
    }

    pub(crate) fn land(&mut self) {
        self.shell.land();
    }

    /// Commits all there is, then judges the whole history.
    pub(crate) fn ends(mut self) -> Shell {
        self.shell.settle_disk();
        self.shell.check_quiet();
        self.shell
    }

    pub(crate) fn answer(&self, reply: ReplyId) -> Option<&Answer> {
        self.shell.answers.get(&reply)
    }

    pub(crate) fn is_accepted(&self, reply: ReplyId) -> bool {
        let answer = self.answer(reply);
        matches!(
            answer,
            Some(Answer::Dispatched(DispatchAnswer::Accepted(_)))
        )
    }

    /// The code that a dispatch was rejected with.
    pub(crate) fn rejection(&self, reply: ReplyId) -> Option<RejectionCode> {
        match self.answer(reply)? {
            Answer::Dispatched(DispatchAnswer::Rejected(no)) => Some(no.code),
            _ => None,
        }
    }

    /// What was done since this was last asked.
    pub(crate) fn news(&mut self) -> News {
        News(std::mem::take(&mut self.shell.done))
    }

    pub(crate) fn stored_run(&self) -> &RunRecord {
        let run = self.run();
        self.shell.store.runs.get(&run).expect("the run is durable")
    }

    pub(crate) fn outcome(&self) -> Option<&RunOutcome> {
        let settled = self.stored_run().settled.as_ref()?;
        Some(&settled.outcome)
    }

    pub(crate) fn fate(&self, ordinal: u32) -> InputFate {
        let input = self.input(ordinal);
        self.shell
            .store
            .inputs
            .get(&input)
            .expect("the input is durable")
            .fate
    }
}

/// Effects, in the order in which they were performed.
pub(crate) struct News(pub(crate) Vec<Effect>);

impl News {
    pub(crate) fn events(&self) -> Vec<&EventBody> {
        let mut events = Vec::new();
        for effect in &self.0 {
            if let Effect::Publish(event) = effect {
                events.push(&event.body);
            }
        }
        events
    }

    pub(crate) fn event_types(&self) -> Vec<&'static str> {
        self.events()
            .into_iter()
            .map(EventBody::event_type)
            .collect()
    }

    pub(crate) fn told(&self) -> Vec<&EngineCommand> {
        let mut commands = Vec::new();
        for effect in &self.0 {
            if let Effect::Tell(_, command) = effect {
                commands.push(command);
            }
        }
        commands
    }

    /// The inputs that the engine was handed.
    pub(crate) fn handed(&self) -> Vec<u32> {
        let input = |command: &EngineCommand| match command {
            EngineCommand::Prompt { input, .. } => input.map(|input| input.ordinal),
            EngineCommand::Steer { input, .. } => Some(input.ordinal),
            EngineCommand::Abort | EngineCommand::Compact { .. } | EngineCommand::Answer { .. } => {
                None
            }
        };
        self.told().into_iter().filter_map(input).collect()
    }

    pub(crate) fn aborts(&self) -> usize {
        let is_abort = |command: &&&EngineCommand| ***command == EngineCommand::Abort;
        self.told().iter().filter(is_abort).count()
    }

    pub(crate) fn has(&self, wanted: impl Fn(&Effect) -> bool) -> bool {
        self.0.iter().any(wanted)
    }
}
