//! Following a run to its end: when the stream is lost, the run is rejoined with the same request
//! id. What it must not do: start a second run, or say a piece twice where that can be known.

mod seen;

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use sessionplane_core::contract::{CallOptions, InvokeEvent, InvokeRequest, OnDisconnect};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::given::Given;
use sessionplane_core::domain::ids::{RequestId, RunId, SessionRef};

use crate::backoff::Backoff;
use crate::clock::mint_request_id;
use crate::connection::Client;
use crate::reconnect::{Opening, Persistence, Progress, Reconnecting, Resume};
use crate::retry::{Effect, Patience};
use seen::Seen;

/// Longest time for which a lost run is tried to be rejoined without any answer, the attempts
/// included.
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
pub struct RunStream(Reconnecting<Rejoin>);

/// A run by its request id, and what of it was yielded.
struct Rejoin {
    client: Client,
    request: InvokeRequest,
    request_id: RequestId,
    /// How the run is started: as patiently as any call.
    patience: Patience,
    seen: Seen,
    /// The run, once a server accepted it.
    accepted: Option<RunId>,
    /// The present stream joined a run that had begun before.
    joined: bool,
}

/// An invoke as the SDK asks for it: the run outlives its caller, a session that does not exist
/// is created.
#[must_use]
pub fn detached(session: SessionRef, prompt: String) -> InvokeRequest {
    InvokeRequest {
        session,
        prompt,
        given: Given::default(),
        agent: None,
        parent: None,
        must_exist: false,
        on_disconnect: OnDisconnect::Detach,
    }
}

impl Client {
    /// Invokes and follows the run to its end, rejoining it when the stream is lost. `options`'s
    /// request id names the run for all attempts; without one, one is made.
    #[must_use]
    pub fn invoke_to_end(&self, request: InvokeRequest, options: CallOptions) -> RunStream {
        RunStream(Reconnecting::new(Rejoin {
            client: self.clone(),
            request,
            patience: self.patience(&options, Effect::Writes),
            request_id: options.request_id.unwrap_or_else(mint_request_id),
            seen: Seen::default(),
            accepted: None,
            joined: false,
        }))
    }
}

impl RunStream {
    /// The request id that the run can be rejoined by.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.0.resume.request_id
    }

    /// How many bytes of a message's text were yielded; none if the message was not seen or was
    /// cut by a loss.
    #[must_use]
    pub fn seen_text(&self, message: &str) -> Option<u64> {
        self.0.resume.seen.text(message)
    }

    /// The next item; `None` after the terminal or an error. A dropped `next` loses nothing.
    pub async fn next(&mut self) -> Option<Result<RunItem, CallError>> {
        std::future::poll_fn(|context| self.0.poll_item(context)).await
    }
}

impl Stream for RunStream {
    type Item = Result<RunItem, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_item(context)
    }
}

impl Rejoin {
    /// A server accepted the run; whether it had been accepted before.
    fn accept(&mut self, run: RunId) -> Result<bool, CallError> {
        match self.accepted.replace(run) {
            Some(before) if before != run => {
                let message = format!(
                    "the request id names run {run} now, but it was run {before} that was \
                     accepted for it before"
                );
                Err(CallError::stream_ended(Reason::Internal, message))
            }
            before => Ok(before.is_some()),
        }
    }
}

impl Resume for Rejoin {
    type Wire = InvokeEvent;
    type Item = RunItem;

    fn open(&self, within: Option<Duration>) -> Opening<InvokeEvent> {
        let mut patience = self.patience;
        if self.accepted.is_some() {
            // The waits between attempts are told: each attempt is made by itself.
            patience.backoff.attempts = 1;
        }
        if let Some(within) = within {
            patience.deadline = patience.deadline.min(within);
        }
        let (client, request) = (self.client.clone(), self.request.clone());
        let request_id = self.request_id.clone();
        Box::pin(async move { client.join(request, &request_id, patience).await })
    }

