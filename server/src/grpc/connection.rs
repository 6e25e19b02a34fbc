//! One client connection: HTTP/2, its age, and how it closes.
//!
//! A connection closes in steps: first it takes no new streams, then its streams end in words,
//! then it is dropped. What must never enter: what is served.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;

use super::admission::Traffic;
use super::authn::Peer;
use super::hearing::Hearing;
use super::peer;
use super::routes::{CallerKnown, Routes};
use super::server::Config;
use super::tls::Tls;
use super::web::Web;
use crate::app::face::Faces;

/// What a caller may send on one stream before it is read: a whole prompt in one go.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// What a caller may send on all streams of a connection before it is read.
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// What is buffered of a response that its caller does not read. A slow observer's backlog is in
/// the session's ring, not here.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// The least that the transport reads of a request's headers before it refuses it with a bare code.
/// The most that a peer can make a connection keep of headers whose end it never sends.
const TRANSPORT_HEADER_BYTES: usize = 256 * 1024;

/// How long a connection at rest may take to say goodbye.
const RESTING_CLOSES_WITHIN: Duration = Duration::from_millis(100);

/// How long a peer whose streams have ended may say nothing before it is dropped: one that is there
/// acknowledges that its connection closes as soon as it reads that.
const SILENT_CLOSES_WITHIN: Duration = Duration::from_secs(1);

/// The steps by which connections close.
#[derive(Clone)]
pub(crate) struct Closing {
    /// No new streams.
    pub(crate) draining: CancellationToken,
    /// Streams end now.
    pub(crate) closing: CancellationToken,
}

impl Closing {
    /// Nothing is closing.
    pub(crate) fn new() -> Self {
        Self {
            draining: CancellationToken::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Closes with this one, and possibly before it.
    fn child(&self) -> Self {
        Self {
            draining: self.draining.child_token(),
            closing: self.closing.child_token(),
        }
    }
}

/// What all connections of a server share.
pub(crate) struct Shared<F: Faces> {
    pub(crate) routes: Routes<F>,
    pub(crate) web: Web,
    pub(crate) config: Config,
    pub(crate) closing: Closing,
    pub(crate) calls: TaskTracker,
}

/// Shakes hands on a connection and serves it until its end. Who does not get on with it is dropped
/// at a stop, and where another connection needs the place: nothing was asked yet.
pub(crate) async fn serve_tls<F: Faces>(
    shared: Arc<Shared<F>>,
    traffic: Arc<Traffic>,
    (stream, tls): (TcpStream, Tls),
) {
    let shaken = tokio::select! {
        shaken = tls.accept(stream, shared.config.handshake_within) => shaken,
        () = shared.closing.draining.cancelled() => None,
        () = traffic.asked_to_leave() => None,
    };
    if let Some(stream) = shaken {
        let shown = stream.get_ref().1.peer_certificates();
        let first = shown.and_then(<[_]>::first);
        let peer = first.map(|certificate| Peer(Arc::new(peer::read(certificate))));
        serve_peer(shared, traffic, stream, peer).await;
    }
}

/// Serves a connection until its end. Dropping the future drops the connection and ends its calls.
pub(crate) async fn serve<F, S>(shared: Arc<Shared<F>>, traffic: Arc<Traffic>, stream: S)
where
    F: Faces,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    serve_peer(shared, traffic, stream, None).await;
}

/// The same of a peer that may have shown a certificate.
async fn serve_peer<F, S>(
    shared: Arc<Shared<F>>,
    traffic: Arc<Traffic>,
    stream: S,
    peer: Option<Peer>,
) where
    F: Faces,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let closing = shared.closing.child();
    let service = Calls {
        shared: shared.clone(),
        closing: closing.clone(),
        traffic: traffic.clone(),
        peer,
    };
    let stream = TokioIo::new(Hearing::new(stream, traffic.clone()));
    let builder = builder(&shared);
    let connection = builder.serve_connection(stream, service);
    let mut connection = pin!(connection);

