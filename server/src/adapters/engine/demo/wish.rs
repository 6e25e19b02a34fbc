//! What kind of answer a text asks for, by its words.
//!
//! A text is taken for anything but a search only where all its words speak of that: "last commits"
//! asks for the log, "where is the commit written?" for a place.

use super::question::{Form, Question, Role};
use super::work;

/// How many commits are told unless asked otherwise, and at most.
const COMMITS: usize = 5;
const MOST_COMMITS: usize = 30;

/// A kind of answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Wish {
    /// The places that speak of some words.
    #[default]
    Search,
    /// The contents of a file, if one is called so; else the places that speak of it.
    Show,
    /// What the folder is.
    Overview,
    /// What lies in a folder.
    Tree,
    /// How many files and lines there are.
    Count,
    /// What is checked out.
    Branch,
    /// What is changed.
    Status,
    /// The newest commits, so many.
    Log(usize),
    /// What this agent is, and what it can be asked.
    About,
    /// Work, which it cannot do.
    Work,
}

impl Wish {
    /// Whether words and files are looked for.
    pub(super) fn is_search(self) -> bool {
        matches!(self, Self::Search | Self::Show)
    }

    /// What is answered, as a sentence names it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Search => "a search",
            Self::Show => "a file",
            Self::Overview => "what this folder is",
            Self::Tree => "what lies where",
            Self::Count => "how much there is",
            Self::Branch => "what is checked out",
            Self::Status => "what is changed",
            Self::Log(_) => "the last commits",
            Self::About => "what I am",
            Self::Work => "work, which I cannot do",
        }
    }
}

/// What a person may type at the start of a prompt: the name, what it means, what it does.
pub(super) const COMMANDS: [(&str, Wish, &str); 8] = [
    (
        "tree",
        Wish::Tree,
        "list what lies in a folder: /tree [FOLDER]",
    ),
    (
        "show",
        Wish::Show,
        "show a file or some of its lines: /show FILE[:FROM-TO]",
    ),
    (
        "find",
        Wish::Search,
        "find the places that speak of something: /find WORDS",
    ),
    (
        "count",
        Wish::Count,
        "count files and lines by language: /count [FOLDER]",
    ),
    ("branch", Wish::Branch, "say what is checked out"),
    (
        "changes",
        Wish::Status,
        "say what is changed and not committed",
    ),
    (
        "log",
        Wish::Log(COMMITS),
        "tell the newest commits: /log [NUMBER]",
    ),
    (
        "about",
        Wish::About,
        "say what this agent is, and how to plug in another",
    ),
];

/// Words that open a file where they stand first.
const SHOWS: &str = "show open cat head print display view read type summarize summarise describe";
/// What may stand before them.
const BEFORE: [&str; 8] = [
    "please", "can", "could", "would", "will", "you", "just", "now",
];

/// Words that speak of a repository.
const GIT: [&str; 31] = [
    "git",
    "commit",
    "commits",
    "committed",
    "log",
    "logs",
    "history",
    "last",
    "latest",
    "recent",
    "newest",
    "author",
    "authors",
    "branch",
    "branches",
    "current",
    "currently",
    "checked",
    "status",
    "changed",
    "change",
    "changes",
    "modified",
    "dirty",
    "uncommitted",
    "untracked",
    "staged",
    "unstaged",
    "clean",
    "working",
    "worktree",
];
const LOG: [&str; 6] = ["commit", "commits", "committed", "log", "logs", "history"];
const BRANCH: [&str; 2] = ["branch", "branches"];
const STATUS: [&str; 11] = [
    "status",
    "changed",
    "change",
    "changes",
    "modified",
    "dirty",
    "uncommitted",
    "untracked",
    "staged",
    "unstaged",
    "clean",
];

/// Words that speak of how much there is.
const COUNT: [&str; 18] = [
    "count",
    "counts",
    "loc",
    "sloc",
    "language",
    "languages",
    "statistics",
    "stats",
    "size",
    "big",
    "large",
    "total",
    "number",
    "lines",
    "source",
    "programming",
    "written",
    "used",
];
const COUNTS: [&str; 8] = [
    "count",
    "counts",
    "loc",
    "sloc",
    "language",
    "languages",
    "statistics",
    "stats",
];
const HOW: [&str; 3] = ["many", "big", "large"];
const COUNTED: [&str; 10] = [
    "lines", "line", "files", "file", "code", "big", "large", "folders", "project", "repo",
];

