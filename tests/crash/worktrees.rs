//! B54: a server that is killed while it makes a working tree. The next one makes it, and the repository
//! has nothing of the first, neither for git nor on the disk.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sessionplane_client::contract::CallOptions;
use sessionplane_client::contract::fleet::{CreateSession, Fleet as _};
use sessionplane_client::domain::error::CallError;
use sessionplane_client::domain::fleet::summary::SessionSummary;
use sessionplane_client::domain::ids::SessionName;
use tokio::time::timeout;

use crate::daemon::{Daemon, Home, Started};

const SOON: Duration = Duration::from_secs(60);
/// What the making of a working tree and of its session comes by.
const PLACES: [&str; 8] = [
    "worktree::named",
    "worktree::begun",
    "worktree::checked-out",
    "worktree::branching",
    "worktree::branched",
    "worktree::made",
    "session::before-commit",
    "session::after-commit",
];
const BRANCH: &str = "fix/flaky";

fn git(root: &Path, words: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-C", root.to_str().unwrap()])
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(words)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", root)
        .output()
        .unwrap();
    assert!(done.status.success(), "git {words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// A home whose agent works in a repository.
fn home() -> (Home, PathBuf) {
    let home = Home::new();
    let (config, root) = (home.path().join("config.toml"), home.path().join("tree"));
    fs::create_dir_all(root.join("docs")).unwrap();
    fs::write(root.join("docs/notes.md"), "the notes\n").unwrap();
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "begin"]);
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace(
        "engine = \"scripted\"\n",
        "engine = \"scripted\"\nworkspace = \"tree\"\n",
    );
    let more = format!("[workspaces.tree]\nroot = {root:?}\nwritable = true\n");
    fs::write(&config, text + &more).unwrap();
    (home, root)
}

async fn create(daemon: &Daemon) -> Result<SessionSummary, CallError> {
    let request = CreateSession {
        name: Some(SessionName::parse("flaky").unwrap()),
        worktree_branch: Some(BRANCH.to_owned()),
        ..CreateSession::default()
    };
    let options = CallOptions {
        request_id: Some("once".parse().unwrap()),
        ..CallOptions::default()
    };
    let client = daemon.client();
    let created = client.create_session(request, options);
    timeout(SOON, created).await.expect("it is answered")
}

/// The files below a folder whose names say that somebody is at work.
fn locks(below: &Path) -> Vec<PathBuf> {
    let (mut found, mut rooms) = (Vec::new(), vec![below.to_owned()]);
    while let Some(room) = rooms.pop() {
        for entry in fs::read_dir(room).unwrap() {
            let path = entry.unwrap().path();
            let is_lock = path.extension().is_some_and(|ending| ending == "lock");
            if path.is_dir() {
                rooms.push(path);
            } else if is_lock || path.ends_with("locked") {
                found.push(path);
            }
        }
    }
    found
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[tokio::test]
async fn b54_a_server_that_is_killed_while_it_makes_a_working_tree_is_in_nobodys_way() {
    for place in PLACES {
        let (home, root) = home();
        for attempt in 0..2 {
            let failpoint = format!("{place}=return(kill)");
            let Started::Ready(daemon) = home.try_start(Some(&failpoint)).await else {
                panic!("{place}: {}", home.said());
            };
            let created = create(&daemon).await;
            if ["worktree::made", "session::after-commit"].contains(&place) && attempt == 1 {
                // It was made: the second attempt does not come by.
                assert!(created.is_ok(), "{place}: {created:?}");
                daemon.kill().await;
                continue;
            }
            assert!(created.is_err(), "{place} was passed by");
            let status = daemon.ended(SOON).await;
            assert_eq!(status.signal(), Some(9), "{place}: {}", home.said());
        }
        let daemon = home.start().await;
        let made = create(&daemon).await;
        let made = made.unwrap_or_else(|error| panic!("{place}: {error:?}"));
        let at = made.place.expect("it has one").directory.to_string();
        assert_eq!(at, ".worktrees/fix-flaky", "{place}");
        let branch = made.checkout.and_then(|it| it.branch);
        assert_eq!(branch.as_deref(), Some(BRANCH), "{place}");
        let tree = root.join(&at);
        for clean in [&root, &tree] {
            assert_eq!(git(clean, &["status", "--porcelain"]), "", "{place}");
        }
        let listed = git(&root, &["worktree", "list", "--porcelain"]);
        assert_eq!(listed.matches("worktree ").count(), 2, "{place}: {listed}");
        let locks = locks(&root.join(".git"));
        assert!(locks.is_empty(), "{place}: {locks:?}");
        let only = BTreeSet::from([".gitignore".to_owned(), "fix-flaky".to_owned()]);
        assert_eq!(names(&root.join(".worktrees")), only, "{place}");
        // Git can go on where the server left it.
        git(&tree, &["commit", "-q", "--allow-empty", "-m", "more"]);
        daemon.kill().await;
    }
}
