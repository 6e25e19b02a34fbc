//! Reads a text for what is to be looked for: words, quoted phrases, identifiers, places.

use sessionplane_core::domain::text::head;

use super::lines::Lines;
use super::wish::{self, Wish};
use super::work;

/// How much of a text is read for words: who pastes a log asks in its first lines.
const READ_BYTES: usize = 8 * 1024;
/// How many words are taken from one text.
const MOST_WORDS: usize = 12;

/// What a word of a question is by its form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A word of a language.
    Plain,
    /// Between quotes or backticks.
    Quoted,
    /// Spelt as in code: `lease_token`, `LeaseToken`, `a::b`.
    Code,
    /// Looks like a path or a file name.
    Path,
}

/// What is to be done with a word, by the words before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// To look for it.
    Seek,
    /// To look in it, if it is a place.
    Within,
    /// To leave it out.
    Without,
}

/// A word that means something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) form: Form,
    pub(super) role: Role,
    /// The folder has something at exactly this path, listed or not.
    pub(super) stands: bool,
}

/// What a text asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is said by words of its own, and every combination is"
)]
pub(super) struct Question {
    /// Its words that mean something, in order, each once.
    pub(super) words: Vec<Word>,
    /// It speaks of what was said before: `it`, `that`, `also`.
    pub(super) refers_back: bool,
    /// It takes the place of what was said before: `instead`.
    pub(super) replaces: bool,
    /// It asks about the folder as a whole, and about nothing in it.
    pub(super) about_all: bool,
    /// The text itself in lower case, if it is a question in one line of at least three words
    /// that quotes nothing. Anything else may be pasted from the very line that is looked for.
    pub(super) sentence: Option<String>,
    /// The kind of answer that it asks for.
    pub(super) wish: Wish,
    /// It asks where its words are defined.
    pub(super) defines: bool,
    /// The lines of a file that it speaks of.
    pub(super) lines: Option<Lines>,
    /// It asks which files there are.
    pub(super) lists_files: bool,
    /// The numbers in it, in order.
    pub(super) numbers: Vec<usize>,
}

const STOP_WORDS: &str = "a about above after again all also am an and any anybody anyone anything are aren as \
    ask at be because been before being below between both but by call called can cannot code codebase could \
    couldn did didn do does doesn doing don done down during each else every everything exactly explain few \
    file files find finds first folder for found from further get gets give go goes had happen happened \
    happens has have having he hello help her here hers hey hi him his how however i if in inside instead into \
    is isn it its itself just kind know let like line lines list live lives look looking looks made make makes \
    many may me mean means might more most much must my near need needs no nor not now of off often ok okay on \
    once only or other our out over own part place please project quite rather repo repository say search see \
    seen shall she should show shows so some someone something still such take takes tell than thank thanks \
    that the their them then there these they thing things this those through to too under until up us use \
    very want was wasn way we well went were hm hmm yeah sure maybe what when where which while who whom whose \
    why will with within without would yes yet you your";

/// Words that point at what was said before.
const BACK: [&str; 14] = [
    "it", "its", "that", "this", "they", "them", "their", "those", "these", "also", "and", "there",
    "again", "more",
];

/// Words for the folder as a whole, or for the beginning of an acquaintance.
const ALL: [&str; 9] = [
    "project",
    "repo",
    "repository",
    "codebase",
    "folder",
    "hello",
    "hi",
    "hey",
    "help",
];

/// Words that ask where others are defined.
const DEFINED: [&str; 7] = [
    "defined",
    "defines",
    "define",
    "definition",
    "definitions",
    "declared",
    "declaration",
];

/// Words that end a question how something is done, and say nothing of what.
const HOW: [&str; 6] = ["work", "works", "working", "implemented", "done", "handled"];

/// What code defines, as people call it.
const KINDS: [&str; 12] = [
    "function",
    "fn",
    "method",
    "struct",
    "class",
    "type",
    "enum",
    "trait",
    "interface",
    "macro",
    "constant",
    "const",
];

