//! A fleet as one person keeps it from a terminal: the real client, the real server, a restart between.
#![cfg(test)]

#[expect(dead_code, reason = "others look at more of a server than this")]
#[path = "crash/daemon.rs"]
mod daemon;
#[path = "fleet/places.rs"]
mod places;
#[path = "fleet/seven.rs"]
mod seven;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use daemon::{Daemon, Home, Started, sessiond};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longest wait for anything.
const DEADLINE: Duration = Duration::from_secs(60);

/// A server with a scripted agent in a workspace, and a terminal before it.
struct House {
    home: Home,
    daemon: Daemon,
}

impl House {
    async fn new() -> Self {
        let make = |root: &Path| {
            for directory in ["docs", "crates/net"] {
                fs::create_dir_all(root.join(directory)).unwrap();
            }
        };
        Self::over(make, "", "").await
    }

    /// With a workspace that `make` fills and a line of `access` says more about, and with more agents;
    /// `HOME` in their configuration is where all of it lies.
    async fn over(make: impl FnOnce(&Path), access: &str, agents: &str) -> Self {
        let home = Home::new();
        let root = home.path().join("tree");
        fs::create_dir(&root).unwrap();
        make(&root);
        let agents = agents.replace("HOME", home.path().to_str().unwrap());
        let config = format!(
            "default_agent = \"scripted\"\n[workspaces.tree]\nroot = {:?}\n{access}\
             [agents.scripted]\nengine = \"scripted\"\nworkspace = \"tree\"\n{agents}\
             [drain]\ndeadline_seconds = 1\n[limits]\nabort_grace_seconds = 1\n",
            root.display().to_string()
        );
        fs::write(home.path().join("config.toml"), config).unwrap();
        let daemon = home.start().await;
        Self { home, daemon }
    }

    /// The server is killed and started anew.
    async fn restarted(self) -> Self {
        self.daemon.kill().await;
        let daemon = self.home.start().await;
        Self {
            home: self.home,
            daemon,
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let program: PathBuf = sessiond().with_file_name("sessionctl");
        let mut command = Command::new(program);
        command
            .args(words)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
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

    /// Runs a command to its end: its code, its answer, and what it said beside it.
    async fn ran(&self, words: &[&str]) -> (i32, String, String) {
        let output = timeout(DEADLINE, self.command(words).output()).await;
        let output = output.expect("it did not end").unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().expect("ended by a signal");
        (code, text(output.stdout), text(output.stderr))
    }

    /// Runs a command that succeeds; its answer.
    async fn does(&self, words: &[&str]) -> String {
        let (code, out, err) = self.ran(words).await;
        assert_eq!(code, 0, "{words:?}: {out}{err}");
        out
    }

    /// A session as `show` tells it.
    async fn session(&self, name: &str) -> Value {
        serde_json::from_str(&self.does(&["--json", "show", name]).await).unwrap()
    }

    /// Follows the fleet, and waits until one of its lines says so.
    async fn until(&self, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut watch = self
            .command(&["--json", "agents", "--watch"])
            .spawn()
            .unwrap();
        let found = timeout(DEADLINE, found(&mut watch, name, is_so)).await;
        found.unwrap_or_else(|_| panic!("{name} never was so"))
    }
}

async fn found(watch: &mut Child, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("it goes on");
        let session: Value = serde_json::from_str(&line).unwrap();
        if session["name"] == name && is_so(&session) {
            return session;
        }
    }
}

fn phase(is: &'static str) -> impl Fn(&Value) -> bool {
    move |session| session["phase"] == is
}

#[tokio::test]
async fn c40_names_labels_and_places_outlive_the_server_and_find_the_session() {
    let house = House::new().await;
    let new = [
        "new",
        "docs",
        "--dir",
        "docs",
        "--label",
        "team=net",
        "--priority",
        "5",
        "--key",
        "ci 7",
    ];
    let created = house.does(&new).await;
    assert!(created.starts_with("created docs, 01"), "{created}");
    let before = house.session("docs").await;
    assert_eq!(before["place"]["directory"], "docs");
    assert_eq!(before["place"]["workspace"], "tree");
    house.does(&["rename", "docs", "guide"]).await;
    house.does(&["label", "guide", "team-", "area=web"]).await;
    let (code, _, err) = house.ran(&["new", "guide"]).await;
    assert!(code == 1 && err.contains("sessionctl"), "{err}");
    let (code, _, err) = house.ran(&["show", "guied"]).await;
    assert!(code == 4 && err.contains("did you mean guide?"), "{err}");

    let house = house.restarted().await;
    let after = house.session("key:ci 7").await;
    assert_eq!(after["id"], before["id"], "one session");
    assert_eq!(after["name"], "guide");
    assert_eq!(after["labels"], serde_json::json!({ "area": "web" }));
    assert_eq!(
        (&after["priority"], &after["phase"]),
        (&5.into(), &"dormant".into())
    );
    let listed = house.does(&["agents", "--label", "area=web"]).await;
    assert!(
        listed.contains("guide") && listed.ends_with("1 session\n"),
        "{listed}"
    );
    let (code, out, _) = house.ran(&["agents", "--label", "team=net"]).await;
    assert!(
        code == 0 && out.starts_with("no session is what the filter wants"),
        "{out}"
    );
    house.does(&["rm", "guide", "--yes"]).await;
    let (code, ..) = house.ran(&["show", "guide"]).await;
    assert_eq!(code, 4);
    house.does(&["new", "guide"]).await;
    assert_ne!(house.session("guide").await["id"], before["id"]);
}

#[tokio::test]
async fn c25_b25_what_a_session_asks_is_seen_and_answered_from_one_terminal() {
    let house = House::new().await;
    house.does(&["new", "asks", "--dir", "crates/net"]).await;
    house.does(&["new", "rests"]).await;
    let script = "ask deploy approval \"Deploy?\"\nwait-answers";
    let mut run = house.command(&["invoke", "asks", script]).spawn().unwrap();
    let asking = house.until("asks", phase("needs_input")).await;
    assert_eq!(asking["questions"][0]["question"]["title"], "Deploy?");
    let table = house.does(&["agents"]).await;
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[1].starts_with("needs input  asks"), "{table}");
    assert!(lines[2].contains("sessionctl answer asks "), "{table}");
    assert!(lines.last().unwrap().contains("1 needs you"), "{table}");
    let bare = house.does(&[]).await;
    assert_eq!(bare.lines().next(), table.lines().next(), "the fleet");
    let questions = house.does(&["questions"]).await;
    assert!(questions.starts_with("asks  "), "{questions}");
    house.does(&["answer", "asks", "yes"]).await;
    let ended = timeout(DEADLINE, run.wait()).await.unwrap().unwrap();
    assert!(ended.success());
    let (_, out, err) = house.ran(&["questions"]).await;
    assert_eq!((out.as_str(), err.as_str()), ("", "no question is open\n"));
}

