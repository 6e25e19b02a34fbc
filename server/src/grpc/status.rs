//! THE mapping from the one error vocabulary to gRPC statuses. Whatever makes a status elsewhere
//! (the RPC library, a body that broke) is completed here before it is sent.
//!
//! Every status of ours carries `google.rpc.ErrorInfo` first: a stable reason, the domain
//! `sessionplane`, and the outcome that a caller may rely on. What must never enter: a decision
//! about what happened; that is made where the error is.

use std::collections::HashMap;
use std::time::Duration;

use http::{HeaderMap, Response};
use sessionplane_core::domain::error::{CallError, Outcome, Reason};
use sessionplane_core::domain::text::head;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::{BadRequest, ErrorDetail, ErrorInfo, FieldViolation, RetryInfo, StatusExt};

/// `ErrorInfo.domain` of everything that is ours.
const DOMAIN: &str = "sessionplane";
/// The key of `ErrorInfo.metadata` that tells what may have been done.
const OUTCOME: &str = "outcome";
/// Longest message of a status, in bytes: it is sent twice, escaped, in a header that proxies cut.
const MAX_TEXT_BYTES: usize = 1024;
/// When a caller may come back, where an error that promises it does not say.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const STATUS_HEADER: &str = "grpc-status";
const DETAILS_HEADER: &str = "grpc-status-details-bin";

/// The status of an error. A fault of ours is logged here, once, in the span of its call.
pub(crate) fn status(error: CallError) -> Status {
    if matches!(error.reason, Reason::Internal | Reason::Transport) {
        let (reason, outcome) = (error.reason.as_str(), error.outcome.as_str());
        tracing::error!(
            reason,
            outcome,
            "a call failed by a fault of the server: {}",
            error.message
        );
    }
    let message = head(&error.message, MAX_TEXT_BYTES).to_owned();
    let mut details = vec![ErrorDetail::ErrorInfo(ErrorInfo::new(
        wire_reason(error.reason),
        DOMAIN,
        HashMap::from([(OUTCOME.to_owned(), error.outcome.as_str().to_owned())]),
    ))];
    if let Some(after) = error.retry_after.or_else(|| promised_retry(error.reason)) {
        details.push(ErrorDetail::RetryInfo(RetryInfo::new(Some(after))));
    }
    if !error.violations.is_empty() {
        let violations = error.violations.into_iter().map(|violation| {
            let description = head(&violation.description, MAX_TEXT_BYTES);
            FieldViolation::new(violation.field, description)
        });
        details.push(ErrorDetail::BadRequest(BadRequest::new(
            violations.collect::<Vec<_>>(),
        )));
    }
    Status::with_error_details_vec(code(error.reason), message, details)
}

/// The gRPC code of a reason, as `error.proto` documents it.
fn code(reason: Reason) -> Code {
    match reason {
        Reason::NoSuchSession
        | Reason::SessionDeleted
        | Reason::NoSuchRun
        | Reason::NoSuchAgent => Code::NotFound,
        Reason::InvalidArgument | Reason::TooLarge | Reason::UseCommand => Code::InvalidArgument,
        Reason::Unauthenticated => Code::Unauthenticated,
        Reason::PermissionDenied => Code::PermissionDenied,
        Reason::RequestIdReused | Reason::NameTaken => Code::AlreadyExists,
        Reason::EtagMismatch | Reason::ObserverTooSlow => Code::Aborted,
        Reason::HasChildren => Code::FailedPrecondition,
        Reason::LimitReached => Code::ResourceExhausted,
        Reason::Overloaded
        | Reason::ServerDraining
        | Reason::ServingLost
        | Reason::PositionNotReached
        | Reason::StoreFailed => Code::Unavailable,
        Reason::DeadlineExceeded => Code::DeadlineExceeded,
        Reason::Unimplemented => Code::Unimplemented,
        Reason::Internal | Reason::Transport => Code::Internal,
    }
}

/// The reason as `ErrorInfo` names it. `Transport` is what a client concludes where nothing of
/// ours spoke; a server that says it has a bug.
fn wire_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Transport => Reason::Internal.as_str(),
        ours => ours.as_str(),
    }
}

/// Reasons whose documentation promises `RetryInfo`.
fn promised_retry(reason: Reason) -> Option<Duration> {
    matches!(reason, Reason::ServerDraining | Reason::Overloaded).then_some(RETRY_AFTER)
}

/// A refusal as a whole response.
pub(crate) fn refuse(error: CallError) -> Response<Body> {
    status(error).into_http()
}

/// The refusal of a method that this server does not have.
pub(crate) fn unimplemented(path: &str) -> CallError {
    let path = head(path, MAX_TEXT_BYTES / 4);
    CallError::refused(
        Reason::Unimplemented,
        format!("this server has no method {path}; its reflection lists those it has"),
    )
}

