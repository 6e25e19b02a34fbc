//! Request bindings: what makes a repeat of an accepted call harmless.

use super::capabilities::SandboxLevel;
use super::fleet::metadata::Metadata;
use super::ids::{InputId, PrincipalId, RequestId, RunId, SessionId, TenantId};
use super::place::{Checkout, Place};
use super::provenance::Digest;
use super::time::Timestamp;

/// The mutating methods that bind request ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Method {
    /// `Invoke.Invoke`.
    Invoke,
    /// `SessionControl.Dispatch`.
    Dispatch,
    /// `Fleet.CreateSession`.
    CreateSession,
    /// `Fleet.UpdateSession`.
    UpdateSession,
    /// `Fleet.DeleteSession`.
    DeleteSession,
    /// `Fleet.ChangeDirectory`.
    ChangeDirectory,
    /// `Fleet.PauseSession`.
    PauseSession,
    /// `Fleet.ResumeSession`.
    ResumeSession,
}

impl Method {
    /// The stable name of the method in a binding's key.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invoke => "Invoke",
            Self::Dispatch => "Dispatch",
            Self::CreateSession => "CreateSession",
            Self::UpdateSession => "UpdateSession",
            Self::DeleteSession => "DeleteSession",
            Self::ChangeDirectory => "ChangeDirectory",
            Self::PauseSession => "PauseSession",
            Self::ResumeSession => "ResumeSession",
        }
    }
}

/// What a binding is looked up by, before any name is resolved.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BindingKey {
    /// The caller's tenant.
    pub tenant: TenantId,
    /// The caller.
    pub principal: PrincipalId,
    /// The method called.
    pub method: Method,
    /// The caller's key.
    pub request_id: RequestId,
}

/// The answer that an accepted call got, as far as it does not change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BoundAnswer {
    /// An invoke that started this run.
    Run(RunId),
    /// A dispatch that reached this run, and the input it queued, if it queued one.
    Dispatched {
        /// The run that was reached; none for a command outside of a run.
        run: Option<RunId>,
        /// The input that was queued.
        input: Option<InputId>,
    },
    /// A change of the session itself, and what it decided. There is none of a deletion, and none
    /// once the session is deleted: it is erased with all else that the session held (C61).
    Session(Option<Box<SessionAnswer>>),
}

/// What a change of a session itself decided, and was answered as such: whoever repeats the call is
/// told this, whatever was changed since (C3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionAnswer {
    /// What the call made of name, labels, priority and pause, if it was about those.
    pub metadata: Option<Metadata>,
    /// Where the session worked from then on, if the call was about that.
    pub placed: Option<Placed>,
}

/// Where a call had a session work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The place; none where its agent sees no workspace.
    pub place: Option<Place>,
    /// What version control said of it.
    pub checkout: Option<Checkout>,
    /// How far what runs there was held in.
    pub sandbox: SandboxLevel,
}

impl BoundAnswer {
    /// The run that keeps the binding alive, if one does.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Run(run) => Some(*run),
            Self::Dispatched { run, .. } => *run,
            Self::Session(_) => None,
        }
    }
}

/// A binding: only an acceptance makes one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// What it is looked up by.
    pub key: BindingKey,
    /// The session that the call reached.
    pub session: SessionId,
    /// SHA-256 of the decoded fields, without `on_disconnect` and deadline.
    pub digest: Digest,
    /// The answer that was given.
    pub answer: BoundAnswer,
    /// When it was accepted.
    pub at: Timestamp,
}
