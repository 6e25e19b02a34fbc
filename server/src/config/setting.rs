//! What one declaration says of a setting: its key, what it takes, where it goes.
//!
//! What must never enter: a particular setting, or where a value came from.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::Settings;
use crate::adapters::authn::without_secrets;

/// The part of a key that stands for a name of the operator's choice.
pub(crate) const ANY: &str = "*";
/// What every environment variable of a setting begins with.
pub(crate) const ENV_PREFIX: &str = "SESSIONPLANE_";

/// The most that is taken beyond a range: as a time in any unit, the clock can still tell its end.
const MOST_BEYOND: u64 = u32::MAX as u64;

/// A setting. Everything that is told of it anywhere is derived from this.
pub(crate) struct Setting {
    /// Its place in the file, parts separated by dots; [`ANY`] is a name of the operator's choice.
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    /// The flag that sets it, without its dashes, if it has one of its own.
    pub(crate) flag: Option<&'static str>,
    /// The variable that sets it, where it is not made of the key.
    pub(crate) variable: Option<&'static str>,
    /// What it does, in words that go on after its name.
    pub(crate) about: &'static str,
    /// Whether each name must have it.
    pub(crate) needed: bool,
    /// Puts a value that was checked into place, for a name if the key has one.
    pub(crate) set: fn(&mut Settings, &str, Value),
    /// The value in place; nothing where it has none.
    pub(crate) get: fn(&Settings, &str) -> Option<Value>,
}

/// What a setting takes.
pub(crate) enum Kind {
    /// A whole number.
    Whole(RangeInclusive<u64>),
    Bool,
    /// A text, with a word for what it is.
    Text(&'static str),
    OneOf(&'static [&'static str]),
    /// Texts, with a word for what each is.
    List(&'static str),
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Whole(u64),
    Bool(bool),
    Text(String),
    List(Vec<String>),
}

impl Setting {
    /// The environment variable that sets it; none for what has a name of the operator's choice.
    pub(crate) fn variable(&self) -> Option<String> {
        if self.is_named() {
            return None;
        }
        let own = self.variable.map(str::to_owned);
        Some(own.unwrap_or_else(|| {
            format!("{ENV_PREFIX}{}", self.key.replace('.', "_").to_uppercase())
        }))
    }

    /// Whether its key has a name of the operator's choice in it.
    pub(crate) fn is_named(&self) -> bool {
        self.key.split('.').any(|part| part == ANY)
    }

    /// The name in a key, if the key is this setting's.
    pub(crate) fn name_in<'k>(&self, key: &'k str) -> Option<&'k str> {
        if !self.is_named() {
            return (self.key == key).then_some("");
        }
        let (before, after) = self.key.split_once(ANY)?;
        let name = key.strip_prefix(before)?.strip_suffix(after)?;
        (!name.is_empty()).then_some(name)
    }

    /// The key for a name.
    pub(crate) fn key_of(&self, name: &str) -> String {
        self.key.replacen(ANY, name, 1)
    }

    /// Whether a value may also be above its range when that is asked for.
    pub(crate) fn may_exceed(&self) -> bool {
        self.key.starts_with("limits.")
    }
}

impl Kind {
    /// What it takes, in words that follow `use`.
    pub(crate) fn takes(&self) -> String {
        match self {
            Self::Whole(range) => format!("{} to {}", range.start(), range.end()),
            Self::Bool => "true or false".to_owned(),
            Self::Text(what) => (*what).to_owned(),
            Self::OneOf(words) => words.join(" or "),
            Self::List(what) => format!("a list, each {what}"),
        }
    }