/// What is to be done with the words to come.
struct Reading {
    role: Role,
    negated: bool,
    /// The folder as a whole was named.
    names_all: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            role: Role::Seek,
            negated: false,
            names_all: false,
        }
    }
}

impl Reading {
    /// Takes a word that says what is to be done with others. Returns whether it says no more.
    fn turn(&mut self, lower: &str) -> bool {
        match lower {
            "not" | "don" | "never" => self.negated = true,
            "in" | "under" | "inside" | "within" | "into" if self.negated => {
                self.role = Role::Without;
            }
            "in" | "under" | "inside" | "within" | "into" => self.role = Role::Within,
            "ignore" | "skip" | "except" | "exclude" | "excluding" | "without" => {
                self.role = Role::Without;
                return true;
            }
            _ => {}
        }
        false
    }
}

impl Question {
    /// Reads a text.
    pub(super) fn read(text: &str) -> Self {
        if let Some((wish, rest)) = wish::command(text) {
            let mut question = Self::words_of(rest).0;
            question.wish = wish::commanded(wish, &question);
            if matches!(wish, Wish::Tree | Wish::Count) {
                // What follows can only be a place.
                for word in &mut question.words {
                    word.role = Role::Within;
                }
            }
            return question;
        }
        let (mut question, plain) = Self::words_of(text);
        question.wish = wish::wish(text, &plain, &question);
        // The word that opens is nothing to look for.
        let opens: fn(&str) -> bool = match question.wish {
            Wish::Show => wish::opens,
            Wish::Work => work::opens,
            _ => |_| false,
        };
        let first = question.words.first();
        if first.is_some_and(|word| opens(&word.text.to_ascii_lowercase())) {
            question.words.remove(0);
        }
        if question.wish == Wish::Show {
            question.show_what_is_defined();
        }
        question
    }

    /// Reads a text for its words; also returns all plain ones, in lower case.
    fn words_of(text: &str) -> (Self, Vec<String>) {
        let mut question = Self::default();
        let mut plain = Vec::new();
        let mut reading = Reading::default();
        for (form, piece) in pieces(head(text, READ_BYTES)) {
            question.hear(form, piece, &mut reading, &mut plain);
        }
        if question.lines.is_none() {
            question.lines = Lines::spoken(&plain, &question.numbers);
        }
        if question.lines.is_some() {
            let is_number = |word: &Word| word.text.bytes().all(|byte| byte.is_ascii_digit());
            question.words.retain(|word| !is_number(word));
        }
        question.lists_files = wish::lists_files(&plain);
        question.ask_definitions();
        question.ask_how(&plain);
        let quotes = |word: &Word| matches!(word.form, Form::Quoted | Form::Code);
        if !question.words.iter().any(quotes) {
            question.sentence = sentence(text);
        }
        question.about_all = reading.names_all && question.words.is_empty();
        (question, plain)
    }

    fn hear(&mut self, form: Form, piece: &str, reading: &mut Reading, plain: &mut Vec<String>) {
        // `it's` and `don't` are told by their first parts.
        let piece = match form {
            Form::Plain => piece.split(['\'', '\u{2019}']).next().unwrap_or(piece),
            _ => piece,
        };
        let (piece, form) = match (form, Lines::split(piece)) {
            (Form::Quoted, _) | (_, (_, None)) => (piece, form),
            (_, (place, lines)) => {
                self.lines = lines;
                (place, Form::Path)
            }
        };
        if form == Form::Plain {
            let lower = piece.to_ascii_lowercase();
            // `is there` points at nothing.
            let before = plain.last().map_or("", String::as_str);
            let there_is = lower == "there" && matches!(before, "is" | "are" | "was" | "were");
            self.refers_back |= BACK.contains(&lower.as_str()) && !there_is;
            self.replaces |= matches!(lower.as_str(), "instead" | "rather");
            reading.names_all |= ALL.contains(&lower.as_str());
            self.numbers.extend(lower.parse::<usize>());
            let skips = reading.turn(&lower) || is_stop_word(&lower);
            let is_short = lower.len() < 2 && lower.is_ascii();
            plain.push(lower);
            if let Some(lines) = Lines::word(piece) {
                self.lines = Some(lines);
                return;
            }
            if skips || is_short {
                return;
            }
        }
        self.add(piece, form, reading.role);
        reading.role = Role::Seek;
        reading.negated = false;
    }

