//! A model of the shell: it does what the machine's documents ask of one, in virtual time, and
//! judges every state and everything it does by the numbered invariants.

use std::collections::BTreeMap;
use std::time::Duration;

use sessionplane_core::domain::commit::Commit;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::invariants::{self, Trace};
use sessionplane_core::domain::lease::LeaseToken;
use sessionplane_core::domain::lifecycle::{
    Answer, Deletion, Effect, EngineTag, Input, ReplyId, Round, Session, Step, Timer, Unread,
    Waiting, give_up_boundary, interrupt, step,
};
use sessionplane_core::domain::limits::Limits;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::domain::view::SessionView;
use sessionplane_core::ports::fleet_rules;

use super::facts;
use super::rng::Fingerprint;
use super::store::{Cut, Store};

struct Flight {
    number: u64,
    commit: Commit,
    after: Vec<Effect>,
}

/// One session's task.
pub(crate) struct Shell {
    pub(crate) now: Timestamp,
    pub(crate) store: Store,
    /// What was done, in order, since the tests last took it.
    pub(crate) done: Vec<Effect>,
    pub(crate) answers: BTreeMap<ReplyId, Answer>,
    pub(crate) fingerprint: Fingerprint,
    /// Reports of the engine that the shell has not taken yet and does not know.
    pub(crate) channel: usize,
    limits: Limits,
    session: Session,
    round: Round,
    flight: Option<Flight>,
    waiting: Waiting,
    timers: BTreeMap<Timer, (Timestamp, EngineTag)>,
    /// Gets every step's commit on its own: what joining them must be equal to.
    twin: Store,
    trace: Trace,
    last_token: u64,
}

impl Shell {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            now: facts::START,
            store: Store::default(),
            done: Vec::new(),
            answers: BTreeMap::new(),
            fingerprint: Fingerprint::new(),
            channel: 0,
            limits,
            session: Session::unborn(facts::record(), limits),
            round: Round::default(),
            flight: None,
            waiting: Waiting::default(),
            timers: BTreeMap::new(),
            twin: Store::default(),
            trace: Trace::new(&facts::record(), facts::models()),
            last_token: 0,
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// What observers see.
    pub(crate) fn view(&self) -> &SessionView {
        self.trace.view()
    }

    pub(crate) fn in_flight(&self) -> bool {
        self.flight.is_some()
    }

    /// Nothing runs, waits or is in flight.
    pub(crate) fn is_quiet(&self) -> bool {
        self.session.is_free() && self.flight.is_none() && self.waiting.is_empty()
    }

    pub(crate) fn mint(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }

    /// An input arrives: stepped now, or once the commit in flight is durable.
    pub(crate) fn send(&mut self, input: Input) {
        self.send_burst([input]);
    }

    /// Reports of the engine arrive that the shell takes in one go: what they lead to is done only
    /// after the last of them. Anything else comes alone.
    pub(crate) fn send_burst(&mut self, burst: impl IntoIterator<Item = Input>) {
        let burst: Vec<_> = burst.into_iter().collect();
        let (mut rest, mut effects) = (Unread::of(&burst), Vec::new());
        for input in burst {
            rest.take(&input);
            let in_flight = self.flight.is_some();
            if self.session.must_wait(&input, &self.waiting, in_flight) {
                self.waiting.push(input);
            } else {
                self.step(input, rest, &mut effects);
            }
        }
        self.perform(effects);
        self.seal();
    }

    /// The commit in flight becomes durable.
    pub(crate) fn land(&mut self) {
        let Flight {
            number,
            commit,
            after,
        } = self.flight.take().expect("a commit is in flight");
        self.write(&commit);
        self.perform(after);
        let mut effects = Vec::new();
        self.step(
            Input::Committed { round: number },
            Unread::default(),
            &mut effects,
        );
        while let Some(input) = self.waiting.pop(&self.session) {
            self.step(input, Unread::default(), &mut effects);
        }
        self.perform(effects);
        self.seal();
    }

    /// Commits until nothing is in flight. A deletion is not taken.
    pub(crate) fn settle_disk(&mut self) {
        while self.flight.is_some() || self.session.deletion().is_some() {
            if self.flight.is_some() {
                self.land();
            } else {
                self.keep();
            }
        }
    }

    /// The store is asked for the session's end, and does not take it: another session branches off it.
    pub(crate) fn keep(&mut self) {
        assert!(self.flight.is_none(), "what was decided before is durable");
        let commit = self.session.deletion_commit(1, self.now);
        let judged = fleet_rules::judge_deletion(&commit.expect("a deletion"), &self.store);
        judged.expect("but for that a store takes it");
        let reply = self.session.deletion().map(Deletion::reply);
        let error = CallError::refused(Reason::HasChildren, "a session branches off it");
        let answer = Effect::Answer(reply.expect("a deletion"), Answer::Refused(error));
        self.perform(vec![answer]);
        let mut effects = Vec::new();
        self.step(Input::Kept, Unread::default(), &mut effects);
        while let Some(input) = self.waiting.pop(&self.session) {
            self.step(input, Unread::default(), &mut effects);
        }
        self.perform(effects);
        self.seal();
    }

