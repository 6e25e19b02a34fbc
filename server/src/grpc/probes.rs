//! A second listener that answers health and nothing else, for probes that speak no TLS.
//!
//! It may be open to others than this host: it takes no credential, reads nothing longer than a
//! service's name and tells nothing but whether the server takes calls. What must never enter: a
//! second service.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::HealthService;
use tower::ServiceExt as _;

use super::admission;
use super::connection::KEEPALIVE;
use super::listener::{Accepted, Listener};
use super::reading::not_grpc;
use super::seldom::Seldom;

/// Most connections at a time; a further one takes the place of the oldest.
const MAX_CONNECTIONS: usize = 64;
/// Most questions at a time on one connection.
const MAX_STREAMS: u32 = 8;
/// All headers of a question together.
const HEADER_LIST_BYTES: u32 = 4 * 1024;
/// How long a connection may last: a probe asks once, and who watches comes back.
const MAX_AGE: Duration = Duration::from_secs(600);
/// How long accepting rests after the system refused it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers on `listener`, where there is one, until this is dropped; its connections end with it.
pub(crate) async fn serve(
    listener: Option<Listener>,
    health: HealthServer<HealthService>,
) -> Infallible {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    let mut connections = JoinSet::new();
    let refused = Seldom::default();
    let mut oldest_first = VecDeque::new();
    loop {
        tokio::select! {
            Some(ended) = connections.join_next() => admission::failed(ended),
            accepted = listener.accept() => match accepted {
                Ok(accepted) => {
                    make_room(&mut oldest_first);
                    let connection = connection(accepted, health.clone());
                    oldest_first.push_back(connections.spawn(connection));
                }
                Err(error) => {
                    let tell = |times| {
                        tracing::warn!(times, %error, "connections of probes could not be accepted");
                    };
                    refused.tell(tell);
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn make_room(oldest_first: &mut VecDeque<AbortHandle>) {
    oldest_first.retain(|connection| !connection.is_finished());
    while oldest_first.len() >= MAX_CONNECTIONS {
        if let Some(oldest) = oldest_first.pop_front() {
            oldest.abort();
        }
    }
}

async fn connection(accepted: Accepted, health: HealthServer<HealthService>) {
    match accepted {
        Accepted::Tcp(stream) => answer(stream, health).await,
        Accepted::Unix(stream) => answer(stream, health).await,
        // A listener of probes has no TLS.
        Accepted::Tls(..) => {}
    }
}

async fn answer<S>(stream: S, health: HealthServer<HealthService>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = tower::service_fn(move |request: Request<Incoming>| {
        let health = health.clone();
        async move { respond(request, health).await }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE.0)
        .keep_alive_timeout(KEEPALIVE.1)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(HEADER_LIST_BYTES)
        .auto_date_header(false);
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    if let Ok(Err(error)) = timeout(MAX_AGE, served).await {
        tracing::debug!(%error, "a probe's connection failed");
    }
}

async fn respond(
    request: Request<Incoming>,
    health: HealthServer<HealthService>,
) -> Result<Response<Body>, Infallible> {
    if let Some(code) = not_grpc(request.method(), request.headers()) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = code;
        return Ok(response);
    }
    health.oneshot(request).await
}
