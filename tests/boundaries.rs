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

/// Adapters do not know each other: a file of one must not name another.
const ADAPTERS: &[&str] = &[
    "memory", "sled", "engine", "authn", "authz", "clock", "secret",
];

fn sources(room: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(room).unwrap_or_else(|error| panic!("{}: {error}", room.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The lines of a file that are code of its own: no comments, and nothing after its test module.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
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
        for other in ADAPTERS.iter().filter(|name| **name != own) {
            if let Some(line) = names(&text, &format!("adapters::{other}")) {
                broken.push(format!(
                    "{}:{line} names the adapter {other}",
                    file.display()
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
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