/// Gives a status that the RPC library made by itself our details: it speaks where a request
/// could not be read, so nothing was done. Statuses of ours pass untouched.
pub(crate) fn complete(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers();
    if !headers.contains_key(STATUS_HEADER) || headers.contains_key(DETAILS_HEADER) {
        return response;
    }
    let Some(bare) = Status::from_header_map(headers).filter(|bare| bare.code() != Code::Ok) else {
        return response;
    };
    let completed = status(unreadable(&bare));
    if completed.add_header(response.headers_mut()).is_err() {
        return completed.into_http();
    }
    response
}

/// What a status of the RPC library means for the caller.
fn unreadable(bare: &Status) -> CallError {
    let told = bare.message();
    match bare.code() {
        Code::OutOfRange | Code::ResourceExhausted => CallError::refused(
            Reason::TooLarge,
            format!("the request message is too large ({told}); send less in one call"),
        ),
        Code::Unimplemented if told.is_empty() => CallError::refused(
            Reason::Unimplemented,
            "this server has no such method; its reflection lists those it has",
        ),
        Code::Unimplemented => CallError::refused(Reason::Unimplemented, told),
        _ => CallError::refused(
            Reason::InvalidArgument,
            format!("the request could not be read: {told}"),
        ),
    }
}

/// The trailers that end a stream with an error.
pub(crate) fn trailers(error: CallError) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    let ending = status(error);
    if ending.add_header(&mut trailers).is_err() {
        // Only a text that is no header value gets here; the code alone still tells the truth.
        trailers.insert(
            STATUS_HEADER,
            http::HeaderValue::from(i32::from(ending.code())),
        );
    }
    trailers
}

/// The error of a stream that a closing connection ends. Before its first message a caller cannot
/// know whether the call was taken.
pub(crate) fn ended(reason: Reason, started: bool, message: &str) -> CallError {
    let outcome = if started {
        Outcome::StreamEnded
    } else {
        Outcome::Unknown
    };
    CallError {
        outcome,
        ..CallError::stream_ended(reason, message)
    }
}

#[cfg(test)]
mod tests {
    use sessionplane::v1::ErrorReason;

    use super::*;

    fn proto_reasons() -> impl Iterator<Item = ErrorReason> {
        (1..).map_while(|number| ErrorReason::try_from(number).ok())
    }

    /// What the comments of `error.proto` promise.
    fn documented(reason: ErrorReason) -> Code {
        use ErrorReason as R;
        match reason {
            R::Unspecified => Code::Ok,
            R::NoSuchSession | R::SessionDeleted | R::NoSuchRun | R::NoSuchAgent => Code::NotFound,
            R::InvalidArgument | R::TooLarge | R::UseCommand => Code::InvalidArgument,
            R::Unauthenticated => Code::Unauthenticated,
            R::PermissionDenied => Code::PermissionDenied,
            R::RequestIdReused | R::NameTaken => Code::AlreadyExists,
            R::EtagMismatch | R::ObserverTooSlow => Code::Aborted,
            R::HasChildren => Code::FailedPrecondition,
            R::LimitReached => Code::ResourceExhausted,
            R::ServerDraining
            | R::ServingLost
            | R::PositionNotReached
            | R::Overloaded
            | R::StoreFailed => Code::Unavailable,
            R::Internal => Code::Internal,
            R::DeadlineExceeded => Code::DeadlineExceeded,
            R::Unimplemented => Code::Unimplemented,
        }
    }

