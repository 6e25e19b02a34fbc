//! Repeating a call whose outcome is unknown or that the server had no room for. Bounded in
//! attempts and time. Never repeats what was answered.

use std::future::Future;
use std::time::Duration;

use sessionplane_core::domain::error::{CallError, Outcome, Reason};

use crate::backoff::Backoff;

/// How long and how often one logical call is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// All attempts and the waits between them.
    pub(crate) deadline: Duration,
    /// How often, and how long between.
    pub(crate) backoff: Backoff,
    /// What a repeat could do twice, were it not for the request id.
    pub(crate) effect: Effect,
}

/// Whether a call changes something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// It only reads.
    Reads,
    /// It writes, under one request id for all its attempts.
    Writes,
}

/// What the attempts so far leave behind.
#[derive(Default)]
struct History {
    /// The error that is being waited on; none while an attempt is under way.
    waiting: Option<CallError>,
    /// An attempt may have been done without our having heard of it.
    maybe_done: bool,
}

/// Makes attempts until one is answered, one fails for good, or patience ends.
pub(crate) async fn call<T, Fut>(
    patience: Patience,
    attempt: impl Fn() -> Fut + Send,
) -> Result<T, CallError>
where
    Fut: Future<Output = Result<T, CallError>> + Send,
{
    let mut history = History::default();
    let attempts = attempts(patience, &attempt, &mut history);
    match tokio::time::timeout(patience.deadline, attempts).await {
        Ok(answer) => answer,
        Err(_) => Err(history.waiting.unwrap_or_else(|| {
            let waited = patience.deadline;
            CallError::unknown(
                Reason::DeadlineExceeded,
                format!("no answer within {waited:?}"),
            )
        })),
    }
}

async fn attempts<T, Fut>(
    patience: Patience,
    attempt: &(impl Fn() -> Fut + Send),
    history: &mut History,
) -> Result<T, CallError>
where
    Fut: Future<Output = Result<T, CallError>> + Send,
{
    let mut failures = 0;
    loop {
        history.waiting = None;
        let error = match attempt().await {
            Ok(answer) => return Ok(answer),
            Err(error) => history.judge(error, patience.effect),
        };
        failures += 1;
        let delay = patience.backoff.delay(failures, error.retry_after);
        let Some(delay) = delay.filter(|_| worth_repeating(&error)) else {
            return Err(error);
        };
        history.waiting = Some(error);
        tokio::time::sleep(delay).await;
    }
}

impl History {
    /// A refusal speaks of its own attempt only. After one whose outcome is unknown, the outcome
    /// of the whole call stays unknown.
    fn judge(&mut self, mut error: CallError, effect: Effect) -> CallError {
        match error.outcome {
            Outcome::Unknown => self.maybe_done = true,
            Outcome::Refused if self.maybe_done && effect == Effect::Writes => {
                error.outcome = Outcome::Unknown;
            }
            Outcome::Refused | Outcome::StreamEnded => {}
        }
        error
    }
}

/// Whether the very same call may fare better a moment later.
fn worth_repeating(error: &CallError) -> bool {
    let unavailable = matches!(
        error.reason,
        Reason::Overloaded | Reason::ServerDraining | Reason::ServingLost | Reason::Transport
    );
    // A write that the store did not confirm: asked again, it is told what has become of it.
    let unconfirmed = error.reason == Reason::StoreFailed && error.outcome == Outcome::Unknown;
    (unavailable || unconfirmed) && error.outcome != Outcome::StreamEnded
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn patience(effect: Effect) -> Patience {
        Patience {
            deadline: Duration::from_secs(30),
            backoff: Backoff::CALLS,
            effect,
        }
    }

    /// Plays prepared results and tells how many were asked for.
    async fn play(
        effect: Effect,
        mut script: Vec<Result<u8, CallError>>,
    ) -> (Result<u8, CallError>, usize) {
        script.reverse();
        let all = script.len();
        let script = Mutex::new(script);
        let answer = call(patience(effect), || {
            let next = script.lock().unwrap().pop().unwrap();
            async move { next }
        })
        .await;
        let left = script.into_inner().unwrap().len();
        (answer, all - left)
    }

    fn unknown() -> Result<u8, CallError> {
        Err(CallError::unknown(Reason::Transport, "broken"))
    }

    fn refused(reason: Reason) -> Result<u8, CallError> {
        Err(CallError::refused(reason, "no"))
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_outcome_is_asked_again_until_answered() {
        let script = vec![unknown(), refused(Reason::Overloaded), Ok(7)];
        assert_eq!(play(Effect::Writes, script).await, (Ok(7), 3));
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_are_bounded() {
        let script = vec![unknown(), unknown(), unknown(), unknown(), Ok(7)];
        let (answer, tried) = play(Effect::Reads, script).await;
        assert_eq!((answer.unwrap_err().outcome, tried), (Outcome::Unknown, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_for_good_is_not_repeated() {
        for reason in [
            Reason::NoSuchSession,
            Reason::InvalidArgument,
            Reason::PermissionDenied,
            Reason::LimitReached,
            Reason::StoreFailed,
            Reason::Unimplemented,
        ] {
            let (answer, tried) = play(Effect::Writes, vec![refused(reason), Ok(7)]).await;
            assert_eq!((answer.unwrap_err().reason, tried), (reason, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn c02_a_refusal_after_an_unknown_attempt_leaves_a_write_unknown() {
        let script = || vec![unknown(), refused(Reason::Unauthenticated)];
        let (answer, _) = play(Effect::Writes, script()).await;
        assert_eq!(answer.unwrap_err().outcome, Outcome::Unknown);
        let (answer, _) = play(Effect::Reads, script()).await;
        assert_eq!(answer.unwrap_err().outcome, Outcome::Refused);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_a_silent_attempt_as_unknown() {
        let silent = || std::future::pending::<Result<u8, CallError>>();
        let error = call(patience(Effect::Writes), silent).await.unwrap_err();
        assert_eq!(
            (error.outcome, error.reason),
            (Outcome::Unknown, Reason::DeadlineExceeded)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_the_deadline_ends_with_what_was_heard() {
        let draining = CallError::refused(Reason::ServerDraining, "drains")
            .retry_after(Duration::from_secs(600));
        let (answer, tried) = play(Effect::Writes, vec![Err(draining.clone()), Ok(7)]).await;
        assert_eq!((answer, tried), (Err(draining), 1));
    }
}
