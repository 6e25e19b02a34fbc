//! Waiting for the end of a run: one long call after another, across lost connections and restarts
//! of the server. What it must not do: take a call's time-out for the run's end.

use std::future::Future;
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
/// The shortest time from one to the next.
const LEAST: Duration = Duration::from_secs(1);

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
    /// takes; a server that cannot be reached or does not answer is given up after two minutes, or
    /// at once if it was never reached.
    pub(crate) async fn wait_until_settled(
        &self,
        run: RunId,
        deadline: Option<Duration>,
    ) -> Result<RunRecord, CallError> {
        let waiting = persist(|| self.poll(run), || self.knock(run), self.backoff());
        let Some(deadline) = deadline.map(bounded) else {
            return waiting.await;
        };
        let settled = tokio::time::timeout(deadline, waiting).await;
        settled.unwrap_or_else(|_| {
            let message = format!("run {run} has not settled within {deadline:?}; it goes on");
            Err(CallError::unknown(Reason::DeadlineExceeded, message))
        })
    }

    /// One long call. That its time is up says nothing of the server: the timer of this side is as
    /// fast as the other's, and a server that hangs is silent too.
    async fn poll(&self, run: RunId) -> Result<RunRecord, CallError> {
        let (patience, options) = self.single();
        let wire = v1::WaitRunRequest {
            run_id: run.to_string(),
        };
        let answer = call(patience, || {
            let (mut stub, request) = (self.invoke_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.wait_run(request)).await }
        });
        readable(convert::run::waited(answer.await?))
    }

    /// Whether somebody still answers, asked with what a server answers at once. How the run is
    /// doing is for the next long call to tell.
    async fn knock(&self, run: RunId) -> Result<(), CallError> {
        let (patience, options) = self.single();
        let wire = v1::GetRunRequest {
            run_id: run.to_string(),
        };
        let answer = call(patience, || {
            let (mut stub, request) = (self.invoke_stub(), self.timed(wire.clone(), &options));
            async move { answered(stub.get_run(request)).await }
        });
        answer.await.map(|_| ())
    }

    /// One attempt: the waits between attempts are ours.
    fn single(&self) -> (Patience, CallOptions) {
        let own = self.patience(&CallOptions::default(), Effect::Reads);
        let deadline = own.deadline.min(POLL);
        let patience = Patience {
            deadline,
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
        (patience, options)
    }
}

/// Polls until there is an answer. When a poll's time is up, a knock tells whether anybody is there.
async fn persist<T, P, K>(
    poll: impl Fn() -> P,
    knock: impl Fn() -> K,
    first: Backoff,
) -> Result<T, CallError>
where
    P: Future<Output = Result<T, CallError>>,
    K: Future<Output = Result<(), CallError>>,
{
    let mut wait = Wait::default();
    loop {
        let begun = instant();
        let mut error = match poll().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if error.reason == Reason::DeadlineExceeded {
            error = match knock().await {
                Ok(()) => {
                    wait.heard();
                    // Something between us may end calls much earlier than we do.
                    tokio::time::sleep_until(begun + LEAST).await;
                    continue;
                }
                Err(silent) => silent,
            };
            wait.lost(begun);
        }
        let delay = wait.judge(error, first)?;
        tokio::time::sleep(delay).await;
    }
}

impl Wait {
    /// A server has answered.
    fn heard(&mut self) {
        *self = Self {
            known: true,
            ..Self::default()
        };
    }

    /// No server has been heard of since then, or since an earlier time.
    fn lost(&mut self, since: Instant) {
        self.lost_at.get_or_insert(since);
    }

    /// How long to wait before the next call. `first` says how patient to be with a server that was
    /// never reached, so that a wrong address is told soon.
    ///
    /// # Errors
    /// The error, where another call would not cure it, or patience is over.
    fn judge(&mut self, error: CallError, first: Backoff) -> Result<Duration, CallError> {
        let connected = error.reason != Reason::Transport || error.outcome != Outcome::Refused;
        self.known |= connected;
        let backoff = if self.known { Backoff::STREAMS } else { first };
        let now = instant();
        let lost_at = *self.lost_at.get_or_insert(now);
        self.failures = self.failures.saturating_add(1);
        let delay = backoff.delay(self.failures, error.retry_after);
        let in_time = |delay: &Duration| now - lost_at + *delay < REJOIN_LIMIT;
        match delay.filter(in_time) {
            Some(delay) if may_resume(&error) => Ok(delay),
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
            assert!(judged.is_ok(), "{judged:?}");
        }
    }

    /// A call that is never answered.
    async fn silence<T>() -> Result<T, CallError> {
        tokio::time::sleep(POLL).await;
        Err(CallError::unknown(Reason::DeadlineExceeded, "no answer"))
    }

    #[tokio::test(start_paused = true)]
    async fn c16_a_server_that_takes_calls_and_answers_none_is_given_up_after_two_minutes() {
        let begun = instant();
        let wait = persist(silence::<()>, silence, Backoff::CALLS);
        let hour = Duration::from_secs(3600);
        let given_up = tokio::time::timeout(hour, wait).await;
        let error = given_up.unwrap().unwrap_err();
        assert_eq!(error.reason, Reason::DeadlineExceeded);
        let took = instant() - begun;
        assert!(took <= REJOIN_LIMIT + POLL, "{took:?}");
        assert!(took + POLL >= REJOIN_LIMIT, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn c16_a_server_that_answers_is_waited_for_as_long_as_the_run_takes() {
        let there = || std::future::ready(Ok(()));
        let wait = persist(silence::<()>, there, Backoff::CALLS);
        let day = Duration::from_secs(24 * 3600);
        assert!(tokio::time::timeout(day, wait).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn c16_calls_that_are_cut_at_once_are_not_repeated_at_once() {
        let polls = std::sync::atomic::AtomicU32::new(0);
        let cut = || {
            let before = polls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(before < 1000, "without a pause");
            std::future::ready(Err::<(), _>(CallError::unknown(
                Reason::DeadlineExceeded,
                "cut",
            )))
        };
        let there = || std::future::ready(Ok(()));
        let minute = Duration::from_secs(60);
        let wait = persist(cut, there, Backoff::CALLS);
        assert!(tokio::time::timeout(minute, wait).await.is_err());
        assert!(polls.into_inner() >= 50);
    }

    #[test]
    fn a_server_that_still_answers_is_never_given_up_and_a_refusal_for_good_is_believed() {
        let mut wait = Wait::default();
        for _ in 0..1000 {
            let judged = wait.judge(transport(Outcome::Unknown), Backoff::CALLS);
            assert!(judged.is_ok(), "{judged:?}");
            wait.heard();
        }
        let unknown = CallError::refused(Reason::NoSuchRun, "no such run");
        assert!(wait.judge(unknown, Backoff::CALLS).is_err());
    }
}
