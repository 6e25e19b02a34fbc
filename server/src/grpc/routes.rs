//! From a request's path to its service, past the question who calls.
//!
//! What must never enter: anything that a message says.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderMap, Request, Response};
use http_body::Body as HttpBody;
use sessionplane::v1 as wire;
use sessionplane_core::domain::access::Principal;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::ports::authenticator::{Authenticator, Known};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::StdError;
use tonic_health::pb::health_server;
use tower::{Service, ServiceExt};
use tracing::{Instrument as _, Span};

use super::answer::AnswerBody;
use super::audit::AuditService;
use super::call::{Call, deadline, trace_id};
use super::compress::{self, Coding};
use super::connection::Closing;
use super::ending::{Ended, EndingBody, Ends, reached};
use super::events::Metrics;
use super::fleet::FleetService;
use super::health::Health;
use super::invoke::InvokeService;
use super::methods::Streaming;
use super::reading::{TimelyBody, not_grpc};
use super::reflection::Reflection;
use super::seldom::Seldom;
use super::server::Config;
use super::session_control::SessionControlService;
use super::shares::{Share, Shares};
use super::status::{complete, refuse, unimplemented};
use super::{authn, now};
use crate::app::face::{Caller, Faces, ServerEnds};

/// What HTTP/2 counts for each header beside its name and value.
const FIELD_BYTES: usize = 32;
/// Answers once and yet lasts as long as a run: where connections close it ends as a stream does.
const WAIT_RUN: &str = "/sessionplane.v1.Invoke/WaitRun";

/// Streams at a time of who is not known: watches of health, and reflection where it is open. Known
/// ones cost their caller's name; these cost nobody anything.
pub(crate) const STRANGERS_STREAMS: usize = 1024;

/// Is with a response whose caller was known.
#[derive(Clone, Copy)]
pub(crate) struct CallerKnown;

/// Everything that is served, for all connections.
pub(crate) struct Routes<F: Faces> {
    authenticator: Arc<dyn Authenticator>,
    /// Anybody can call without a credential.
    unknown: Seldom,
    streaming: Streaming,
    invoke: wire::invoke_server::InvokeServer<InvokeService<F>>,
    control: SessionControlService<F>,
    fleet: wire::fleet_server::FleetServer<FleetService<F>>,
    audit: wire::audit_server::AuditServer<AuditService<F>>,
    health: health_server::HealthServer<tonic_health::server::HealthService>,
    reflection: Reflection,
    open_reflection: bool,
    max_header_bytes: usize,
    max_calls: usize,
    /// Room for calls that are not answered yet.
    calls: Semaphore,
    /// What of it one principal may take.
    calls_of_one: Shares,
    /// Calls of one principal that wait for a run.
    waits_of_one: Shares,
    /// Room for streams of who is not known.
    strangers: Arc<Semaphore>,
    message_within: Duration,
    unread_within: Duration,
    /// How long calls that are not answered yet may go on when their connection closes.
    closes_within: Duration,
}

