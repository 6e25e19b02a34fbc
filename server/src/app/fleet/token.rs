//! Page tokens and bookmarks: opaque to callers, and bound to what they were given for.

use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::provenance::Digest;

/// Hexadecimal digits of a digest that a token carries: it guards against mistakes, not against malice.
const DIGITS: usize = 16;

/// Longest token that is looked at, in bytes.
const MAX_BYTES: usize = 1024;

/// A token for a place, of a question of that digest.
pub(super) fn make(question: &Digest, place: &str) -> String {
    let digest = question.to_string();
    format!("{}.{place}", &digest[..DIGITS.min(digest.len())])
}

/// The place that a token names.
///
/// # Errors
/// When it was made for another question, or is none.
pub(super) fn place<'t>(
    field: &str,
    question: &Digest,
    token: &'t str,
) -> Result<&'t str, CallError> {
    let (digest, place) = token.split_once('.').unwrap_or_default();
    let whole = digest.len() == DIGITS && token.len() <= MAX_BYTES;
    if whole && question.to_string().starts_with(digest) {
        return Ok(place);
    }
    Err(wrong(field))
}

/// The refusal of a token that names nothing.
pub(super) fn wrong(field: &str) -> CallError {
    let told = "is none that was given for this filter and order; begin again without one";
    CallError::invalid(field, told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::digest::of_text;

    #[test]
    fn c64_a_token_is_good_for_what_it_was_given_for_only() {
        let (mine, other) = (of_text("a"), of_text("b"));
        let token = make(&mine, "i.01ARZ");
        assert_eq!(place("page_token", &mine, &token), Ok("i.01ARZ"));
        for (question, token) in [
            (&other, token.as_str()),
            (&mine, ""),
            (&mine, ".x"),
            (&mine, "zz"),
        ] {
            let error = place("page_token", question, token).unwrap_err();
            assert_eq!(error.violations[0].field, "page_token");
        }
    }
}
