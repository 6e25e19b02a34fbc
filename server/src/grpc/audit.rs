//! The audit trail: `sessionplane.v1.Audit`.
//!
//! A handler takes the call, parses the message, makes one call of the application layer, converts
//! and answers. What must never enter: a rule about records.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::StreamExt;
use sessionplane::v1 as wire;
use sessionplane_core::contract::audit::AuditLog;
use sessionplane_core::domain::error::CallError;
use tonic::{Request, Response, Status};
use tracing::Span;

use super::call::Call;
use super::convert::audit;
use super::status::status;
use crate::app::face::Faces;

/// The service.
pub(crate) struct AuditService<F> {
    faces: Arc<F>,
}

type Messages = Pin<Box<dyn Stream<Item = Result<wire::WatchAuditResponse, Status>> + Send>>;

impl<F: Faces> AuditService<F> {
    /// A service over the application layer.
    pub(crate) fn new(faces: Arc<F>) -> Self {
        Self { faces }
    }

    async fn list(
        &self,
        request: Request<wire::ListAuditRecordsRequest>,
    ) -> Result<wire::ListAuditRecordsResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let request = audit::list(message)?;
        let face = self.faces.as_caller(call.caller);
        Ok(audit::page(face.list_audit(request, options).await?))
    }

    async fn watch(
        &self,
        request: Request<wire::WatchAuditRequest>,
    ) -> Result<Messages, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let face = self.faces.as_caller(call.caller);
        let items = face.watch_audit(message.after_seq, options).await?;
        let span = Span::current();
        Ok(Box::pin(items.map(move |item| match item {
            Ok(item) => Ok(audit::watched(item)),
            Err(error) => Err(span.in_scope(|| status(error))),
        })))
    }
}

#[tonic::async_trait]
impl<F: Faces> wire::audit_server::Audit for AuditService<F> {
    type WatchAuditStream = Messages;

    async fn list_audit_records(
        &self,
        request: Request<wire::ListAuditRecordsRequest>,
    ) -> Result<Response<wire::ListAuditRecordsResponse>, Status> {
        self.list(request).await.map(Response::new).map_err(status)
    }

    async fn watch_audit(
        &self,
        request: Request<wire::WatchAuditRequest>,
    ) -> Result<Response<Messages>, Status> {
        self.watch(request).await.map(Response::new).map_err(status)
    }
}
