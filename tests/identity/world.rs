//! A home with principals, and the programs as people run them in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::daemon::{Daemon, Home, Started, sessiond};

/// Longest wait for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

const PRINCIPALS: &str = r#"
[identity.principals.ci]
kind = "service"
[identity.principals.looker]
kind = "human"
groups = ["observer"]
[identity.principals.nobody]
kind = "human"
groups = []
[identity.principals.stranger]
kind = "human"
tenant = "elsewhere"
"#;

/// A home whose server knows some principals, and more if the test says so.
pub(crate) fn home(more: &str) -> Home {
    let home = Home::new();
    let path = config(&home);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{PRINCIPALS}{more}")).unwrap();
    home
}

pub(crate) fn config(home: &Home) -> PathBuf {
    home.path().join("config.toml")
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

async fn run(mut command: Command) -> Ran {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = timeout(DEADLINE, command.output()).await;
    let output = output.expect("it did not end").unwrap();
    Ran {
        code: output.status.code().expect("ended by a signal"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// `sessiond` with these words, in this home.
pub(crate) async fn daemon(home: &Home, words: &[&str]) -> Ran {
    daemon_with(home, words, "").await
}

/// The same, where a client's token is in the environment.
pub(crate) async fn daemon_with(home: &Home, words: &[&str], token: &str) -> Ran {
    let mut command = Command::new(sessiond());
    command
        .args(words)
        .env("SESSIONPLANE_TOKEN", token)
        .arg("--data-dir")
        .arg(home.data_dir())
        .arg("--config")
        .arg(config(home))
        .env_remove("FAILPOINTS");
    run(command).await
}

/// Makes a token.
pub(crate) async fn minted(home: &Home, principal: &str, more: &[&str]) -> String {
    let words = ["token", "create", "--principal", principal];
    let ran = daemon(home, &[&words[..], more].concat()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let token = ran.out.trim_end().to_owned();
    assert!(!ran.err.contains(&token), "{}", ran.err);
    token
}

/// The id in a token.
pub(crate) fn id(token: &str) -> &str {
    &token[3..11]
}

/// `sessionctl` with these words and this token.
pub(crate) fn client(address: &str, token: &str, words: &[&str]) -> Command {
    let mut command = Command::new(sessiond().with_file_name("sessionctl"));
    command
        .args(words)
        .env_clear()
        .env("SESSIONPLANE_ADDRESS", address)
        .env("SESSIONPLANE_TOKEN", token)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs it to its end.
pub(crate) async fn asked(address: &str, token: &str, words: &[&str]) -> Ran {
    run(client(address, token, words)).await
}

/// Runs it until it does as it should, which must be soon.
pub(crate) async fn until(address: &str, token: &str, words: &[&str], code: i32) -> Ran {
    let repeated = async {
        loop {
            let ran = asked(address, token, words).await;
            if ran.code == code {
                return ran;
            }
            // Nothing tells of what another process has read but its answers.
            sleep(Duration::from_millis(50)).await;
        }
    };
    let done = timeout(Duration::from_secs(15), repeated).await;
    done.unwrap_or_else(|_elapsed| panic!("{words:?} never ended with {code}"))
}

/// Starts a server in a session of its own, without a terminal, as a supervisor does.
pub(crate) async fn supervised(home: &Home, log: &str, failpoints: &str) -> Daemon {
    let mut command = home.command(Path::new("setsid"));
    command
        .arg(sessiond())
        .args(home.flags())
        .env("FAILPOINTS", failpoints)
        .env("RUST_BACKTRACE", "full")
        .env("SESSIONPLANE_LOG", log);
    match home.launch(command).await {
        Started::Ready(daemon) => daemon,
        Started::Ended(status) => panic!("did not start: {status}; it said:\n{}", home.said()),
    }
}
