//! From a request's path to its service, past the question who calls.
//!
//! What must never enter: anything that a message says.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use sessionplane::v1 as wire;
use sessionplane_core::domain::access::Principal;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::ports::authenticator::Authenticator;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic_health::pb::health_server;
use tower::{Service, ServiceExt};
use tracing::Instrument as _;

use super::call::{Call, deadline, trace_id};
use super::connection::Closing;
use super::ending::{EndingBody, Ends, reached};
use super::events::Metrics;
use super::health::Health;
use super::invoke::InvokeService;
use super::methods::Streaming;
use super::reading::{TimelyBody, not_grpc};
use super::reflection::Reflection;
use super::server::Config;
use super::session_control::SessionControlService;
use super::status::{complete, refuse, unimplemented};
use super::{authn, now};
use crate::app::face::{Caller, Faces, ServerEnds};

/// Answers once and yet lasts as long as a run: where connections close it ends as a stream does.
const WAIT_RUN: &str = "/sessionplane.v1.Invoke/WaitRun";

/// Everything that is served, for all connections.
pub(crate) struct Routes<F: Faces> {
    authenticator: Arc<dyn Authenticator>,
    streaming: Streaming,
    invoke: wire::invoke_server::InvokeServer<InvokeService<F>>,
    control: SessionControlService<F>,
    health: health_server::HealthServer<tonic_health::server::HealthService>,
    reflection: Reflection,
    open_reflection: bool,
    message_within: Duration,
    unread_within: Duration,
    /// How long calls that are not answered yet may go on when their connection closes.
    closes_within: Duration,
}

/// What a path is about.
enum Route {
    Invoke,
    Control,
    Health,
    Reflection,
    ReflectionAlpha,
    Unknown,
}

impl<F: Faces> Routes<F> {
    /// The routes over the application layer.
    pub(crate) fn new(
        faces: Arc<F>,
        authenticator: Arc<dyn Authenticator>,
        metrics: Arc<Metrics>,
        health: &Health,
        reflection: Reflection,
        streaming: Streaming,
        config: &Config,
    ) -> Self {
        let invoke = InvokeService::new(faces.clone());
        let invoke = wire::invoke_server::InvokeServer::new(invoke)
            .accept_compressed(CompressionEncoding::Zstd)
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(config.max_request_bytes);
        Self {
            authenticator,
            streaming,
            invoke,
            control: SessionControlService::new(faces, metrics, config.max_request_bytes),
            health: health.service(),
            reflection,
            open_reflection: config.open_reflection,
            message_within: config.message_within,
            unread_within: config.unread_within,
            // Half of it is left for the words to get out.
            closes_within: config.stop_within / 2,
        }
    }

