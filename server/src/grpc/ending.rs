//! Responses that end: when their call's deadline passes, or when their connection closes.
//!
//! A stream that the server ends does so in words (a status with our details), not by being cut.
//! What must never enter: what a response says.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use sessionplane_core::domain::error::{CallError, Reason};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::body::Body;

use super::status;

/// A body that passes its content on, until its time has come.
pub(crate) struct EndingBody {
    content: Option<Body>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// A message was sent: the caller knows that the call was taken.
    started: bool,
    /// Frames in a row that were ready, so that one that always is does not outlive its time.
    ready: u32,
}

/// How often a body that is always ready looks at its time.
const FRAMES_BETWEEN_LOOKS: u32 = 16;

impl EndingBody {
    /// Ends `content` when `closing` is cancelled, or `deadline` from now.
    pub(crate) fn new(
        content: Body,
        closing: CancellationToken,
        deadline: Option<Duration>,
    ) -> Self {
        Self {
            content: Some(content),
            closing: Box::pin(closing.cancelled_owned()),
            deadline: deadline.map(|deadline| Box::pin(sleep(deadline))),
            started: false,
            ready: 0,
        }
    }

    /// Why it is over, if it is. Otherwise the task is woken when it is.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Option<CallError> {
        if self.closing.as_mut().poll(cx).is_ready() {
            let message = "this connection is closing: the server stops, or the connection is \
                           old; go on over a new one";
            return Some(status::ended(Reason::ServerDraining, self.started, message));
        }
        let deadline = self.deadline.as_mut()?;
        deadline.as_mut().poll(cx).is_ready().then(|| {
            let message = "the deadline of this call has passed; go on with a new one";
            status::ended(Reason::DeadlineExceeded, self.started, message)
        })
    }
}

impl HttpBody for EndingBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Some(content) = this.content.as_mut() else {
            return Poll::Ready(None);
        };
        if this.ready < FRAMES_BETWEEN_LOOKS
            && let Poll::Ready(frame) = Pin::new(content).poll_frame(cx)
        {
            this.ready += 1;
            this.started |= matches!(&frame, Some(Ok(frame)) if frame.is_data());
            return Poll::Ready(frame);
        }
        let looked_in_passing = std::mem::take(&mut this.ready) == FRAMES_BETWEEN_LOOKS;
        if let Some(error) = this.poll_end(cx) {
            this.content = None;
            return Poll::Ready(Some(Ok(Frame::trailers(status::trailers(error)))));
        }
        if looked_in_passing {
            return self.as_mut().poll_frame(cx);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.content.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
