//! The arrows of ARCHITECTURE.md, checked: who may name whom.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot read its sources fails"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// A room, and words that must not occur in its code.
const RULES: &[(&str, &[&str])] = &[
    (
        "server/core/src",
        &[
            "tokio::",
            "tonic",
            "prost",
            "std::fs",
            "std::net",
            "SystemTime",
            "Instant::now",
            "sessionplane::",
        ],
    ),
    (
        "server/src/app",
        &[
            "tonic",
            "prost",
            "sled",
            "crate::adapters",
            "crate::grpc",
            "sessionplane::",
        ],
    ),
    ("server/src/grpc", &["crate::adapters", "sled"]),
    (
        "server/src/adapters",
        &["crate::app", "crate::grpc", "tonic"],
    ),
    ("client/src", &["sessionplane_server"]),
];

/// What adapters share because there must be one of it: who names it, and what.
const SHARED: &[(&str, &str, &str)] = &[
    (
        "engine",
        "boundary",
        "all reading of a workspace goes through it",
    ),
    (
        "engine",
        "process_host",
        "whatever an engine runs as is started and ended in one place",
    ),
    (
        "process_host",
        "boundary",
        "a ruleset is made of the same descriptor as our own reading",
    ),
    (
        "git",
        "boundary",
        "all reading of a workspace goes through it",
    ),
    (
        "workspaces",
        "boundary",
        "all reading of a workspace goes through it",
    ),
    ("engine", "git", "a repository is read in one way only"),
    ("workspaces", "git", "a repository is read in one way only"),
    (
        "engine",
        "authn",
        "what a token looks like is known in one place",
    ),
];

/// What every adapter may name, and which in turn names none: how bytes and files are handled at all.
const COMMON: &[&str] = &["hex", "plain_file", "private_file"];

/// The files of code of their own: `tests.rs` is a test module in a file of its own.
fn sources(room: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(room).unwrap_or_else(|error| panic!("{}: {error}", room.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

/// The lines of a file that are code of its own: no comments, and nothing from its test module on.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let all: Vec<&str> = text.lines().collect();
    let end = (0..all.len()).find(|at| begins_tests(&all[*at..]));
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines
        .take(end.unwrap_or(all.len()))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Whether a test module stands here, and not one item that only tests have, nor a module whose
/// code is in another file.
fn begins_tests(lines: &[&str]) -> bool {
    let mut lines = lines.iter().map(|line| line.trim());
    if lines.next() != Some("#[cfg(test)]") {
        return false;
    }
    // Other attributes, which may go on over several lines.
    let mut open = 0_usize;
    let item = lines.find(|line| {
        let attribute = open > 0 || line.starts_with("#[");
        open += line.matches(['[', '(']).count();
        open = open.saturating_sub(line.matches([']', ')']).count());
        !attribute
    });
    item.is_some_and(|item| item.starts_with("mod ") && item.contains('{'))
}

/// The modules of a folder, for whom a list by hand would be forgotten.
fn modules(room: &Path) -> Vec<String> {
    let entries = fs::read_dir(room).unwrap().map(|entry| entry.unwrap());
    let names = entries.map(|entry| {
        entry
            .path()
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn names(text: &str, word: &str) -> Option<usize> {
    let found = code(text).find(|(_, line)| line.contains(word));
    found.map(|(at, _)| at)
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn no_room_names_what_must_not_enter_it() {
    let mut broken = Vec::new();
    for (room, words) in RULES {
        let mut files = Vec::new();
        sources(&root().join(room), &mut files);
        assert!(
            !files.is_empty(),
            "{room} has no sources: the rule is checked nowhere"
        );
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for word in *words {
                if let Some(line) = names(&text, word) {
                    broken.push(format!("{}:{line} names {word:?}", file.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn no_adapter_names_another() {
    let adapters = root().join("server/src/adapters");
    let mut files = Vec::new();
    sources(&adapters, &mut files);
    let all = modules(&adapters);
    for known in ["artifacts", "clock", "engine", "memory", "sled"] {
        assert!(all.iter().any(|name| name == known), "{known}");
    }
    let mut broken = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&adapters).unwrap();
        let own = inside
            .iter()
            .next()
            .unwrap()
            .to_string_lossy()
            .trim_end_matches(".rs")
            .to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let shared = |other: &str| {
            let common = COMMON.contains(&other) && !COMMON.contains(&own.as_str());
            common
                || SHARED
                    .iter()
                    .any(|(by, what, _)| *by == own && *what == other)
        };
        for other in all.iter().filter(|name| **name != own && !shared(name)) {
            // From outside the adapter, said the long way or the short one.
            let up = "super::".repeat(inside.iter().count());
            let ways = [format!("adapters::{other}"), format!("{up}{other}")];
            if let Some(line) = ways.iter().find_map(|way| names(&text, way)) {
                broken.push(format!(
                    "{}:{line} names the adapter {other}",
                    file.display()
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What is shared names nobody in turn, so that no arrow goes around.
#[test]
fn no_shared_adapter_names_who_shares_it() {
    for (by, what, why) in SHARED {
        let back = SHARED
            .iter()
            .any(|(other, named, _)| other == what && named == by);
        assert!(!back && !why.is_empty(), "{by} and {what} name each other");
    }
}

/// The counter-test: the check sees what it is there to see, and only that.
#[test]
fn the_check_finds_a_forbidden_name_in_code_but_not_in_comments_or_tests() {
    assert_eq!(names("use std::fs;\nuse tonic::Status;", "tonic"), Some(2));
    assert_eq!(
        names("//! Never tonic.\n/// nor tonic\nfn f() {}", "tonic"),
        None
    );
    assert_eq!(
        names(
            "fn f() {}\n#[cfg(test)]\nmod tests { use tonic::Status; }",
            "tonic"
        ),
        None
    );
}

/// What only tests have ends no file: what follows it is looked at.
#[test]
fn the_check_goes_on_after_an_item_that_only_tests_have() {
    let item = "#[cfg(test)]\nuse std::fs;\nfn f() {}\nuse tonic::Status;";
    assert_eq!(names(item, "tonic"), Some(4));
    let elsewhere = "#[cfg(test)]\n#[path = \"t.rs\"]\nmod tests;\nuse tonic::Status;";
    assert_eq!(names(elsewhere, "tonic"), Some(4));
    let allowed =
        "#[cfg(test)]\n#[allow(\n    clippy::all\n)]\nmod tests {\n    use tonic::Status;";
    assert_eq!(names(allowed, "tonic"), None);
}