    /// The process dies, or a commit failed: what was in flight may or may not be in the store.
    /// The next start settles what was cut.
    pub(crate) fn crash(&mut self, applied: bool) {
        if let Some(Flight { commit, .. }) = self.flight.take()
            && applied
        {
            self.write(&commit);
        }
        self.waiting = Waiting::default();
        self.timers.clear();
        self.round = Round::default();
        self.store.reopen();
        if let Some(cut) = self.store.cut() {
            let token = LeaseToken(self.mint());
            let commit = match cut {
                Cut::Run(cut) => interrupt(*cut, token, self.now),
                Cut::Boundary(stored) => give_up_boundary(*stored, token, self.now),
            };
            self.write(&commit);
        }
        self.load();
    }

    /// Nobody needs the session now: its state is dropped, and read again at the next use.
    pub(crate) fn doze(&mut self) {
        self.check_quiet();
        self.load();
    }

    fn load(&mut self) {
        let stored = self.store.session.clone();
        self.trace.restarted(stored.as_ref());
        self.twin = self.store.clone();
        self.session = match stored {
            Some(stored) => Session::stored(stored, self.limits),
            None => Session::unborn(facts::record(), self.limits),
        };
    }

    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        self.timers.values().map(|(at, _)| *at).min()
    }

    /// Lets time pass; delays that are over by then are reported at their time.
    pub(crate) fn advance_to(&mut self, to: Timestamp) {
        while let Some(at) = self.next_timer().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            let (timer, tag) = self
                .timers
                .iter()
                .find_map(|(timer, due)| (due.0 == at).then_some((*timer, due.1)))
                .expect("the next timer is one of the timers");
            self.timers.remove(&timer);
            self.send(Input::Timer { tag, timer });
        }
        self.now = self.now.max(to);
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.advance_to(self.now.after(by));
    }

    /// Judges the whole history; nothing may run or wait.
    pub(crate) fn check_quiet(&self) {
        assert!(self.is_quiet(), "something runs or waits");
        assert_eq!(
            self.store, self.twin,
            "joined steps wrote something else than single ones"
        );
        if let Some(stored) = &self.store.session {
            self.trace
                .quiescent(stored)
                .unwrap_or_else(|no| panic!("{no}"));
        }
    }

    /// `burst` counts the reports that came together with this input and are stepped after it.
    fn step(&mut self, input: Input, burst: Unread, effects: &mut Vec<Effect>) {
        self.trace
            .stepping(&input)
            .unwrap_or_else(|no| panic!("{no}"));
        let channel = Unread {
            reports: self.channel,
            ends: 0,
        };
        let unread = self.waiting.unread().and(burst).and(channel);
        let Step {
            live,
            commit,
            after_commit,
        } = step(&mut self.session, input, unread, self.now);
        invariants::check(&self.session).unwrap_or_else(|no| panic!("{no}"));
        if let Some(commit) = &commit {
            self.twin
                .apply(commit)
                .expect("a step's commit is one that a store takes");
        }
        effects.extend(live);
        self.round.join(Step {
            live: Vec::new(),
            commit,
            after_commit,
        });
    }

    fn seal(&mut self) {
        if self.flight.is_some() {
            return;
        }
        if let Some((commit, after)) = self.round.take() {
            let number = self.session.seal_round();
            self.flight = Some(Flight {
                number,
                commit,
                after,
            });
            invariants::check(&self.session).unwrap_or_else(|no| panic!("{no}"));
        } else {
            let effects = self.round.take_effects_without_commit();
            self.perform(effects);
        }
    }

    fn write(&mut self, commit: &Commit) {
        self.fingerprint.add(&format!("{commit:?}"));
        self.store
            .apply(commit)
            .expect("the store takes the commit");
        self.trace
            .committed(commit)
            .unwrap_or_else(|no| panic!("{no}"));
    }

    /// Answers go out after everything else of their batch.
    fn perform(&mut self, effects: Vec<Effect>) {
        let (answers, others): (Vec<_>, Vec<_>) = effects
            .into_iter()
            .partition(|effect| matches!(effect, Effect::Answer(..)));
        for effect in others.into_iter().chain(answers) {
            self.fingerprint.add(&format!("{:?} {effect:?}", self.now));
            self.trace
                .performing(&effect)
                .unwrap_or_else(|no| panic!("{no}"));
            match &effect {
                Effect::Answer(reply, answer) => {
                    self.answers.insert(*reply, answer.clone());
                }
                Effect::StartTimer { tag, timer, after } => {
                    self.timers.insert(*timer, (self.now.after(*after), *tag));
                }
                Effect::CancelTimer(timer) => {
                    self.timers.remove(timer);
                }
                _ => {}
            }
            self.done.push(effect);
        }
    }
}
