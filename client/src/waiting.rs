//! Waiting for the end of a run: one long call after another, across lost connections and restarts
//! of the server. What it must not do: take a call's time-out for the run's end.

use std::time::Duration;

use sessionplane::v1;
use sessionplane_core::contract::CallOptions;
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::run::RunRecord;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::clock::{bounded, instant};
use crate::connection::Client;
use crate::convert;
use crate::opening::{answered, readable};
use crate::outcome::may_resume;
use crate::rejoin::REJOIN_LIMIT;
use crate::retry::{Effect, Patience, call};

/// Longest time of one call, where the client's own deadline is not shorter: proxies cut calls that
/// are silent for much longer.
const POLL: Duration = Duration::from_secs(30);

/// How a wait goes.
#[derive(Default)]
struct Wait {
    /// A server was reached.
    known: bool,
    /// Failures in a row.
    failures: u32,
    /// Since when no server has been heard of.
    lost_at: Option<Instant>,
}

impl Client {
    /// The record of a run once it has settled. Without a deadline it waits as long as the run
    /// takes; a server that cannot be reached is given up after two minutes, or at once if it was
    /// never reached.
    pub(crate) async fn wait_until_settled(
        &self,
        run: RunId,
        deadline: Option<Duration>,
    ) -> Result<RunRecord, CallError> {
        let waiting = self.polled(run);
        let Some(deadline) = deadline.map(bounded) else {
            return waiting.await;
        };
        let settled = tokio::time::timeout(deadline, waiting).await;
        settled.unwrap_or_else(|_| {
            let message = format!("run {run} has not settled within {deadline:?}; it goes on");
            Err(CallError::unknown(Reason::DeadlineExceeded, message))
        })
    }

    async fn polled(&self, run: RunId) -> Result<RunRecord, CallError> {
        let mut wait = Wait::default();
        loop {
            let error = match self.poll(run).await {
                Ok(record) => return Ok(record),
                Err(error) => error,
            };
            if let Some(delay) = wait.judge(error, self.backoff())? {
                tokio::time::sleep(delay).await;
            }
        }
    }

    /// One long call.
    async fn poll(&self, run: RunId) -> Result<RunRecord, CallError> {
        let own = self.patience(&CallOptions::default(), Effect::Reads);
        let deadline = own.deadline.min(POLL);
        let patience = Patience {
            deadline,
            // The waits between attempts are ours: each attempt is made by itself.
            backoff: Backoff {
                attempts: 1,
                ..Backoff::STREAMS
            },
            effect: Effect::Reads,
        };
        let options = CallOptions {
            request_id: None,
            deadline: Some(deadline),
        };
        let wire = v1::WaitRunRequest {
            run_id: run.to_string(),
        };
        let answer = call(patience, || {
            let (mut stub, request) = (self.invoke_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.wait_run(request)).await }
        });
        readable(convert::run::waited(answer.await?))
    }
}

impl Wait {
    /// How long to wait before the next call, none for at once. `first` says how patient to be with
    /// a server that was never reached, so that a wrong address is told soon.
    ///
    /// # Errors
    /// The error, where another call would not cure it.
    fn judge(&mut self, error: CallError, first: Backoff) -> Result<Option<Duration>, CallError> {
        if error.reason == Reason::DeadlineExceeded {
            *self = Self {
                known: true,
                ..Self::default()
            };
            return Ok(None);
        }
        let connected = error.reason != Reason::Transport || error.outcome != Outcome::Refused;
        self.known |= connected;
        let backoff = if self.known { Backoff::STREAMS } else { first };
        let now = instant();
        let lost_at = *self.lost_at.get_or_insert(now);
        self.failures = self.failures.saturating_add(1);
        let delay = backoff.delay(self.failures, error.retry_after);
        let in_time = |delay: &Duration| now - lost_at + *delay < REJOIN_LIMIT;
        match delay.filter(in_time) {
            Some(delay) if may_resume(&error) => Ok(Some(delay)),
            _ => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transport(outcome: Outcome) -> CallError {
        let mut error = CallError::unknown(Reason::Transport, "broken");
        error.outcome = outcome;
        error
    }

    #[test]
    fn a_server_that_was_never_reached_is_told_soon_and_one_that_was_is_waited_for() {
        let mut never = Wait::default();
        let told = (0..9).find(|_| {
            let judged = never.judge(transport(Outcome::Refused), Backoff::CALLS);
            judged.is_err()
        });
        assert_eq!(told, Some(3), "after as many attempts as a call has");
        let mut reached = Wait::default();
        assert!(
            reached
                .judge(transport(Outcome::Unknown), Backoff::CALLS)
                .is_ok()
        );
        for _ in 0..20 {
            let judged = reached.judge(transport(Outcome::Refused), Backoff::CALLS);
            assert!(matches!(judged, Ok(Some(_))), "{judged:?}");
        }
    }

    #[test]
    fn a_time_out_of_a_call_is_no_failure_and_a_refusal_for_good_is() {
        let mut wait = Wait::default();
        let late = CallError::unknown(Reason::DeadlineExceeded, "late");
        for _ in 0..1000 {
            assert_eq!(wait.judge(late.clone(), Backoff::CALLS), Ok(None));
        }
        let unknown = CallError::refused(Reason::NoSuchRun, "no such run");
        assert!(wait.judge(unknown, Backoff::CALLS).is_err());
    }
}
