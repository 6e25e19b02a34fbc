//! Brings the sources together: a flag goes before the environment, that before the file, that
//! before the default. Everything that is wrong is found, not only the first.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use super::declared::DECLARED;
use super::file::{self, Given, unknown};
use super::problem::{Problem, Source};
use super::setting::{ENV_PREFIX, Setting, Value};
use super::variables::misspelt;
use super::{ConfigError, Settings};
use crate::adapters::plain_file;

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Where values may come from.
#[derive(Debug, Default, Clone)]
pub struct Sources {
    /// The file.
    pub file: Option<PathBuf>,
    /// Environment variables; others than ours are passed over.
    pub variables: Vec<(String, OsString)>,
    /// Keys and values that the command line gave, with the flag of each.
    pub flags: Vec<FlagValue>,
}

/// What a flag gave.
#[derive(Debug, Clone)]
pub struct FlagValue {
    /// The flag, with its dashes.
    pub flag: String,
    /// The key.
    pub key: String,
    /// The value, as text.
    pub value: String,
}

impl Sources {
    /// The variables of this process that begin as ours do. An empty one is as good as none.
    #[must_use]
    pub fn environment() -> Vec<(String, OsString)> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            (name.starts_with(ENV_PREFIX) && !value.is_empty()).then_some((name, value))
        });
        variables.collect()
    }
}

/// Reads the sources into settings and says what is wrong with them.
///
/// # Errors
/// When the file cannot be read.
pub fn look(sources: &Sources) -> Result<(Settings, Vec<Problem>), ConfigError> {
    let mut given = Vec::new();
    let mut problems = Vec::new();
    if let Some(path) = &sources.file {
        let text = plain_file::read(path, MAX_FILE_BYTES).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is no text in UTF-8"))
        });
        let text = text.map_err(|error| ConfigError::Read {
            path: path.clone(),
            error,
        })?;
        (given, problems) = file::read(path, &text);
    }
    variables(&sources.variables, &mut given, &mut problems);
    for flag in &sources.flags {
        let source = Source::Flag(flag.flag.clone());
        match declared(&flag.key) {
            // Not quoted: it may be a secret that was meant for elsewhere.
            _ if flag.key.is_empty() => {
                let what = "takes KEY=VALUE, for example limits.ring_events=4096";
                problems.push(Problem::new(source, "", what));
            }
            Some((setting, name)) => given.push(as_text(setting, name, &flag.value, source)),
            None => problems.push(Problem::new(source, &*flag.key, unknown(&flag.key))),
        }
    }
    let mut taken = BTreeMap::new();
    for given in given {
        // A later source goes before an earlier one, also where the earlier one is wrong.
        taken.insert(given.setting.key_of(&given.name), given);
    }
    // Before any value is judged by its range.
    let beyond_ranges = taken
        .get("limits.beyond_ranges")
        .is_some_and(|given| given.value == Ok(Value::Bool(true)));
    let mut settings = Settings {
        beyond_ranges,
        ..Settings::default()
    };
    for (key, given) in taken {
        take(&mut settings, key, given, &mut problems);
    }
    let broken = problems.len();
    settings.together(&mut problems);
    // A problem of one value is told once.
    let (own, together) = problems.split_at(broken);
    let own_keys: BTreeSet<&str> = own.iter().map(|problem| &*problem.key).collect();
    let told = |key: &str| own_keys.contains(key);
    let together = together.iter().filter(|problem| !told(&problem.key));
    let mut problems: Vec<Problem> = own.iter().chain(together).cloned().collect();
    // As they stand in the file; what is elsewhere comes after it.
    problems.sort_by_key(|problem| match problem.source {
        Source::File { line, .. } => line,
        _ => usize::MAX,
    });
    Ok((settings, problems))
}

/// Reads the sources into settings.
///
/// # Errors
/// When the file cannot be read, or anything is wrong: everything that is, is told.
pub fn load(sources: &Sources) -> Result<Settings, ConfigError> {
    let (settings, problems) = look(sources)?;
    if problems.is_empty() {
        return Ok(settings);
    }
    Err(ConfigError::Problems(problems))
}

fn take(settings: &mut Settings, key: String, given: Given, problems: &mut Vec<Problem>) {
    let setting = given.setting;
    let beyond = setting.may_exceed() && settings.beyond_ranges;
    let checked = given.value.and_then(|value| {
        setting.kind.bounds(&value, beyond)?;
        Ok(value)
    });
    match checked {
        Ok(value) => {
            (setting.set)(settings, &given.name, value);
            settings.sources.insert(key, given.source);
        }
        Err(what) => problems.push(Problem::new(given.source, key, what)),
    }
}

fn as_text(setting: &'static Setting, name: &str, text: &str, source: Source) -> Given {
    Given {
        setting,
        name: name.to_owned(),
        value: setting.kind.read(text),
        source,
    }
}

/// The setting that a key is of, and the name in it.
pub(crate) fn declared(key: &str) -> Option<(&'static Setting, &str)> {
    DECLARED
        .iter()
        .find_map(|setting| Some((setting, setting.name_in(key)?)))
}

fn variables(found: &[(String, OsString)], given: &mut Vec<Given>, problems: &mut Vec<Problem>) {
    for (name, value) in found {
        let source = Source::Variable(name.clone());
        let setting = DECLARED
            .iter()
            .find(|setting| setting.variable().as_ref() == Some(name));
        match setting {
            Some(setting) => given.push(match value.to_str() {
                Some(value) => as_text(setting, "", value, source),
                // Passed over, it would leave a default in its place that nobody asked for.
                None => Given {
                    setting,
                    name: String::new(),
                    value: Err(format!("is no text in UTF-8; use {}", setting.kind.takes())),
                    source,
                },
            }),
            None => problems.extend(misspelt(name).map(|what| Problem::new(source, "", what))),
        }
    }
}
