//! The stream of an invoke: a projection of the session's events, ending with one terminal.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;
use sessionplane_core::contract::InvokeEvent;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::event::EventBody;
use sessionplane_core::domain::ids::RunId;
use sessionplane_core::domain::lifecycle::{DetachCause, StreamId};
use tokio::sync::oneshot;

use super::context::Context;
use super::cursor::{Cursor, Cut};
use super::face::ServerEnds;
use super::invoke::terminal;
use super::observation::Published;
use super::session_loss::Loss;
use super::session_mail::Gone;

/// A stream's attachment to its run. Dropping it tells the session that the caller is gone, unless
/// the server itself ended the stream.
pub(crate) struct Attachment {
    context: Arc<Context>,
    stream: StreamId,
    server_ends: ServerEnds,
    gone: Option<oneshot::Sender<DetachCause>>,
}

impl Attachment {
    /// An attachment of a call whose stream the server may end.
    pub(crate) fn new(context: Arc<Context>, server_ends: ServerEnds) -> (Self, Gone) {
        let stream = StreamId(context.next_stream());
        let (gone, watch) = oneshot::channel();
        (
            Self {
                context,
                stream,
                server_ends,
                gone: Some(gone),
            },
            watch,
        )
    }

    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    fn leave(&mut self, cause: DetachCause) {
        if let Some(gone) = self.gone.take() {
            // A session that has no task any more has no run to cancel.
            let _ = gone.send(cause);
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let server_ended = self.server_ends.is_set() || self.context.draining.is_cancelled();
        let cause = if server_ended {
            DetachCause::ServerEnded
        } else {
            DetachCause::CallerGone
        };
        self.leave(cause);
    }
}

/// What an invoke streams after its admission.
pub(crate) struct InvokeStream {
    run: RunId,
    first: VecDeque<InvokeEvent>,
    cursor: Cursor,
    attachment: Attachment,
    /// Up to here the events are older than the stream.
    replayed_up_to: u64,
    over: bool,
}

impl InvokeStream {
    /// Yields `first`, then the projection of the run's events that the cursor finds.
    pub(crate) fn new(
        cursor: Cursor,
        run: RunId,
        first: Vec<InvokeEvent>,
        attachment: Attachment,
    ) -> Self {
        Self {
            run,
            first: first.into(),
            cursor,
            attachment,
            replayed_up_to: 0,
            over: false,
        }
    }

    /// Events up to this place are older than the stream: those that leave the ring before they are
    /// read are told as skipped, and end nothing.
    pub(crate) fn replaying_up_to(mut self, seq: u64) -> Self {
        self.replayed_up_to = seq;
        self
    }

    /// C12: what of a replay is no longer retained is skipped, and that is told. Nothing if the
    /// cursor is past the replay, or the run's end has left the ring too: who rejoins is given it.
    fn skip(&mut self) -> Option<InvokeEvent> {
        let place = self.cursor.position().seq;
        if place >= self.replayed_up_to {
            return None;
        }
        let before = self.cursor.channel().rest_of(self.run)?;
        self.cursor.go_on_after(before);
        let skipped = before.saturating_sub(place);
        Some(InvokeEvent::Resumed { skipped })
    }

    /// The server ends the stream: from now on the caller is not attached, and did not leave.
    fn end(&mut self, cut: Cut) -> CallError {
        self.over = true;
        self.attachment.leave(DetachCause::ServerEnded);
        let (reason, told) = match cut {
            Cut::Lapped => (
                Reason::ObserverTooSlow,
                "this stream was read too slowly and its next events are gone",
            ),
            Cut::Closed => {
                let loss = self.cursor.channel().loss().unwrap_or(Loss::Right);
                (loss.reason(), loss.told())
            }
        };
        let message = format!("{told}; rejoin with the same request_id");
        CallError::stream_ended(reason, message)
    }
}

impl Stream for InvokeStream {
    type Item = Result<InvokeEvent, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(event) = this.first.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        while !this.over {
            match std::task::ready!(Pin::new(&mut this.cursor).poll_next(cx)) {
                Some(Ok(published)) => {
                    if matches!(
                        published.envelope().event.body,
                        EventBody::ServingError { .. }
                    ) {
                        return Poll::Ready(Some(Err(this.end(Cut::Closed))));
                    }
                    if let Some(event) = project(this.run, &published) {
                        this.over = event.is_terminal();
                        return Poll::Ready(Some(Ok(event)));
                    }
                }
                Some(Err(Cut::Lapped)) => {
                    let told = match this.skip() {
                        Some(resumed) => Ok(resumed),
                        None => Err(this.end(Cut::Lapped)),
                    };
                    return Poll::Ready(Some(told));
                }
                Some(Err(cut)) => return Poll::Ready(Some(Err(this.end(cut)))),
                None => this.over = true,
            }
        }
        Poll::Ready(None)
    }
}

/// C8: one projection, for every engine.
fn project(run: RunId, published: &Published) -> Option<InvokeEvent> {
    let event = &published.envelope().event;
    if event.run != Some(run) {
        return None;
    }
    // Matched where it lies: most of what a channel carries is not for this stream, and is not copied.
    match &event.body {
        EventBody::MessageDelta {
            message,
            channel,
            text,
        } => Some(InvokeEvent::Delta {
            message: message.clone(),
            channel: *channel,
            text: text.as_ref().to_owned(),
        }),
        EventBody::ToolStarted {
            call,
            name,
            input_json,
        } => Some(InvokeEvent::ToolStarted {
            call: call.clone(),
            name: name.clone(),
            input_json: input_json.clone(),
        }),
        EventBody::ToolFinished {
            call,
            failed,
            output,
            artifact,
        } => Some(InvokeEvent::ToolEnded {
            call: call.clone(),
            failed: *failed,
            output: output.clone(),
            artifact: artifact.clone(),
        }),
        EventBody::InteractionRequested { interaction } => {
            let interaction = interaction.clone();
            Some(InvokeEvent::InteractionRequested { interaction })
        }
        EventBody::InteractionResolved { id, resolution } => {
            let (id, resolution) = (*id, resolution.clone());
            Some(InvokeEvent::InteractionResolved { id, resolution })
        }
        EventBody::RetryScheduled {
            attempt,
            max_attempts,
            delay,
            reason,
        } => Some(InvokeEvent::Retrying {
            attempt: *attempt,
            max_attempts: *max_attempts,
            delay: *delay,
            reason: reason.clone(),
        }),
        EventBody::RunSettled { run } => Some(terminal((**run).clone())),
        EventBody::RunStarted { .. }
        | EventBody::TurnStarted { .. }
        | EventBody::TurnFinished { .. }
        | EventBody::MessageStarted { .. }
        | EventBody::MessageFinished { .. }
        | EventBody::ToolProgress { .. }
        | EventBody::QueueChanged { .. }
        | EventBody::InputDelivered { .. }
        | EventBody::InputDiscarded { .. }
        | EventBody::CompactionStarted { .. }
        | EventBody::CompactionFinished { .. }
        | EventBody::StateChanged { .. }
        | EventBody::EntryAppended { .. }
        | EventBody::UsageUpdated { .. }
        | EventBody::ServingError { .. } => None,
    }
}
