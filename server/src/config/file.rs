//! The file: what it sets, and where; everything in it that is no setting is told, with the nearest
//! that is.
//!
//! What must never enter: a particular setting.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declared::DECLARED;
use super::problem::{Problem, Source};
use super::setting::{ANY, Kind, Setting, Value};

/// So many unknown keys are told with the nearest that is known.
const MOST_LIKENED: usize = 100;

/// A value that somebody gave.
pub(crate) struct Given {
    pub(crate) setting: &'static Setting,
    /// The operator's name in its key; empty where it has none.
    pub(crate) name: String,
    pub(crate) value: Result<Value, String>,
    pub(crate) source: Source,
}

/// Reads a file's text; `path` is what it is called where it is told of.
pub(crate) fn read(path: &Path, text: &str) -> (Vec<Given>, Vec<Problem>) {
    let mut reader = Reader {
        path,
        ends: text.match_indices('\n').map(|(at, _)| at).collect(),
        given: Vec::new(),
        problems: Vec::new(),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let source = reader.source(error.span().map_or(0, |span| span.start));
        let what = format!(
            "{}; the file cannot be read, and what else is wrong with it is told after that",
            error.message()
        );
        reader.problems.push(Problem::new(source, "", what));
    }
    // What could not be read is not in the table: whatever else is said of it would be a guess.
    if reader.problems.is_empty() {
        reader.table(&[], table.get_ref());
    }
    (reader.given, reader.problems)
}

struct Reader<'a> {
    path: &'a Path,
    /// Where each line ends.
    ends: Vec<usize>,
    given: Vec<Given>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn source(&self, at: usize) -> Source {
        Source::File {
            path: self.path.to_owned(),
            line: 1 + self.ends.partition_point(|end| *end < at),
        }
    }

    fn problem(&mut self, at: usize, key: &str, what: impl Into<String>) {
        let problem = Problem::new(self.source(at), key, what);
        self.problems.push(problem);
    }

    fn table(&mut self, above: &[&str], table: &DeTable<'_>) {
        for (key, value) in table {
            let place = [above, &[key.get_ref().as_ref()]].concat();
            self.item(&place, key.span().start, value);
        }
    }

    fn item(&mut self, place: &[&str], at: usize, value: &Spanned<DeValue<'_>>) {
        let told = place.join(".");
        let found: Vec<&'static Setting> = DECLARED
            .iter()
            .filter(|setting| begins(setting, place))
            .collect();
        let depth = |setting: &&Setting| setting.key.split('.').count();
        if let Some(setting) = found.iter().find(|setting| depth(setting) == place.len()) {
            let value = value_of(&setting.kind, value.get_ref());
            let source = self.source(at);
            let name = name(setting, place);
            self.given.push(Given {
                setting,
                name,
                value,
                source,
            });
        } else if found.is_empty() {
            // The likeness of each to all settings takes its time, and nobody reads so many.
            let what = if self.problems.len() < MOST_LIKENED {
                unknown(&told)
            } else {
                "is no setting".to_owned()
            };
            self.problem(at, &told, what);
        } else if let Some(inside) = value.get_ref().as_table() {
            if place
                .iter()
                .any(|part| part.is_empty() || part.contains('.'))
            {
                return self.problem(at, &told, "has a name with a dot, or without a letter");
            }
            self.missing(&found, place, at, inside);
            self.table(place, inside);
        } else {
            let what = format!(
                "is {}; it is a section: write [{told}] and its keys below",
                value.get_ref().type_str()
            );
            self.problem(at, &told, what);
        }
    }

    /// What a name must have.
    fn missing(&mut self, found: &[&Setting], place: &[&str], at: usize, inside: &DeTable<'_>) {
        for setting in found {
            let parts: Vec<&str> = setting.key.split('.').collect();
            let is_name = parts.len() == place.len() + 1 && parts[place.len() - 1] == ANY;
            let last = parts[parts.len() - 1];
            if setting.needed && is_name && !inside.contains_key(last) {
                let key = setting.key_of(place[place.len() - 1]);
                let what = format!("is missing; use {}", setting.kind.takes());
                self.problem(at, &key, what);
            }
        }
    }
}