#[tokio::test]
async fn c15_c61_a_session_is_paused_resumed_and_deleted_at_work_only_if_that_is_said() {
    let house = House::new().await;
    house.does(&["new", "docs"]).await;
    assert_eq!(house.does(&["pause", "docs"]).await, "docs is paused\n");
    let (code, _, err) = house.ran(&["invoke", "docs", "say \"no\""]).await;
    assert!(code == 1 && err.contains("sessionctl resume docs"), "{err}");
    house.does(&["resume", "docs"]).await;
    house.does(&["invoke", "docs", "say \"yes\""]).await;
    let mut run = house.command(&["invoke", "docs", "hang"]).spawn().unwrap();
    house.until("docs", phase("working")).await;
    let (code, _, err) = house.ran(&["rm", "docs", "--yes"]).await;
    assert!(code == 1 && err.contains("--abort"), "{err}");
    house.does(&["rm", "docs", "--yes", "--abort"]).await;
    let ended = timeout(DEADLINE, run.wait()).await.unwrap().unwrap();
    assert!(!ended.success(), "it was aborted");
}

#[tokio::test]
async fn c53_a_session_is_moved_between_its_runs_and_not_in_one() {
    let house = House::new().await;
    house.does(&["new", "docs"]).await;
    house.does(&["cd", "docs", "crates/net"]).await;
    let place = &house.session("docs").await["place"];
    assert_eq!(place["directory"], "crates/net");
    let (code, _, err) = house.ran(&["cd", "docs", "crates/none"]).await;
    assert!(code == 1 && err.contains("crates/none"), "{err}");
    let mut run = house.command(&["invoke", "docs", "hang"]).spawn().unwrap();
    house.until("docs", phase("working")).await;
    let (code, _, err) = house.ran(&["cd", "docs", "."]).await;
    assert!(code == 1 && err.contains("session_busy"), "{err}");
    house.does(&["abort", "docs"]).await;
    let ended = timeout(DEADLINE, run.wait()).await.unwrap().unwrap();
    assert!(!ended.success(), "it was aborted");
}

#[tokio::test]
async fn c53_c57_the_servers_own_data_are_no_part_of_a_workspace_that_they_lie_in() {
    let around = "[workspaces.around]\nroot = \"HOME\"\n\
                  [agents.looks]\nengine = \"demo\"\nworkspace = \"around\"\n";
    let house = House::over(|_| (), "", around).await;
    let new = ["new", "spy", "--agent", "looks", "--dir"];
    let (code, _, err) = house.ran(&[&new[..], &["data"]].concat()).await;
    assert!(code == 1 && err.contains("is kept from agents"), "{err}");
    house.does(&[&new[..], &["."]].concat()).await;
    let token = fs::read_to_string(house.home.data_dir().join("owner.token")).unwrap();
    let (_, out, err) = house.ran(&["invoke", "spy", "read data/owner.token"]).await;
    let told = out + &err;
    assert!(told.contains("kept from agents"), "{told}");
    assert!(!told.contains(token.trim()), "{told}");
}

#[tokio::test]
async fn a_workspace_that_is_not_there_is_named_at_the_start() {
    let home = Home::new();
    let config = home.path().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let root = home.path().join("gone");
    fs::write(
        &config,
        format!("{text}[workspaces.gone]\nroot = {root:?}\n"),
    )
    .unwrap();
    let Started::Ended(status) = home.try_start(None).await else {
        panic!("it started");
    };
    assert!(!status.success());
    let said = home.said();
    assert!(said.contains("workspace gone: its root"), "{said}");
    fs::create_dir(&root).unwrap();
    home.start().await;
}
