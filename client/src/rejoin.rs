//! Following a run to its end: when the stream is lost, the run is rejoined with the same request
//! id. What it must not do: start a second run, or say a piece twice where that can be known.

mod seen;

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use sessionplane_core::contract::{
    CallOptions, InvokeEvent, InvokeRequest, OnDisconnect, ResultStream,
};
use sessionplane_core::domain::error::{CallError, Outcome};
use sessionplane_core::domain::ids::{RequestId, SessionRef};
use tokio::time::{Instant, Sleep};

use crate::backoff::Backoff;
use crate::clock::{instant, mint_request_id};
use crate::connection::Client;
use crate::outcome::{Moment, ended_early, may_resume};
use crate::retry::{Effect, Patience};
use seen::Seen;

/// Longest time for which a lost run is tried to be rejoined without any answer.
pub(crate) const REJOIN_LIMIT: Duration = Duration::from_secs(120);

/// What following a run yields.
#[derive(Clone, PartialEq, Debug)]
pub enum RunItem {
    /// An event of the run. [`InvokeEvent::Accepted`] comes once; a terminal is the last item.
    /// After a [`InvokeEvent::Resumed`] one message may be repeated or incomplete; the entries of
    /// the run hold it whole.
    Event(InvokeEvent),
    /// The stream was lost; the run is rejoined after a delay.
    Rejoining {
        /// Failures in a row, from 1.
        attempt: u32,
        /// How long until the next attempt.
        delay: Duration,
        /// What ended it.
        error: CallError,
    },
    /// The run was rejoined; what was seen before does not come again.
    Rejoined,
    /// Some of what the run told was not yielded and does not come any more: events were skipped,
    /// or the run was joined after it had settled and its events were not told again. Its entries
    /// hold what is kept: of a long text, the end.
    Missed {
        /// How many events; `None` if nobody counted them.
        skipped: Option<u64>,
    },
}

/// A run, followed to its end. Ends after the terminal, or with an error: one that another
/// attempt would not cure, or the last one when attempts are used up or no server has answered for
/// two minutes. The error's outcome says whether the run may stand.
pub struct RunStream {
    client: Client,
    request: InvokeRequest,
    request_id: RequestId,
    deadline: Duration,
    reconnect: Backoff,
    seen: Seen,
    ready: VecDeque<RunItem>,
    phase: Phase,
    failures: u32,
    /// Since when no server has answered.
    lost_at: Option<Instant>,
    accepted: bool,
    /// The present stream joined a run that had begun before.
    joined: bool,
}

type Opening = Pin<Box<dyn Future<Output = Result<ResultStream<InvokeEvent>, CallError>> + Send>>;

enum Phase {
    Opening(Opening),
    Reading(ResultStream<InvokeEvent>),
    Waiting(Pin<Box<Sleep>>),
    Ended,
}

/// An invoke as the SDK asks for it: the run outlives its caller, a session that does not exist
/// is created.
#[must_use]
pub fn detached(session: SessionRef, prompt: String) -> InvokeRequest {
    InvokeRequest {
        session,
        prompt,
        agent: None,
        must_exist: false,
        on_disconnect: OnDisconnect::Detach,
    }
}

impl Client {
    /// Invokes and follows the run to its end, rejoining it when the stream is lost. `options`'s
    /// request id names the run for all attempts; without one, one is made.
    #[must_use]
    pub fn invoke_to_end(&self, request: InvokeRequest, options: CallOptions) -> RunStream {
        let patience = self.patience(&options, Effect::Writes);
        let mut run = RunStream {
            client: self.clone(),
            request,
            request_id: options.request_id.unwrap_or_else(mint_request_id),
            deadline: patience.deadline,
            reconnect: Backoff::STREAMS,
            seen: Seen::default(),
            ready: VecDeque::new(),
            phase: Phase::Ended,
            failures: 0,
            lost_at: None,
            accepted: false,
            joined: false,
        };
        // Nothing is accepted yet: the first opening is as patient as any call.
        run.phase = run.open(patience);
        run
    }
}

impl RunStream {
    /// The request id that the run can be rejoined by.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// How many bytes of a message's text were yielded; none if the message was not seen or was
    /// cut by a loss.
    #[must_use]
    pub fn seen_text(&self, message: &str) -> Option<u64> {
        self.seen.text(message)
    }

    /// The next item; `None` after the terminal or an error. A dropped `next` loses nothing.
    pub async fn next(&mut self) -> Option<Result<RunItem, CallError>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    fn open(&self, patience: Patience) -> Phase {
        let (client, request) = (self.client.clone(), self.request.clone());
        let request_id = self.request_id.clone();
        Phase::Opening(Box::pin(async move {
            client.join(request, &request_id, patience).await
        }))
    }

