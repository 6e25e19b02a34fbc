//! How inputs become rounds: what may be stepped is stepped, the rest waits, and one commit is in flight.

use sessionplane_core::domain::lease::LeaseClause;
use sessionplane_core::domain::lifecycle::{self, Effect, Input, Step, Unread};
use sessionplane_core::ports::repository::CommitError;

use super::super::engine_host::EngineLink;
use super::super::session_check;
use super::{End, InFlight, SessionTask};
use crate::failpoint;

impl SessionTask {
    /// Steps what may be stepped now; the rest waits in order.
    pub(super) fn offer(&mut self, inputs: impl IntoIterator<Item = Input>) {
        let inputs: Vec<_> = inputs.into_iter().collect();
        let mut effects = Vec::with_capacity(inputs.len());
        let mut rest = Unread::of(&inputs);
        for input in inputs {
            rest.take(&input);
            let in_flight = self.in_flight.is_some();
            if self.session.must_wait(&input, &self.waiting, in_flight) {
                self.waiting.push(input);
            } else {
                self.step(input, rest, &mut effects);
            }
        }
        self.perform(effects);
        self.start_round();
    }

    /// `burst` counts the reports that came together with this input and are stepped after it.
    pub(super) fn step(&mut self, mut input: Input, burst: Unread, effects: &mut Vec<Effect>) {
        match &mut input {
            Input::Invoke { facts, .. } => facts.paused = self.channel.is_paused(),
            Input::Dispatch { facts, .. } => facts.paused = self.channel.is_paused(),
            _ => {}
        }
        // What the engine says there is not looked at before it is taken.
        let channel = Unread {
            reports: self.engine.as_ref().map_or(0, EngineLink::unread),
            ends: 0,
        };
        let unread = self.waiting.unread().and(burst).and(channel);
        let now = self.context.ports.clock.now();
        let Step {
            live,
            commit,
            after_commit,
        } = lifecycle::step(&mut self.session, input, unread, now);
        session_check::judge(&self.session);
        effects.extend(live);
        // Most steps of a run make nothing durable.
        if commit.is_some() || !after_commit.is_empty() {
            self.round.join(Step {
                live: Vec::new(),
                commit,
                after_commit,
            });
        }
    }

    pub(super) fn start_round(&mut self) {
        if self.in_flight.is_some() {
            return;
        }
        let waits_for_nothing = self.round.take_effects_without_commit();
        self.perform(waits_for_nothing);
        let Some((commit, after)) = self.round.take() else {
            return self.start_deletion();
        };
        failpoint::reach("session::before-commit");
        if matches!(commit.lease, LeaseClause::Release(_)) {
            failpoint::reach("session::before-settle");
        }
        let round = self.session.seal_round();
        session_check::judge(&self.session);
        let repository = self.context.ports.repository.clone();
        let commit = Box::pin(async move { repository.commit(commit).await });
        self.in_flight = Some(InFlight {
            round,
            after,
            commit,
        });
    }

    pub(super) fn committed(&mut self, result: Result<(), CommitError>) -> Result<(), End> {
        let Some(InFlight { round, after, .. }) = self.in_flight.take() else {
            return Ok(());
        };
        if let Err(error) = result {
            return Err(self.fail(&error));
        }
        failpoint::reach("session::after-commit");
        self.perform(after);
        self.start_change();
        if self.context.stopping.is_cancelled() && !self.chores.write() {
            // What waits would start another round, and while something always does the task would
            // never see the stop. Nothing of it is durable; its callers hear that they do not know.
            return Err(End::Stopping);
        }
        let mut effects = Vec::new();
        self.step(Input::Committed { round }, Unread::default(), &mut effects);
        self.go_on(effects);
        Ok(())
    }

    /// Steps what waited.
    pub(super) fn go_on(&mut self, mut effects: Vec<Effect>) {
        while let Some(input) = self.waiting.pop(&self.session) {
            self.step(input, Unread::default(), &mut effects);
        }
        self.perform(effects);
        self.start_round();
    }
}