/// Words that speak of what lies where.
const TREE: [&str; 12] = [
    "tree",
    "structure",
    "layout",
    "ls",
    "folders",
    "directories",
    "directory",
    "dir",
    "contents",
    "content",
    "top",
    "level",
];
const TREES: [&str; 6] = [
    "tree",
    "structure",
    "layout",
    "ls",
    "folders",
    "directories",
];
const LISTS: [&str; 4] = ["list", "show", "which", "what"];
const LISTED: [&str; 5] = ["files", "folder", "directory", "dir", "contents"];

/// Words for the whole.
const WHOLE: [&str; 8] = [
    "overview",
    "summary",
    "summarize",
    "summarise",
    "describe",
    "introduce",
    "introduction",
    "purpose",
];

/// Sayings that speak of this agent.
const ABOUT: [&str; 17] = [
    "who are you",
    "what are you",
    "what can you do",
    "what can you help",
    "what can you answer",
    "can you help",
    "what can i ask",
    "what do you do",
    "how do you work",
    "are you a",
    "are you an",
    "which model",
    "what model",
    "language model",
    "real agent",
    "another agent",
    "real model",
];
const OF_AGENTS: [&str; 16] = [
    "agent",
    "agents",
    "model",
    "models",
    "llm",
    "ai",
    "language",
    "real",
    "plug",
    "plugin",
    "connect",
    "add",
    "set",
    "work",
    "configure",
    "another",
];

/// A command that a text begins with, and the rest of it.
pub(super) fn command(text: &str) -> Option<(Wish, &str)> {
    // As people list a folder in a shell.
    for listing in ["tree ", "ls "] {
        let place = text.trim().strip_prefix(listing).map(str::trim);
        if let Some(place) = place.filter(|place| !place.contains(char::is_whitespace)) {
            return Some((Wish::Tree, place));
        }
    }
    let text = text.trim().strip_prefix('/')?;
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let command = COMMANDS.iter().find(|(known, ..)| *known == name);
    command.map(|(_, wish, _)| (*wish, rest.trim()))
}

/// The kind of answer that a command asks for, once its words are known.
pub(super) fn commanded(wish: Wish, question: &Question) -> Wish {
    match wish {
        Wish::Log(_) => Wish::Log(commits(&question.numbers)),
        // There is nothing to look for; what there could be is told.
        Wish::Show | Wish::Search if question.words.is_empty() => Wish::About,
        wish => wish,
    }
}

/// The kind of answer that a text asks for, by its plain words, all of them, in lower case.
pub(super) fn wish(text: &str, plain: &[String], question: &Question) -> Wish {
    let has = |words: &[&str]| plain.iter().any(|word| words.contains(&word.as_str()));
    let where_is = has(&["where", "how", "why"]) && !has(&["git", "many", "big", "large"]);
    let polite = plain
        .iter()
        .take_while(|word| BEFORE.contains(&word.as_str()));
    let polite = polite.count();
    if work::is_asked(&plain[polite..], polite > 0, question) {
        return Wish::Work;
    }
    let lower = text.trim().to_ascii_lowercase();
    let about = ABOUT.iter().any(|saying| lower.contains(saying)) || lower == "help";
    if about && only(question, &OF_AGENTS, false) {
        return Wish::About;
    }
    if !where_is && only(question, &GIT, false) {
        if has(&LOG) && !has(&["status", "uncommitted", "untracked", "staged", "modified"]) {
            return Wish::Log(commits(&question.numbers));
        }
        if has(&STATUS) || (has(&["git"]) && !has(&BRANCH)) {
            return Wish::Status;
        }
        if has(&BRANCH) {
            return Wish::Branch;
        }
    }
    if !where_is && only(question, &COUNT, true) && (has(&COUNTS) || has(&HOW) && has(&COUNTED)) {
        return Wish::Count;
    }
    if !where_is && only(question, &TREE, true) && (has(&TREES) || has(&LISTS) && has(&LISTED)) {
        return Wish::Tree;
    }
    if has(&WHOLE) && only(question, &WHOLE, false) || question.about_all {
        return Wish::Overview;
    }
    let first = plain.get(polite).map(String::as_str);
    let shows = first.is_some_and(opens);
    if !question.words.is_empty() && (shows || question.lines.is_some()) {
        return Wish::Show;
    }
    Wish::Search
}