    fn admit(
        &mut self,
        event: InvokeEvent,
        out: &mut VecDeque<RunItem>,
    ) -> Result<Progress, CallError> {
        if let InvokeEvent::Accepted { run, joined, .. } = event {
            let again = self.accept(run)?;
            self.joined = joined || again;
            if again {
                out.push_back(RunItem::Rejoined);
                return Ok(Progress::Same);
            }
        }
        let last = event.is_terminal();
        let skipped = match event {
            InvokeEvent::Resumed { skipped } => Some((skipped > 0).then_some(skipped)),
            _ if !last => None,
            _ => (self.joined && self.seen.lacks_its_replay()).then_some(None),
        };
        let missed = skipped.map(|skipped| RunItem::Missed { skipped });
        let admitted = self.seen.admit(event).map(RunItem::Event);
        let progress = match (last, &admitted) {
            (true, _) => Progress::Last,
            (false, Some(_)) => Progress::Further,
            (false, None) => Progress::Same,
        };
        // The loss is told before the terminal, which is the last item.
        out.extend(missed.into_iter().chain(admitted));
        Ok(progress)
    }

    /// Whatever the last attempt did or did not: once a run was accepted, it stands.
    fn judge(&self, mut error: CallError) -> CallError {
        if self.accepted.is_some() {
            error.outcome = Outcome::StreamEnded;
        }
        error
    }

    fn lost(&mut self, attempt: u32, delay: Duration, error: CallError) -> RunItem {
        self.seen.replay();
        RunItem::Rejoining {
            attempt,
            delay,
            error,
        }
    }

    fn persistence(&self) -> Persistence {
        let backoff = Backoff {
            // Before the run was accepted the opening has made its own attempts.
            attempts: self.accepted.map_or(1, |_| Backoff::STREAMS.attempts),
            ..Backoff::STREAMS
        };
        Persistence {
            backoff,
            unreachable: Some(REJOIN_LIMIT),
            // A run that thinks for long tells nothing meanwhile.
            silence: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::{SessionId, SessionName};
    use sessionplane_core::domain::position::Position;
    use sessionplane_core::domain::time::Timestamp;

    use super::*;
    use crate::clock::instant;
    use crate::options::ClientOptions;

    fn run(number: u128) -> RunId {
        RunId::mint(Timestamp::from_millis(1), number)
    }

    /// A run of a server that is gone.
    fn gone(folder: &tempfile::TempDir) -> RunStream {
        let target = format!("unix:{}", folder.path().join("gone.sock").display());
        let client = Client::connect(ClientOptions::new(target.parse().unwrap())).unwrap();
        let session = SessionRef::Name(SessionName::parse("docs").unwrap());
        client.invoke_to_end(detached(session, "hi".to_owned()), CallOptions::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_whose_server_is_gone_is_given_up_after_two_minutes() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = gone(&folder);
        stream.0.resume.accepted = Some(run(1));
        let begun = instant();
        let error = loop {
            match stream.next().await.unwrap() {
                Ok(item) => assert!(matches!(item, RunItem::Rejoining { .. }), "{item:?}"),
                Err(error) => break error,
            }
        };
        let took = instant() - begun;
        let least = Duration::from_secs(118);
        assert!((least..=REJOIN_LIMIT).contains(&took), "{took:?}");
        assert_eq!(error.outcome, Outcome::StreamEnded, "the run was accepted");
    }

    #[tokio::test]
    async fn c12_a_rejoin_that_finds_another_run_ends_and_names_both() {
        let folder = tempfile::tempdir().unwrap();
        let mut rejoin = gone(&folder).0.resume;
        let accepted = |number| InvokeEvent::Accepted {
            session: SessionId::mint(Timestamp::from_millis(1), 9),
            run: run(number),
            position: Position { epoch: 1, seq: 1 },
            joined: false,
        };
        let mut out = VecDeque::new();
        assert!(rejoin.admit(accepted(1), &mut out).is_ok());
        assert_eq!(rejoin.admit(accepted(1), &mut out), Ok(Progress::Same));
        assert_eq!(out.pop_back(), Some(RunItem::Rejoined));
        let error = rejoin.admit(accepted(2), &mut out).unwrap_err();
        assert_eq!(error.outcome, Outcome::StreamEnded);
        for named in [run(1), run(2)] {
            assert!(error.message.contains(&named.to_string()), "{error}");
        }
    }
}
