//! Reading single fields of an answer.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use sessionplane_core::domain::text::BoundedText;
use sessionplane_core::domain::time::Timestamp;

/// An answer that breaks the contract.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field} {problem}")]
pub(crate) struct Malformed {
    /// The field.
    pub(crate) field: &'static str,
    /// What is wrong with it.
    pub(crate) problem: String,
}

impl Malformed {
    /// A field that must be there.
    pub(crate) fn missing(field: &'static str) -> Self {
        let problem = "is missing".to_owned();
        Self { field, problem }
    }
}

/// A message field that must be set.
pub(crate) fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Malformed> {
    value.ok_or_else(|| Malformed::missing(field))
}

/// A text that must be an identifier.
pub(crate) fn id<T>(field: &'static str, text: &str) -> Result<T, Malformed>
where
    T: FromStr<Err: Display>,
{
    text.parse().map_err(|error: T::Err| Malformed {
        field,
        problem: error.to_string(),
    })
}

/// A text that is an identifier or empty.
pub(crate) fn optional_id<T>(field: &'static str, text: &str) -> Result<Option<T>, Malformed>
where
    T: FromStr<Err: Display>,
{
    if text.is_empty() {
        return Ok(None);
    }
    id(field, text).map(Some)
}

/// A text that is empty when it is not told.
pub(crate) fn optional_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A text of which the beginning may have been left out.
pub(crate) fn bounded(text: String, omitted_bytes: u64) -> BoundedText {
    BoundedText {
        text,
        omitted_bytes,
    }
}

/// A time that must be set, and is not before 1970.
pub(crate) fn time(
    field: &'static str,
    value: Option<prost_types::Timestamp>,
) -> Result<Timestamp, Malformed> {
    let value = required(field, value)?;
    let outside = || Malformed {
        field,
        problem: "is not a time after 1970".to_owned(),
    };
    let seconds = u64::try_from(value.seconds).map_err(|_| outside())?;
    let nanos = u64::try_from(value.nanos).map_err(|_| outside())?;
    let millis = seconds
        .checked_mul(1000)
        .and_then(|millis| millis.checked_add(nanos / 1_000_000));
    Ok(Timestamp::from_millis(millis.ok_or_else(outside)?))
}

/// A duration; none and a negative one are zero.
pub(crate) fn duration(value: Option<prost_types::Duration>) -> Duration {
    value
        .and_then(|value| Duration::try_from(value).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::RunId;

    use super::*;

    #[test]
    fn a_time_keeps_its_milliseconds_and_refuses_nonsense() {
        let at = |seconds, nanos| time("at", Some(prost_types::Timestamp { seconds, nanos }));
        assert_eq!(at(2, 345_999_999), Ok(Timestamp::from_millis(2345)));
        assert!(at(-1, 0).is_err());
        assert!(at(0, -1).is_err());
        assert!(at(i64::MAX, 0).is_err());
        assert_eq!(time("at", None), Err(Malformed::missing("at")));
    }

    #[test]
    fn an_identifier_may_be_absent_but_not_wrong() {
        assert_eq!(optional_id::<RunId>("run_id", ""), Ok(None));
        let error = optional_id::<RunId>("run_id", "x").unwrap_err();
        assert!(error.to_string().starts_with("run_id run id is not"));
    }
}
