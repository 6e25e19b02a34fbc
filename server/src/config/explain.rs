//! Each effective value, and where it comes from. Nothing here is a secret: a setting never is one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::declared::DECLARED;
use super::file::unknown;
use super::load::declared;
use super::problem::Source;
use super::setting::{Kind, Setting, Value};
use super::shown::shown;
use super::{ConfigError, Settings, default_data_dir, value};

/// Every effective value, one line each: `key = value  # source`.
#[must_use]
pub fn explain(settings: &Settings) -> String {
    rows(settings, |_| true)
}

/// As [`explain`], for the settings whose key is to be told.
fn rows(settings: &Settings, told: impl Fn(&str) -> bool) -> String {
    let mut rows = Vec::new();
    for setting in DECLARED {
        for name in names(settings, setting) {
            let key = setting.key_of(&name);
            if !told(&key) {
                continue;
            }
            rows.push((
                shown(
                    &format!("{key} = {}", effective(settings, setting, &name)),
                    false,
                )
                .into_owned(),
                { source(settings, &key) },
            ));
        }
    }
    let width = rows.iter().map(|(row, _)| row.chars().count()).max();
    let width = width.unwrap_or_default().min(60);
    let mut out = String::new();
    for (row, source) in rows {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{row:<width$}  # {source}");
    }
    out
}

/// One setting: its value, where that comes from, and what is declared of it. Of a section each
/// effective value in it, one line each.
///
/// # Errors
/// When there is no such setting, and no such section or nothing is set in it.
pub fn explain_one(settings: &Settings, key: &str) -> Result<String, ConfigError> {
    let Some((setting, name)) = declared(key) else {
        return section(settings, key).ok_or_else(|| value(key, unknown(key)));
    };
    let mut out = format!(
        "{} = {}\n  from     {}\n  takes    {}\n",
        shown(key, false),
        shown(&effective(settings, setting, name), false),
        source(settings, key),
        setting.kind.takes(),
    );
    let default = (setting.get)(&Settings::default(), name);
    let default = default.map_or_else(|| "none".to_owned(), |value| value.to_string());
    let _ = writeln!(out, "  default  {default}");
    if let Some(variable) = setting.variable() {
        let _ = writeln!(out, "  variable {variable}");
    }
    if let Some(flag) = setting.flag {
        let _ = writeln!(out, "  flag     --{flag}");
    }
    let _ = writeln!(out, "  {}", setting.about);
    Ok(out)
}

/// What is effective in a section, or under a name of the operator's choice in one.
fn section(settings: &Settings, key: &str) -> Option<String> {
    let inside = format!("{}.", key.strip_suffix('.').unwrap_or(key));
    let within = rows(settings, |key| key.starts_with(&inside));
    if !within.is_empty() {
        return Some(within);
    }
    let of_names = DECLARED.iter().find(|one| one.key.starts_with(&inside))?;
    Some(format!(
        "nothing is set in [{}]; its keys are like {}\n",
        inside.trim_end_matches('.'),
        of_names.key_of("NAME")
    ))
}

/// The names that a setting is set for: one without a letter where its key has none.
fn names(settings: &Settings, setting: &Setting) -> BTreeSet<String> {
    if !setting.is_named() {
        return BTreeSet::from([String::new()]);
    }
    let set = settings.sources.keys();
    let named = set.filter_map(|key| setting.name_in(key));
    named.map(str::to_owned).collect()
}

fn effective(settings: &Settings, setting: &Setting, name: &str) -> String {
    let found = (setting.get)(settings, name);
    let found = found.or_else(|| {
        let directory = (setting.key == "data_dir").then(default_data_dir)?.ok()?;
        Some(Value::Text(directory.display().to_string()))
    });
    match (found, &setting.kind) {
        (Some(value), _) => value.to_string(),
        (None, Kind::List(_)) => "[]".to_owned(),
        (None, _) => "(unset)".to_owned(),
    }
}

fn source(settings: &Settings, key: &str) -> Source {
    settings
        .sources
        .get(key)
        .cloned()
        .unwrap_or(Source::Default)
}
