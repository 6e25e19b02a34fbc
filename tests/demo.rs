//! The demo agent as a newcomer meets it: the real client, the real server, a repository.
#![cfg(test)]

#[expect(dead_code, reason = "others look at more of a server than this")]
#[path = "crash/daemon.rs"]
mod daemon;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use daemon::{Daemon, Home, sessiond};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longest wait for anything.
const DEADLINE: Duration = Duration::from_secs(60);

/// A server whose only agent is the demo agent, on a repository that holds its data directory too.
struct House {
    home: Home,
    daemon: Daemon,
}

impl House {
    async fn new() -> Self {
        let home = Home::new();
        let root = home.path().display().to_string();
        let config = format!(
            "default_agent = \"demo\"\n[workspaces.here]\nroot = {root:?}\n\
             [agents.demo]\nengine = \"demo\"\nworkspace = \"here\"\n"
        );
        fs::write(home.path().join("config.toml"), config).unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("README.md", "# Harbour\n\nKeeps boats apart.\n");
        write(
            "src/gate.rs",
            "/// Paints the harbour gate.\npub fn paint() {}\n",
        );
        write("north/port.rs", "fn north() {}\n");
        write("south/port.rs", "fn south() {}\n");
        git(home.path(), &["init", "--quiet", "--initial-branch=quay"]);
        git(home.path(), &["add", "README.md", "src", "north", "south"]);
        git(home.path(), &["commit", "--quiet", "-m", "Paint the gate"]);
        let daemon = home.start().await;
        Self { home, daemon }
    }

