//! What is wrong with a filter that cannot be read, in words that name the part and what would be right.

use aip_160::Comparable;

use super::parse::FIELDS;
use crate::domain::fleet::phase::Phase;

/// How a condition is written, for who wrote something else.
const CONDITION: &str = "a condition is FIELD OPERATOR VALUE, with one of = != < <= > >= or :";
/// The words between conditions.
const KEYWORDS: [&str; 3] = ["AND", "OR", "NOT"];

/// A word that stands where a condition should.
pub(super) fn alone(word: &Comparable) -> String {
    let word = word
        .field_path()
        .map_or_else(|| word.to_string(), |path| path.clone());
    let upper = word.to_ascii_uppercase();
    if KEYWORDS.contains(&upper.as_str()) {
        return format!("has the word `{word}` where a condition should be; write {upper}");
    }
    let example = match word.as_str() {
        "stalled" | "paused" => format!("write `{word} = true`"),
        "pausing" => "write `phase = WORKING AND paused = true`".to_owned(),
        _ if Phase::named(&word).is_some() => format!("write `phase = {upper}`"),
        _ if FIELDS.contains(&word.as_str()) => {
            format!("{CONDITION}, for example `{}`", example(&word))
        }
        _ => format!("{CONDITION}, for example `name = \"fix-*\"`"),
    };
    format!("has the word `{word}`, which is compared with nothing; {example}")
}

/// A condition on that field.
fn example(field: &str) -> String {
    match field {
        "phase" => "phase = READY".to_owned(),
        "priority" => "priority > 0".to_owned(),
        "created_at" | "updated_at" | "last_run_at" => {
            format!("{field} > \"2026-11-30T12:00:00Z\"")
        }
        "name" | "external_key" | "branch" => format!("{field} = \"fix-*\""),
        _ => format!("{field} = \"...\""),
    }
}

/// What no grammar takes.
pub(super) fn unreadable(text: &str, error: &aip_160::FilterError) -> String {
    let aip_160::FilterError::Syntax { offset, message } = error else {
        return format!("is no filter: {error}");
    };
    let rest = text.get(*offset..).unwrap_or_default();
    let keyword = KEYWORDS.into_iter().find(|word| {
        let after = rest.strip_prefix(word);
        after.is_some_and(|after| !after.starts_with(|next: char| next.is_alphanumeric()))
    });
    if let Some(keyword) = keyword {
        let after = rest[keyword.len()..].trim();
        return if after.is_empty() {
            format!("ends with {keyword}; the condition after it is missing")
        } else {
            format!("has {keyword} where a condition should be, before {after:?}; {CONDITION}")
        };
    }
    if rest.trim().is_empty() {
        return format!(
            "ends too soon: a condition, a value or a closing mark is missing; {CONDITION}"
        );
    }
    let rest: String = rest.chars().take(40).collect();
    format!("is no filter from {rest:?} on (byte {offset}): {message}; {CONDITION}")
}