/// What a path is about.
enum Route {
    Invoke,
    Control,
    Fleet,
    Audit,
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
        let fleet = FleetService::new(faces.clone());
        let fleet = wire::fleet_server::FleetServer::new(fleet)
            .accept_compressed(CompressionEncoding::Zstd)
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(config.max_request_bytes);
        let audit = AuditService::new(faces.clone());
        let audit = wire::audit_server::AuditServer::new(audit)
            .accept_compressed(CompressionEncoding::Zstd)
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(config.max_request_bytes);
        Self {
            authenticator,
            unknown: Seldom::default(),
            streaming,
            invoke,
            control: SessionControlService::new(faces, metrics, config.max_request_bytes),
            fleet,
            audit,
            health: health.service(),
            reflection,
            open_reflection: config.open_reflection,
            max_header_bytes: config.max_header_bytes,
            max_calls: config.max_calls,
            calls: Semaphore::new(config.max_calls.min(Semaphore::MAX_PERMITS)),
            calls_of_one: Shares::new(share_of(config.max_calls)),
            waits_of_one: Shares::new(config.max_waits),
            strangers: Arc::new(Semaphore::new(STRANGERS_STREAMS)),
            message_within: config.message_within,
            unread_within: config.unread_within,
            // Half of it is left for the words to get out.
            closes_within: config.stop_within / 2,
        }
    }

    /// Answers one request of a connection. What watches over the response is one of `tasks`.
    pub(crate) async fn respond<B>(
        &self,
        request: Request<B>,
        connection: &Closing,
        tasks: &TaskTracker,
    ) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<StdError>,
    {
        if let Some(code) = not_grpc(request.method(), request.headers()) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = code;
            return response;
        }
        let trace_id = trace_id(request.headers());
        // Without a trace id there is nothing that a span would add to a line of the log.
        let span = trace_id.as_deref().map_or_else(Span::none, |trace_id| {
            tracing::error_span!("call", trace_id)
        });
        let mut known = None;
        let admitted = {
            let admitted = pin!(self.admit(request, connection, tasks, trace_id, &mut known));
            admitted.instrument(span.clone()).await
        };
        let mut response = admitted.unwrap_or_else(|error| span.in_scope(|| refuse(error)));
        if let Some(known) = known {
            response.extensions_mut().insert(known);
        }
        response
    }

    async fn admit<B>(
        &self,
        mut request: Request<B>,
        connection: &Closing,
        tasks: &TaskTracker,
        trace_id: Option<Arc<str>>,
        known: &mut Option<CallerKnown>,
    ) -> Result<Response<Body>, CallError>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<StdError>,
    {
        let arrived = now();
        let path = request.uri().path();
        let route = Route::of(path);
        let streams = self.streaming.has(path);
        let waits = path == WAIT_RUN;
        self.bounded_headers(request.headers())?;
        let _room = self.room(&route, waits)?;
        let coding = Coding::accepted(request.headers());
        let caller = self
            .caller(&route, request.headers(), request.extensions())
            .await?;
        *known = caller.is_some().then_some(CallerKnown);
        let principal = caller.as_ref().map(|known| known.principal.clone());
        let _share = self.share(principal.as_ref(), waits)?;
        let place = self.place(streams && principal.is_none())?;
        if (streams || waits)
            && connection.draining.is_cancelled()
            && !matches!(route, Route::Health)
        {
            return Err(draining());
        }
        // One moment for everything that the call brings about.
        let until = deadline(request.headers())?.and_then(|length| arrived.checked_add(length));
        // Only of a stream it matters who ended it.
        let server_ends = if streams {
            ServerEnds::with(&connection.closing)
        } else {
            ServerEnds::default()
        };
        // Not only for what lasts: the message of any call may take its time to come.
        let mut credential = self.credential(caller);
        if let Some(principal) = principal {
            let caller = Caller {
                principal,
                trace_id,
                via: None,
                server_ends: server_ends.clone(),
            };
            request.extensions_mut().insert(Call { caller, until });
        }
        let message_within = (!route.asks_on()).then_some(self.message_within);
        let request = request.map(|body| TimelyBody::new(body, message_within));
        let grace = self.grace(waits);
        // Pinned here: a call's futures are large, and each function that takes one moves it.
        let served = pin!(self.serve(&route, request));
        let mut answered = pin!(self.answered(until, (&connection.closing, grace), served));
        let response = tokio::select! {
            // What answers at once never asks: it was judged a moment ago.
            biased;
            response = &mut answered => response?,
            ended = &mut credential => {
                server_ends.set();
                return Err(CallError::unknown(Reason::Unauthenticated, ended.to_string()));
            }
        };
        let response = compress::response(coding, response);
        if response.headers().contains_key("grpc-status") {
            return Ok(response);
        }
        if !streams {
            let unread_within = self.unread_within;
            return Ok(response.map(|body| Body::new(AnswerBody::new(body, unread_within, tasks))));
        }
        let ends = Ends {
            closing: Self::ends_with(&route, connection).clone(),
            until,
            unread_within: self.unread_within,
            credential,
            by_server: server_ends,
            _place: place,
        };
        Ok(response.map(|body| Body::new(EndingBody::new(body, ends, tasks))))
    }

    /// C60: a request's headers, as HTTP/2 counts them.
    fn bounded_headers(&self, headers: &HeaderMap) -> Result<(), CallError> {
        let fields = headers.iter();
        let size = fields.map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES);
        let (size, limit) = (size.sum(), self.max_header_bytes);
        if size <= limit {
            return Ok(());
        }
        let way_out = "send less metadata, or have limits.max_header_bytes raised";
        Err(CallError::too_large("metadata", size, limit, way_out))
    }

    /// Room for a call until it is answered; refused before anything was done for it. Health is
    /// always answered, and who waits for a run does nothing meanwhile.
    fn room(&self, route: &Route, waits: bool) -> Result<Option<SemaphorePermit<'_>>, CallError> {
        if waits || matches!(route, Route::Health) {
            return Ok(None);
        }
        self.calls.try_acquire().map(Some).map_err(|_full| {
            let message = format!(
                "{} calls are in work, and limits.max_calls is no more; try again in a moment",
                self.max_calls
            );
            CallError::refused(Reason::Overloaded, message)
        })
    }

    /// C60: what one principal has at a time of calls in work, or of waits. It leaves others theirs.
    fn share(
        &self,
        principal: Option<&Principal>,
        waits: bool,
    ) -> Result<Option<Share<'_>>, CallError> {
        let Some(principal) = principal else {
            return Ok(None);
        };
        let (shares, what, limit) = if waits {
            let limit = "limits.max_waits is no more; watch with Events instead";
            (&self.waits_of_one, "waits for runs are open", limit)
        } else {
            let limit = "one principal has no more of limits.max_calls; try again in a moment";
            (&self.calls_of_one, "calls are in work", limit)
        };
        shares.take(principal).map(Some).ok_or_else(|| {
            let (most, id) = (shares.most(), &principal.id);
            let message = format!("{most} {what} of principal {id}, and {limit}");
            CallError::refused(Reason::Overloaded, message)
        })
    }

    /// A place for a stream of a stranger. Who has none is told to ask again instead.
    fn place(&self, needed: bool) -> Result<Option<OwnedSemaphorePermit>, CallError> {
        if !needed {
            return Ok(None);
        }
        let place = self.strangers.clone().try_acquire_owned();
        place.map(Some).map_err(|_full| {
            let message = format!(
                "{STRANGERS_STREAMS} streams are open that nobody needs a token for, and that is \
                 the limit; ask once in a while instead of watching"
            );
            CallError::refused(Reason::Overloaded, message)
        })
    }

    /// What ends a stream: those that watch no session have nothing to wait for.
    fn ends_with<'c>(route: &Route, connection: &'c Closing) -> &'c CancellationToken {
        match route {
            Route::Invoke | Route::Control | Route::Fleet | Route::Audit => &connection.closing,
            _ => &connection.draining,
        }
    }

    /// Who calls; nobody where anybody may.
    async fn caller(
        &self,
        route: &Route,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Option<Known>, CallError> {
        if !self.asks_who(route) {
            return Ok(None);
        }
        let known = authn::known(&*self.authenticator, headers, extensions).await;
        let known = known.inspect_err(|error| {
            let tell = |times| tracing::info!(times, last = error.message, "callers are not known");
            self.unknown.tell(tell);
        });
        known.map(Some)
    }

    /// How long a call may go on when its connection closes: what waits does nothing meanwhile.
    fn grace(&self, waits: bool) -> Duration {
        if waits {
            Duration::ZERO
        } else {
            self.closes_within
        }
    }

    /// Completes when the credential of a caller ends; never without a caller.
    fn credential(&self, caller: Option<Known>) -> Ended {
        let authenticator = self.authenticator.clone();
        Box::pin(async move {
            match caller {
                Some(known) => authenticator.ended(&known).await,
                None => std::future::pending().await,
            }
        })
    }

    fn asks_who(&self, route: &Route) -> bool {
        match route {
            Route::Health => false,
            Route::Reflection | Route::ReflectionAlpha => !self.open_reflection,
            Route::Invoke | Route::Control | Route::Fleet | Route::Audit | Route::Unknown => true,
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

    async fn serve<B>(&self, route: &Route, request: Request<TimelyBody<B>>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<StdError>,
    {
        let answered = match route {
            Route::Control => return complete(self.control.respond(request).await),
            Route::Unknown => return refuse(unimplemented(request.uri().path())),
            Route::Invoke => self.invoke.clone().call(request).await.map(complete),
            Route::Fleet => self.fleet.clone().call(request).await.map(complete),
            Route::Audit => self.audit.clone().call(request).await.map(complete),
            Route::Health => self.health.clone().call(request).await,
            Route::Reflection => {
                let request = request.map(Body::new);
                self.reflection.v1.clone().oneshot(request).await
            }
            Route::ReflectionAlpha => {
                let request = request.map(Body::new);
                self.reflection.v1alpha.clone().oneshot(request).await
            }
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
            Some(wire::fleet_server::SERVICE_NAME) => Self::Fleet,
            Some(wire::audit_server::SERVICE_NAME) => Self::Audit,
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

/// What one principal may take of what all have: three quarters.
fn share_of(all: usize) -> usize {
    all.saturating_sub(all.div_ceil(4)).max(1)
}

fn draining() -> CallError {
    CallError::refused(
        Reason::ServerDraining,
        "this connection is closing: the server stops, or the connection is old; call again over \
         a new one",
    )
}
