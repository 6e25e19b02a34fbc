//! Who calls, what they want, and what a policy says to it.

use std::sync::Arc;

use super::ids::{PrincipalId, SessionId, TenantId};
use super::provenance::Trust;

/// What kind of actor a principal is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PrincipalKind {
    /// A person.
    Human,
    /// A program: CI, an orchestrator.
    Service,
    /// A session's own agent.
    Agent,
}

/// An authenticated caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    /// The isolation unit it belongs to.
    pub tenant: TenantId,
    /// Its id within the tenant.
    pub id: PrincipalId,
    /// What kind of actor it is.
    pub kind: PrincipalKind,
    /// Groups that policies may name.
    pub groups: Arc<[String]>,
    /// The most trust that its credential can give to a text; fixed when minted.
    pub ceiling: Trust,
    /// A non-secret name of the credential it used, for audit.
    pub credential: Arc<str>,
}

/// What a caller wants to do. One action per verb, so that policies can tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Read state, entries, events and runs.
    Observe,
    /// Read what an agent or a session can do, and what the fleet shows of a session.
    ReadMetadata,
    /// Create a session.
    Create,
    /// Start a run.
    Invoke,
    /// Steer a run.
    Steer,
    /// Queue a follow-up in a run.
    FollowUp,
    /// Abort a run or a compaction.
    Abort,
    /// Compact a session's transcript.
    Compact,
    /// Choose a session's model.
    SetModel,
    /// Choose a session's thinking level.
    SetThinking,
    /// Move a session's leaf.
    Navigate,
    /// Answer a run's question.
    Respond,
    /// Change a session's name, labels or priority.
    Update,
    /// Delete a session.
    Delete,
    /// Move a session to another directory.
    ChangeDirectory,
    /// Pause a session, or let it go on.
    Pause,
    /// Read what was recorded of who did what.
    ReadAudit,
}

impl Action {
    /// Every action there is.
    pub const ALL: [Self; 17] = [
        Self::Observe,
        Self::ReadMetadata,
        Self::Create,
        Self::Invoke,
        Self::Steer,
        Self::FollowUp,
        Self::Abort,
        Self::Compact,
        Self::SetModel,
        Self::SetThinking,
        Self::Navigate,
        Self::Respond,
        Self::Update,
        Self::Delete,
        Self::ChangeDirectory,
        Self::Pause,
        Self::ReadAudit,
    ];

    /// The stable name of the action in policies and audit records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "Observe",
            Self::ReadMetadata => "ReadMetadata",
            Self::Create => "Create",
            Self::Invoke => "Invoke",
            Self::Steer => "Steer",
            Self::FollowUp => "FollowUp",
            Self::Abort => "Abort",
            Self::Compact => "Compact",
            Self::SetModel => "SetModel",
            Self::SetThinking => "SetThinking",
            Self::Navigate => "Navigate",
            Self::Respond => "Respond",
            Self::Update => "Update",
            Self::Delete => "Delete",
            Self::ChangeDirectory => "ChangeDirectory",
            Self::Pause => "Pause",
            Self::ReadAudit => "ReadAudit",
        }
    }
}

/// What an action is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resource {
    /// The tenant itself: creating in it, reading its agents.
    Tenant(TenantId),
    /// One session of a tenant.
    Session {
        /// The tenant that owns it.
        tenant: TenantId,
        /// The session.
        id: SessionId,
    },
}

/// A policy's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Whether the action may go on.
    pub allowed: bool,
    /// Ids of the policies that decided.
    pub policies: Arc<[String]>,
    /// What allows the action, any one of them, in words for who is refused: `the group operator`.
    /// Empty where the principal could have none of it here, and where the action may go on.
    pub ways_in: Arc<[String]>,
}
