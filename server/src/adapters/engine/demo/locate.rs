//! Tells the questions that ask where something is done: what does it is code, and what speaks of it
//! is not it.
//!
//! What must never enter: what is looked for.

/// What a question begins with that asks for the place where something is done, whatever follows.
const DOES: [&str; 8] = [
    "where do ",
    "where does ",
    "where did ",
    "which file ",
    "in which file ",
    "which function ",
    "who calls ",
    "what calls ",
];
/// What it begins with, if something that is done follows.
const IS: [&str; 4] = ["where is ", "where are ", "where was ", "where were "];
/// What is done and does not end as most of that does.
const IRREGULAR: [&str; 16] = [
    "read", "written", "kept", "made", "done", "built", "set", "sent", "found", "drawn", "run",
    "held", "put", "begun", "thrown", "caught",
];
/// What is done by notes.
const BY_NOTES: [&str; 5] = [
    "documented",
    "described",
    "explained",
    "mentioned",
    "discussed",
];

/// A question without its mark; one that asks where something is done may have none.
pub(super) fn question(line: &str) -> Option<&str> {
    let asks = || asks(&line.to_ascii_lowercase());
    line.strip_suffix('?').or_else(|| asks().then_some(line))
}

/// Whether a question, in lower case, asks where something is done, computed, checked or defined.
pub(super) fn asks(question: &str) -> bool {
    let question = question.strip_prefix("and ").unwrap_or(question);
    let words = || question.split_whitespace();
    if words().any(|word| BY_NOTES.contains(&word)) {
        return false;
    }
    let begins = |with: &str| question.starts_with(with);
    let is_done = |word: &str| {
        let long = word.len() > "need".len();
        (long && word.ends_with("ed")) || IRREGULAR.contains(&word)
    };
    DOES.iter().any(|does| begins(does)) || (IS.iter().any(|is| begins(is)) && words().any(is_done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_where_something_is_done_is_told_from_what_asks_for_a_thing_or_a_note() {
        for question in [
            "where is the lease token checked",
            "where is the discount computed for members",
            "and where are leases revoked",
            "where does it compute the discount",
            "which file computes the discount",
            "who calls discount",
            "where is the log written",
        ] {
            assert!(asks(question), "{question}");
        }
        assert_eq!(question("where is it read"), Some("where is it read"));
        assert_eq!(question("what is it?"), Some("what is it"));
        assert_eq!(question("what it is"), None);
        for question in [
            "where is the guide",
            "where is the setup described",
            "who wrote the guide",
            "how is the discount computed",
            "where is the seed",
        ] {
            assert!(!asks(question), "{question}");
        }
    }
}