    /// Takes out the words that ask where others are defined.
    fn ask_definitions(&mut self) {
        let asks = |word: &Word| {
            let lower = word.text.to_ascii_lowercase();
            word.form == Form::Plain && DEFINED.contains(&lower.as_str())
        };
        if self.words.iter().any(asks) && !self.words.iter().all(asks) {
            self.words.retain(|word| !asks(word));
            self.defines = true;
        }
    }

    /// Takes out the words that only ask how others do, or where others are used.
    fn ask_how(&mut self, plain: &[String]) {
        let asks = |word: &Word| word.form == Form::Plain && HOW.contains(&word.text.as_str());
        let is_used = |word: &Word| word.form == Form::Plain && word.text == "used";
        let first = |words: usize, asks: &str| plain.iter().take(words).any(|word| word == asks);
        let last = self.words.last();
        let says_nothing = (first(2, "how") && last.is_some_and(asks))
            || (first(1, "where") && last.is_some_and(is_used));
        if says_nothing && self.words.len() > 1 {
            self.words.pop();
        }
    }

    /// Who asks to see a function, or another thing that code defines, means no file of that name.
    fn show_what_is_defined(&mut self) {
        let kind = |word: &Word| {
            let lower = word.text.to_ascii_lowercase();
            word.form == Form::Plain && KINDS.contains(&lower.as_str())
        };
        if self.words.iter().any(kind) && !self.words.iter().all(kind) {
            self.words.retain(|word| !kind(word));
            self.wish = Wish::Search;
            self.defines = true;
        }
    }

    fn add(&mut self, text: &str, form: Form, role: Role) {
        let known = |word: &Word| word.text.eq_ignore_ascii_case(text);
        if self.words.len() < MOST_WORDS && !self.words.iter().any(known) {
            let text = text.to_owned();
            self.words.push(Word {
                text,
                form,
                role,
                stands: false,
            });
        }
    }
}

fn sentence(text: &str) -> Option<String> {
    let line = super::locate::question(text.trim())?;
    let line = line.trim_end_matches(['?', '!', '.']);
    let is_sentence = line.len() <= 300 && !line.contains('\n') && line.split(' ').count() >= 3;
    is_sentence.then(|| line.to_ascii_lowercase())
}

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.split_ascii_whitespace().any(|stop| stop == word)
}

/// The words and quoted phrases of a text, by form.
fn pieces(text: &str) -> Vec<(Form, &str)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| !is_gap(c)) {
        rest = &rest[start..];
        if let Some((phrase, after)) = quoted(rest) {
            pieces.push((Form::Quoted, phrase));
            rest = after;
            continue;
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = rest[first..]
            .find(is_gap)
            .map_or(rest.len(), |at| at + first);
        let word = rest[..end].trim_matches(|c: char| !c.is_alphanumeric() && !"_/.".contains(c));
        let word = word.trim_end_matches(['.', '/']);
        if word.chars().any(char::is_alphanumeric) {
            pieces.push((form(word), word));
        }
        rest = &rest[end..];
    }
    pieces
}

/// What stands between words. Quotes do not: they begin a phrase, or belong to a word.
fn is_gap(c: char) -> bool {
    c.is_whitespace() || "?!,;()[]{}<>".contains(c)
}

