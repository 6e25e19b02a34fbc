//! What a gRPC status means to a caller: the one mapping of the SDK. Nothing here retries.

use std::error::Error;

use sessionplane_core::domain::error::{CallError, FieldViolation, Outcome, Reason};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::tls;

/// The domain of the error details that are believed.
const DOMAIN: &str = "sessionplane";
/// What a text in the place of a frame reads as.
const IMPOSSIBLE_FRAME: &str = "frame with invalid size";

/// When a status came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// Instead of the answer of a unary call, or before a stream's first message.
    BeforeFirst,
    /// After a stream's first message.
    AfterFirst,
}

impl Moment {
    /// What may be concluded when nobody says more.
    fn outcome(self) -> Outcome {
        match self {
            Self::BeforeFirst => Outcome::Unknown,
            Self::AfterFirst => Outcome::StreamEnded,
        }
    }
}

/// Reads a status. Ours is believed; of any other nothing is known but when it came.
pub(crate) fn call_error(status: &Status, moment: Moment) -> CallError {
    let info = status
        .get_details_error_info()
        .filter(|info| info.domain == DOMAIN);
    let Some(info) = info else {
        return foreign(status, moment);
    };
    let outcome = match info.metadata.get("outcome").map(String::as_str) {
        Some("refused") => Outcome::Refused,
        Some("unknown") => Outcome::Unknown,
        Some("stream_ended") => Outcome::StreamEnded,
        _ => moment.outcome(),
    };
    let violations = status
        .get_details_bad_request()
        .map_or_else(Vec::new, |request| request.field_violations);
    CallError {
        reason: Reason::parse(&info.reason).unwrap_or_else(|| nearest(status.code())),
        outcome,
        message: status.message().to_owned(),
        violations: violations
            .into_iter()
            .map(|violation| FieldViolation {
                field: violation.field,
                description: violation.description,
            })
            .collect(),
        retry_after: status
            .get_details_retry_info()
            .and_then(|info| info.retry_delay),
    }
}

/// A stream that ended without a status and without what must be its last message.
pub(crate) fn ended_early(moment: Moment) -> CallError {
    let mut error = CallError::unknown(Reason::Transport, "the server ended the stream early");
    error.outcome = moment.outcome();
    error
}

/// An answer that this client cannot read.
pub(crate) fn unreadable(problem: impl std::fmt::Display, moment: Moment) -> CallError {
    let message = format!("the server's answer cannot be read: {problem}");
    let mut error = CallError::unknown(Reason::Internal, message);
    error.outcome = moment.outcome();
    error
}

/// Whether a stream that ended so, or could not be opened for it, is worth taking up again: the
/// connection, a proxy or a stopping server is to blame, not the caller and no fault of ours.
pub(crate) fn may_resume(error: &CallError) -> bool {
    match error.reason {
        Reason::Transport
        | Reason::ObserverTooSlow
        | Reason::Overloaded
        | Reason::ServerDraining
        | Reason::ServingLost
        | Reason::PositionNotReached
        | Reason::StoreFailed
        | Reason::DeadlineExceeded => true,
        Reason::NoSuchSession
        | Reason::SessionDeleted
        | Reason::NoSuchRun
        | Reason::NoSuchAgent
        | Reason::NameTaken
        | Reason::UseCommand
        | Reason::EtagMismatch
        | Reason::HasChildren
        | Reason::InvalidArgument
        | Reason::TooLarge
        | Reason::Unauthenticated
        | Reason::PermissionDenied
        | Reason::RequestIdReused
        | Reason::LimitReached
        | Reason::Unimplemented
        | Reason::Internal => false,
    }
}

/// A status that is not ours: a proxy's, the transport's, a deadline of this side. Where no
/// connection was made nothing was sent, so that nothing was done: that is all but unknown. A peer
/// that does not speak our API does not have our methods.
fn foreign(status: &Status, moment: Moment) -> CallError {
    let reason = match status.code() {
        Code::DeadlineExceeded => Reason::DeadlineExceeded,
        // How tonic, as a server and as a client, tells that the call's time is up.
        Code::Cancelled if status.message() == "Timeout expired" => Reason::DeadlineExceeded,
        _ => Reason::Transport,
    };
    let message = foreign_message(status);
    let connected = !never_connected(status);
    if let Some(problem) = causes(status).find_map(|cause| tls::problem(cause, connected)) {
        // Nobody has read what was sent, and no repeat fares better.
        return CallError::refused(Reason::Unimplemented, problem);
    }
    let mut error = if speaks_otherwise(status, &message) {
        let words = if message.contains(IMPOSSIBLE_FRAME) {
            "something else than a Sessionplane server answers there, or one that speaks TLS (use an \
             https:// address)"
        } else {
            "something else than a Sessionplane server answers there"
        };
        CallError::unknown(Reason::Unimplemented, format!("{words}: {message}"))
    } else {
        CallError::unknown(reason, message)
    };
    error.outcome = if connected {
        moment.outcome()
    } else {
        Outcome::Refused
    };
    error
}

/// Whether no connection was made, so that nothing can have been sent.
fn never_connected(status: &Status) -> bool {
    causes(status).any(<dyn Error>::is::<tonic::ConnectError>)
}

