//! The fleet of the fake.

use std::collections::VecDeque;

use sessionplane::v1::fleet_server::Fleet;
use sessionplane::v1::{self};
use tonic::{Request, Response, Status, async_trait};

use super::{Played, Script, Service, Step, played};

/// What is to be played of the fleet and what was asked.
#[derive(Default)]
pub(crate) struct FleetStage {
    /// How `CreateSession`, `GetSession`, `UpdateSession`, `PauseSession` and `ResumeSession` are
    /// answered.
    pub(crate) sessions: VecDeque<Script<v1::Session>>,
    pub(crate) pages: VecDeque<Script<v1::ListSessionsResponse>>,
    pub(crate) watches: VecDeque<Script<Vec<Step<v1::WatchSessionsResponse>>>>,
    pub(crate) deletions: VecDeque<Script<v1::DeleteSessionResponse>>,
    pub(crate) moves: VecDeque<Script<v1::ChangeDirectoryResponse>>,
    pub(crate) questions: VecDeque<Script<v1::ListInteractionsResponse>>,
    pub(crate) created: Vec<v1::CreateSessionRequest>,
    pub(crate) listed: Vec<v1::ListSessionsRequest>,
    pub(crate) watched: Vec<v1::WatchSessionsRequest>,
    pub(crate) updated: Vec<v1::UpdateSessionRequest>,
    pub(crate) deleted: Vec<v1::DeleteSessionRequest>,
    pub(crate) moved: Vec<v1::ChangeDirectoryRequest>,
    pub(crate) paused: Vec<v1::PauseSessionRequest>,
    pub(crate) resumed: Vec<v1::ResumeSessionRequest>,
}

impl Service {
    /// Notes a request and plays the next answer. A server that has nothing to play is an older one.
    fn play<T>(
        &self,
        note: impl FnOnce(&mut FleetStage),
        queue: impl FnOnce(&mut FleetStage) -> &mut VecDeque<Script<T>>,
    ) -> Script<T> {
        let mut stage = self.0.lock().unwrap();
        note(&mut stage.fleet);
        let older = || {
            Err(super::super::wire::ours(
                tonic::Code::Unimplemented,
                "UNIMPLEMENTED",
                "refused",
            ))
        };
        queue(&mut stage.fleet).pop_front().unwrap_or_else(older)
    }

    fn session(&self, note: impl FnOnce(&mut FleetStage)) -> Result<Option<v1::Session>, Status> {
        self.play(note, |fleet| &mut fleet.sessions).map(Some)
    }
}

#[async_trait]
impl Fleet for Service {
    type WatchSessionsStream = Played<v1::WatchSessionsResponse>;

    async fn create_session(
        &self,
        request: Request<v1::CreateSessionRequest>,
    ) -> Result<Response<v1::CreateSessionResponse>, Status> {
        let session = self.session(|fleet| fleet.created.push(request.into_inner()))?;
        Ok(Response::new(v1::CreateSessionResponse { session }))
    }

    async fn get_session(
        &self,
        _: Request<v1::GetSessionRequest>,
    ) -> Result<Response<v1::GetSessionResponse>, Status> {
        let session = self.session(|_| {})?;
        Ok(Response::new(v1::GetSessionResponse { session }))
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        let page = self.play(
            |fleet| fleet.listed.push(request.into_inner()),
            |fleet| &mut fleet.pages,
        );
        page.map(Response::new)
    }

    async fn watch_sessions(
        &self,
        request: Request<v1::WatchSessionsRequest>,
    ) -> Result<Response<Self::WatchSessionsStream>, Status> {
        let steps = self.play(
            |fleet| fleet.watched.push(request.into_inner()),
            |fleet| &mut fleet.watches,
        );
        steps.map(|steps| Response::new(played(steps)))
    }

    async fn update_session(
        &self,
        request: Request<v1::UpdateSessionRequest>,
    ) -> Result<Response<v1::UpdateSessionResponse>, Status> {
        let session = self.session(|fleet| fleet.updated.push(request.into_inner()))?;
        Ok(Response::new(v1::UpdateSessionResponse { session }))
    }

    async fn delete_session(
        &self,
        request: Request<v1::DeleteSessionRequest>,
    ) -> Result<Response<v1::DeleteSessionResponse>, Status> {
        let answer = self.play(
            |fleet| fleet.deleted.push(request.into_inner()),
            |fleet| &mut fleet.deletions,
        );
        answer.map(Response::new)
    }

    async fn change_directory(
        &self,
        request: Request<v1::ChangeDirectoryRequest>,
    ) -> Result<Response<v1::ChangeDirectoryResponse>, Status> {
        let answer = self.play(
            |fleet| fleet.moved.push(request.into_inner()),
            |fleet| &mut fleet.moves,
        );
        answer.map(Response::new)
    }

    async fn pause_session(
        &self,
        request: Request<v1::PauseSessionRequest>,
    ) -> Result<Response<v1::PauseSessionResponse>, Status> {
        let session = self.session(|fleet| fleet.paused.push(request.into_inner()))?;
        Ok(Response::new(v1::PauseSessionResponse { session }))
    }

    async fn resume_session(
        &self,
        request: Request<v1::ResumeSessionRequest>,
    ) -> Result<Response<v1::ResumeSessionResponse>, Status> {
        let session = self.session(|fleet| fleet.resumed.push(request.into_inner()))?;
        Ok(Response::new(v1::ResumeSessionResponse { session }))
    }

    async fn list_interactions(
        &self,
        _: Request<v1::ListInteractionsRequest>,
    ) -> Result<Response<v1::ListInteractionsResponse>, Status> {
        let page = self.play(|_| {}, |fleet| &mut fleet.questions);
        page.map(Response::new)
    }
}
