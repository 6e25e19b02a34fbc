//! Control and observation: `sessionplane.v1.SessionControl`.
//!
//! A handler takes the call, parses the message, makes one call of the application layer, converts
//! and answers. The methods are routed by hand because `Events` sends messages that are encoded
//! already, which generated code cannot. What must never enter: a rule about sessions.

use std::future::Future;
use std::sync::Arc;

use http_body::Body as HttpBody;
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane_core::contract::SessionControl;
use sessionplane_core::domain::error::CallError;
use tonic::codec::{Codec, CompressionEncoding};
use tonic::server::Grpc;
use tonic::{Request, Response};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::Responding;
use super::call::Call;
use super::convert::{capabilities, command, field, observe, position, session};
use super::events::{EncodedEvents, EventsCodec, Metrics};
use super::status::{refuse, status, unimplemented};
use crate::app::face::{Face, Faces};

/// Pages below this many bytes are not worth compressing.
const COMPRESS_FROM_BYTES: usize = 4 * 1024;

/// The service.
pub(crate) struct SessionControlService<F> {
    faces: Arc<F>,
    metrics: Arc<Metrics>,
    max_request_bytes: usize,
}

impl<F> Clone for SessionControlService<F> {
    fn clone(&self) -> Self {
        Self {
            faces: self.faces.clone(),
            metrics: self.metrics.clone(),
            max_request_bytes: self.max_request_bytes,
        }
    }
}

impl<F: Faces> SessionControlService<F> {
    /// A service over the application layer.
    pub(crate) fn new(faces: Arc<F>, metrics: Arc<Metrics>, max_request_bytes: usize) -> Self {
        Self {
            faces,
            metrics,
            max_request_bytes,
        }
    }

    /// Answers one call.
    pub(crate) fn respond<B>(&self, request: http::Request<B>) -> Responding
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<tonic::codegen::StdError> + Send,
    {
        let this = self.clone();
        let path = request.uri().path();
        let service = wire::session_control_server::SERVICE_NAME;
        let path_in = path
            .strip_prefix('/')
            .and_then(|path| path.strip_prefix(service));
        match path_in.unwrap_or_default() {
            "/Dispatch" => unary(this, request, Self::dispatch),
            "/GetCapabilities" => unary(this, request, Self::get_capabilities),
            "/ListCommands" => unary(this, request, Self::list_commands),
            "/GetState" => unary(this, request, Self::get_state),
            "/ListEntries" => unary(this, request, Self::list_entries),
            "/Events" => this.stream(request),
            _unknown => {
                let refusal = refuse(unimplemented(path));
                Box::pin(async { refusal })
            }
        }
    }

    fn stream<B>(self, request: http::Request<B>) -> Responding
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<tonic::codegen::StdError> + Send,
    {
        let most = self.max_request_bytes;
        Box::pin(async move {
            let handler = service_fn(move |request| {
                let this = self.clone();
                async move {
                    this.events(request)
                        .await
                        .map(Response::new)
                        .map_err(status)
                }
            });
            grpc(EventsCodec, most)
                .server_streaming(handler, request)
                .await
        })
    }

    async fn dispatch(
        self,
        request: Request<wire::DispatchRequest>,
    ) -> Result<Response<wire::DispatchResponse>, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(field::request_id(&message.request_id)?);
        let request = command::request(message)?;
        let answer = self
            .faces
            .as_caller(call.caller)
            .dispatch(request, options)
            .await?;
        Ok(small(command::answer(&answer)))
    }

    async fn get_capabilities(
        self,
        request: Request<wire::GetCapabilitiesRequest>,
    ) -> Result<Response<wire::GetCapabilitiesResponse>, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let target = capabilities::target(message)?;
        let report = self
            .faces
            .as_caller(call.caller)
            .get_capabilities(target, options)
            .await?;
        let capabilities = Some(capabilities::report(&report));
        Ok(small(wire::GetCapabilitiesResponse { capabilities }))
    }

    async fn list_commands(
        self,
        request: Request<wire::ListCommandsRequest>,
    ) -> Result<Response<wire::ListCommandsResponse>, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let target = capabilities::commands_target(message.target)?;
        let offered = self
            .faces
            .as_caller(call.caller)
            .list_commands(target, options)
            .await?;
        capabilities::commands_page(&offered, message.page_size, &message.page_token).map(small)
    }

    async fn get_state(
        self,
        request: Request<wire::GetStateRequest>,
    ) -> Result<Response<wire::GetStateResponse>, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let address = session::reference(message.session)?;
        let at = message.min_position.map(position::from_wire);
        let state = self
            .faces
            .as_caller(call.caller)
            .get_state(address, at, options)
            .await?;
        Ok(small(wire::GetStateResponse {
            state: Some(session::state(&state)),
        }))
    }

    async fn list_entries(
        self,
        request: Request<wire::ListEntriesRequest>,
    ) -> Result<Response<wire::ListEntriesResponse>, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let request = observe::list_request(message)?;
        let page = self
            .faces
            .as_caller(call.caller)
            .list_entries(request, options)
            .await?;
        let page = observe::page(&page);
        if page.encoded_len() < COMPRESS_FROM_BYTES {
            return Ok(small(page));
        }
        Ok(Response::new(page))
    }

    async fn events(
        self,
        request: Request<wire::EventsRequest>,
    ) -> Result<EncodedEvents, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let request = observe::events_request(message)?;
        let observation = self
            .faces
            .as_caller(call.caller)
            .observe(request, options)
            .await?;
        Ok(EncodedEvents::new(observation, self.metrics))
    }
}

/// An answer that is too small to be compressed, even if the caller could read that.
fn small<M>(message: M) -> Response<M> {
    let mut response = Response::new(message);
    response.disable_compression();
    response
}

fn unary<F, B, M, R, Answer>(
    service: SessionControlService<F>,
    request: http::Request<B>,
    method: fn(SessionControlService<F>, Request<M>) -> Answer,
) -> Responding
where
    F: Faces,
    B: HttpBody + Send + 'static,
    B::Error: Into<tonic::codegen::StdError> + Send,
    M: Message + Default + Send + 'static,
    R: Message + Send + 'static,
    Answer: Future<Output = Result<Response<R>, CallError>> + Send + 'static,
{
    let most = service.max_request_bytes;
    Box::pin(async move {
        let handler = service_fn(move |request| {
            let answer = method(service.clone(), request);
            async move { answer.await.map_err(status) }
        });
        let mut grpc = grpc(ProstCodec::<R, M>::default(), most)
            .send_compressed(CompressionEncoding::Zstd)
            .send_compressed(CompressionEncoding::Gzip);
        grpc.unary(handler, request).await
    })
}

/// Reads what a caller may send. Streams of live events are never compressed: their pieces are
/// small, and every observer would cost that work again.
fn grpc<C: Codec>(codec: C, max_request_bytes: usize) -> Grpc<C> {
    Grpc::new(codec)
        .accept_compressed(CompressionEncoding::Zstd)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(max_request_bytes)
}