/// A phrase in double quotes or backticks at the start of a text, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| "\"`\u{201c}".contains(*c))?;
    let close = if quote == '\u{201c}' {
        '\u{201d}'
    } else {
        quote
    };
    let inside = &text[quote.len_utf8()..];
    let end = inside.find(close)?;
    let phrase = inside[..end].trim();
    let usable = !phrase.is_empty() && phrase.len() <= 120 && !phrase.contains('\n');
    usable.then_some((phrase, &inside[end + close.len_utf8()..]))
}

fn form(word: &str) -> Form {
    let extension = word.rsplit_once('.').filter(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && extension.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    let bytes = word.as_bytes();
    let hump = bytes
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    if word.contains('/') || extension.is_some() {
        Form::Path
    } else if word.contains('_') || word.contains("::") || hump {
        Form::Code
    } else {
        Form::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let words = Question::read(text).words.into_iter();
        words.map(|word| word.text).collect()
    }

    #[test]
    fn a_question_is_read_for_its_words() {
        assert_eq!(
            words("Where is the harbour gate painted?"),
            ["harbour", "gate", "painted"]
        );
        assert_eq!(words("hello, what is this repo about?"), [""; 0]);
        assert!(Question::read("what is this repo about?").about_all);
        assert!(!Question::read("is there a gate in this repo?").about_all);
    }

    #[test]
    fn phrases_identifiers_and_paths_keep_their_form() {
        let question =
            Question::read("Does `run task` or \"fn main\" use HarbourGate, a_b or src/main.rs?");
        let read: Vec<_> = question
            .words
            .iter()
            .map(|word| (word.text.as_str(), word.form))
            .collect();
        assert_eq!(
            read,
            [
                ("run task", Form::Quoted),
                ("fn main", Form::Quoted),
                ("HarbourGate", Form::Code),
                ("a_b", Form::Code),
                ("src/main.rs", Form::Path),
            ]
        );
    }

    #[test]
    fn words_that_only_ask_are_nothing_to_look_for() {
        assert_eq!(words("How does steering work?"), ["steering"]);
        assert_eq!(words("explain how recovery works"), ["recovery"]);
        assert_eq!(words("where is the work queue?"), ["work", "queue"]);
        assert!(!Question::read("are there any gates?").refers_back);
        assert!(Question::read("who calls it from there?").refers_back);
        let function = Question::read("show me the main function");
        assert_eq!((function.wish, function.defines), (Wish::Search, true));
        assert_eq!(words("show me the main function"), ["main"]);
        assert_eq!(Question::read("show function").wish, Wish::Show);
        assert_eq!(words("fix the failing test"), ["failing", "test"]);
    }

    #[test]
    fn only_a_question_that_quotes_nothing_is_an_example_of_one() {
        let sentence = |text| Question::read(text).sentence;
        assert_eq!(
            sentence("Where is the gate painted?").as_deref(),
            Some("where is the gate painted")
        );
        for text in [
            "the engine is gone",
            "what means \"the engine is gone\"?",
            "is `it` gone?",
            "who calls HarbourGate here?",
            "gate?",
        ] {
            assert_eq!(sentence(text), None, "{text}");
        }
    }

    #[test]
    fn a_steer_says_where_to_look_and_where_not() {
        let question = Question::read("look in server/core, not in tests, also retries");
        let read: Vec<_> = question
            .words
            .iter()
            .map(|word| (word.text.as_str(), word.role))
            .collect();
        assert_eq!(
            read,
            [
                ("server/core", Role::Within),
                ("tests", Role::Without),
                ("retries", Role::Seek),
            ]
        );
        assert!(Question::read("ignore docs").words[0].role == Role::Without);
        assert!(Question::read("sled instead").replaces);
    }

    #[test]
    fn an_unclosed_quote_and_a_pasted_log_do_no_harm() {
        assert_eq!(words("why \"harbour"), ["harbour"]);
        assert_eq!(words("it's `x"), [""; 0]);
        assert!(words(&"error at line 5 \u{1f600} ".repeat(10_000)).len() <= MOST_WORDS);
    }
}