/// Whether the peer speaks another protocol, or another API, than ours. A text in the place of a
/// frame reads as one of impossible size. A proxy that is waiting for its server (HTTP 429, 502,
/// 503, 504) is none of this.
fn speaks_otherwise(status: &Status, message: &str) -> bool {
    status.code() == Code::Unimplemented
        || (message.starts_with("grpc-status header missing") && status.code() != Code::Unavailable)
        || message.contains(IMPOSSIBLE_FRAME)
        || message.contains("invalid content-type")
}

/// What is behind a status, the innermost cause last.
fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let outermost: Option<&(dyn Error + 'static)> = status.source();
    std::iter::successors(outermost, |cause| Error::source(*cause))
}

/// The status in words, with the innermost cause, which is the one that helps a person.
fn foreign_message(status: &Status) -> String {
    match (causes(status).last(), status.message()) {
        (Some(cause), _) => cause.to_string(),
        (None, "") => status.code().description().to_owned(),
        (None, message) => message.to_owned(),
    }
}

/// The reason that stands for one this client does not know, judged by the code.
fn nearest(code: Code) -> Reason {
    match code {
        Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => {
            Reason::InvalidArgument
        }
        Code::NotFound => Reason::NoSuchSession,
        Code::AlreadyExists => Reason::RequestIdReused,
        Code::PermissionDenied => Reason::PermissionDenied,
        Code::Unauthenticated => Reason::Unauthenticated,
        Code::ResourceExhausted => Reason::LimitReached,
        Code::Unavailable => Reason::Overloaded,
        Code::Aborted => Reason::ServingLost,
        Code::DeadlineExceeded => Reason::DeadlineExceeded,
        Code::Unimplemented => Reason::Unimplemented,
        _ => Reason::Internal,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use tonic_types::ErrorDetails;

    use super::*;

    fn ours(code: Code, reason: &str, outcome: &str) -> Status {
        let metadata = HashMap::from([("outcome".to_owned(), outcome.to_owned())]);
        let mut details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
        details.set_retry_info(Some(Duration::from_millis(250)));
        details.add_bad_request_violation("prompt.text", "is too long");
        Status::with_error_details(code, "words", details)
    }

    #[test]
    fn c02_our_status_is_believed_whenever_it_comes() {
        for moment in [Moment::BeforeFirst, Moment::AfterFirst] {
            for outcome in [Outcome::Refused, Outcome::Unknown, Outcome::StreamEnded] {
                let status = ours(Code::Unavailable, "SERVER_DRAINING", outcome.as_str());
                let error = call_error(&status, moment);
                assert_eq!(error.outcome, outcome);
                assert_eq!(error.reason, Reason::ServerDraining);
                assert_eq!(error.retry_after, Some(Duration::from_millis(250)));
                assert_eq!(error.violations[0].field, "prompt.text");
            }
        }
    }

    #[test]
    fn c02_every_reason_reads_back() {
        for reason in Reason::ALL {
            let status = ours(Code::Unknown, reason.as_str(), "refused");
            assert_eq!(call_error(&status, Moment::BeforeFirst).reason, reason);
        }
    }

    #[test]
    fn c02_a_foreign_status_is_unknown_at_first_and_stream_ended_later() {
        let codes = [
            Code::Unavailable,
            Code::Internal,
            Code::Cancelled,
            Code::Unknown,
            Code::PermissionDenied,
        ];
        for code in codes {
            let status = Status::new(code, "a proxy speaks");
            let before = call_error(&status, Moment::BeforeFirst);
            assert_eq!(
                (before.outcome, before.reason),
                (Outcome::Unknown, Reason::Transport)
            );
            let after = call_error(&status, Moment::AfterFirst);
            assert_eq!(
                (after.outcome, after.reason),
                (Outcome::StreamEnded, Reason::Transport)
            );
        }
        let late = call_error(&Status::deadline_exceeded(""), Moment::BeforeFirst);
        assert_eq!(
            (late.outcome, late.reason),
            (Outcome::Unknown, Reason::DeadlineExceeded)
        );
    }

    #[test]
    fn c02_what_is_no_server_of_ours_lacks_our_methods_and_is_not_asked_again() {
        for status in [
            Status::unimplemented(""),
            Status::unknown("grpc-status header missing, mapped from HTTP status code 404"),
            Status::internal("connection error: frame with invalid size"),
        ] {
            let error = call_error(&status, Moment::BeforeFirst);
            assert_eq!(
                (error.outcome, error.reason),
                (Outcome::Unknown, Reason::Unimplemented),
                "{error}"
            );
            assert!(!may_resume(&error), "{error}");
        }
    }

    #[test]
    fn c02_an_error_info_of_another_domain_is_foreign() {
        let metadata = HashMap::from([("outcome".to_owned(), "refused".to_owned())]);
        let details = ErrorDetails::with_error_info("NO_SUCH_SESSION", "example.com", metadata);
        let status = Status::with_error_details(Code::NotFound, "", details);
        let error = call_error(&status, Moment::BeforeFirst);
        assert_eq!(
            (error.outcome, error.reason),
            (Outcome::Unknown, Reason::Transport)
        );
    }

    #[test]
    fn c64_an_unknown_reason_is_judged_by_code_and_outcome() {
        let error = call_error(
            &ours(Code::ResourceExhausted, "OUT_OF_STARS", "refused"),
            Moment::BeforeFirst,
        );
        assert_eq!(
            (error.outcome, error.reason),
            (Outcome::Refused, Reason::LimitReached)
        );
    }
}
