//! The data plane: `sessionplane.v1.Invoke`.
//!
//! A handler takes the call, parses the message, makes one call of the application layer, converts
//! and answers. What must never enter: a rule about runs.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::StreamExt;
use sessionplane::v1 as wire;
use sessionplane_core::contract::Agent;
use sessionplane_core::domain::error::CallError;
use tonic::{Request, Response, Status};
use tracing::Span;

use super::call::Call;
use super::convert::{field, invoke, run};
use super::status::status;
use crate::app::face::Faces;

/// The service.
pub(crate) struct InvokeService<F> {
    faces: Arc<F>,
}

impl<F: Faces> InvokeService<F> {
    /// A service over the application layer.
    pub(crate) fn new(faces: Arc<F>) -> Self {
        Self { faces }
    }

    async fn start(&self, request: Request<wire::InvokeRequest>) -> Result<Messages, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(field::request_id(&message.request_id)?);
        let request = invoke::request(message)?;
        let events = self
            .faces
            .as_caller(call.caller)
            .invoke(request, options)
            .await?;
        let span = Span::current();
        Ok(Box::pin(events.map(move |event| match event {
            Ok(event) => Ok(invoke::response(&event)),
            Err(error) => Err(span.in_scope(|| status(error))),
        })))
    }

    async fn read(
        &self,
        request: Request<wire::GetRunRequest>,
    ) -> Result<wire::GetRunResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let id = field::id("run_id", &message.run_id)?;
        let record = self
            .faces
            .as_caller(call.caller)
            .get_run(id, options)
            .await?;
        Ok(wire::GetRunResponse {
            run: Some(run::record(&record)),
        })
    }

    async fn list(
        &self,
        request: Request<wire::ListRunsRequest>,
    ) -> Result<wire::ListRunsResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let request = run::list_request(message)?;
        let page = self
            .faces
            .as_caller(call.caller)
            .list_runs(request, options)
            .await?;
        Ok(run::page(&page))
    }

    async fn wait(
        &self,
        request: Request<wire::WaitRunRequest>,
    ) -> Result<wire::WaitRunResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let id = field::id("run_id", &message.run_id)?;
        let record = self
            .faces
            .as_caller(call.caller)
            .wait_run(id, options)
            .await?;
        Ok(wire::WaitRunResponse {
            run: Some(run::record(&record)),
        })
    }
}

type Messages = Pin<Box<dyn Stream<Item = Result<wire::InvokeResponse, Status>> + Send>>;

#[tonic::async_trait]
impl<F: Faces> wire::invoke_server::Invoke for InvokeService<F> {
    type InvokeStream = Messages;

    async fn invoke(
        &self,
        request: Request<wire::InvokeRequest>,
    ) -> Result<Response<Messages>, Status> {
        self.start(request).await.map(Response::new).map_err(status)
    }

    async fn get_run(
        &self,
        request: Request<wire::GetRunRequest>,
    ) -> Result<Response<wire::GetRunResponse>, Status> {
        self.read(request).await.map(Response::new).map_err(status)
    }

    async fn list_runs(
        &self,
        request: Request<wire::ListRunsRequest>,
    ) -> Result<Response<wire::ListRunsResponse>, Status> {
        self.list(request).await.map(Response::new).map_err(status)
    }

    async fn wait_run(
        &self,
        request: Request<wire::WaitRunRequest>,
    ) -> Result<Response<wire::WaitRunResponse>, Status> {
        self.wait(request).await.map(Response::new).map_err(status)
    }
}