    let mut aged = false;
    tokio::select! {
        ended = connection.as_mut() => return log(ended),
        () = closing.draining.cancelled() => {}
        () = outlived(&shared.config, &traffic) => {
            aged = true;
            closing.draining.cancel();
        }
    }
    // One that was used a moment ago may have the end of its last answer still to send: it gets
    // the time of one with calls.
    let rests = traffic.rests(shared.config.rest_after);
    connection.as_mut().graceful_shutdown();
    if rests {
        // A peer that is there closes now. One that is silent must delay nothing, but a call that
        // it sent before it heard of the end is still answered.
        tokio::select! {
            ended = connection.as_mut() => return log(ended),
            () = sleep(RESTING_CLOSES_WITHIN) => {}
        }
        if traffic.rests(shared.config.rest_after) {
            return tracing::debug!("a connection at rest was dropped");
        }
    }
    tokio::select! {
        ended = connection.as_mut() => return log(ended),
        () = closing.closing.cancelled() => {}
        () = sleep(shared.config.max_connection_age_grace), if aged => closing.closing.cancel(),
    }
    tokio::select! {
        ended = connection => log(ended),
        () = sleep(shared.config.stop_within) => tracing::debug!("a connection was cut"),
        () = traffic.silent(SILENT_CLOSES_WITHIN) => {
            tracing::debug!("a connection whose peer says nothing was dropped");
        }
    }
}

/// How a call reaches the routes.
struct Calls<F: Faces> {
    shared: Arc<Shared<F>>,
    closing: Closing,
    traffic: Arc<Traffic>,
    peer: Option<Peer>,
}

impl<F: Faces> hyper::service::Service<Request<Incoming>> for Calls<F> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(peer.clone());
        }
        let (shared, closing) = (self.shared.clone(), self.closing.clone());
        let (open, traffic) = (self.traffic.opened(), self.traffic.clone());
        Box::pin(async move {
            let Shared {
                routes, web, calls, ..
            } = &*shared;
            let answered = traffic.answering();
            let response = web.respond(routes, request, &closing, calls).await;
            drop(answered);
            if response.extensions().get::<CallerKnown>().is_none() {
                open.of_a_stranger();
                return Ok(response);
            }
            Ok(response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    // The call is open for as long as its body is there.
                    let _open = &open;
                    frame
                }))
            }))
        })
    }
}

/// HTTP/2 for everybody, and HTTP/1.1 for pages.
fn builder<F: Faces>(shared: &Shared<F>) -> auto::Builder<Owned> {
    let config = &shared.config;
    let mut builder = auto::Builder::new(Owned(shared.calls.clone()));
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(config.first_request_within)
        .max_buf_size(transport_headers(config))
        .auto_date_header(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(config.keepalive_interval)
        .keep_alive_timeout(config.keepalive_timeout)
        .max_concurrent_streams(config.max_streams_per_connection)
        .max_header_list_size(u32::try_from(transport_headers(config)).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .auto_date_header(false);
    builder
}

/// What the transport reads of headers. More than a call may have: the transport can refuse only with a
/// bare code, or by closing the connection under all its calls, and whoever is over is to be told which
/// limit it was.
fn transport_headers(config: &Config) -> usize {
    config
        .max_header_bytes
        .saturating_mul(4)
        .max(TRANSPORT_HEADER_BYTES)
}

/// Completes when the connection is to close: it is old, it was opened and never used, or another
/// needs its place.
async fn outlived(config: &Config, traffic: &Traffic) {
    let unused = async {
        sleep(config.first_request_within).await;
        if traffic.has_called() {
            std::future::pending::<()>().await;
        }
        tracing::debug!("a connection without a call is closed");
    };
    tokio::select! {
        () = age(config) => {}
        () = unused => {}
        () = traffic.asked_to_leave() => {}
    }
}

/// Completes when the connection is old. Ages differ by a tenth, so that clients that came
/// together do not all leave together.
async fn age(config: &Config) {
    match config.max_connection_age {
        Some(age) => sleep(age.mul_f64(rand::random_range(0.9..1.1))).await,
        None => std::future::pending().await,
    }
}

fn log(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

/// Starts the tasks of calls, so that their number is known and their end can be waited for. Each
/// ends by itself when its connection does.
#[derive(Clone)]
struct Owned(TaskTracker);

impl<T> hyper::rt::Executor<T> for Owned
where
    T: Future + Send + 'static,
    T::Output: Send + 'static,
{
    fn execute(&self, task: T) {
        self.0.spawn(task);
    }
}

/// How long a keepalive may take by default.
pub(crate) const KEEPALIVE: (Duration, Duration) =
    (Duration::from_secs(30), Duration::from_secs(20));
