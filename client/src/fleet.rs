//! The fleet, called: `Fleet` for a [`Client`].

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

use crate::clock::mint_request_id;
use crate::connection::Client;
use crate::convert::{fleet, summary};
use crate::opening::{answered, messages, open, readable};
use crate::retry::{Effect, Patience, call};

/// One logical call: its attempts send the same message.
macro_rules! attempts {
    ($client:ident, $options:ident, $effect:ident, $method:ident, $wire:ident) => {
        call($client.patience(&$options, Effect::$effect), || {
            let (mut stub, request) = (
                $client.fleet_stub(),
                $client.timed($wire.clone(), &$options),
            );
            async move { answered(stub.$method(request)).await }
        })
        .await?
    };
}

#[async_trait]
impl Fleet for Client {
    async fn create_session(
        &self,
        request: CreateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        let request_id = options.request_id.clone().unwrap_or_else(mint_request_id);
        let wire = fleet::create(request, &request_id);
        let answer = attempts!(self, options, Writes, create_session, wire);
        readable(summary::required_read(answer.session))
    }

    async fn get_session(
        &self,
        session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        let wire = fleet::get(&session);
        let answer = attempts!(self, options, Reads, get_session, wire);
        readable(summary::required_read(answer.session))
    }

    async fn list_sessions(
        &self,
        request: ListSessions,
        options: CallOptions,
    ) -> Result<SessionPage, CallError> {
        let wire = fleet::list(request);
        let answer = attempts!(self, options, Reads, list_sessions, wire);
        readable(fleet::page(answer))
    }

    async fn watch_sessions(
        &self,
        request: WatchSessions,
        options: CallOptions,
    ) -> Result<ResultStream<SessionWatchItem>, CallError> {
        let patience = self.patience(&options, Effect::Reads);
        self.receive_sessions(request, patience).await
    }

    async fn update_session(
        &self,
        request: UpdateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        let request_id = options.request_id.clone().unwrap_or_else(mint_request_id);
        let wire = fleet::update(request, &request_id);
        let answer = attempts!(self, options, Writes, update_session, wire);
        readable(summary::required_read(answer.session))
    }

    async fn delete_session(
        &self,
        request: DeleteSession,
        options: CallOptions,
    ) -> Result<DeleteAnswer, CallError> {
        let request_id = options.request_id.clone().unwrap_or_else(mint_request_id);
        let wire = fleet::delete(&request, &request_id);
        let answer = attempts!(self, options, Writes, delete_session, wire);
        readable(fleet::deleted(answer))
    }

    async fn change_directory(
        &self,
        request: ChangeDirectory,
        options: CallOptions,
    ) -> Result<ChangeDirectoryAnswer, CallError> {
        let request_id = options.request_id.clone().unwrap_or_else(mint_request_id);
        let wire = fleet::change_directory(&request, &request_id);
        let answer = attempts!(self, options, Writes, change_directory, wire);
        readable(fleet::moved(answer))
    }

    async fn pause_session(
        &self,
        session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        let request_id = options.request_id.clone().unwrap_or_else(mint_request_id);
        let wire = fleet::pause(&session, &request_id);
        let answer = attempts!(self, options, Writes, pause_session, wire);
        readable(summary::required_read(answer.session))
    }

    async fn resume_session(
        &self,
        session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        let request_id = options.request_id.clone().unwrap_or_else(mint_request_id);
        let wire = fleet::resume(&session, &request_id);
        let answer = attempts!(self, options, Writes, resume_session, wire);
        readable(summary::required_read(answer.session))
    }

    async fn list_interactions(
        &self,
        request: ListInteractions,
        options: CallOptions,
    ) -> Result<InteractionPage, CallError> {
        let wire = fleet::list_interactions(request);
        let answer = attempts!(self, options, Reads, list_interactions, wire);
        readable(fleet::interactions(answer))
    }
}

impl Client {
    /// One watch, which is not taken up again.
    pub(crate) async fn receive_sessions(
        &self,
        request: WatchSessions,
        patience: Patience,
    ) -> Result<ResultStream<SessionWatchItem>, CallError> {
        let wire = fleet::watch(request);
        let opened = call(patience, || {
            let (mut stub, request) = (self.fleet_stub(), self.request(wire.clone()));
            async move { open(stub.watch_sessions(request)).await }
        })
        .await?;
        let never_last = |_: &SessionWatchItem| false;
        Ok(Box::pin(messages(opened, fleet::watched, never_last)))
    }
}
