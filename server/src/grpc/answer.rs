//! The body of an answer that is one message. A long one is handed on in pieces, so that it is seen
//! whether anybody reads it, and what nobody reads is let go of, as a stream is.
//!
//! What must never enter: what an answer says.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;

use super::ending::{EndingBody, Ends};
use crate::app::face::ServerEnds;

/// A piece. What the transport buffers for a reader that stops is a few of them.
const PIECE: usize = 32 * 1024;

/// An answer: whole as long as it is short, watched from its first long frame on.
pub(crate) struct AnswerBody {
    body: Body,
    watch: Option<(Duration, TaskTracker)>,
}

impl AnswerBody {
    /// Lets go of `body` when nothing of it was read for `unread_within`; that watch is one of `tasks`.
    pub(crate) fn new(body: Body, unread_within: Duration, tasks: &TaskTracker) -> Self {
        let watch = Some((unread_within, tasks.clone()));
        Self { body, watch }
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            Some(Ok(frame)) if is_long(&frame) => frame,
            short => return Poll::Ready(short),
        };
        let Some((unread_within, tasks)) = this.watch.take() else {
            // Watched already.
            return Poll::Ready(Some(Ok(frame)));
        };
        let content = std::mem::replace(&mut this.body, Body::empty());
        let rest = frame.into_data().unwrap_or_default();
        let pieces = Body::new(Pieces { rest, content });
        let ends = Ends {
            closing: CancellationToken::new(),
            until: None,
            unread_within,
            credential: Box::pin(std::future::pending()),
            by_server: ServerEnds::default(),
            _place: None,
        };
        this.body = Body::new(EndingBody::new(pieces, ends, &tasks));
        Pin::new(&mut this.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn is_long(frame: &Frame<Bytes>) -> bool {
    frame.data_ref().is_some_and(|data| data.len() > PIECE)
}

/// A long frame in pieces, and what comes after it.
struct Pieces {
    rest: Bytes,
    content: Body,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.rest.is_empty() {
            let polled = Pin::new(&mut self.content).poll_frame(cx);
            return polled.map_ok(|frame| match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    Frame::data(self.piece())
                }
                Err(other) => other,
            });
        }
        let piece = self.piece();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.content.is_end_stream()
    }
}

impl Pieces {
    /// A copy: a piece that the transport still has must not keep the whole.
    fn piece(&mut self) -> Bytes {
        let piece = Bytes::copy_from_slice(&self.rest[..self.rest.len().min(PIECE)]);
        self.rest.advance(piece.len());
        piece
    }
}