/// Whether a setting is at this place or below it.
fn begins(setting: &Setting, place: &[&str]) -> bool {
    let mut parts = setting.key.split('.');
    place.iter().all(|here| {
        parts
            .next()
            .is_some_and(|part| part == ANY || part == *here)
    })
}

fn name(setting: &Setting, place: &[&str]) -> String {
    let mut parts = setting.key.split('.').zip(place);
    let named = parts.find(|(part, _)| *part == ANY);
    named.map_or_else(String::new, |(_, name)| (*name).to_owned())
}

fn value_of(kind: &Kind, value: &DeValue<'_>) -> Result<Value, String> {
    let wrong = || {
        let found = match value.type_str() {
            "integer" => "a number",
            "string" => "a text",
            "boolean" => "true or false",
            "table" => "a section",
            other => other,
        };
        Err(format!("is {found}; use {}", kind.takes()))
    };
    match (kind, value) {
        (Kind::Whole(_), DeValue::Integer(number)) => {
            let digits = (number.as_str(), number.radix());
            match u64::from_str_radix(digits.0, digits.1) {
                Ok(value) => Ok(Value::Whole(value)),
                Err(_) => Err(format!("is {}; use {}", digits.0, kind.takes())),
            }
        }
        (Kind::Bool, DeValue::Boolean(value)) => Ok(Value::Bool(*value)),
        (Kind::Text(_), DeValue::String(text)) => Ok(Value::Text(text.clone().into_owned())),
        (Kind::OneOf(_), DeValue::String(text)) => kind.among(text),
        (Kind::List(_), DeValue::Array(values)) => {
            let texts = values.iter().map(|value| value.get_ref().as_str());
            let texts: Option<Vec<String>> = texts.map(|text| text.map(str::to_owned)).collect();
            texts.map(Value::List).map_or_else(wrong, Ok)
        }
        _ => wrong(),
    }
}

/// What is said of a key that is no setting.
pub(crate) fn unknown(key: &str) -> String {
    let place: Vec<&str> = key.split('.').collect();
    if let Some(inside) = DECLARED.iter().find(|setting| begins(setting, &place)) {
        let inside = inside.key_of(&name(inside, &place));
        return format!("is a section; name a setting in it, for example {inside}");
    }
    match nearest(key) {
        Some(near) => format!("is no setting; did you mean {near}?"),
        None => "is no setting; `sessiond config explain` lists them all".to_owned(),
    }
}

/// The setting, or section, that is most like a key; nothing if none is.
fn nearest(key: &str) -> Option<String> {
    let depth = key.split('.').count();
    let place: Vec<&str> = key.split('.').collect();
    let mut candidates: Vec<String> = Vec::new();
    for setting in DECLARED {
        let parts: Vec<&str> = setting.key.split('.').collect();
        // A name of the operator's choice is taken as it is.
        let as_asked = |depth: usize| -> String {
            let parts = parts.iter().take(depth).enumerate();
            let parts = parts.map(|(at, part)| match place.get(at) {
                Some(name) if *part == ANY => *name,
                _ => *part,
            });
            parts.collect::<Vec<_>>().join(".")
        };
        // A name of the operator's choice cannot be misspelt.
        let ends = [depth.min(parts.len()), parts.len()];
        let ends = ends.into_iter().filter(|end| parts[end - 1] != ANY);
        candidates.extend(ends.map(as_asked));
    }
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let likeness = |candidate: &String| {
        let whole = strsim::jaro_winkler(candidate, key);
        // A key that stands in a wrong section, or in none.
        let moved = strsim::normalized_damerau_levenshtein(&last(candidate), &last(key));
        whole.max(moved)
    };
    let best = candidates
        .into_iter()
        .map(|candidate| (likeness(&candidate), candidate))
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.len().cmp(&a.1.len())))?;
    (best.0 > 0.8).then_some(best.1)
}
