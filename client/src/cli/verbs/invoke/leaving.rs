//! How following a run ends before the run does: Ctrl-C, and a server that is gone.

use std::time::Duration;

use sessionplane_core::contract::{CallOptions, DispatchRequest, SessionControl as _};
use sessionplane_core::domain::command::{Command, DispatchAnswer};
use sessionplane_core::domain::error::{CallError, Outcome};
use sessionplane_core::domain::ids::{RunId, SessionRef};

use super::{Following, TICK};
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, Effect};
use crate::cli::program::PROGRAM;
use crate::cli::screen::Piece;
use crate::clock::instant;
use crate::outcome::may_resume;

/// After so long without an event a person is told what is being waited for.
const QUIET: Duration = Duration::from_secs(2);

impl Following<'_> {
    /// The first Ctrl-C stops the run, the second leaves it. A server that cannot be reached
    /// cannot be asked to stop anything: the first one leaves.
    pub(super) fn interrupted(&mut self) -> Result<(), Stop> {
        self.pressed += 1;
        let Some(run) = self.run else {
            return Err(hint::interrupted(Effect::Writes, self.context));
        };
        if self.outage.is_on() {
            return Err(self.left_unreachable(run));
        }
        if self.pressed > 1 {
            let word = hint::word(&self.session);
            return Err(Stop::failed(
                Exit::Interrupted,
                format!("left before run {run} settled\n  watch it: {PROGRAM} attach {word}"),
            ));
        }
        self.screen
            .aside(&format!("stopping run {run} (Ctrl-C again leaves at once)"))?;
        let client = self.context.client.clone();
        let request = DispatchRequest {
            session: self
                .accepted
                .map_or_else(|| self.session.clone(), SessionRef::Id),
            command: Command::Abort,
            expected_run: Some(run),
        };
        self.abort = Some(Box::pin(async move {
            client.dispatch(request, CallOptions::default()).await
        }));
        Ok(())
    }

    /// What becomes of the run is told by its terminal; only a no is worth a line.
    pub(super) fn abort_answered(
        &mut self,
        answer: Result<DispatchAnswer, CallError>,
    ) -> Result<(), Stop> {
        match (answer, self.run) {
            (Ok(DispatchAnswer::Accepted(_)), _) => {}
            (Ok(DispatchAnswer::Rejected(rejection)), _) => {
                self.screen
                    .aside(&format!("not stopped: {}", rejection.message))?;
            }
            // Whoever pressed Ctrl-C wanted an end, and there is no other one to be had.
            (Err(_), Some(run)) if self.outage.is_on() => {
                return Err(self.left_unreachable(run));
            }
            (Err(error), _) if error.outcome == Outcome::Refused => {
                self.screen.aside(&format!("not stopped: {error}"))?;
            }
            (Err(error), _) => self
                .screen
                .aside(&format!("whether it is being stopped is unknown: {error}"))?,
        }
        Ok(())
    }

    fn left_unreachable(&self, run: RunId) -> Stop {
        Stop::failed(Exit::Unknown, hint::unreachable_run(run, self.context))
    }

    /// Tells a person what is being waited for.
    pub(super) fn still_waiting(&mut self) -> Result<(), Stop> {
        let now = instant();
        let target = self.context.client.target();
        let quiet = now - self.last;
        if quiet >= TICK && self.screen.is_behind() {
            // Who types there meanwhile begins on a line of his own.
            self.screen.put(&Piece::Break)?;
        }
        let words = match (self.outage.words(target, now), self.run) {
            _ if self.context.globals.json => return Ok(()),
            (Some(words), _) => words,
            _ if quiet < QUIET => return Ok(()),
            (None, Some(run)) => {
                format!("run {run} works, nothing new for {} s", quiet.as_secs())
            }
            (None, None) => format!("waiting for {target}… {} s", quiet.as_secs()),
        };
        Ok(self.screen.status(&words)?)
    }

    /// The stream is gone for good.
    pub(super) fn lost(&mut self, error: CallError) -> Stop {
        let unreachable = may_resume(&error);
        let ended = error.outcome == Outcome::StreamEnded || self.run.is_some();
        let stop = self
            .context
            .stop(error, Some(&self.session), Effect::Writes);
        match hint::with_creation(stop, &self.session) {
            Stop::Failed { error, words, .. } if ended => {
                let request_id = self.context.request_id.as_str();
                let next = match self.run.filter(|_| unreachable) {
                    Some(run) => hint::unreachable_run(run, self.context),
                    None => hint::lost_run(&self.session, self.cancels, request_id),
                };
                let first = words.lines().next().unwrap_or_default();
                Stop::Failed {
                    exit: Exit::Unknown,
                    words: format!("{first}\n  {next}"),
                    error,
                }
            }
            stop => stop,
        }
    }
}
