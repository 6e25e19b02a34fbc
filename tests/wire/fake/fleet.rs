//! The fleet of the fake: it has one session, and remembers what it was asked like everything else.

use futures_util::{StreamExt, stream};
use sessionplane_core::contract::fleet::{
    ChangeDirectory, ChangeDirectoryAnswer, CreateSession, DeleteAnswer, DeleteSession, Fleet,
    InteractionPage, ListInteractions, ListSessions, SessionPage, SessionWatchItem, UpdateSession,
    WatchSessions,
};
use sessionplane_core::contract::{CallOptions, ResultStream};
use sessionplane_core::domain::capabilities::SandboxLevel;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::metadata::Metadata;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::{AgentName, SessionRef, TenantId};
use sessionplane_core::domain::session::{SessionHead, SessionRecord, StoredSession};

use super::{AT, Handle, session};

/// The session, at rest.
pub(crate) fn summary() -> SessionSummary {
    let record = SessionRecord {
        id: session(),
        tenant: TenantId::parse("t").unwrap(),
        external_key: None,
        agent: AgentName::parse("a").unwrap(),
        created_at: AT,
        lineage: None,
        metadata: Metadata::first(None, AT),
    };
    let head = SessionHead::empty();
    SessionSummary::dormant(&StoredSession { record, head }, 1)
}

#[async_trait::async_trait]
impl Fleet for Handle {
    async fn create_session(
        &self,
        _request: CreateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await.map(|()| summary())
    }
    async fn get_session(
        &self,
        _session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await.map(|()| summary())
    }
    async fn list_sessions(
        &self,
        _request: ListSessions,
        options: CallOptions,
    ) -> Result<SessionPage, CallError> {
        self.called(options).await?;
        Ok(SessionPage {
            sessions: vec![summary()],
            next: None,
        })
    }
    async fn watch_sessions(
        &self,
        _request: WatchSessions,
        options: CallOptions,
    ) -> Result<ResultStream<SessionWatchItem>, CallError> {
        self.called(options).await?;
        let snapshot = SessionWatchItem::Changed {
            sessions: vec![summary()],
            gone: Vec::new(),
        };
        let bookmark = SessionWatchItem::Bookmark("1".to_owned());
        let items = stream::iter([Ok(snapshot), Ok(bookmark)]).chain(self.end());
        Ok(Box::pin(self.counted(items)))
    }
    async fn update_session(
        &self,
        _request: UpdateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await.map(|()| summary())
    }
    async fn delete_session(
        &self,
        _request: DeleteSession,
        options: CallOptions,
    ) -> Result<DeleteAnswer, CallError> {
        self.called(options).await.map(|()| DeleteAnswer::Deleted)
    }
    async fn change_directory(
        &self,
        _request: ChangeDirectory,
        options: CallOptions,
    ) -> Result<ChangeDirectoryAnswer, CallError> {
        self.called(options).await?;
        Ok(ChangeDirectoryAnswer::Moved {
            session: Box::new(summary()),
            sandbox: SandboxLevel::None,
        })
    }
    async fn pause_session(
        &self,
        _session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await.map(|()| summary())
    }
    async fn resume_session(
        &self,
        _session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError> {
        self.called(options).await.map(|()| summary())
    }
    async fn list_interactions(
        &self,
        _request: ListInteractions,
        options: CallOptions,
    ) -> Result<InteractionPage, CallError> {
        self.called(options).await?;
        Ok(InteractionPage {
            interactions: Vec::new(),
            next: None,
        })
    }
}