    fn command(&self, words: &[&str]) -> Command {
        let program: PathBuf = sessiond().with_file_name("sessionctl");
        let mut command = Command::new(program);
        command
            .arg0("sessionctl")
            .args(words)
            .env_clear()
            .env("SESSIONPLANE_ADDRESS", self.daemon.socket().to_string())
            .env(
                "SESSIONPLANE_TOKEN_FILE",
                self.home.data_dir().join("owner.token"),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end: what it printed as its answer, and beside it.
    async fn does(&self, words: &[&str]) -> (String, String) {
        let output = timeout(DEADLINE, self.command(words).output()).await;
        let output = output.expect("it did not end").unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(output.status.success(), "{words:?}: {out}{err}");
        (out, err)
    }

    async fn answer(&self, text: &str) -> String {
        self.does(&["invoke", "docs", text]).await.0
    }
}

fn git(at: &Path, arguments: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(arguments)
        .current_dir(at)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// Reads what a child says beside its answer, until it has said `text`.
async fn says(child: &mut Child, text: &str) -> String {
    let err = child.stderr.as_mut().unwrap();
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    let reading = async {
        while !seen.contains(text) {
            let read = err.read(&mut buffer).await.unwrap();
            assert!(read > 0, "ended before {text:?}: {seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    };
    let read = timeout(DEADLINE, reading).await;
    assert!(read.is_ok(), "no {text:?} in {seen}");
    seen
}

#[tokio::test]
async fn a_newcomer_gets_useful_answers_about_a_repository() {
    let house = House::new().await;
    let (answer, beside) = house
        .does(&["invoke", "--new", "docs", "what is this project?"])
        .await;
    assert!(answer.contains("`README.md:1` introduces it"), "{answer}");
    assert!(answer.contains("On branch `quay`"), "{answer}");
    assert!(answer.contains("I am no language model"), "{answer}");
    for tool in ["* list ", "* read ", "* git_branch "] {
        assert!(beside.contains(tool), "{beside}");
    }
    for (question, expected) in [
        ("where is the harbour gate painted?", "`src/gate.rs:1`"),
        ("show README", "    1 | # Harbour"),
        ("last 2 commits", "Ada: Paint the gate"),
        ("how many lines of code?", "Rust "),
        ("tree", "    src/\n      gate.rs"),
        ("who are you?", "[agents.NAME]"),
    ] {
        let answer = house.answer(question).await;
        assert!(answer.contains(expected), "{question}: {answer}");
    }
    let (offered, _) = house.does(&["commands", "docs"]).await;
    assert!(
        offered.contains("tree") && offered.contains("about"),
        "{offered}"
    );
}

/// C53, B48: the server's own data lies in the workspace here, and is not shown by any name.
#[cfg(unix)]
#[tokio::test]
async fn c53_b48_the_servers_own_data_is_nobodys_reading_matter() {
    let house = House::new().await;
    let token = fs::read_to_string(house.home.data_dir().join("owner.token")).unwrap();
    std::os::unix::fs::symlink("data", house.home.path().join("alias")).unwrap();
    house.does(&["invoke", "--new", "docs", "tree"]).await;
    let absolute = house.home.data_dir().join("owner.token");
    for question in [
        "show data/owner.token",
        "show alias/owner.token",
        "show src/../data/owner.token",
        &format!("show {}", absolute.display()),
        "where is the owner token?",
        "tree",
        "git status",
        "/tree data",
        "/tree alias",
    ] {
        let answer = house.answer(question).await;
        assert!(!answer.contains(token.trim()), "{question}: {answer}");
        let shows = answer.contains("digest.key") || answer.contains("data/\n");
        assert!(!shows, "{question}: {answer}");
    }
    let refused = house.answer("show data/owner.token").await;
    assert!(refused.contains("it is kept from agents"), "{refused}");
}

/// C57, B48: nor what a newcomer left in the folder, by whatever name.
#[cfg(unix)]
#[tokio::test]
async fn c57_b48_no_credential_of_the_server_is_shown_whatever_file_it_lies_in() {
    use std::os::unix::fs::symlink;
    let house = House::new().await;
    let (top, data) = (house.home.path(), house.home.data_dir());
    let token = fs::read_to_string(data.join("owner.token")).unwrap();
    let token = token.trim();
    let (shown, secret) = token.split_at(12);
    fs::copy(data.join("owner.token"), top.join("ci.token")).unwrap();
    fs::write(top.join("run.sh"), format!("TOKEN={token}\n")).unwrap();
    fs::write(top.join(format!("{token}.md")), "odd\n").unwrap();
    git(top, &["checkout", "--quiet", "-b", token]);
    git(top, &["add", "run.sh"]);
    let message = format!("Add {token}");
    git(top, &["commit", "--quiet", "-m", &message]);
    // These were made after the server's start.
    fs::hard_link(data.join("owner.token"), top.join("notes.md")).unwrap();
    fs::hard_link(data.join("digest.key"), top.join("key.md")).unwrap();
    symlink("/etc/hostname", top.join("elsewhere")).unwrap();
    house.does(&["invoke", "--new", "docs", "tree"]).await;
    for (question, expected) in [
        ("/show ci.token", "commonly holds secrets"),
        ("/show notes.md", "kept from agents"),
        ("/show key.md", "kept from agents"),
        ("/show elsewhere", "it leads out of the folder"),
        ("/show run.sh", "[secret withheld]"),
        ("/find sp_", "[secret withheld]"),
        (&format!("/find \"{}\"", &secret[..20]), "I found no line"),
        ("tree", "[secret withheld]"),
        ("git log", "[secret withheld]"),
        ("git status", "[secret withheld]"),
        ("what is this project?", "[secret withheld]"),
    ] {
        let (answer, beside) = house.does(&["invoke", "docs", question]).await;
        assert!(answer.contains(expected), "{question}: {answer}");
        for text in [&answer, &beside] {
            assert!(!text.contains(token), "{question}: {text}");
        }
    }
    assert!(house.answer("git log").await.contains(shown));
    let (entries, _) = house.does(&["--json", "entries", "docs"]).await;
    assert!(!entries.contains(token), "{entries}");
}

#[tokio::test]
async fn c57_b48_a_backup_in_the_folder_is_not_shown() {
    let house = House::new().await;
    house.does(&["invoke", "--new", "docs", "tree"]).await;
    let to = house.home.path().join("saved.jsonl");
    let backup = Command::new(sessiond())
        .args(["store", "backup", "--data-dir"])
        .arg(house.home.data_dir())
        .arg("--to")
        .arg(&to)
        .output();
    let backup = timeout(DEADLINE, backup).await.unwrap().unwrap();
    assert!(backup.status.success(), "{backup:?}");
    let answer = house.answer("/show saved.jsonl").await;
    assert!(answer.contains("it is a backup"), "{answer}");
    let answer = house.answer("/find sessionplane-store").await;
    assert!(answer.contains("I found no line"), "{answer}");
}

#[tokio::test]
async fn c19_c25_it_asks_is_answered_and_steered_from_other_terminals() {
    let house = House::new().await;
    let mut asking = house
        .command(&["invoke", "--new", "docs", "show port.rs"])
        .spawn()
        .unwrap();
    let asked = says(&mut asking, "answer: sessionctl answer").await;
    assert!(asked.contains("Which `port.rs` do you mean?"), "{asked}");
    assert!(asked.contains("south/port.rs"), "{asked}");
    house.does(&["answer", "docs", "2"]).await;
    let answered = timeout(DEADLINE, asking.wait_with_output()).await;
    let answer = answered.expect("it did not end").unwrap();
    let answer = String::from_utf8(answer.stdout).unwrap();
    assert!(answer.contains("`south/port.rs:1`"), "{answer}");

    // A question that is open is withdrawn for a steer.
    let mut asking = house
        .command(&["invoke", "docs", "show port.rs"])
        .spawn()
        .unwrap();
    says(&mut asking, "answer: sessionctl answer").await;
    house.does(&["steer", "docs", "git log instead"]).await;
    let steered = timeout(DEADLINE, asking.wait_with_output()).await;
    let answer = steered.expect("it did not end").unwrap();
    let answer = String::from_utf8(answer.stdout).unwrap();
    assert!(answer.contains("I turn to the last commits."), "{answer}");
    assert!(answer.contains("Ada: Paint the gate"), "{answer}");

    // And for an abort, at once.
    let mut asking = house
        .command(&["invoke", "docs", "show port.rs"])
        .spawn()
        .unwrap();
    says(&mut asking, "answer: sessionctl answer").await;
    house.does(&["abort", "docs"]).await;
    let aborted = timeout(DEADLINE, asking.wait()).await;
    assert_eq!(aborted.expect("it did not end").unwrap().code(), Some(1));
}
