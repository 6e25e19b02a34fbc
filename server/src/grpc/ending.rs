//! Responses that end: when their call's deadline passes, when their connection closes, when their
//! caller's credential ends, or when nobody reads them.
//!
//! A stream that the server ends does so in words (a status with our details), not by being cut.
//! The transport looks at a body only when it can send, so a task of its own watches each: what is
//! behind the stream is let go of in time, whether its peer reads or not. What must never enter:
//! what a response says.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::ports::authenticator::Unauthenticated;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;

use super::status;
use crate::app::face::ServerEnds;

/// When a response ends at the latest.
pub(crate) struct Ends {
    /// Its connection closes.
    pub(crate) closing: CancellationToken,
    /// Its call's deadline.
    pub(crate) until: Option<Instant>,
    /// Nothing was taken off it for so long, though there was something to send.
    pub(crate) unread_within: Duration,
    /// Completes when the credential of its caller is good for nothing any more.
    pub(crate) credential: Ended,
    /// Told before a stream is dropped that the server itself ends.
    pub(crate) by_server: ServerEnds,
    /// Given back once the stream is gone.
    pub(crate) _place: Option<OwnedSemaphorePermit>,
}

/// Completes with the end of a credential, and says why.
pub(crate) type Ended = Pin<Box<dyn Future<Output = Unauthenticated> + Send>>;

/// A body that passes its content on, until its time has come.
pub(crate) struct EndingBody {
    slot: Arc<Slot>,
    _watched: DropGuard,
}

impl EndingBody {
    /// Ends `content` in time; its watch is one of `tasks` and leaves with it.
    pub(crate) fn new(content: Body, ends: Ends, tasks: &TaskTracker) -> Self {
        let slot = Arc::new(Slot(Mutex::new(Inner {
            content: Some(content),
            ended: None,
            started: false,
            handed: 0,
            waiting: None,
        })));
        let gone = CancellationToken::new();
        let watch = watch(slot.clone(), ends);
        let watched = gone.clone();
        tasks.spawn(async move {
            let _gone = watched.run_until_cancelled(watch).await;
        });
        Self {
            slot,
            _watched: gone.drop_guard(),
        }
    }
}

impl HttpBody for EndingBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.slot.lock().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        let inner = self.slot.lock();
        match &inner.content {
            Some(content) => content.is_end_stream(),
            None => inner.ended.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// What a body and its watch share.
struct Slot(Mutex<Inner>);

struct Inner {
    /// None once it has ended.
    content: Option<Body>,
    /// Why the watch ended it, until that was sent.
    ended: Option<CallError>,
    /// A message was sent: the caller knows that the call was taken.
    started: bool,
    /// Frames that the transport has taken.
    handed: u64,
    /// Who waits for the next frame; nobody while the transport has no use for one.
    waiting: Option<Waker>,
}

impl Inner {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(content) = &mut self.content else {
            let trailers = self.ended.take().map(status::trailers);
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        };
        let polled = Pin::new(content).poll_frame(cx);
        if let Poll::Ready(frame) = &polled {
            self.started |= matches!(frame, Some(Ok(frame)) if frame.is_data());
            self.handed += 1;
            self.waiting = None;
        } else {
            self.waiting = Some(cx.waker().clone());
        }
        polled
    }
}

impl Slot {
    /// Nothing here is left half done by a panic: the content is then dropped with its body.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of frames that were taken, if the transport has not asked for more.
    fn unread(&self) -> Option<u64> {
        let inner = self.lock();
        inner.waiting.is_none().then_some(inner.handed)
    }

    fn end(&self, reason: Reason, message: &str) {
        let (content, waiting) = {
            let mut inner = self.lock();
            let content = inner.content.take();
            if content.is_some() {
                inner.ended = Some(status::ended(reason, inner.started, message));
            }
            (content, inner.waiting.take())
        };
        // Outside the lock: whatever is behind the stream is told that it ends.
        drop(content);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

async fn watch(slot: Arc<Slot>, ends: Ends) {
    tokio::select! {
        biased;
        () = ends.closing.cancelled() => {
            let message = "this connection is closing: the server stops, or the connection is \
                           old; go on over a new one";
            ends.by_server.set();
            slot.end(Reason::ServerDraining, message);
        }
        () = reached(ends.until) => {
            let message = "the deadline of this call has passed; go on with a new one";
            slot.end(Reason::DeadlineExceeded, message);
        }
        ended = ends.credential => {
            ends.by_server.set();
            slot.end(Reason::Unauthenticated, &ended.to_string());
        }
        () = abandoned(&slot, ends.unread_within) => {
            let message = "nothing of this stream was read for too long; rejoin or resume";
            ends.by_server.set();
            slot.end(Reason::ObserverTooSlow, message);
        }
    }
}

/// Completes at a call's deadline.
pub(crate) async fn reached(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Completes when the transport could hand on nothing for `within`, or at most twice that.
async fn abandoned(slot: &Slot, within: Duration) {
    let mut seen = None;
    loop {
        sleep(within).await;
        let unread = slot.unread();
        if unread.is_some() && unread == seen {
            return;
        }
        seen = unread;
    }
}
