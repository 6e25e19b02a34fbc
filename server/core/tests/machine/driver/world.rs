//! The simulation: one session, callers, an engine and a disk, all from one seed.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::contract::OnDisconnect;
use sessionplane_core::domain::command::{Command, CommandKind};
use sessionplane_core::domain::compaction::CompactionOutcome;
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::{EntryId, InteractionId, RunId};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{Answer, DetachCause, Effect, Input, ReplyId, StreamId};
use sessionplane_core::domain::time::Timestamp;

use super::engine::EngineModel;
use super::facts;
use super::questions::{fitting, unfitting};
use super::rng::Rng;
use super::shell::Shell;

/// What a seed did, so that a simulation can tell that it reached what it is for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    pub(crate) crashes: u64,
    pub(crate) unknown_commits: u64,
    pub(crate) busy: u64,
    pub(crate) admitted: u64,
    /// Compactions outside of runs that completed, failed, were aborted, and that a crash cut.
    pub(crate) compactions: [u64; 4],
    /// Compactions within runs that completed, and that did not.
    pub(crate) in_runs: [u64; 2],
    /// How often the leaf or the settings were changed.
    pub(crate) changed: u64,
}

pub(crate) struct World {
    pub(crate) shell: Shell,
    pub(crate) tally: Tally,
    rng: Rng,
    engine: EngineModel,
    lands_at: Option<Timestamp>,
    /// Streams that callers listen on.
    streams: Vec<(RunId, StreamId)>,
    calls: u64,
    runs: Vec<RunId>,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Disk,
    Timer,
    Engine,
    Caller,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let hostile = rng.one_in(2);
        Self {
            shell: Shell::new(facts::limits()),
            tally: Tally::default(),
            engine: EngineModel::new(hostile),
            rng,
            lands_at: None,
            streams: Vec::new(),
            calls: 0,
            runs: Vec::new(),
        }
    }

    /// Lives through `actions` of callers, then lets everything come to rest and judges it.
    pub(crate) fn live(&mut self, actions: u32) {
        for _ in 0..actions {
            let pause = if self.rng.one_in(10) { 8_000 } else { 60 };
            let caller_at = self
                .shell
                .now
                .after(Duration::from_millis(self.rng.below(pause)));
            while self.happens_before(Some(caller_at)) != Next::Caller {}
            self.shell.advance_to(caller_at);
            self.caller();
            self.after();
        }
        self.come_to_rest();
    }

    /// An engine may never stop by itself: in the end somebody aborts what still runs.
    fn come_to_rest(&mut self) {
        let patience = self.shell.now.after(Duration::from_secs(100));
        while !self.shell.is_quiet() {
            if self.happens_before(None) == Next::Caller || self.shell.now > patience {
                assert!(
                    !self.shell.session().is_free(),
                    "nothing will ever happen again"
                );
                self.dispatch(CommandKind::Abort, None);
                self.after();
            }
        }
        self.shell.check_quiet();
    }

    /// One thing that is due before the caller's next act, or `Caller` if nothing is.
    fn happens_before(&mut self, caller_at: Option<Timestamp>) -> Next {
        let candidates = [
            (self.lands_at, Next::Disk),
            (self.shell.next_timer(), Next::Timer),
            (self.engine.next_at(), Next::Engine),
            (caller_at, Next::Caller),
        ];
        let next = candidates
            .into_iter()
            .filter_map(|(at, next)| Some((at?, next)))
            .min_by_key(|(at, _)| *at);
        let Some((at, next)) = next else {
            return Next::Caller;
        };
        match next {
            Next::Caller => return next,
            Next::Timer => self.shell.advance_to(at),
            Next::Disk => {
                self.shell.advance_to(at);
                self.disk();
            }
            Next::Engine => {
                self.shell.advance_to(at);
                let mut burst = Vec::new();
                while let Some(input) = self.engine.speak(self.shell.now, &mut self.rng) {
                    burst.push(input);
                    if self.rng.one_in(2) {
                        break;
                    }
                }
                self.shell.send_burst(burst);
            }
        }
        self.after();
        next
    }

    fn disk(&mut self) {
        self.lands_at = None;
        if self.rng.one_in(60) {
            self.tally.unknown_commits += 1;
            self.crash();
        } else if self.shell.in_flight() {
            self.shell.land();
        }
    }

    fn crash(&mut self) {
        let applied = self.rng.one_in(2);
        let compacting = self.shell.session().compaction().is_some();
        self.tally.compactions[3] += u64::from(compacting);
        self.shell.crash(applied);
        self.shell.done.clear();
        self.lands_at = None;
        self.streams.clear();
        self.engine = EngineModel::new(self.rng.one_in(2));
        self.tally.crashes += 1;
    }

    /// Passes on what the shell did, and plans the disk's next answer. Now and then the process
    /// dies right here.
    fn after(&mut self) {
        for effect in std::mem::take(&mut self.shell.done) {
            self.count(&effect);
            self.engine.take(&effect, self.shell.now, &mut self.rng);
        }
        if self.rng.one_in(400) {
            return self.crash();
        }
        if !self.shell.in_flight() {
            self.lands_at = None;
        } else if self.lands_at.is_none() {
            let delay = Duration::from_millis(self.rng.below(30));
            self.lands_at = Some(self.shell.now.after(delay));
        }
    }

    fn count(&mut self, effect: &Effect) {
        let tally = &mut self.tally;
        match effect {
            Effect::Answer(_, answer) => {
                tally.admitted += u64::from(matches!(answer, Answer::Admitted { .. }));
                tally.busy += u64::from(matches!(answer, Answer::Busy { .. }));
            }
            Effect::Publish(event) => match (&event.body, event.run) {
                (EventBody::StateChanged { .. }, _) => tally.changed += 1,
                (EventBody::CompactionFinished { outcome }, None) => {
                    tally.compactions[match outcome {
                        CompactionOutcome::Completed(_) => 0,
                        CompactionOutcome::Failed(_) => 1,
                        CompactionOutcome::Aborted => 2,
                    }] += 1;
                }
                (EventBody::CompactionFinished { outcome }, Some(_)) => {
                    let completed = matches!(outcome, CompactionOutcome::Completed(_));
                    tally.in_runs[usize::from(!completed)] += 1;
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn caller(&mut self) {
        if self.shell.view().open_interactions().next().is_some() && self.rng.one_in(2) {
            return self.respond();
        }
        match self.rng.below(17) {
            12 => return self.compact(),
            13 => return self.set_model(),
            14 => return self.set_thinking(),
            15 => return self.navigate(),
            16 => return self.respond(),
            _ => {}
        }
        match self.rng.below(12) {
            0..=2 => self.invoke(),
            3..=5 => self.dispatch_some(CommandKind::Steer),
            6..=8 => self.dispatch_some(CommandKind::FollowUp),
            9 => self.dispatch_some(CommandKind::Abort),
            10 => self.attach(),
            _ if self.rng.one_in(3) && self.shell.is_quiet() => self.shell.doze(),
            _ => self.detach(),
        }
    }

    fn next_call(&mut self) -> (u64, ReplyId) {
        self.calls += 1;
        (self.calls, ReplyId(self.calls))
    }

    fn on_disconnect(&mut self) -> OnDisconnect {
        if self.rng.one_in(2) {
            OnDisconnect::Cancel
        } else {
            OnDisconnect::Detach
        }
    }

    fn invoke(&mut self) {
        let (call, reply) = self.next_call();
        let (token, keyed) = (self.shell.mint(), self.rng.one_in(2));
        let on_disconnect = self.on_disconnect();
        let mut facts = facts::invoke(call, token, keyed, on_disconnect);
        if self.rng.one_in(8) {
            Arc::make_mut(&mut facts.agent).capabilities.steering = None;
        }
        if self.rng.one_in(8) {
            Arc::make_mut(&mut facts.agent).capabilities.follow_up = false;
        }
        if self.rng.one_in(8) {
            let agent = Arc::make_mut(&mut facts.agent);
            agent.capabilities.interactions.clear();
        }
        self.streams.push((facts.run, facts.stream));
        self.runs.push(facts.run);
        let facts = Box::new(facts);
        self.shell.send(Input::Invoke { reply, facts });
    }

    fn dispatch_some(&mut self, kind: CommandKind) {
        let expected = match self.rng.below(4) {
            0 => self.rng.pick(&self.runs).copied(),
            1 => self.runs.last().copied(),
            _ => None,
        };
        self.dispatch(kind, expected);
    }

    fn dispatch(&mut self, kind: CommandKind, expected: Option<RunId>) {
        let (call, reply) = self.next_call();
        let keyed = self.rng.one_in(2);
        let facts = Box::new(facts::dispatch(call, kind, keyed, expected));
        self.shell.send(Input::Dispatch { reply, facts });
    }

    /// A command that writes outside of runs gets a token as the session's task would give it one.
    fn command(&mut self, command: Command) {
        let (call, reply) = self.next_call();
        let keyed = self.rng.one_in(2);
        let mut facts = facts::dispatch(call, command.kind(), keyed, None);
        if command.kind().is_boundary() && self.shell.session().is_free() {
            facts.token = Some(LeaseToken(self.shell.mint()));
        }
        if let Command::Navigate { entry } = &command {
            facts.target = self.shell.store.target(*entry);
        }
        facts.command = command;
        let facts = Box::new(facts);
        self.shell.send(Input::Dispatch { reply, facts });
    }

    fn compact(&mut self) {
        let instructions = self.rng.one_in(2).then(|| Arc::from("keep the names"));
        self.command(Command::Compact { instructions });
    }

    fn set_model(&mut self) {
        let model = match self.rng.below(5) {
            0 => None,
            1 => Some("swift"),
            2 => Some("retired"),
            _ => Some("deep"),
        };
        let model = model.map(str::to_owned);
        self.command(Command::SetModel { model });
    }

    fn set_thinking(&mut self) {
        let level = match self.rng.below(5) {
            0 => None,
            1 => Some("low"),
            2 => Some("extreme"),
            _ => Some("high"),
        };
        let level = level.map(str::to_owned);
        self.command(Command::SetThinking { level });
    }

    /// To any entry, the newest included, or to one that is not there.
    fn navigate(&mut self) {
        let known = self.shell.store.entries.len() as u64;
        let entry = EntryId {
            session: facts::record().id,
            seq: self.rng.below(known + 2),
        };
        self.command(Command::Navigate { entry });
    }

    /// Answers what is open, or was, or never will be; seldom twice, and now and then wrongly.
    fn respond(&mut self) {
        let open: Vec<_> = self.shell.view().open_interactions().collect();
        let asked: Vec<_> = self.shell.store.interactions.values().collect();
        let one = if self.rng.one_in(5) {
            self.rng.pick(&asked).copied()
        } else {
            self.rng.pick(&open).copied()
        };
        let (interaction, right) = match one {
            Some(asked) => (asked.id, fitting(&asked.question)),
            None => {
                let run = self.runs.last().copied().unwrap_or(facts::run_id(0));
                (InteractionId { run, ordinal: 1 }, unfitting())
            }
        };
        for _ in 0..=self.rng.below(2) {
            let answer = if self.rng.one_in(5) {
                unfitting()
            } else {
                right.clone()
            };
            self.command(Command::Respond {
                interaction,
                answer,
            });
        }
    }

    fn attach(&mut self) {
        let Some(run) = self.rng.pick(&self.runs).copied() else {
            return;
        };
        let (call, reply) = self.next_call();
        let stream = StreamId(call);
        let on_disconnect = if self.rng.one_in(4) {
            OnDisconnect::Detach
        } else {
            OnDisconnect::Cancel
        };
        self.streams.push((run, stream));
        self.shell.send(Input::Attach {
            reply,
            run,
            stream,
            on_disconnect,
        });
    }

    fn detach(&mut self) {
        let Some((run, stream)) = self.rng.pick(&self.streams).copied() else {
            return;
        };
        self.streams.retain(|attached| *attached != (run, stream));
        let cause = if self.rng.one_in(3) {
            DetachCause::ServerEnded
        } else {
            DetachCause::CallerGone
        };
        self.shell.send(Input::Detach { run, stream, cause });
    }
}
