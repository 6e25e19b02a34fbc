//! The fleet's part of the contract: addresses, metadata, phases and watches of all sessions.
//!
//! It starts no run and reaches no engine; `Invoke` and `SessionControl` do that.

use async_trait::async_trait;

use super::{CallOptions, Parent, ResultStream};
use crate::domain::capabilities::SandboxLevel;
use crate::domain::command::Rejection;
use crate::domain::error::CallError;
use crate::domain::fleet::labels::{Labels, Priority};
use crate::domain::fleet::metadata::MetadataChange;
use crate::domain::fleet::summary::SessionSummary;
use crate::domain::ids::{
    AgentName, ExternalKey, SessionId, SessionName, SessionRef, WorkspaceName,
};
use crate::domain::interaction::Interaction;
use crate::domain::place::Directory;

/// Creates a session at rest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CreateSession {
    /// Its name.
    pub name: Option<SessionName>,
    /// The host's own key for it.
    pub external_key: Option<ExternalKey>,
    /// Its agent; the parent's, or the default one, unless one is named.
    pub agent: Option<AgentName>,
    /// Its labels.
    pub labels: Labels,
    /// Its priority.
    pub priority: Priority,
    /// It is paused from the beginning.
    pub paused: bool,
    /// Its workspace; the agent's first one unless one is named.
    pub workspace: Option<WorkspaceName>,
    /// The directory beneath the workspace; the workspace itself unless one is named.
    pub directory: Option<Directory>,
    /// A branch that a new working tree of the directory's repository is made for.
    pub worktree_branch: Option<String>,
    /// The session that its conversation branches off.
    pub parent: Option<Parent>,
}

/// In which order sessions are listed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SessionOrder {
    /// By id, which is that of creation. Exact: a session that matched throughout is listed once.
    #[default]
    Id,
    /// From the newest to the oldest. Exact.
    IdDescending,
    /// By name; sessions without one are left out. Exact.
    Name,
    /// What needs people first, then what is stalled, works, waits, is ready and is paused; dormant
    /// ones from the newest to the oldest at the end. Best effort: a session whose phase changes
    /// between two pages may be listed twice or not at all.
    Attention,
}

impl SessionOrder {
    /// The order as it stands in requests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::IdDescending => "id desc",
            Self::Name => "name",
            Self::Attention => "attention",
        }
    }

    /// The order of that name; an empty one is the default.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Id, Self::IdDescending, Self::Name, Self::Attention];
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if plain.is_empty() {
            return Some(Self::default());
        }
        all.into_iter().find(|order| order.as_str() == plain)
    }
}

/// Asks for a page of sessions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListSessions {
    /// Which are wanted ([`crate::domain::fleet::filter::Filter::parse`]); empty: all.
    pub filter: String,
    /// In which order.
    pub order: SessionOrder,
    /// The page before's `next`; none at the beginning.
    pub page_token: Option<String>,
    /// Most sessions in the page; 0 for the default of 100; at most 1,000.
    pub page_size: u32,
}

/// A page of sessions. It may hold none and not be the last one: a search looks at a bounded number of
/// sessions for each page.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionSummary>,
    /// Where the next page begins; none after the last one.
    pub next: Option<String>,
}

/// Asks to be told of sessions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WatchSessions {
    /// Which are wanted; empty: all.
    pub filter: String,
    /// A bookmark of an earlier watch with the same filter.
    pub bookmark: Option<String>,
}

/// What a watcher is told.
#[derive(Clone, PartialEq, Debug)]
pub enum SessionWatchItem {
    /// The bookmark is too old: forget what was known; all that there is follows.
    BookmarkExpired,
    /// Sessions as they are now, each at most once; before the first bookmark the snapshot, in pages.
    Changed {
        /// Those that are wanted.
        sessions: Vec<SessionSummary>,
        /// Those that are not wanted any more, or are no more.
        gone: Vec<SessionId>,
    },
    /// Everything up to here was told.
    Bookmark(String),
}

/// Changes metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdateSession {
    /// The session.
    pub session: SessionRef,
    /// The change. Pause is changed by [`Fleet::pause_session`] and [`Fleet::resume_session`].
    pub change: MetadataChange,
    /// The metadata's revision that the change is meant for.
    pub etag: Option<u64>,
}

/// Deletes a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteSession {
    /// The session.
    pub session: SessionRef,
    /// The metadata's revision that the deletion is meant for.
    pub etag: Option<u64>,
    /// Abort what is active first.
    pub abort: bool,
}

/// What became of a deletion. Busy is an answer, not a refusal (C1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeleteAnswer {
    /// It is gone.
    Deleted,
    /// Nothing happened.
    Rejected(Rejection),
}

/// Moves a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeDirectory {
    /// The session.
    pub session: SessionRef,
    /// The workspace; the present one unless one is named.
    pub workspace: Option<WorkspaceName>,
    /// The directory beneath it.
    pub directory: Directory,
}

/// What became of a move.
#[derive(Clone, PartialEq, Debug)]
pub enum ChangeDirectoryAnswer {
    /// The next run starts there.
    Moved {
        /// The session after it.
        session: Box<SessionSummary>,
        /// How far its engine is held in there.
        sandbox: SandboxLevel,
    },
    /// Nothing happened.
    Rejected(Rejection),
}

/// Asks for open questions, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListInteractions {
    /// Of which sessions; empty: all.
    pub filter: String,
    /// The page before's `next`.
    pub page_token: Option<String>,
    /// Most questions in the page; 0 for the default of 100; at most 1,000.
    pub page_size: u32,
}

/// A question, and whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetInteraction {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub name: Option<SessionName>,
    /// The question.
    pub interaction: Interaction,
}

/// A page of questions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InteractionPage {
    /// The questions.
    pub interactions: Vec<FleetInteraction>,
    /// Where the next page begins; none after the last one.
    pub next: Option<String>,
}

/// The fleet.
#[async_trait]
pub trait Fleet: Send + Sync {
    /// Creates a session at rest. A name or key that is taken is refused.
    async fn create_session(
        &self,
        request: CreateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError>;
    /// One session.
    async fn get_session(
        &self,
        session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError>;
    /// A page of sessions.
    async fn list_sessions(
        &self,
        request: ListSessions,
        options: CallOptions,
    ) -> Result<SessionPage, CallError>;
    /// A snapshot, a bookmark, then changes with a bookmark after each batch.
    async fn watch_sessions(
        &self,
        request: WatchSessions,
        options: CallOptions,
    ) -> Result<ResultStream<SessionWatchItem>, CallError>;
    /// Changes name, labels or priority.
    async fn update_session(
        &self,
        request: UpdateSession,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError>;
    /// Deletes a session with all that it holds.
    async fn delete_session(
        &self,
        request: DeleteSession,
        options: CallOptions,
    ) -> Result<DeleteAnswer, CallError>;
    /// Moves a session to another directory.
    async fn change_directory(
        &self,
        request: ChangeDirectory,
        options: CallOptions,
    ) -> Result<ChangeDirectoryAnswer, CallError>;
    /// Holds a session: the active run settles, and nothing begins after it.
    async fn pause_session(
        &self,
        session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError>;
    /// Lets a paused session go on.
    async fn resume_session(
        &self,
        session: SessionRef,
        options: CallOptions,
    ) -> Result<SessionSummary, CallError>;
    /// Open questions of all sessions.
    async fn list_interactions(
        &self,
        request: ListInteractions,
        options: CallOptions,
    ) -> Result<InteractionPage, CallError>;
}
