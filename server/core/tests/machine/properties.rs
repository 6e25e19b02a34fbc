//! Random inputs in any order, with any tag: the shell of the tests checks every state and every
//! effect on the way, and that joined steps write what single ones would.

use std::time::Duration;

use proptest::prelude::*;
use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::command::CommandKind;
use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::InputId;
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{
    DetachCause, Effect, EngineTag, Input, ReplyId, StreamId, Timer,
};
use sessionplane_core::domain::run::Failure;
use sessionplane_core::domain::usage::Usage;
use sessionplane_core::ports::engine::{EngineEvent, Revalidation, StopReason};

use crate::driver::facts;
use crate::driver::shell::Shell;

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

/// What the engine says; names come from a small set, so that they meet.
#[derive(Clone, Debug)]
enum Said {
    Turn(bool),
    Started(u8),
    Delta(u8, OutputChannel, String),
    Finished(u8, Option<String>, Option<u64>),
    ToolStarted(u8),
    Progress(u8),
    ToolFinished(u8, bool),
    Shown(u32),
    TakenBack(u32),
    Retry,
    /// How, and of which prompt.
    Stopped(u8, u32),
}

impl Said {
    fn event(self, tag: EngineTag) -> EngineEvent {
        let input = |ordinal| InputId {
            run: tag.run,
            ordinal,
        };
        let (message, call) = (|n: u8| format!("m{n}"), |n: u8| format!("c{n}"));
        match self {
            Self::Turn(true) => EngineEvent::TurnStarted,
            Self::Turn(false) => EngineEvent::TurnFinished,
            Self::Started(n) => EngineEvent::MessageStarted {
                message: message(n),
            },
            Self::Delta(n, channel, text) => EngineEvent::MessageDelta {
                message: message(n),
                channel,
                text,
            },
            Self::Finished(n, text, output_tokens) => EngineEvent::MessageFinished {
                message: message(n),
                text,
                usage: Usage {
                    output_tokens,
                    ..Usage::default()
                },
            },
            Self::ToolStarted(n) => EngineEvent::ToolStarted {
                call: call(n),
                name: "shell".to_owned(),
                input_json: "{}".to_owned(),
            },
            Self::Progress(n) => EngineEvent::ToolProgress {
                call: call(n),
                output: "so far".to_owned(),
            },
            Self::ToolFinished(n, failed) => EngineEvent::ToolFinished {
                call: call(n),
                output: "done".to_owned(),
                failed,
            },
            Self::Shown(ordinal) => EngineEvent::InputShown {
                input: input(ordinal),
            },
            Self::TakenBack(ordinal) => EngineEvent::InputTakenBack {
                input: input(ordinal),
            },
            Self::Retry => EngineEvent::RetryScheduled {
                attempt: 1,
                max_attempts: 0,
                delay: Duration::from_secs(1),
                reason: "overloaded".to_owned(),
            },
            Self::Stopped(how, prompt) => EngineEvent::Stopped {
                prompt,
                reason: stop_reason(how),
            },
        }
    }
}

fn stop_reason(how: u8) -> StopReason {
    match how {
        0 => StopReason::Aborted,
        1 => StopReason::Failed(Failure {
            code: String::new(),
            details: "no".to_owned(),
            retryable: false,
        }),
        _ => StopReason::Completed,
    }
}

fn of() -> impl Strategy<Value = Of> {
    prop_oneof![
        12 => Just(Of::Current),
        1 => Just(Of::Former),
        1 => Just(Of::OtherToken),
        1 => Just(Of::OtherGeneration),
    ]
}

fn said() -> impl Strategy<Value = Said> {
    let channel = prop_oneof![Just(OutputChannel::Text), Just(OutputChannel::Thinking)];
    let prompt = prop_oneof![6 => Just(1_u32), 2 => 2_u32..4, 1 => 0_u32..9];
    let text = prop_oneof![9 => "\\PC{0,8}", 1 => Just("é".repeat(20_000))];
    prop_oneof![
        1 => any::<bool>().prop_map(Said::Turn),
        1 => (0_u8..3).prop_map(Said::Started),
        1 => (0_u8..3, channel, text).prop_map(|(n, channel, text)| Said::Delta(n, channel, text)),
        1 => (0_u8..3, prop::option::of("\\PC{0,8}"), prop::option::of(0_u64..100))
            .prop_map(|(n, text, tokens)| Said::Finished(n, text, tokens)),
        1 => (0_u8..3).prop_map(Said::ToolStarted),
        3 => (0_u8..3).prop_map(Said::Progress),
        1 => (0_u8..3, any::<bool>()).prop_map(|(n, failed)| Said::ToolFinished(n, failed)),
        2 => (1_u32..6).prop_map(Said::Shown),
        1 => (1_u32..6).prop_map(Said::TakenBack),
        1 => Just(Said::Retry),
        2 => (0_u8..6, prompt).prop_map(|(how, prompt)| Said::Stopped(how, prompt)),
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
    ];
    prop_oneof![
        4 => (any::<bool>(), on_disconnect()).prop_map(|(keyed, on)| Op::Invoke(keyed, on)),
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

/// Executes operations; knows the newest run's tag.
struct Bench {
    shell: Shell,
    calls: u64,
    tag: EngineTag,
    /// Of the run before.
    former: EngineTag,
}

impl Bench {
    fn new() -> Self {
        let tag = EngineTag {
            run: facts::run_id(0),
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
                let facts = facts::invoke(self.calls, self.shell.mint(), keyed, on);
                if self.shell.session().run().is_none() && !self.shell.in_flight() {
                    self.begins(EngineTag {
                        run: facts.run,
                        token: facts.token,
                        generation: 1,
                    });
                }
                let facts = Box::new(facts);
                Input::Invoke { reply, facts }
            }
            Op::Dispatch(kind, expected) => {
                let expected = expected.map(|of| self.tag(of).run);
                let facts = Box::new(facts::dispatch(self.calls, kind, true, expected));
                Input::Dispatch { reply, facts }
            }
            Op::Attach(of, stream, on_disconnect) => Input::Attach {
                reply,
                run: self.tag(of).run,
                stream: StreamId(stream),
                on_disconnect,
            },
            Op::Detach(of, stream, cause) => Input::Detach {
                run: self.tag(of).run,
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
                Input::Engine { tag, event }
            }
            Op::Burst(said, gone) => return self.burst(said, gone),
            Op::Timer(of, timer) => Input::Timer {
                tag: self.tag(of),
                timer,
            },
            Op::Land if self.shell.in_flight() => return self.shell.land(),
            Op::Land => return,
            Op::Crash(applied) => return self.shell.crash(applied),
            Op::Advance(millis) => return self.shell.advance(Duration::from_millis(millis)),
        };
        self.shell.send(input);
        self.learn();
    }

    fn begins(&mut self, tag: EngineTag) {
        if tag.run != self.tag.run {
            self.former = self.tag;
            self.tag = tag;
        }
    }

    fn burst(&mut self, said: Vec<Said>, gone: bool) {
        let tag = self.tag;
        let reports = said.into_iter().map(|said| {
            let event = said.event(tag);
            Input::Engine { tag, event }
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
    let [former, newest] = [Of::Former, Of::Current].map(|of| bench.tag(of).run);
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
