//! A filter as callers spell it: an expression after [AIP-160](https://google.aip.dev/160).
//!
//! The grammar is a library's; what is ours is the fields, what they may be compared with, and the
//! bounds. Text in, conditions out: the face hands it on as it came, so that an older client can use
//! fields that it does not know.

use aip_160::{Arg, Comparable, Comparator, Expression, Restriction, StringMatch, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Comparison, Condition, Filter, Pattern, Time, wrong};
use crate::domain::fleet::labels::{LabelKey, LabelValue, Priority};
use crate::domain::fleet::phase::Phase;
use crate::domain::ids::IdError;
use crate::domain::time::Timestamp;

/// Longest filter, in bytes.
pub const MAX_FILTER_BYTES: usize = 2048;
/// Most conditions of a filter.
pub const MAX_CONDITIONS: usize = 64;
/// Deepest nesting of a filter.
const MAX_DEPTH: usize = 16;

/// The fields, for who misspells one.
pub(super) const FIELDS: [&str; 15] = [
    "phase",
    "stalled",
    "paused",
    "agent",
    "labels.KEY",
    "name",
    "external_key",
    "parent",
    "workspace",
    "directory",
    "branch",
    "priority",
    "created_at",
    "updated_at",
    "last_run_at",
];

/// What is wrong with a filter, in words for the caller: which part, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct FilterError(pub String);

impl Filter {
    /// Parses an expression of at most [`MAX_FILTER_BYTES`] with at most [`MAX_CONDITIONS`]; an empty
    /// one wants all sessions.
    ///
    /// # Errors
    /// When it is too long, is none, names a field that there is not, or compares one with what it
    /// cannot be.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        if text.len() > MAX_FILTER_BYTES {
            let size = text.len();
            let told = format!("is {size} bytes long; at most {MAX_FILTER_BYTES}");
            return Err(FilterError(told));
        }
        let parsed = aip_160::parse_filter_with_max_depth(text, MAX_DEPTH);
        let parsed = parsed.map_err(|error| FilterError(wrong::unreadable(text, &error)))?;
        let Some(expression) = parsed.expression else {
            return Ok(Self::default());
        };
        let mut conditions = 0;
        convert(&expression, &mut conditions).map_err(FilterError)
    }
}

fn convert(expression: &Expression, conditions: &mut usize) -> Result<Filter, String> {
    let mut each = |parts: &[Expression]| {
        let parts = parts.iter().map(|part| convert(part, conditions));
        parts.collect::<Result<Vec<_>, _>>()
    };
    match expression {
        Expression::And(parts) | Expression::Sequence(parts) => each(parts).map(Filter::All),
        Expression::Or(parts) => each(parts).map(Filter::Any),
        Expression::Not(part) => Ok(Filter::Not(Box::new(convert(part, conditions)?))),
        Expression::Restriction(restriction) => {
            *conditions += 1;
            if *conditions > MAX_CONDITIONS {
                return Err(format!("has more than {MAX_CONDITIONS} conditions"));
            }
            condition(restriction)
        }
        Expression::Global(word) => Err(wrong::alone(word)),
    }
}

fn condition(restriction: &Restriction) -> Result<Filter, String> {
    let path = restriction
        .comparable
        .field_path()
        .ok_or("has a function; there are none")?;
    let Arg::Comparable(Comparable::Member(right)) = &restriction.arg else {
        return Err(format!("compares `{path}` with something that is no value"));
    };
    let value = whole(right);
    let asked = Asked {
        path: &path,
        comparator: restriction.comparator,
        value: &value,
    };
    match path.split_once('.') {
        Some(("labels", key)) => asked.label(key),
        None => asked.field(),
        Some(_) => Err(asked.unknown()),
    }
}

/// A value as it was written: what has dots in it and no quotes is one value here.
fn whole(member: &aip_160::Member) -> Value {
    if member.fields.is_empty() {
        return member.value.clone();
    }
    let mut text = member.value.as_str().to_owned();
    for field in &member.fields {
        text.push('.');
        text.push_str(field.as_str());
    }
    Value::Text(text)
}

/// One comparison.
struct Asked<'a> {
    path: &'a str,
    comparator: Comparator,
    value: &'a Value,
}

