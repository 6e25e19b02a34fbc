//! What a request must be before anybody looks at what it says: gRPC, and here in time.
//!
//! What must never enter: anything that a message says.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use sessionplane_core::domain::error::{CallError, Reason};
use tokio::time::{Sleep, sleep};
use tonic::Status;

use super::status::status;

/// What a caller that does not speak gRPC is told, in HTTP's own words.
pub(crate) fn not_grpc(method: &Method, headers: &HeaderMap) -> Option<StatusCode> {
    if method != Method::POST {
        return Some(StatusCode::METHOD_NOT_ALLOWED);
    }
    let kind = headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], |kind| kind.as_bytes());
    let rest = kind.strip_prefix(b"application/grpc");
    let grpc = rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')));
    (!grpc).then_some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

/// A request's body that must have arrived whole when its time is up: one that is never finished
/// would hold its memory for ever.
pub(crate) struct TimelyBody<B> {
    content: B,
    time: Option<(Pin<Box<Sleep>>, Duration)>,
}

impl<B> TimelyBody<B> {
    /// Reads `content` for at most `within`; for any time without it.
    pub(crate) fn new(content: B, within: Option<Duration>) -> Self {
        let time = within.map(|within| (Box::pin(sleep(within)), within));
        Self { content, time }
    }
}

impl<B> HttpBody for TimelyBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<tonic::codegen::StdError>,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.content).poll_frame(cx) {
            return Poll::Ready(
                frame.map(|frame| frame.map_err(|error| Status::from_error(error.into()))),
            );
        }
        let Some((time, within)) = &mut this.time else {
            return Poll::Pending;
        };
        if time.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let message = format!(
            "the request message had not arrived whole after {} ms; send it in one go and end \
             the request with it",
            within.as_millis()
        );
        let late = CallError::refused(Reason::DeadlineExceeded, message);
        Poll::Ready(Some(Err(status(late))))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_post_of_a_grpc_message_is_grpc() {
        let told = |method: Method, kind: &str| {
            let kind = (CONTENT_TYPE, kind.parse().unwrap());
            not_grpc(&method, &HeaderMap::from_iter([kind]))
        };
        for kind in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;x=y",
        ] {
            assert_eq!(told(Method::POST, kind), None, "{kind}");
            assert_eq!(
                told(Method::GET, kind),
                Some(StatusCode::METHOD_NOT_ALLOWED)
            );
        }
        let unsupported = Some(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        for kind in [
            "",
            "application/json",
            "application/grpc-web",
            "application/grpcx",
        ] {
            assert_eq!(told(Method::POST, kind), unsupported, "{kind}");
        }
        assert_eq!(not_grpc(&Method::POST, &HeaderMap::new()), unsupported);
    }
}
