//! Unary calls on generated code and nothing else.

use sessionplane::v1 as wire;
use sessionplane::v1::session_control_server::SessionControl;
use tonic::{Request, Response, Status};

use super::commit::Commits;

/// Answers `GetState` with a prebuilt message and `Dispatch` once its commit is synced.
pub(crate) struct BareUnary {
    pub(crate) state: wire::GetStateResponse,
    pub(crate) commits: Commits,
}

#[tonic::async_trait]
impl SessionControl for BareUnary {
    type EventsStream = tokio_stream::Empty<Result<wire::EventsResponse, Status>>;

    async fn get_state(
        &self,
        _request: Request<wire::GetStateRequest>,
    ) -> Result<Response<wire::GetStateResponse>, Status> {
        Ok(Response::new(self.state.clone()))
    }

    async fn dispatch(
        &self,
        request: Request<wire::DispatchRequest>,
    ) -> Result<Response<wire::DispatchResponse>, Status> {
        self.commits
            .dispatch(request.into_inner())
            .await
            .map(Response::new)
    }

    async fn get_capabilities(
        &self,
        _request: Request<wire::GetCapabilitiesRequest>,
    ) -> Result<Response<wire::GetCapabilitiesResponse>, Status> {
        Err(no_floor())
    }

    async fn list_commands(
        &self,
        _request: Request<wire::ListCommandsRequest>,
    ) -> Result<Response<wire::ListCommandsResponse>, Status> {
        Err(no_floor())
    }

    async fn list_entries(
        &self,
        _request: Request<wire::ListEntriesRequest>,
    ) -> Result<Response<wire::ListEntriesResponse>, Status> {
        Err(no_floor())
    }

    async fn events(
        &self,
        _request: Request<wire::EventsRequest>,
    ) -> Result<Response<Self::EventsStream>, Status> {
        Err(no_floor())
    }
}

fn no_floor() -> Status {
    Status::unimplemented("there is no floor for this call here")
}