impl Asked<'_> {
    fn field(&self) -> Result<Filter, String> {
        let text = self.value.as_str();
        match self.path {
            "phase" => {
                let phase = Phase::named(text).ok_or_else(|| {
                    let names = Phase::ALL.map(Phase::as_str).join(", ");
                    let instead = match text.to_ascii_lowercase().as_str() {
                        "stalled" => "; write `stalled = true`",
                        "pausing" => "; write `phase = WORKING AND paused = true`",
                        _ => "",
                    };
                    format!("compares `phase` with {text:?}; phases are {names}{instead}")
                })?;
                self.equality(Condition::Phase(phase))
            }
            "stalled" => self.equality(Condition::Stalled(self.boolean()?)),
            "paused" => self.equality(Condition::Paused(self.boolean()?)),
            "agent" => self.equality(Condition::Agent(self.parsed(text.parse())?)),
            "workspace" => self.equality(Condition::Workspace(self.parsed(text.parse())?)),
            "parent" => {
                let parent = text.parse().map_err(|_| {
                    format!(
                        "compares `parent` with {text:?}, which is no session's id (a ULID, 26 \
                         letters and digits); a name is none"
                    )
                })?;
                self.equality(Condition::Parent(parent))
            }
            "name" => self.equality(Condition::Name(self.pattern()?)),
            "external_key" => self.equality(Condition::ExternalKey(self.pattern()?)),
            "directory" => self.equality(Condition::Directory(self.pattern()?)),
            "branch" => self.equality(Condition::Branch(self.pattern()?)),
            "priority" => {
                let number = text.parse().map_err(|_| {
                    format!("compares `priority` with {text:?}, which is no whole number")
                })?;
                let priority = self.parsed(Priority::parse(number))?;
                Ok(Filter::Is(Condition::Priority(
                    self.comparison()?,
                    priority,
                )))
            }
            "created_at" => self.time(Time::Created),
            "updated_at" => self.time(Time::Updated),
            "last_run_at" => self.time(Time::LastRun),
            _ => Err(self.unknown()),
        }
    }

    fn label(&self, key: &str) -> Result<Filter, String> {
        let key =
            LabelKey::parse(key).map_err(|error| format!("asks for `{}`: {error}", self.path))?;
        let text = self.value.as_str();
        if self.comparator == Comparator::Has && text == "*" {
            return Ok(Filter::Is(Condition::HasLabel(key)));
        }
        let value = self.parsed(LabelValue::parse(text))?;
        self.equality(Condition::Label(key, value))
    }

    /// What is equal or not, and has no order.
    fn equality(&self, condition: Condition) -> Result<Filter, String> {
        match self.comparator {
            Comparator::Equal | Comparator::Has => Ok(Filter::Is(condition)),
            Comparator::NotEqual => Ok(Filter::Not(Box::new(Filter::Is(condition)))),
            _ => Err(format!(
                "compares `{}` by order, which it has not; use = or !=",
                self.path
            )),
        }
    }

    fn comparison(&self) -> Result<Comparison, String> {
        Ok(match self.comparator {
            Comparator::Equal => Comparison::Equal,
            Comparator::NotEqual => Comparison::NotEqual,
            Comparator::LessThan => Comparison::Less,
            Comparator::LessThanOrEqual => Comparison::AtMost,
            Comparator::GreaterThan => Comparison::Greater,
            Comparator::GreaterThanOrEqual => Comparison::AtLeast,
            Comparator::Has => {
                return Err(format!("asks `{}` with `:`; use = or an order", self.path));
            }
        })
    }

    fn time(&self, time: Time) -> Result<Filter, String> {
        let text = self.value.as_str();
        let at: Timestamp = rfc3339(text).ok_or_else(|| {
            format!(
                "compares `{}` with {text:?}, which is no time like \"2026-11-30T12:00:00Z\"",
                self.path
            )
        })?;
        Ok(Filter::Is(Condition::Time(time, self.comparison()?, at)))
    }

    fn boolean(&self) -> Result<bool, String> {
        let text = self.value.as_str();
        self.value
            .as_bool()
            .ok_or_else(|| format!("compares `{}` with {text:?}; use true or false", self.path))
    }

    /// A text, or its beginning where it closes with `*`.
    fn pattern(&self) -> Result<Pattern, String> {
        let only_prefix = || {
            format!(
                "has a `*` in {:?} elsewhere than at its end",
                self.value.as_str()
            )
        };
        let text = match self.value.string_match() {
            Some(StringMatch::Prefix(text)) => return Ok(Pattern::Prefix(text.to_owned())),
            Some(StringMatch::Suffix(_) | StringMatch::Contains(_)) => return Err(only_prefix()),
            Some(StringMatch::Exact(text)) => text,
            None => self.value.as_str(),
        };
        match text.strip_suffix('*') {
            Some(text) if !text.contains('*') => Ok(Pattern::Prefix(text.to_owned())),
            Some(_) => Err(only_prefix()),
            None if text.contains('*') => Err(only_prefix()),
            None => Ok(Pattern::Whole(text.to_owned())),
        }
    }

    fn parsed<T>(&self, parsed: Result<T, IdError>) -> Result<T, String> {
        let text = self.value.as_str();
        parsed.map_err(|error| {
            format!(
                "compares `{}` with {text:?}, which cannot be: {error}",
                self.path
            )
        })
    }

    fn unknown(&self) -> String {
        let fields = FIELDS.join(", ");
        format!("has no field `{}`; fields are {fields}", self.path)
    }
}

/// A time that is not before 1970, in milliseconds.
fn rfc3339(text: &str) -> Option<Timestamp> {
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let millis = at.unix_timestamp_nanos().div_euclid(1_000_000);
    u64::try_from(millis).ok().map(Timestamp::from_millis)
}
