//! Work that is asked for: it is not done, and must be told from words that are looked for.

use super::question::{Form, Question, Role};

/// Words that ask for work where they stand first, and what they act on follows.
const WORKS: &str = "write fix add implement create delete remove change edit modify refactor \
    rewrite rename move update upgrade run execute build compile test install deploy commit push \
    merge generate translate draft debug solve improve optimize format lint revert replace insert \
    restart migrate";

/// What begins the thing that is acted on.
const ACTED_ON: [&str; 16] = [
    "the", "a", "an", "this", "that", "these", "those", "my", "our", "your", "me", "us", "it",
    "all", "some", "every",
];

/// Whether a text asks for work, by its plain words after `please` and the like: `fix the gate`, `can
/// you run tests?`, `delete README.md`. Words that merely stand together, such as `write ahead log`,
/// do not.
pub(super) fn is_asked(plain: &[String], polite: bool, question: &Question) -> bool {
    let mut plain = plain.iter().map(String::as_str);
    let Some(verb) = plain.next().filter(|word| opens(word)) else {
        return false;
    };
    let acts = plain.next().is_some_and(|word| ACTED_ON.contains(&word));
    // What is spelt as in code, or is a file, needs no article.
    let named = match question.words.as_slice() {
        [first, next, ..] if first.text.eq_ignore_ascii_case(verb) => {
            next.form != Form::Plain && next.role == Role::Seek
        }
        _ => false,
    };
    acts || named || polite
}

/// Whether a word says what work is asked for.
pub(super) fn opens(word: &str) -> bool {
    WORKS.split_ascii_whitespace().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::super::wish::Wish;
    use super::*;

    #[test]
    fn work_is_told_from_words_that_are_looked_for() {
        for text in [
            "fix the failing test",
            "run the tests",
            "can you run tests?",
            "please refactor HarbourGate",
            "delete README.md",
            "write me a poem about boats",
            "commit my changes",
            "run `cargo test`",
        ] {
            assert_eq!(Question::read(text).wish, Wish::Work, "{text}");
        }
        for text in [
            "write ahead log",
            "delete markers",
            "test harness",
            "run loop of the server",
            "how do I run the tests?",
            "where is the file deleted?",
            "/find fix the gate",
        ] {
            assert_eq!(Question::read(text).wish, Wish::Search, "{text}");
        }
    }
}
