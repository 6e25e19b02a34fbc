//! What the face knows of a call before its message is read: who calls, until when, and under
//! which trace.
//!
//! What must never enter: anything that a message says.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use sessionplane_core::contract::CallOptions;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::domain::ids::RequestId;
use tokio::time::Instant;
use tonic::Request;

use super::now;
use crate::app::face::Caller;

/// A call, as its headers tell it. Travels in the request's extensions from the door to the
/// handler.
#[derive(Clone)]
pub(crate) struct Call {
    /// Who calls.
    pub(crate) caller: Caller,
    /// Until when the caller waits.
    pub(crate) until: Option<Instant>,
}

impl Call {
    /// Takes a request apart into the call and its message.
    pub(crate) fn open<M>(request: Request<M>) -> Result<(Self, M), CallError> {
        let (_, mut extensions, message) = request.into_parts();
        let call = extensions.remove::<Self>().ok_or_else(|| {
            CallError::refused(
                Reason::Internal,
                "the call reached its handler unauthenticated",
            )
        })?;
        Ok((call, message))
    }

    /// The options of the contract. The deadline is what is left of it: reading the message took
    /// its time.
    pub(crate) fn options(&self, request_id: Option<RequestId>) -> CallOptions {
        CallOptions {
            request_id,
            deadline: self
                .until
                .map(|until| until.saturating_duration_since(now())),
        }
    }
}

/// The deadline in `grpc-timeout`: at most eight digits and a unit.
pub(crate) fn deadline(headers: &HeaderMap) -> Result<Option<Duration>, CallError> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(parse_timeout);
    parsed.map(Some).ok_or_else(|| {
        CallError::invalid(
            "grpc-timeout",
            "must be 1-8 digits and one of H, M, S, m, u, n",
        )
    })
}

fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// The trace id in a W3C `traceparent`. A malformed one is ignored, as the standard says.
pub(crate) fn trace_id(headers: &HeaderMap) -> Option<Arc<str>> {
    let value = headers.get("traceparent")?.to_str().ok()?;
    let mut parts = value.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let valid = version.len() == 2 && version != "ff" && hex(version);
    let valid = valid && trace.len() == 32 && hex(trace) && trace.bytes().any(|b| b != b'0');
    valid.then(|| trace.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn a_deadline_is_read_in_every_unit_and_a_malformed_one_is_refused() {
        for (text, length) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("6n", Duration::from_nanos(6)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(
                deadline(&headers("grpc-timeout", text)).unwrap(),
                Some(length)
            );
        }
        for malformed in ["", "S", "1", "1x", "-1S", "123456789S", "1 S", "1.5S"] {
            assert!(
                deadline(&headers("grpc-timeout", malformed)).is_err(),
                "{malformed:?}"
            );
        }
        assert_eq!(deadline(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn c62_the_trace_id_of_a_traceparent_is_kept_and_a_malformed_one_ignored() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let trace = |value: &str| trace_id(&headers("traceparent", value));
        assert_eq!(
            trace(&format!("00-{id}-00f067aa0ba902b7-01")).as_deref(),
            Some(id)
        );
        for malformed in [
            String::new(),
            format!("ff-{id}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{}-00f067aa0ba902b7-01", id.to_ascii_uppercase()),
            format!("00-{}-00f067aa0ba902b7-01", &id[1..]),
        ] {
            assert_eq!(trace(&malformed), None, "{malformed:?}");
        }
    }
}