/// Whether a text asks which files there are, by its plain words.
pub(super) fn lists_files(plain: &[String]) -> bool {
    let has = |words: &[&str]| plain.iter().any(|word| words.contains(&word.as_str()));
    has(&["files"]) && (has(&LISTS) || has(&["all", "find"])) && !has(&["where", "how", "why"])
}

/// Whether a word only opens what follows.
pub(super) fn opens(word: &str) -> bool {
    SHOWS.split_ascii_whitespace().any(|known| known == word)
}

/// Whether a text's words are of these, numbers aside; with `places` they may also name places.
fn only(question: &Question, words: &[&str], places: bool) -> bool {
    question.words.iter().all(|word| {
        let lower = word.text.to_ascii_lowercase();
        match word.form {
            Form::Plain if words.contains(&lower.as_str()) => true,
            Form::Plain => {
                lower.bytes().all(|byte| byte.is_ascii_digit()) || places && word.role != Role::Seek
            }
            Form::Path => places,
            Form::Quoted | Form::Code => false,
        }
    })
}

fn commits(numbers: &[usize]) -> usize {
    let asked = numbers.first().copied().unwrap_or(COMMITS);
    asked.clamp(1, MOST_COMMITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Wish {
        Question::read(text).wish
    }

    const UNDERSTOOD: [(Wish, &[&str]); 10] = [
        (
            Wish::Overview,
            &[
                "what is this project?",
                "hello",
                "Give me an overview",
                "what is this repo about?",
                "summarize this codebase",
            ],
        ),
        (
            Wish::About,
            &[
                "who are you?",
                "help",
                "What can you do?",
                "what can you help me with",
                "are you a language model?",
                "how do I plug in a real agent?",
                "/about",
                "/show",
            ],
        ),
        (
            Wish::Tree,
            &[
                "tree",
                "show the tree",
                "list files",
                "what files are in src/app?",
                "project structure",
                "ls src/app",
                "ls src",
                "tree deploy",
                "/tree src",
            ],
        ),
        (
            Wish::Count,
            &[
                "how many lines of code?",
                "how many files are there?",
                "which languages are used?",
                "count lines in src/app",
                "how big is this repo?",
                "/count",
            ],
        ),
        (
            Wish::Branch,
            &["which branch?", "what branch is checked out?", "git branch"],
        ),
        (
            Wish::Status,
            &[
                "git status",
                "what changed?",
                "are there uncommitted changes?",
                "is it clean?",
                "/changes",
            ],
        ),
        (
            Wish::Show,
            &[
                "show README",
                "summarise the README",
                "open src/main.rs",
                "please read Cargo.toml",
                "main.rs:12",
            ],
        ),
        (
            Wish::Log(COMMITS),
            &["last commits", "git log", "show the history"],
        ),
        (
            Wish::Log(3),
            &["last 3 commits", "the 3 latest commits", "/log 3"],
        ),
        (Wish::Log(MOST_COMMITS), &["last 4000 commits"]),
    ];

    #[test]
    fn plain_words_are_understood() {
        for (wish, texts) in UNDERSTOOD {
            for text in texts {
                assert_eq!(of(text), wish, "{text}");
            }
        }
    }

    #[test]
    fn what_speaks_of_more_is_searched() {
        for text in [
            "where is the commit log written?",
            "where is the history kept?",
            "how are branches compared?",
            "where is the configuration read?",
            "which languages does the parser know?",
            "where are files counted?",
            "who calls the agent?",
            "where is a tree walked?",
            "tree walking and its bounds",
            "\"git status\"",
            "/find git log",
            "/nothing like that",
        ] {
            assert_eq!(of(text), Wish::Search, "{text}");
        }
    }
}
