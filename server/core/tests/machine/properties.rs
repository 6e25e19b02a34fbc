//! Random inputs in any order, with any tag: the shell of the tests checks every state and every
//! effect on the way, and that joined steps write what single ones would.

use std::time::Duration;

use proptest::prelude::*;
use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::binding::Method;
use sessionplane_core::domain::command::{Command, CommandKind};
use sessionplane_core::domain::ids::{EntryId, InteractionId, RunId};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{
    DetachCause, Effect, EngineTag, Input, InvokeFacts, ReplyId, StreamId, Timer,
};
use sessionplane_core::ports::engine::Revalidation;

use crate::driver::facts;
use crate::driver::questions::{fitting, unfitting};
use crate::driver::shell::Shell;

mod said;

use said::{Said, said};

/// Which run an input is about.
#[derive(Clone, Copy, Debug)]
enum Of {
    Current,
    Former,
    OtherToken,
    OtherGeneration,
}

#[derive(Clone, Debug)]
enum Op {
    Invoke(bool, OnDisconnect),
    Dispatch(CommandKind, Option<Of>),
    /// To one of the two models or to none, or to a level.
    Choose(u8),
    Navigate(u64),
    Compact,
    /// The session is created at rest, if it is not there.
    Create,
    /// To one of two directories or to none.
    Move(u8),
    /// Version control says this of one of them.
    Noted(u8, u8),
    Delete,
    /// While it is paused, or after its place was looked up that it then had.
    HeldInvoke(bool),
    /// The question of this number, rightly or not.
    Respond(Of, u32, bool),
    Attach(Of, u64, OnDisconnect),
    Detach(Of, u64, DetachCause),
    Opened(Of, Revalidation),
    Gone(Of),
    Engine(Of, Said),
    /// Of the current run, in one go; at last, perhaps, it is gone.
    Burst(Vec<Said>, bool),
    Timer(Of, Timer),
    Land,
    Crash(bool),
    Advance(u64),
}