    fn reopen(&self) -> Phase {
        self.open(Patience {
            deadline: self.deadline,
            backoff: Backoff {
                attempts: 1,
                ..self.reconnect
            },
            effect: Effect::Writes,
        })
    }

    fn received(&mut self, event: InvokeEvent) {
        self.lost_at = None;
        if let InvokeEvent::Accepted { joined, .. } = event {
            self.joined = joined || self.accepted;
            if std::mem::replace(&mut self.accepted, true) {
                self.ready.push_back(RunItem::Rejoined);
                return;
            }
        }
        let skipped = match event {
            InvokeEvent::Resumed { skipped } => Some((skipped > 0).then_some(skipped)),
            _ if !event.is_terminal() => None,
            _ => {
                self.phase = Phase::Ended;
                (self.joined && self.seen.lacks_its_replay()).then_some(None)
            }
        };
        let missed = skipped.map(|skipped| RunItem::Missed { skipped });
        let admitted = self.seen.admit(event).map(RunItem::Event);
        if admitted.is_some() {
            self.failures = 0;
        }
        // The loss is told before the terminal, which is the last item.
        self.ready.extend(missed.into_iter().chain(admitted));
    }

    /// Plans the next attempt; the error if there is none.
    fn lost(&mut self, mut error: CallError) -> Result<(), CallError> {
        self.phase = Phase::Ended;
        if self.accepted {
            // Whatever the last attempt did or did not: the run was accepted before.
            error.outcome = Outcome::StreamEnded;
        }
        // Before the run was accepted the opening has made its own attempts.
        if !self.accepted || !may_resume(&error) {
            return Err(error);
        }
        self.failures += 1;
        let now = instant();
        let left = REJOIN_LIMIT.checked_sub(now - *self.lost_at.get_or_insert(now));
        let delay = self.reconnect.delay(self.failures, error.retry_after);
        let Some((delay, left)) = delay.zip(left.filter(|left| !left.is_zero())) else {
            return Err(error);
        };
        let delay = delay.min(left);
        self.seen.replay();
        self.phase = Phase::Waiting(Box::pin(tokio::time::sleep(delay)));
        self.ready.push_back(RunItem::Rejoining {
            attempt: self.failures,
            delay,
            error,
        });
        Ok(())
    }

    /// Drives the present phase one step; an error ends the stream.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        let lost = match &mut self.phase {
            Phase::Opening(opening) => match ready!(opening.as_mut().poll(context)) {
                Ok(stream) => {
                    self.phase = Phase::Reading(stream);
                    return Poll::Ready(Ok(()));
                }
                Err(error) => error,
            },
            Phase::Reading(stream) => match ready!(stream.as_mut().poll_next(context)) {
                Some(Ok(event)) => {
                    self.received(event);
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => error,
                None => ended_early(Moment::AfterFirst),
            },
            Phase::Waiting(sleep) => {
                ready!(sleep.as_mut().poll(context));
                self.phase = self.reopen();
                return Poll::Ready(Ok(()));
            }
            Phase::Ended => return Poll::Ready(Ok(())),
        };
        Poll::Ready(self.lost(lost))
    }
}

impl Stream for RunStream {
    type Item = Result<RunItem, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if matches!(self.phase, Phase::Ended) {
                return Poll::Ready(None);
            }
            if let Err(error) = ready!(self.step(context)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::SessionName;

    use super::*;
    use crate::options::ClientOptions;

    #[tokio::test(start_paused = true)]
    async fn a_run_whose_server_is_gone_is_given_up_after_two_minutes() {
        let folder = tempfile::tempdir().unwrap();
        let target = format!("unix:{}", folder.path().join("gone.sock").display());
        let client = Client::connect(ClientOptions::new(target.parse().unwrap())).unwrap();
        let session = SessionRef::Name(SessionName::parse("docs").unwrap());
        let mut run =
            client.invoke_to_end(detached(session, "hi".to_owned()), CallOptions::default());
        run.accepted = true;
        let begun = instant();
        let error = loop {
            match run.next().await.unwrap() {
                Ok(item) => assert!(matches!(item, RunItem::Rejoining { .. }), "{item:?}"),
                Err(error) => break error,
            }
        };
        let took = instant() - begun;
        let most = REJOIN_LIMIT + Duration::from_secs(10);
        assert!((REJOIN_LIMIT..most).contains(&took), "{took:?}");
        assert_eq!(error.outcome, Outcome::StreamEnded, "the run was accepted");
    }
}
