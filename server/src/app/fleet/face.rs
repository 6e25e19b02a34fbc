//! The contract's `Fleet` on behalf of one caller.

use async_trait::async_trait;
use sessionplane_core::contract::fleet::{
    ChangeDirectory, ChangeDirectoryAnswer, CreateSession, DeleteAnswer, DeleteSession, Fleet,
    InteractionPage, ListInteractions, ListSessions, SessionPage, SessionWatchItem, UpdateSession,
    WatchSessions,
};
use sessionplane_core::contract::{CallOptions, ResultStream};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionRef;

use crate::app::caller::AppCaller;

#[async_trait]
impl Fleet for AppCaller {
    async fn create_session(
        &self,
        request: CreateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.within(options.deadline, self.create(request, &options))
            .await
    }

    async fn get_session(
        &self,
        session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.within(options.deadline, self.shown(session)).await
    }

    async fn list_sessions(
        &self,
        request: ListSessions,
        options: CallOptions,
    ) -> Result<SessionPage, CallError> {
        self.within(options.deadline, Box::pin(self.list(request)))
            .await
    }

    async fn watch_sessions(
        &self,
        request: WatchSessions,
        options: CallOptions,
    ) -> Result<ResultStream<SessionWatchItem>, CallError> {
        self.within(options.deadline, self.watch(request)).await
    }

    async fn update_session(
        &self,
        request: UpdateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.within(options.deadline, self.update(request, &options))
            .await
    }

    async fn delete_session(
        &self,
        request: DeleteSession,
        options: CallOptions,
    ) -> Result<DeleteAnswer, CallError> {
        self.within(options.deadline, self.delete(request, &options))
            .await
    }

    async fn change_directory(
        &self,
        request: ChangeDirectory,
        options: CallOptions,
    ) -> Result<ChangeDirectoryAnswer, CallError> {
        self.within(options.deadline, self.change_place(request, &options))
            .await
    }

    async fn pause_session(
        &self,
        session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.within(options.deadline, self.pause(session, true, &options))
            .await
    }

    async fn resume_session(
        &self,
        session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.within(options.deadline, self.pause(session, false, &options))
            .await
    }

    async fn list_interactions(
        &self,
        request: ListInteractions,
        options: CallOptions,
    ) -> Result<InteractionPage, CallError> {
        self.within(options.deadline, self.interactions(request))
            .await
    }
}