    /// Reads a value out of a text, as environment and flags give it. A list's parts are separated
    /// by commas.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        let wrong = || Err(format!("is {text:?}; use {}", self.takes()));
        match self {
            Self::Whole(_) => text.parse().map(Value::Whole).or_else(|_| wrong()),
            Self::Bool => text.parse().map(Value::Bool).or_else(|_| wrong()),
            Self::Text(_) => Ok(Value::Text(text.to_owned())),
            Self::OneOf(_) => self.among(text),
            Self::List(_) => {
                let parts = text.split(',').map(str::trim);
                let parts = parts.filter(|part| !part.is_empty());
                Ok(Value::List(parts.map(str::to_owned).collect()))
            }
        }
    }

    /// A text that must be one of some words.
    pub(crate) fn among(&self, text: &str) -> Result<Value, String> {
        match self {
            Self::OneOf(words) if !words.contains(&text) => {
                Err(format!("is {text:?}; use {}", self.takes()))
            }
            _ => Ok(Value::Text(text.to_owned())),
        }
    }

    /// Whether a value is within its bounds, `beyond` them where that is asked for.
    pub(crate) fn bounds(&self, value: &Value, beyond: bool) -> Result<(), String> {
        match (self, value) {
            (Self::Whole(range), Value::Whole(found))
                if found < range.start() || (found > range.end() && !beyond) =>
            {
                Err(format!("is {found}; use {}", self.takes()))
            }
            (Self::Whole(range), Value::Whole(found)) if *found > MOST_BEYOND.max(*range.end()) => {
                Err(format!(
                    "is {found}; use {MOST_BEYOND} at most, beyond its range too"
                ))
            }
            (Self::Text(_), Value::Text(text)) if text.is_empty() => {
                Err(format!("is empty; use {}, or leave it out", self.takes()))
            }
            (_, Value::Text(text)) => self.tellable(text),
            (_, Value::List(texts)) => texts.iter().try_for_each(|text| self.tellable(text)),
            _ => Ok(()),
        }
    }

    /// C61: whether a text may be told to anybody, as every setting is. What is written in several
    /// lines is a secret's content where its file belongs; it is not quoted.
    fn tellable(&self, text: &str) -> Result<(), String> {
        if text.contains(char::is_control) {
            return Err(format!(
                "has a line break, or another character that is none of a text; use {}",
                self.takes()
            ));
        }
        if without_secrets(text) != text {
            return Err(format!(
                "holds a token, and whoever reads the configuration would have it; use {}",
                self.takes()
            ));
        }
        Ok(())
    }
}

impl std::fmt::Display for Value {
    /// As the file has it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Bool(value) => value.fmt(f),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::List(values) => write!(f, "{values:?}"),
        }
    }
}

/// A field that a whole number is put into, so many of the field's own unit for each of the key's.
pub(crate) trait Number: Sized {
    fn put(value: u64, scale: u64) -> Self;
    fn took(&self, scale: u64) -> u64;
}

impl Number for u64 {
    fn put(value: u64, scale: u64) -> Self {
        value.saturating_mul(scale)
    }
    fn took(&self, scale: u64) -> u64 {
        self / scale
    }
}

impl Number for u32 {
    fn put(value: u64, scale: u64) -> Self {
        Self::try_from(value.saturating_mul(scale)).unwrap_or(Self::MAX)
    }
    fn took(&self, scale: u64) -> u64 {
        u64::from(*self) / scale
    }
}

impl Number for usize {
    fn put(value: u64, scale: u64) -> Self {
        Self::try_from(value.saturating_mul(scale)).unwrap_or(Self::MAX)
    }
    fn took(&self, scale: u64) -> u64 {
        u64::try_from(*self).unwrap_or(u64::MAX) / scale
    }
}

impl Number for Duration {
    fn put(value: u64, scale: u64) -> Self {
        Self::from_secs(value.saturating_mul(scale))
    }
    fn took(&self, scale: u64) -> u64 {
        self.as_secs() / scale
    }
}

/// Zero is never.
impl Number for Option<Duration> {
    fn put(value: u64, scale: u64) -> Self {
        (value > 0).then(|| Duration::put(value, scale))
    }
    fn took(&self, scale: u64) -> u64 {
        self.map_or(0, |time| time.took(scale))
    }
}

/// A field that a text is put into.
pub(crate) trait Said: Sized {
    fn put(text: String) -> Self;
    fn said(&self) -> Option<String>;
}

impl Said for String {
    fn put(text: String) -> Self {
        text
    }
    fn said(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Said for PathBuf {
    fn put(text: String) -> Self {
        text.into()
    }
    fn said(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl<T: Said> Said for Option<T> {
    fn put(text: String) -> Self {
        Some(T::put(text))
    }
    fn said(&self) -> Option<String> {
        self.as_ref().and_then(T::said)
    }
}

/// The part of a map that a name has; made if it has none yet.
pub(crate) fn of<'m, T: Default>(map: &'m mut BTreeMap<String, T>, name: &str) -> &'m mut T {
    map.entry(name.to_owned()).or_default()
}