    /// The outcomes that the comments of `error.proto` promise.
    fn documented_outcomes(reason: ErrorReason) -> &'static [Outcome] {
        use ErrorReason as R;
        use Outcome::{Refused, StreamEnded, Unknown};
        match reason {
            R::Unspecified => &[],
            R::NoSuchSession
            | R::SessionDeleted
            | R::NoSuchRun
            | R::NoSuchAgent
            | R::NameTaken
            | R::UseCommand
            | R::EtagMismatch
            | R::HasChildren
            | R::InvalidArgument
            | R::TooLarge
            | R::PermissionDenied
            | R::RequestIdReused
            | R::LimitReached
            | R::PositionNotReached
            | R::Overloaded
            | R::Unimplemented => &[Refused],
            R::Unauthenticated => &[Refused, StreamEnded],
            R::ObserverTooSlow | R::ServingLost => &[Unknown, StreamEnded],
            R::Internal => &[Refused, Unknown],
            R::ServerDraining | R::StoreFailed | R::DeadlineExceeded => {
                &[Refused, Unknown, StreamEnded]
            }
        }
    }

    /// The comment of each value in `error.proto`, by the value's name.
    fn comments() -> HashMap<String, String> {
        const PROTO: &str = include_str!("../../../proto/sessionplane/v1/error.proto");
        let (mut comments, mut comment) = (HashMap::new(), String::new());
        for line in PROTO.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("//") {
                comment.push_str(text);
                continue;
            }
            let told = std::mem::take(&mut comment);
            if let Some((name, _)) = line.split_once(" = ") {
                comments.insert(name.to_owned(), told);
            }
        }
        comments
    }

    #[test]
    fn c02_the_comments_of_the_proto_tell_the_code_and_every_outcome_of_a_reason() {
        let comments = comments();
        for reason in proto_reasons() {
            let comment = &comments[reason.as_str_name()].to_lowercase();
            let code = format!("{:?}", documented(reason)).to_lowercase();
            let told = comment.split('`').nth(1).unwrap().replace('_', "");
            assert_eq!(told, code, "{reason:?}");
            for outcome in [Outcome::Refused, Outcome::Unknown, Outcome::StreamEnded] {
                assert_eq!(
                    comment.contains(outcome.as_str()),
                    documented_outcomes(reason).contains(&outcome),
                    "{reason:?}: {outcome:?}"
                );
            }
        }
    }

    fn info(status: &Status) -> ErrorInfo {
        status
            .get_details_error_info()
            .expect("every status of ours has ErrorInfo")
    }

    #[test]
    fn c01_every_reason_of_the_domain_is_in_the_public_enum_and_the_other_way_around() {
        for reason in Reason::ALL
            .into_iter()
            .filter(|reason| *reason != Reason::Transport)
        {
            let name = format!("ERROR_REASON_{}", reason.as_str());
            let proto = ErrorReason::from_str_name(&name).unwrap_or_else(|| panic!("no {name}"));
            assert_eq!(code(reason), documented(proto), "{name}");
        }
        for proto in proto_reasons() {
            let name = proto.as_str_name().trim_start_matches("ERROR_REASON_");
            assert!(Reason::parse(name).is_some(), "{name} is not in the domain");
        }
        assert_eq!(
            proto_reasons().count() + 1,
            Reason::ALL.len(),
            "all but the transport's"
        );
    }

    #[test]
    fn c02_every_status_starts_with_an_error_info_that_tells_the_outcome() {
        for reason in Reason::ALL {
            for error in [
                CallError::refused(reason, "no"),
                CallError::unknown(reason, "maybe"),
                CallError::stream_ended(reason, "over"),
            ] {
                let outcome = error.outcome.as_str();
                let status = status(error);
                let first = status.get_error_details_vec().into_iter().next();
                assert!(
                    matches!(first, Some(ErrorDetail::ErrorInfo(_))),
                    "{reason:?}"
                );
                let info = info(&status);
                assert_eq!(info.domain, "sessionplane");
                assert_eq!(
                    info.metadata.get("outcome").map(String::as_str),
                    Some(outcome)
                );
            }
        }
    }

    #[test]
    fn a_server_never_claims_that_a_proxy_spoke() {
        let status = status(CallError::unknown(Reason::Transport, "?"));
        assert_eq!(
            (info(&status).reason.as_str(), status.code()),
            ("INTERNAL", Code::Internal)
        );
    }

    #[test]
    fn a_field_to_blame_and_a_time_to_come_back_are_told() {
        let status = status(CallError::invalid("prompt.text", "must not be empty"));
        let violations = status.get_details_bad_request().expect("names the field");
        assert_eq!(violations.field_violations[0].field, "prompt.text");

        let asked =
            CallError::refused(Reason::LimitReached, "full").retry_after(Duration::from_secs(7));
        let after = super::status(asked)
            .get_details_retry_info()
            .expect("says when");
        assert_eq!(after.retry_delay, Some(Duration::from_secs(7)));
        for promised in [Reason::ServerDraining, Reason::Overloaded] {
            let status = super::status(CallError::refused(promised, "later"));
            assert!(status.get_details_retry_info().is_some(), "{promised:?}");
        }
    }

    #[test]
    fn a_status_stays_small_enough_for_a_header_whatever_the_error_says() {
        let status = status(CallError::invalid("session.name", "ä".repeat(10_000)));
        assert!(status.message().len() <= MAX_TEXT_BYTES);
        assert!(
            status.details().len() < 3 * 1024,
            "{}",
            status.details().len()
        );
    }

    #[test]
    fn what_the_rpc_library_says_by_itself_gets_our_details() {
        for (bare, reason, code) in [
            (
                Status::out_of_range("found 9 bytes"),
                "TOO_LARGE",
                Code::InvalidArgument,
            ),
            (
                Status::resource_exhausted("zip"),
                "TOO_LARGE",
                Code::InvalidArgument,
            ),
            (
                Status::internal("not UTF-8"),
                "INVALID_ARGUMENT",
                Code::InvalidArgument,
            ),
            (
                Status::unimplemented(""),
                "UNIMPLEMENTED",
                Code::Unimplemented,
            ),
            (
                Status::unimplemented("deflate"),
                "UNIMPLEMENTED",
                Code::Unimplemented,
            ),
        ] {
            let told = bare.message().to_owned();
            let completed = complete(bare.into_http());
            let status = Status::from_header_map(completed.headers()).unwrap();
            assert_eq!(
                (info(&status).reason.as_str(), status.code()),
                (reason, code)
            );
            assert!(status.message().contains(&told));
        }
    }

    #[test]
    fn a_status_of_ours_and_a_good_answer_pass_untouched() {
        let ours = complete(refuse(CallError::no_such_session()));
        let status = Status::from_header_map(ours.headers()).unwrap();
        assert_eq!(info(&status).reason, "NO_SUCH_SESSION");
        let good = complete(Response::new(Body::empty()));
        assert!(!good.headers().contains_key(STATUS_HEADER));
    }
}