fn of() -> impl Strategy<Value = Of> {
    prop_oneof![
        12 => Just(Of::Current),
        1 => Just(Of::Former),
        1 => Just(Of::OtherToken),
        1 => Just(Of::OtherGeneration),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let on_disconnect = || prop_oneof![Just(OnDisconnect::Cancel), Just(OnDisconnect::Detach)];
    let kind = prop_oneof![
        4 => Just(CommandKind::Steer),
        4 => Just(CommandKind::FollowUp),
        1 => Just(CommandKind::Abort),
    ];
    let cause = prop_oneof![
        Just(DetachCause::CallerGone),
        Just(DetachCause::ServerEnded)
    ];
    let revalidation = prop_oneof![
        3 => Just(Revalidation::Current),
        1 => Just(Revalidation::Rebuilt),
        1 => Just(Revalidation::Replaced),
    ];
    let timer = prop_oneof![
        Just(Timer::AbortGrace),
        Just(Timer::DisconnectGrace),
        Just(Timer::RejoinGrace),
        Just(Timer::Conflation),
        (1_u32..5).prop_map(Timer::Interaction),
    ];
    prop_oneof![
        4 => (any::<bool>(), on_disconnect()).prop_map(|(keyed, on)| Op::Invoke(keyed, on)),
        2 => (0_u8..6).prop_map(Op::Choose),
        2 => (0_u64..30).prop_map(Op::Navigate),
        2 => Just(Op::Compact),
        1 => Just(Op::Create),
        2 => (0_u8..3).prop_map(Op::Move),
        2 => (0_u8..3, 0_u8..3).prop_map(|(place, branch)| Op::Noted(place, branch)),
        1 => Just(Op::Delete),
        1 => any::<bool>().prop_map(Op::HeldInvoke),
        4 => (of(), 1_u32..5, prop::bool::weighted(0.8))
            .prop_map(|(of, n, right)| Op::Respond(of, n, right)),
        6 => (kind, prop::option::weighted(0.3, of())).prop_map(|(kind, of)| Op::Dispatch(kind, of)),
        1 => (of(), 0_u64..4, on_disconnect()).prop_map(|(of, n, on)| Op::Attach(of, n, on)),
        1 => (of(), 0_u64..4, cause).prop_map(|(of, n, cause)| Op::Detach(of, n, cause)),
        4 => (of(), revalidation).prop_map(|(of, how)| Op::Opened(of, how)),
        1 => of().prop_map(Op::Gone),
        16 => (of(), said()).prop_map(|(of, said)| Op::Engine(of, said)),
        4 => (prop::collection::vec(said(), 2..8), prop::bool::weighted(0.1))
            .prop_map(|(said, gone)| Op::Burst(said, gone)),
        1 => (of(), timer).prop_map(|(of, timer)| Op::Timer(of, timer)),
        10 => Just(Op::Land),
        1 => any::<bool>().prop_map(Op::Crash),
        6 => prop_oneof![0_u64..60, 0_u64..20_000].prop_map(Op::Advance),
    ]
}

fn choice(what: u8) -> Command {
    let model = |spec: &str| Command::SetModel {
        model: Some(spec.to_owned()),
    };
    let level = |level: &str| Command::SetThinking {
        level: Some(level.to_owned()),
    };
    match what {
        0 => model("swift"),
        1 | 2 => model("deep"),
        3 => Command::SetModel { model: None },
        4 => level("high"),
        _ => level("low"),
    }
}

fn navigate(seq: u64) -> Command {
    let session = facts::record().id;
    let entry = EntryId { session, seq };
    Command::Navigate { entry }
}

fn engine(tag: EngineTag, event: sessionplane_core::ports::engine::EngineEvent) -> Input {
    let artifact = None;
    Input::Engine {
        tag,
        event,
        artifact,
    }
}

/// Executes operations; knows the newest tag.
struct Bench {
    shell: Shell,
    calls: u64,
    tag: EngineTag,
    /// Of the run or compaction before.
    former: EngineTag,
}

impl Bench {
    fn new() -> Self {
        let tag = EngineTag {
            run: Some(facts::run_id(0)),
            token: LeaseToken(0),
            generation: 1,
        };
        Self {
            shell: Shell::new(facts::limits()),
            calls: 0,
            tag,
            former: tag,
        }
    }

    fn tag(&self, of: Of) -> EngineTag {
        let tag = self.tag;
        match of {
            Of::Current => tag,
            Of::Former => self.former,
            Of::OtherToken => EngineTag {
                token: LeaseToken(tag.token.0 + 1),
                ..tag
            },
            Of::OtherGeneration => EngineTag {
                generation: 2,
                ..tag
            },
        }
    }

    fn run(&mut self, op: Op) {
        self.calls += 1;
        let reply = ReplyId(self.calls);
        let input = match op {
            Op::Invoke(keyed, on) => {
                let mut facts = facts::invoke(self.calls, self.shell.mint(), keyed, on);
                self.look(&mut facts);
                if self.shell.session().is_free() && !self.shell.in_flight() {
                    self.begins(EngineTag {
                        run: Some(facts.run),
                        token: facts.token,
                        generation: 1,
                    });
                }
                let facts = Box::new(facts);
                Input::Invoke { reply, facts }
            }
            Op::Dispatch(kind, expected) => {
                let expected = expected.map(|of| self.run_of(of));
                let facts = Box::new(facts::dispatch(self.calls, kind, true, expected));
                Input::Dispatch { reply, facts }
            }
            Op::Choose(what) => return self.command(choice(what)),
            Op::Navigate(seq) => return self.command(navigate(seq)),
            Op::Create | Op::Move(_) | Op::Noted(..) | Op::Delete | Op::HeldInvoke(_) => {
                self.fleet(reply, &op)
            }
            Op::Compact => return self.command(Command::Compact { instructions: None }),
            Op::Respond(of, ordinal, right) => {
                let run = self.run_of(of);
                return self.respond(InteractionId { run, ordinal }, right);
            }
            Op::Attach(of, stream, on_disconnect) => Input::Attach {
                reply,
                run: self.run_of(of),
                stream: StreamId(stream),
                on_disconnect,
            },
            Op::Detach(of, stream, cause) => Input::Detach {
                run: self.run_of(of),
                stream: StreamId(stream),
                cause,
            },
            Op::Opened(of, revalidation) => Input::EngineOpened {
                tag: self.tag(of),
                revalidation,
            },
            Op::Gone(of) => Input::EngineGone {
                tag: self.tag(of),
                reason: "exit status 1".to_owned(),
            },
            Op::Engine(of, said) => {
                let tag = self.tag(of);
                let event = said.event(tag);
                engine(tag, event)
            }
            Op::Burst(said, gone) => return self.burst(said, gone),
            Op::Timer(of, timer) => Input::Timer {
                tag: self.tag(of),
                timer,
            },
            Op::Land if self.shell.in_flight() => return self.shell.land(),
            Op::Land if self.shell.session().deletion().is_some() => return self.shell.keep(),
            Op::Land => return,
            Op::Crash(applied) => return self.shell.crash(applied),
            Op::Advance(millis) => return self.shell.advance(Duration::from_millis(millis)),
        };
        self.shell.send(input);
        self.learn();
    }

    /// What the fleet and its server do to the session.
    fn fleet(&mut self, reply: ReplyId, op: &Op) -> Input {
        let (call, token) = (self.calls, self.shell.mint());
        let place = |which: u8| match which {
            0 => None,
            1 => Some(facts::place(".")),
            _ => Some(facts::place("sub")),
        };
        let placing = |method, place| Box::new(facts::placing(call, token, method, place));
        match *op {
            Op::Create => {
                let facts = placing(Method::CreateSession, place(1));
                Input::Create { reply, facts }
            }
            Op::Move(to) => {
                let facts = placing(Method::ChangeDirectory, place(to));
                Input::Move { reply, facts }
            }
            Op::Delete => Input::Delete {
                reply,
                call: Box::new(facts::call(call, Method::DeleteSession, true)),
                token: LeaseToken(token),
                etag: None,
            },
            Op::HeldInvoke(paused) => {
                let mut facts = facts::invoke(call, token, true, OnDisconnect::Detach);
                facts.paused = paused;
                // Where it stood at first: it may have been moved since.
                facts.place = place(1);
                let facts = Box::new(facts);
                Input::Invoke { reply, facts }
            }
            Op::Noted(at, branch) => Input::Noted {
                token: LeaseToken(token),
                place: place(at).unwrap_or_else(|| facts::place("elsewhere")),
                checkout: (branch > 0).then(|| facts::checkout(&format!("b{branch}"))),
            },
            _ => unreachable!("the fleet does nothing else"),
        }
    }

    /// What an app layer reads of a session's place before it invokes.
    fn look(&self, facts: &mut InvokeFacts) {
        if let Some(stored) = &self.shell.store.session {
            facts.place.clone_from(&stored.head.place);
        }
    }

    /// The run that a caller is about; a compaction is of none.
    fn run_of(&self, of: Of) -> RunId {
        self.tag(of).run.unwrap_or(facts::run_id(0))
    }

    fn command(&mut self, command: Command) {
        let reply = ReplyId(self.calls);
        let mut facts = facts::dispatch(self.calls, command.kind(), true, None);
        if command.kind().is_boundary() && self.shell.session().is_free() {
            facts.token = Some(LeaseToken(self.shell.mint()));
        }
        if let Command::Navigate { entry } = &command {
            facts.target = self.shell.store.target(*entry);
        }
        facts.command = command;
        let facts = Box::new(facts);
        self.shell.send(Input::Dispatch { reply, facts });
        self.learn();
    }

    fn respond(&mut self, interaction: InteractionId, right: bool) {
        let asked = self.shell.store.interactions.get(&interaction);
        let answer = asked
            .filter(|_| right)
            .map_or_else(unfitting, |asked| fitting(&asked.question));
        self.command(Command::Respond {
            interaction,
            answer,
        });
    }

    fn begins(&mut self, tag: EngineTag) {
        if tag != self.tag {
            self.former = self.tag;
            self.tag = tag;
        }
    }

    fn burst(&mut self, said: Vec<Said>, gone: bool) {
        let tag = self.tag;
        let reports = said.into_iter().map(|said| {
            let event = said.event(tag);
            engine(tag, event)
        });
        let mut burst: Vec<_> = reports.collect();
        burst.extend(gone.then(|| Input::EngineGone {
            tag,
            reason: "exit status 0".to_owned(),
        }));
        self.shell.send_burst(burst);
        self.learn();
    }

    /// An invoke that had to wait may have been admitted since.
    fn learn(&mut self) {
        for effect in std::mem::take(&mut self.shell.done) {
            if let Effect::OpenEngine(tag) = effect {
                self.begins(tag);
            }
        }
    }

    fn come_to_rest(&mut self) {
        self.shell.settle_disk();
        self.run(Op::Dispatch(CommandKind::Abort, None));
        self.shell.settle_disk();
        self.shell.advance(facts::limits().abort_grace);
        self.shell.settle_disk();
        self.shell.check_quiet();
    }
}

#[test]
fn a_former_run_is_one_that_was() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.run(Op::Invoke(true, OnDisconnect::Detach));
        bench.come_to_rest();
    }
    let [former, newest] = [Of::Former, Of::Current].map(|of| bench.run_of(of));
    let runs = &bench.shell.store.runs;
    assert!(runs.contains_key(&former) && runs.contains_key(&newest));
    assert_ne!(former, newest);
}

proptest! {
    #[test]
    fn any_inputs_in_any_order_break_no_invariant(ops in prop::collection::vec(op(), 0..120)) {
        let mut bench = Bench::new();
        for op in ops {
            bench.run(op);
        }
        bench.come_to_rest();
    }

    #[test]
    fn many_inputs_in_one_round_write_what_each_would_have_written_alone(
        before in prop::collection::vec(op(), 0..12),
        together in prop::collection::vec(op(), 2..40),
    ) {
        let mut bench = Bench::new();
        bench.run(Op::Invoke(true, OnDisconnect::Detach));
        bench.shell.settle_disk();
        bench.learn();
        bench.run(Op::Opened(Of::Current, Revalidation::Current));
        for op in before {
            bench.run(op);
        }
        // Everything from here on joins the rounds after the one in flight, as long as it may.
        for op in together.into_iter().filter(|op| !matches!(op, Op::Land | Op::Crash(_))) {
            bench.run(op);
        }
        bench.come_to_rest();
    }
}
