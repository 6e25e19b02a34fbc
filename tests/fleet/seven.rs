//! Seven sessions of three kinds of agents on one repository, as one person keeps them: each in its
//! place, found again by its name, and held in where it works.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::House;

/// Where each of them works in the end: its name, its directory, its branch.
const ALL: [(&str, &str, &str); 7] = [
    ("guide", "docs", "main"),
    ("net", "crates/net", "main"),
    ("fix-flaky", ".worktrees/fix-flaky", "fix/flaky"),
    ("try-zstd", ".worktrees/try-zstd", "try-zstd"),
    ("reader", "crates/net", "main"),
    ("reviewer", ".worktrees/review", "review"),
    ("clerk", ".", "main"),
];

pub(crate) fn git(root: &Path, words: &[&str]) {
    let done = Command::new("git")
        .args(["-C", root.to_str().unwrap()])
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(words)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", root)
        .output()
        .unwrap();
    assert!(done.status.success(), "git {words:?}: {done:?}");
}

/// A repository, and a server with an agent of each kind in it.
pub(crate) async fn house() -> House {
    let make = |root: &Path| {
        for (path, text) in [
            ("docs/notes.md", "the notes\n"),
            ("crates/net/lease.rs", "fn lease() {}\n"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        git(root, &["init", "-q", "-b", "main"]);
        git(root, &["add", "-A"]);
        git(root, &["commit", "-q", "-m", "begin"]);
    };
    let agents = "[agents.apart]\nengine = \"scripted-process\"\nworkspace = \"tree\"\n\
                  require_sandbox = true\n[agents.demo]\nengine = \"demo\"\nworkspace = \"tree\"\n";
    House::over(make, "writable = true\n", agents).await
}

async fn create_all(house: &House) {
    let created: [&[&str]; 7] = [
        &["new", "docs", "--agent", "apart", "--dir", "docs"],
        &["new", "net", "--agent", "apart", "--dir", "crates/net"],
        &[
            "new",
            "fix-flaky",
            "--agent",
            "apart",
            "--worktree",
            "fix/flaky",
        ],
        &["new", "try-zstd", "--worktree", "try-zstd"],
        &["new", "reader", "--agent", "demo", "--dir", "crates/net"],
        &["new", "reviewer", "--agent", "demo", "--worktree", "review"],
        &["new", "clerk"],
    ];
    for words in created {
        house.does(words).await;
    }
    house.does(&["label", "docs", "team=web"]).await;
    house.does(&["label", "net", "team=net"]).await;
    house.does(&["rename", "docs", "guide"]).await;
}

/// Each is found by its name, where it works and on its branch, and the table tells the same.
async fn all_are_there(house: &House) -> Vec<Value> {
    let mut ids = Vec::new();
    for (name, directory, branch) in ALL {
        let session = house.session(name).await;
        let place = json!({ "workspace": "tree", "directory": directory });
        assert_eq!(session["place"], place, "{name}");
        assert_eq!(session["checkout"]["branch"], branch, "{name}");
        ids.push(session["id"].clone());
    }
    let table = house.does(&["agents"]).await;
    for (name, directory, branch) in ALL {
        let line = table.lines().find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {table}"));
        assert!(line.contains(directory) && line.contains(branch), "{line}");
    }
    assert!(table.contains("7 sessions"), "{table}");
    ids
}

#[tokio::test]
async fn c40_c45_seven_sessions_on_one_repository_are_found_again_where_they_were() {
    let house = house().await;
    create_all(&house).await;
    let before = all_are_there(&house).await;
    house.does(&["pause", "net"]).await;
    let (code, _, err) = house.ran(&["invoke", "net", "say \"no\""]).await;
    assert!(code == 1 && err.contains("session_paused"), "{err}");

    let house = house.restarted().await;
    assert_eq!(all_are_there(&house).await, before, "the same sessions");
    assert_eq!(house.session("guide").await["labels"]["team"], "web");
    let (code, _, err) = house.ran(&["invoke", "net", "say \"no\""]).await;
    assert!(code == 1 && err.contains("session_paused"), "{err}");
    house.does(&["resume", "net"]).await;
    // Each agent works where its session is.
    let (code, _, told) = house
        .ran(&["invoke", "net", "read-file \"lease.rs\""])
        .await;
    assert!(code == 0 && told.contains("fn lease()"), "{told}");
    let (code, _, told) = house.ran(&["invoke", "fix-flaky", "sh \"pwd\""]).await;
    assert!(
        code == 0 && told.contains("/tree/.worktrees/fix-flaky\n"),
        "{told}"
    );
    let (code, answer, _) = house
        .ran(&["invoke", "reader", "where is the lease?"])
        .await;
    assert!(code == 0 && answer.contains("`lease.rs:1`"), "{answer}");
}

#[tokio::test]
async fn c53_b48_a_session_that_was_moved_cannot_read_the_directory_that_it_left() {
    let house = house().await;
    create_all(&house).await;
    let (code, _, told) = house
        .ran(&["invoke", "guide", "read-file \"notes.md\""])
        .await;
    assert!(code == 0 && told.contains("the notes"), "{told}");
    let moved = house.does(&["cd", "guide", "crates/net"]).await;
    assert!(
        !moved.contains("good will"),
        "the system holds it in: {moved}"
    );
    let left = house.home.path().join("tree/docs/notes.md");
    let script = format!(
        "read-file \"../../docs/notes.md\"\nread-file {left:?}\nsh \"cat ../../docs/notes.md 2>&1\"\n\
         read-file \"lease.rs\""
    );
    let (code, _, told) = house.ran(&["invoke", "guide", &script]).await;
    assert_eq!(code, 0, "{told}");
    assert!(!told.contains("the notes"), "{told}");
    assert_eq!(told.matches("ermission denied").count(), 3, "{told}");
    assert!(told.contains("fn lease()"), "{told}");
}
