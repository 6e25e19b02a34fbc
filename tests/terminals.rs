//! The real client against the real server, each a process of its own: what people do from their
//! terminals when one of those dies, or the server does.
#![cfg(test)]

#[expect(dead_code, reason = "others look at more of a server than this")]
#[path = "crash/daemon.rs"]
mod daemon;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use daemon::{Daemon, Home, Started, sessiond};
use sessionplane_client::contract::{Agent as _, CallOptions};
use sessionplane_client::domain::error::CallError;
use sessionplane_client::domain::ids::RunId;
use sessionplane_client::domain::run::RunRecord;
use sessionplane_client::{Backoff, Client, ClientOptions, Token};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longest wait for anything.
const DEADLINE: Duration = Duration::from_secs(60);

/// The client's binary, which is built beside the server's.
fn program() -> PathBuf {
    sessiond().with_file_name("sessionctl")
}

struct Terminal<'a> {
    home: &'a Home,
    address: String,
}

impl<'a> Terminal<'a> {
    fn of(home: &'a Home, daemon: &Daemon) -> Self {
        let address = daemon.socket().to_string();
        Self { home, address }
    }

    fn command(&self, words: &[&str]) -> Command {
        let token: &Path = &self.home.data_dir().join("owner.token");
        let mut command = Command::new(program());
        command
            .arg0("sessionctl")
            .args(words)
            .env_clear()
            .env("SESSIONPLANE_ADDRESS", &self.address)
            .env("SESSIONPLANE_TOKEN_FILE", token)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end: its exit code and all that it printed.
    async fn ran(&self, words: &[&str]) -> (i32, String) {
        let output = timeout(DEADLINE, self.command(words).output()).await;
        let output = output.expect("it did not end").unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().expect("ended by a signal"), text)
    }

    async fn does(&self, words: &[&str]) -> String {
        let (code, text) = self.ran(words).await;
        assert_eq!(code, 0, "{words:?}: {text}");
        text
    }
}

/// Reads what a child says beside its answer, until it has said `text`.
async fn says(child: &mut Child, text: &str) -> String {
    let err = child.stderr.as_mut().unwrap();
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    let reading = async {
        while !seen.contains(text) {
            let read = err.read(&mut buffer).await.unwrap();
            assert!(read > 0, "ended before {text:?}: {seen}");
            seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
    };
    let read = timeout(DEADLINE, reading).await;
    assert!(read.is_ok(), "no {text:?} in {seen}");
    seen
}

const ASKS: &str = "ask deploy approval \"Deploy?\" details \"make deploy\"\n\
                    ask where form \"Where to?\" field zone:north/south required field copies:number\n\
                    wait-answers\nsay \"Done.\"\n";

#[tokio::test]
async fn c25_a_question_is_answered_from_a_second_terminal_after_the_first_died() {
    let home = Home::new();
    let daemon = home.start().await;
    let terminal = Terminal::of(&home, &daemon);
    let mut first = terminal
        .command(&["invoke", "--new", "docs", ASKS])
        .spawn()
        .unwrap();
    says(&mut first, "? Where to?").await;
    first.kill().await.unwrap();
    let open = terminal.does(&["answer", "docs"]).await;
    let ids: Vec<_> = open
        .lines()
        .filter(|line| line.contains("-q") && !line.contains(' '))
        .collect();
    assert_eq!(ids.len(), 2, "{open}");
    let (code, several) = terminal.ran(&["answer", "docs", "allow"]).await;
    assert_eq!(code, 4, "{several}");
    let keyed = ["answer", ids[0], "allow", "--request-id", "r-1"];
    terminal.does(&keyed).await;
    terminal.does(&keyed).await;
    let (code, late) = terminal.ran(&["answer", ids[0], "deny"]).await;
    assert_eq!(code, 1, "{late}");
    assert!(late.contains("no_such_interaction"), "{late}");
    terminal
        .does(&["answer", "docs", "zone=north", "copies=2"])
        .await;
    let settled = terminal.does(&["wait", "docs", "--timeout", "1m"]).await;
    assert!(settled.contains("completed: run"), "{settled}");
    terminal.does(&["invoke", "docs", "say \"next\""]).await;
    terminal.does(&keyed).await;
    let (code, unbound) = terminal
        .ran(&["answer", ids[0], "allow", "--request-id", "r-2"])
        .await;
    assert!(
        code == 1 && unbound.contains("no_such_interaction"),
        "{unbound}"
    );
    let entries = terminal.does(&["entries", "docs"]).await;
    assert!(
        entries.contains("allow") && entries.contains("zone=north"),
        "{entries}"
    );
    let runs = terminal.does(&["runs", "docs", "--prompts"]).await;
    assert!(
        runs.contains("completed") && runs.contains("> ask deploy"),
        "{runs}"
    );
}

#[tokio::test]
async fn c22_what_is_done_between_runs_is_done_and_what_cannot_be_is_refused() {
    let home = Home::new();
    let daemon = home.start().await;
    let terminal = Terminal::of(&home, &daemon);
    terminal
        .does(&["invoke", "--new", "docs", "say \"One.\""])
        .await;
    terminal.does(&["invoke", "docs", "say \"Two.\""]).await;
    let failing = "fail overloaded \"not today\"";
    let (code, failed) = terminal
        .ran(&["compact", "docs", "--wait", "--instructions", failing])
        .await;
    assert_eq!(code, 1, "{failed}");
    assert!(failed.contains("not today"), "{failed}");
    let id = sessionplane_client::mint_request_id();
    let keyed = ["compact", "docs", "--wait", "--request-id", id.as_str()];
    let compacted = terminal.does(&keyed).await;
    assert!(
        compacted.contains("compaction completed, entry"),
        "{compacted}"
    );
    assert_eq!(terminal.does(&keyed).await, compacted, "a repeat finds out");
    terminal.does(&["navigate", "docs", "1"]).await;
    let state = terminal.does(&["state", "docs"]).await;
    assert!(state.contains("-1\n"), "{state}");
    let branched = [
        "invoke", "--new", "--parent", "docs", "--from", "2", "side", "recall",
    ];
    terminal.does(&branched).await;
    let can = terminal.does(&["capabilities", "docs"]).await;
    assert!(can.contains("compact") && can.contains("navigate"), "{can}");
    let offered = terminal.does(&["commands", "docs"]).await;
    assert!(offered.contains("abort"), "{offered}");
    let mut busy = terminal
        .command(&["invoke", "docs", "hang"])
        .spawn()
        .unwrap();
    let (code, refused) = loop {
        // Refused once the run is there; before that there is nothing in its way.
        let told = terminal.ran(&["navigate", "docs", "2"]).await;
        if told.0 != 0 {
            break told;
        }
    };
    assert_eq!(code, 1, "{refused}");
    assert!(
        refused.contains("session_busy") && refused.contains("wait docs"),
        "{refused}"
    );
    terminal.does(&["abort", "docs"]).await;
    let (code, aborted) = terminal.ran(&["wait", "docs"]).await;
    assert_eq!(code, 1, "{aborted}");
    busy.wait().await.unwrap();
}

#[tokio::test]
async fn c16_a_wait_tells_how_a_run_ended_whose_server_was_killed_meanwhile() {
    let home = Home::new();
    let daemon = home.start().await;
    let address = daemon.socket();
    let terminal = Terminal::of(&home, &daemon);
    let mut run = terminal
        .command(&["invoke", "--new", "docs", "think \"hm\"\nhang"])
        .spawn()
        .unwrap();
    says(&mut run, "hm").await;
    run.kill().await.unwrap();
    let state = terminal.does(&["--json", "state", "docs"]).await;
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    let id: RunId = state["active_run_id"].as_str().unwrap().parse().unwrap();
    let waiting = tokio::spawn(patient(&home, address).wait_run(id));
    daemon.kill().await;
    let _again = started_at(&home, address).await;
    let record = timeout(DEADLINE, waiting).await.unwrap().unwrap().unwrap();
    let settled = record.settled.unwrap();
    assert_eq!(settled.outcome.code(), Some("interrupted"));
    let (code, told) = terminal.ran(&["wait", "docs"]).await;
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("failed (interrupted"), "{told}");
}