    /// Answers one request of a connection. What watches over the response is one of `tasks`.
    pub(crate) async fn respond(
        &self,
        request: Request<Incoming>,
        connection: &Closing,
        tasks: &TaskTracker,
    ) -> Response<Body> {
        if let Some(code) = not_grpc(request.method(), request.headers()) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = code;
            return response;
        }
        let trace_id = trace_id(request.headers());
        let span = tracing::error_span!("call", trace_id = trace_id.as_deref());
        let admitted = async {
            match self.admit(request, connection, tasks, trace_id).await {
                Ok(response) => response,
                Err(error) => refuse(error),
            }
        };
        admitted.instrument(span).await
    }

    async fn admit(
        &self,
        mut request: Request<Incoming>,
        connection: &Closing,
        tasks: &TaskTracker,
        trace_id: Option<Arc<str>>,
    ) -> Result<Response<Body>, CallError> {
        let arrived = now();
        let path = request.uri().path();
        let route = Route::of(path);
        let streams = self.streaming.has(path);
        let waits = path == WAIT_RUN;
        let principal = self.principal(&route, &request).await?;
        if (streams || waits)
            && connection.draining.is_cancelled()
            && !matches!(route, Route::Health)
        {
            return Err(draining());
        }
        // One moment for everything that the call brings about.
        let until = deadline(request.headers())?.and_then(|length| arrived.checked_add(length));
        let server_ends = ServerEnds::with(&connection.closing);
        if let Some(principal) = principal {
            let caller = Caller {
                principal,
                trace_id,
                server_ends: server_ends.clone(),
            };
            request.extensions_mut().insert(Call { caller, until });
        }
        let message_within = (!route.asks_on()).then_some(self.message_within);
        let request = request.map(|body| TimelyBody::new(body, message_within));
        let grace = if waits {
            Duration::ZERO
        } else {
            self.closes_within
        };
        let served = self.serve(&route, request);
        let answered = self.answered(until, (&connection.closing, grace), served);
        let response = answered.await?;
        if !streams || response.headers().contains_key("grpc-status") {
            return Ok(response);
        }
        let ends = Ends {
            closing: Self::ends_with(&route, connection).clone(),
            until,
            unread_within: self.unread_within,
            by_server: server_ends,
        };
        Ok(response.map(|body| Body::new(EndingBody::new(body, ends, tasks))))
    }

    /// What ends a stream: those that watch no session have nothing to wait for.
    fn ends_with<'c>(route: &Route, connection: &'c Closing) -> &'c CancellationToken {
        match route {
            Route::Invoke | Route::Control => &connection.closing,
            _ => &connection.draining,
        }
    }

    /// Who calls; nobody where anybody may.
    async fn principal(
        &self,
        route: &Route,
        request: &Request<Incoming>,
    ) -> Result<Option<Principal>, CallError> {
        if !self.asks_who(route) {
            return Ok(None);
        }
        let principal = authn::principal(&*self.authenticator, request.headers()).await?;
        Ok(Some(principal))
    }

    fn asks_who(&self, route: &Route) -> bool {
        match route {
            Route::Health => false,
            Route::Reflection | Route::ReflectionAlpha => !self.open_reflection,
            Route::Invoke | Route::Control | Route::Unknown => true,
        }
    }

    /// Waits for a response, for as long as the call has, and for its grace once its connection
    /// closes.
    async fn answered(
        &self,
        until: Option<Instant>,
        (closing, grace): (&CancellationToken, Duration),
        response: impl Future<Output = Response<Body>>,
    ) -> Result<Response<Body>, CallError> {
        let closed = async {
            closing.cancelled().await;
            sleep(grace).await;
        };
        tokio::select! {
            biased;
            response = response => Ok(response),
            () = reached(until) => Err(CallError::unknown(
                Reason::DeadlineExceeded,
                "the deadline of this call passed before its answer was there; repeat it with the \
                 same request_id",
            )),
            () = closed => Err(CallError::unknown(
                Reason::ServerDraining,
                "this connection is closing and the answer of this call is not there yet; repeat \
                 it over a new one with the same request_id",
            )),
        }
    }

    async fn serve(&self, route: &Route, request: Request<TimelyBody>) -> Response<Body> {
        let answered = match route {
            Route::Control => return complete(self.control.respond(request).await),
            Route::Unknown => return refuse(unimplemented(request.uri().path())),
            Route::Invoke => self.invoke.clone().call(request).await.map(complete),
            Route::Health => self.health.clone().call(request).await,
            Route::Reflection => self.reflection.v1.clone().oneshot(request).await,
            Route::ReflectionAlpha => self.reflection.v1alpha.clone().oneshot(request).await,
        };
        answered.unwrap_or_else(|never: Infallible| match never {})
    }
}

impl Route {
    fn of(path: &str) -> Self {
        let service = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        match service.map(|(service, _method)| service) {
            Some(wire::invoke_server::SERVICE_NAME) => Self::Invoke,
            Some(wire::session_control_server::SERVICE_NAME) => Self::Control,
            Some(health_server::SERVICE_NAME) => Self::Health,
            Some("grpc.reflection.v1.ServerReflection") => Self::Reflection,
            Some("grpc.reflection.v1alpha.ServerReflection") => Self::ReflectionAlpha,
            _ => Self::Unknown,
        }
    }

    /// Whether the request may go on for long: a conversation, not one message.
    fn asks_on(&self) -> bool {
        matches!(self, Self::Reflection | Self::ReflectionAlpha)
    }
}

fn draining() -> CallError {
    CallError::refused(
        Reason::ServerDraining,
        "this connection is closing: the server stops, or the connection is old; call again over \
         a new one",
    )
}
