//! Who calls, what they want, and what a policy says to it.

mod facts;

use std::sync::Arc;

use super::ids::{PrincipalId, TenantId};
use super::provenance::Trust;
pub use facts::{PolicyContext, Resource, SessionFacts};

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
    /// Address a message to a session.
    SendMessage,
    /// Read what is stored of a session beside its entries.
    ReadArtifact,
    /// Store something for a session beside its entries.
    WriteArtifact,
    /// Read what was recorded of who did what.
    ReadAudit,
    /// Make and revoke tokens of others, and ask what others may do.
    ManageTokens,
    /// Change how the server itself is run.
    Administer,
}

impl Action {
    /// Every action there is.
    pub const ALL: [Self; 22] = [
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
        Self::SendMessage,
        Self::ReadArtifact,
        Self::WriteArtifact,
        Self::ReadAudit,
        Self::ManageTokens,
        Self::Administer,
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
            Self::SendMessage => "SendMessage",
            Self::ReadArtifact => "ReadArtifact",
            Self::WriteArtifact => "WriteArtifact",
            Self::ReadAudit => "ReadAudit",
            Self::ManageTokens => "ManageTokens",
            Self::Administer => "Administer",
        }
    }

    /// The action of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// A policy's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Whether the action may go on.
    pub allowed: bool,
    /// Ids of the policies that decided: those that allow, or those that forbid; none where nothing
    /// allows. Who is refused may not know the latter: they are for the record, and for who may ask.
    pub policies: Arc<[String]>,
    /// What allows the action, any one of them, in words for who is refused: `the group operator`.
    /// Empty where the principal could have none of it here, and where the action may go on.
    pub ways_in: Arc<[String]>,
}