/// A client that waits for a server to come, however early it asks.
struct Patient(Client);

impl Patient {
    async fn wait_run(self, run: RunId) -> Result<RunRecord, CallError> {
        self.0.wait_run(run, CallOptions::default()).await
    }
}

fn patient(home: &Home, address: SocketAddr) -> Patient {
    let token = Token::from_file(&home.data_dir().join("owner.token")).unwrap();
    let target = address.to_string().parse().unwrap();
    let mut options = ClientOptions::new(target).token(token);
    options.retry = Backoff::STREAMS;
    Patient(Client::connect(options).unwrap())
}

/// A server of a home that listens where another one did.
async fn started_at(home: &Home, address: SocketAddr) -> Daemon {
    let mut command = home.command(&sessiond());
    let flags = home.flags().into_iter().map(|flag| match flag.as_str() {
        "127.0.0.1:0" => address.to_string(),
        _ => flag,
    });
    command.args(flags);
    match home.launch(command).await {
        Started::Ready(daemon) => daemon,
        Started::Ended(status) => panic!("{status}: {}", home.said()),
    }
}

/// C2: what became of it is told by the exit code, also where nobody reads the words.
#[tokio::test]
async fn c02_an_outcome_is_told_to_a_script_that_reads_nothing_of_it() {
    let home = Home::new();
    let daemon = home.start().await;
    let terminal = Terminal::of(&home, &daemon);
    let failing = "fail overloaded \"not today\"";
    let (code, failed) = terminal.ran(&["invoke", "--new", "docs", failing]).await;
    assert_eq!(code, 1, "{failed}");
    for (words, code) in [
        (&["wait", "docs"][..], 1),
        (&["--json", "steer", "docs", "hi"], 1),
        (&["compact", "docs", "--wait", "--instructions", failing], 1),
        (&["state", "docs"], 0),
        (&["invoke", "docs", "say \"x\""], 3),
    ] {
        let mut child = terminal.command(words).spawn().unwrap();
        drop(child.stdout.take());
        let ended = timeout(DEADLINE, child.wait()).await;
        let status = ended.expect("it did not end").unwrap();
        assert_eq!(status.code(), Some(code), "{words:?}");
    }
}
