//! Parsing of single request fields. Every refusal names the field's path in the request, the
//! limit and the way out.

use std::str::FromStr;

use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::{IdError, RequestId};
use sessionplane_core::domain::place::{Directory, MAX_DIRECTORY_BYTES};

/// An identifier that must be there.
pub(crate) fn id<T: FromStr<Err = IdError>>(path: &str, text: &str) -> Result<T, CallError> {
    if text.is_empty() {
        return Err(CallError::invalid(path, "must be set"));
    }
    text.parse()
        .map_err(|error: IdError| CallError::invalid(path, error.to_string()))
}

/// An identifier that may be absent: the empty text is none.
pub(crate) fn optional_id<T: FromStr<Err = IdError>>(
    path: &str,
    text: &str,
) -> Result<Option<T>, CallError> {
    if text.is_empty() {
        return Ok(None);
    }
    id(path, text).map(Some)
}

/// The caller's key for the call: the empty text is none.
pub(crate) fn request_id(text: &str) -> Result<Option<RequestId>, CallError> {
    if text.len() > RequestId::MAX_BYTES {
        return Err(CallError::too_large(
            "request_id",
            text.len(),
            RequestId::MAX_BYTES,
            "use a shorter key, for example a ULID",
        ));
    }
    optional_id("request_id", text)
}

/// A directory beneath a workspace, which must be there.
pub(crate) fn directory(path: &str, text: &str) -> Result<Directory, CallError> {
    if text.is_empty() {
        let problem = "must be set; `.` is the workspace itself";
        return Err(CallError::invalid(path, problem));
    }
    if text.len() > MAX_DIRECTORY_BYTES {
        let way_out = "use a directory that is less deep";
        return Err(CallError::too_large(
            path,
            text.len(),
            MAX_DIRECTORY_BYTES,
            way_out,
        ));
    }
    Directory::parse(text).map_err(|error| CallError::invalid(path, error.to_string()))
}

/// A directory beneath a workspace that may be absent: the empty text is none.
pub(crate) fn optional_directory(path: &str, text: &str) -> Result<Option<Directory>, CallError> {
    if text.is_empty() {
        return Ok(None);
    }
    directory(path, text).map(Some)
}

/// The version of metadata that a request is meant for: the empty text is any. To callers it is
/// opaque, so that only what was told is taken.
pub(crate) fn etag(text: &str) -> Result<Option<u64>, CallError> {
    if text.is_empty() {
        return Ok(None);
    }
    let told = text.parse().ok();
    let told = told.filter(|revision: &u64| revision.to_string() == text);
    let wrong = || CallError::invalid("etag", "must be the etag of a session, as it was told");
    told.map(Some).ok_or_else(wrong)
}

/// A text that may be absent: the empty one is none.
pub(crate) fn optional_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::error::Reason;
    use sessionplane_core::domain::ids::RunId;

    use super::*;

    #[test]
    fn a_request_id_is_optional_bounded_and_printable() {
        assert_eq!(request_id(""), Ok(None));
        assert!(request_id(&"a".repeat(128)).unwrap().is_some());
        let error = request_id(&"a".repeat(129)).unwrap_err();
        assert_eq!(error.reason, Reason::TooLarge);
        assert_eq!(error.violations[0].field, "request_id");
        let error = request_id("two words").unwrap_err();
        assert_eq!(error.reason, Reason::InvalidArgument);
    }

    #[test]
    fn an_id_that_must_be_there_says_so_and_a_malformed_one_says_what_it_should_be() {
        let missing = id::<RunId>("run_id", "").unwrap_err();
        assert!(missing.message.contains("run_id: must be set"));
        let malformed = id::<RunId>("run_id", "abc").unwrap_err();
        assert!(malformed.message.contains("ULID"), "{}", malformed.message);
        assert_eq!(optional_id::<RunId>("expected_run_id", ""), Ok(None));
        assert!(optional_id::<RunId>("expected_run_id", "abc").is_err());
    }
}
