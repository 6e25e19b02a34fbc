//! Labels and priority: what people and schedulers hang on a session to find it by.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::domain::ids::IdError;

/// Most labels of a session.
pub const MAX_LABELS: usize = 32;
/// Longest key of a label, in bytes.
pub const MAX_KEY_BYTES: usize = 63;
/// Longest value of a label, in bytes.
pub const MAX_VALUE_BYTES: usize = 128;

/// The key of a label: 1 to 63 characters of `a-z`, `0-9`, and inner `.`, `_`, `-` and `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelKey(Arc<str>);

impl LabelKey {
    /// Parses a caller's text.
    ///
    /// # Errors
    /// When it is empty, too long or has other characters.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let end = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let inner = |b: u8| end(b) || matches!(b, b'.' | b'_' | b'-' | b'/');
        let ends = |b: Option<&u8>| b.is_some_and(|b| end(*b));
        let bytes = text.as_bytes();
        let whole = bytes.len() <= MAX_KEY_BYTES && bytes.iter().all(|b| inner(*b));
        if !whole || !ends(bytes.first()) || !ends(bytes.last()) {
            return Err(IdError {
                what: "label key",
                problem: "must be 1-63 characters of a-z, 0-9 and inner . _ - /",
            });
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The value of a label: at most 128 bytes of text without control characters; it may be empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelValue(Arc<str>);

impl LabelValue {
    /// Parses a caller's text.
    ///
    /// # Errors
    /// When it is too long or has control characters.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        if text.len() > MAX_VALUE_BYTES || text.chars().any(char::is_control) {
            return Err(IdError {
                what: "label value",
                problem: "must be at most 128 bytes of text without control characters",
            });
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A session's labels, at most [`MAX_LABELS`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Labels(BTreeMap<LabelKey, LabelValue>);

/// More labels than a session may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a session has at most {MAX_LABELS} labels, not {given}")]
pub struct TooManyLabels {
    /// How many it would have.
    pub given: usize,
}

impl Labels {
    /// Of these. A later one of the same key takes the place of an earlier one.
    ///
    /// # Errors
    /// When there are more than [`MAX_LABELS`].
    pub fn of(
        labels: impl IntoIterator<Item = (LabelKey, LabelValue)>,
    ) -> Result<Self, TooManyLabels> {
        let labels: BTreeMap<_, _> = labels.into_iter().collect();
        let given = labels.len();
        if given > MAX_LABELS {
            return Err(TooManyLabels { given });
        }
        Ok(Self(labels))
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &LabelKey) -> Option<&LabelValue> {
        self.0.get(key)
    }

    /// All of them, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&LabelKey, &LabelValue)> {
        self.0.iter()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How urgent a session is among others: from -100 to 100, higher first, 0 by default.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Priority(i8);

impl Priority {
    /// The lowest.
    pub const MIN: Self = Self(-100);
    /// The highest.
    pub const MAX: Self = Self(100);

    /// Parses a caller's number.
    ///
    /// # Errors
    /// When it is out of range.
    pub fn parse(number: i64) -> Result<Self, IdError> {
        let number = i8::try_from(number).ok().map(Self);
        let within = number.filter(|number| (Self::MIN..=Self::MAX).contains(number));
        within.ok_or(IdError {
            what: "priority",
            problem: "must be a number from -100 to 100",
        })
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i8 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c60_a_label_that_could_not_be_told_apart_or_shown_is_refused() {
        for good in ["team", "a", "ci/job", "k8s.io_x-1"] {
            assert!(LabelKey::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "Team", "-a", "a/", "a b", "ä", &"a".repeat(64)] {
            assert!(LabelKey::parse(bad).is_err(), "{bad:?}");
        }
        for good in ["", "net", "Größe 1", &"a".repeat(128)] {
            assert!(LabelValue::parse(good).is_ok(), "{good}");
        }
        for bad in ["a\nb", "\u{1b}[1m", "\u{7f}", &"a".repeat(129)] {
            assert!(LabelValue::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn c60_a_session_has_a_bounded_number_of_labels() {
        let labels = |count: usize| {
            Labels::of((0..count).map(|number| {
                let key = LabelKey::parse(&format!("l{number}")).unwrap();
                (key, LabelValue::parse("x").unwrap())
            }))
        };
        assert!(labels(MAX_LABELS).is_ok());
        assert_eq!(labels(MAX_LABELS + 1), Err(TooManyLabels { given: 33 }));
    }

    #[test]
    fn a_priority_is_within_its_range() {
        for good in [-100, 0, 100] {
            assert_eq!(
                Priority::parse(good).map(|it| i64::from(it.get())),
                Ok(good)
            );
        }
        for bad in [-101, 101, 1_000, i64::MIN] {
            assert!(Priority::parse(bad).is_err(), "{bad}");
        }
    }
}
