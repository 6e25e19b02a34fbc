//! Host refusals: the one vocabulary of things that are a gRPC status rather than an answer.

use std::time::Duration;

use super::ids::SessionId;

/// What a caller may conclude from a failed call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// This attempt did nothing.
    Refused,
    /// It may or may not have happened: repeat with the same `request_id`.
    Unknown,
    /// The work stands; rejoin with the same `request_id` or resume.
    StreamEnded,
}

impl Outcome {
    /// The value of the ErrorInfo metadata key `outcome`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::StreamEnded => "stream_ended",
        }
    }
}

/// Why a call was refused or cut, as a stable word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// The session is unknown or hidden from the caller.
    NoSuchSession,
    /// The call was accepted before, and its session has been deleted since: a repeat finds no answer.
    SessionDeleted,
    /// The run is unknown or hidden from the caller.
    NoSuchRun,
    /// No agent of that name is configured.
    NoSuchAgent,
    /// Another session of the tenant has that name or external key.
    NameTaken,
    /// The field is changed by a command or a run, not by an update.
    UseCommand,
    /// The metadata changed since the caller read them.
    EtagMismatch,
    /// Other sessions branch off this one.
    HasChildren,
    /// A field is malformed.
    InvalidArgument,
    /// A field or message is too large.
    TooLarge,
    /// No or no valid credential.
    Unauthenticated,
    /// A policy forbids it.
    PermissionDenied,
    /// The request id was used with another payload.
    RequestIdReused,
    /// The observer's place left the ring.
    ObserverTooSlow,
    /// A count limit is reached.
    LimitReached,
    /// Too much is waiting; try again shortly.
    Overloaded,
    /// The server is stopping.
    ServerDraining,
    /// This face lost the session's owner.
    ServingLost,
    /// The asked-for position has not been reached here.
    PositionNotReached,
    /// The call's deadline passed.
    DeadlineExceeded,
    /// The store failed; the server is going down.
    StoreFailed,
    /// The server does not have this method.
    Unimplemented,
    /// A bug of ours.
    Internal,
    /// No ErrorInfo of ours: a proxy, a transport or a broken connection spoke.
    Transport,
}

impl Reason {
    /// The value of `ErrorInfo.reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSuchSession => "NO_SUCH_SESSION",
            Self::SessionDeleted => "SESSION_DELETED",
            Self::NoSuchRun => "NO_SUCH_RUN",
            Self::NoSuchAgent => "NO_SUCH_AGENT",
            Self::NameTaken => "NAME_TAKEN",
            Self::UseCommand => "USE_COMMAND",
            Self::EtagMismatch => "ETAG_MISMATCH",
            Self::HasChildren => "HAS_CHILDREN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::TooLarge => "TOO_LARGE",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::RequestIdReused => "REQUEST_ID_REUSED",
            Self::ObserverTooSlow => "OBSERVER_TOO_SLOW",
            Self::LimitReached => "LIMIT_REACHED",
            Self::Overloaded => "OVERLOADED",
            Self::ServerDraining => "SERVER_DRAINING",
            Self::ServingLost => "SERVING_LOST",
            Self::PositionNotReached => "POSITION_NOT_REACHED",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::StoreFailed => "STORE_FAILED",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Transport => "TRANSPORT",
        }
    }
    /// Every reason: those that this server can send, and [`Self::Transport`], which a client gives.
    pub const ALL: [Self; 24] = [
        Self::NoSuchSession,
        Self::SessionDeleted,
        Self::NoSuchRun,
        Self::NoSuchAgent,
        Self::NameTaken,
        Self::UseCommand,
        Self::EtagMismatch,
        Self::HasChildren,
        Self::InvalidArgument,
        Self::TooLarge,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::RequestIdReused,
        Self::ObserverTooSlow,
        Self::LimitReached,
        Self::Overloaded,
        Self::ServerDraining,
        Self::ServingLost,
        Self::PositionNotReached,
        Self::DeadlineExceeded,
        Self::StoreFailed,
        Self::Unimplemented,
        Self::Internal,
        Self::Transport,
    ];
    /// The inverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// One field of a request and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldViolation {
    /// The field's path in the request, for example `prompt.text`.
    pub field: String,
    /// What is wrong, the limit, and the way out.
    pub description: String,
}

/// A call that got no answer of its own.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Why, as a stable word.
    pub reason: Reason,
    /// What the caller may conclude.
    pub outcome: Outcome,
    /// Why, for a person, with the way out. Never names what the caller may not know.
    pub message: String,
    /// The fields concerned.
    pub violations: Vec<FieldViolation>,
    /// When a repeat makes sense.
    pub retry_after: Option<Duration>,
}

impl CallError {
    /// A refusal: this attempt did nothing.
    #[must_use]
    pub fn refused(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(reason, Outcome::Refused, message)
    }
    /// An unknown outcome: the caller repeats with the same `request_id`.
    #[must_use]
    pub fn unknown(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(reason, Outcome::Unknown, message)
    }
    /// A stream that ended although the work stands.
    #[must_use]
    pub fn stream_ended(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(reason, Outcome::StreamEnded, message)
    }
    /// A malformed field.
    #[must_use]
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        let (field, description) = (field.into(), description.into());
        let mut error = Self::refused(Reason::InvalidArgument, format!("{field}: {description}"));
        error.violations.push(FieldViolation { field, description });
        error
    }
    /// A field that is too large.
    #[must_use]
    pub fn too_large(field: &str, size: usize, limit: usize, way_out: &str) -> Self {
        let description = format!("has {size} bytes; the limit is {limit} bytes; {way_out}");
        let mut error = Self::refused(Reason::TooLarge, format!("{field} {description}"));
        error.violations.push(FieldViolation {
            field: field.to_owned(),
            description,
        });
        error
    }
    /// An unknown session, or one that is hidden from the caller: the same words for both.
    #[must_use]
    pub fn no_such_session() -> Self {
        Self::refused(Reason::NoSuchSession, "no such session")
    }
    /// A repeat of a call that was accepted: with the session its answer was erased.
    #[must_use]
    pub fn session_deleted(session: SessionId) -> Self {
        let message = format!(
            "this call was accepted before, for session {session}, which has been deleted since; this \
             repeat did nothing: use another request_id to begin anew"
        );
        Self::refused(Reason::SessionDeleted, message)
    }
    /// Says which field it is about, where a call has more than one of a kind.
    #[must_use]
    pub fn about_field(mut self, field: &str) -> Self {
        self.violations.push(FieldViolation {
            field: field.to_owned(),
            description: self.message.clone(),
        });
        self
    }
    /// Adds when a repeat makes sense.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }
    fn new(reason: Reason, outcome: Outcome, message: impl Into<String>) -> Self {
        Self {
            reason,
            outcome,
            message: message.into(),
            violations: Vec::new(),
            retry_after: None,
        }
    }
}
