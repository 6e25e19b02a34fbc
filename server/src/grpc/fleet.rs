//! Names, metadata and phases of all sessions: `sessionplane.v1.Fleet`.
//!
//! A handler takes the call, parses the message, makes one call of the application layer, converts
//! and answers. What must never enter: a rule about sessions.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::StreamExt;
use sessionplane::v1 as wire;
use sessionplane_core::contract::fleet::Fleet;
use sessionplane_core::domain::error::CallError;
use tonic::{Request, Response, Status};
use tracing::Span;

use super::call::Call;
use super::convert::{field, fleet, labels, session, summary};
use super::status::status;
use crate::app::face::Faces;

/// The service.
pub(crate) struct FleetService<F> {
    faces: Arc<F>,
}

type Messages = Pin<Box<dyn Stream<Item = Result<wire::WatchSessionsResponse, Status>> + Send>>;

impl<F: Faces> FleetService<F> {
    /// A service over the application layer.
    pub(crate) fn new(faces: Arc<F>) -> Self {
        Self { faces }
    }

    async fn create(
        &self,
        request: Request<wire::CreateSessionRequest>,
    ) -> Result<wire::CreateSessionResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(field::request_id(&message.request_id)?);
        let request = fleet::create(message)?;
        let face = self.faces.as_caller(call.caller);
        let created = face.create_session(request, options).await?;
        let session = Some(summary::to_wire(&created));
        Ok(wire::CreateSessionResponse { session })
    }

    async fn get(
        &self,
        request: Request<wire::GetSessionRequest>,
    ) -> Result<wire::GetSessionResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let named = session::reference(message.session)?;
        let face = self.faces.as_caller(call.caller);
        let found = face.get_session(named, options).await?;
        let session = Some(summary::to_wire(&found));
        Ok(wire::GetSessionResponse { session })
    }

    async fn list(
        &self,
        request: Request<wire::ListSessionsRequest>,
    ) -> Result<wire::ListSessionsResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let request = fleet::list(message)?;
        let face = self.faces.as_caller(call.caller);
        let page = face.list_sessions(request, options).await?;
        Ok(fleet::page(&page))
    }

    async fn watch(
        &self,
        request: Request<wire::WatchSessionsRequest>,
    ) -> Result<Messages, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let request = fleet::watch(message);
        let face = self.faces.as_caller(call.caller);
        let items = face.watch_sessions(request, options).await?;
        let span = Span::current();
        Ok(Box::pin(items.map(move |item| match item {
            Ok(item) => Ok(fleet::watched(&item)),
            Err(error) => Err(span.in_scope(|| status(error))),
        })))
    }

    async fn update(
        &self,
        request: Request<wire::UpdateSessionRequest>,
    ) -> Result<wire::UpdateSessionResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(field::request_id(&message.request_id)?);
        let request = labels::update(message)?;
        let face = self.faces.as_caller(call.caller);
        let updated = face.update_session(request, options).await?;
        let session = Some(summary::to_wire(&updated));
        Ok(wire::UpdateSessionResponse { session })
    }

    async fn delete(
        &self,
        request: Request<wire::DeleteSessionRequest>,
    ) -> Result<wire::DeleteSessionResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(field::request_id(&message.request_id)?);
        let request = fleet::delete(message)?;
        let face = self.faces.as_caller(call.caller);
        let answer = face.delete_session(request, options).await?;
        Ok(fleet::deleted(&answer))
    }

    async fn move_to(
        &self,
        request: Request<wire::ChangeDirectoryRequest>,
    ) -> Result<wire::ChangeDirectoryResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(field::request_id(&message.request_id)?);
        let request = fleet::change_directory(message)?;
        let face = self.faces.as_caller(call.caller);
        let answer = face.change_directory(request, options).await?;
        Ok(fleet::moved(&answer))
    }

    async fn pause(
        &self,
        request: Request<wire::PauseSessionRequest>,
    ) -> Result<wire::PauseSessionResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(field::request_id(&message.request_id)?);
        let named = session::reference(message.session)?;
        let face = self.faces.as_caller(call.caller);
        let paused = face.pause_session(named, options).await?;
        let session = Some(summary::to_wire(&paused));
        Ok(wire::PauseSessionResponse { session })
    }

    async fn resume(
        &self,
        request: Request<wire::ResumeSessionRequest>,
    ) -> Result<wire::ResumeSessionResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(field::request_id(&message.request_id)?);
        let named = session::reference(message.session)?;
        let face = self.faces.as_caller(call.caller);
        let resumed = face.resume_session(named, options).await?;
        let session = Some(summary::to_wire(&resumed));
        Ok(wire::ResumeSessionResponse { session })
    }

    async fn interactions(
        &self,
        request: Request<wire::ListInteractionsRequest>,
    ) -> Result<wire::ListInteractionsResponse, CallError> {
        let (call, message) = Call::open(request)?;
        let options = call.options(None);
        let request = fleet::list_interactions(message)?;
        let face = self.faces.as_caller(call.caller);
        let page = face.list_interactions(request, options).await?;
        Ok(fleet::interactions(&page))
    }
}

/// Answers each method of the service with a handler of that name.
macro_rules! unary {
    ($($method:ident: $request:ident -> $response:ident by $handler:ident;)*) => {
        #[tonic::async_trait]
        impl<F: Faces> wire::fleet_server::Fleet for FleetService<F> {
            type WatchSessionsStream = Messages;

            async fn watch_sessions(
                &self,
                request: Request<wire::WatchSessionsRequest>,
            ) -> Result<Response<Messages>, Status> {
                self.watch(request).await.map(Response::new).map_err(status)
            }
            $(
                async fn $method(
                    &self,
                    request: Request<wire::$request>,
                ) -> Result<Response<wire::$response>, Status> {
                    self.$handler(request).await.map(Response::new).map_err(status)
                }
            )*
        }
    };
}

unary! {
    create_session: CreateSessionRequest -> CreateSessionResponse by create;
    get_session: GetSessionRequest -> GetSessionResponse by get;
    list_sessions: ListSessionsRequest -> ListSessionsResponse by list;
    update_session: UpdateSessionRequest -> UpdateSessionResponse by update;
    delete_session: DeleteSessionRequest -> DeleteSessionResponse by delete;
    change_directory: ChangeDirectoryRequest -> ChangeDirectoryResponse by move_to;
    pause_session: PauseSessionRequest -> PauseSessionResponse by pause;
    resume_session: ResumeSessionRequest -> ResumeSessionResponse by resume;
    list_interactions: ListInteractionsRequest -> ListInteractionsResponse by interactions;
}
