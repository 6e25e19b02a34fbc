//! Starts that go wrong: cut in their middle, on a directory in use, on what is no directory.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sessionplane_client::contract::{Agent as _, CallOptions, InvokeEvent};
use sessionplane_client::detached;
use sessionplane_client::domain::ids::{RunId, SessionName, SessionRef};
use sessionplane_client::domain::run::code;

use futures_util::StreamExt as _;

use tokio::time::timeout;

use crate::daemon::{Daemon, Home, Started, sessiond};

/// Enough for whatever a busy machine is at.
const PATIENCE: Duration = Duration::from_secs(60);

/// Invokes a run that hangs; gives its id.
async fn hang(daemon: &Daemon, name: &str) -> RunId {
    let at = SessionRef::Name(SessionName::parse(name).unwrap());
    let request = detached(at, "say \"x\"\nhang".to_owned());
    let mut stream = daemon
        .client()
        .invoke(request, CallOptions::default())
        .await
        .unwrap();
    match stream.next().await {
        Some(Ok(InvokeEvent::Accepted { run, .. })) => run,
        other => panic!("not accepted: {other:?}"),
    }
}

async fn is_interrupted(daemon: &Daemon, run: RunId) {
    let record = daemon
        .client()
        .get_run(run, CallOptions::default())
        .await
        .unwrap();
    let outcome = record.settled.expect("it was settled at the start").outcome;
    assert_eq!(outcome.code(), Some(code::INTERRUPTED));
}

#[tokio::test]
async fn c44_a_start_that_is_killed_is_finished_by_the_next_one() {
    for place in [
        "store::opening",
        "recovery::before-settle",
        "recovery::after-settle",
        "process::before-listen",
    ] {
        let home = Home::new();
        let daemon = home.start().await;
        let mut runs = Vec::new();
        for name in ["one", "two", "three"] {
            runs.push(hang(&daemon, name).await);
        }
        daemon.kill().await;
        for attempt in 0..2 {
            let started = home.try_start(Some(&format!("{place}=return(kill)"))).await;
            match started {
                Started::Ended(status) => {
                    assert_eq!(status.signal(), Some(9), "{place}: {status}");
                }
                // The first attempt can have settled them all, in one round.
                Started::Ready(daemon) => {
                    let settled = attempt > 0 && place == "recovery::after-settle";
                    assert!(settled, "{place} was passed by");
                    daemon.kill().await;
                }
            }
        }
        let daemon = home.start().await;
        for run in runs {
            is_interrupted(&daemon, run).await;
        }
        hang(&daemon, "one").await;
    }
}

#[tokio::test]
async fn a_first_start_that_is_killed_leaves_a_directory_that_the_next_one_takes() {
    let home = Home::new();
    let killed = home.try_start(Some("store::opening=return(kill)")).await;
    assert!(matches!(killed, Started::Ended(status) if status.signal() == Some(9)));
    hang(&home.start().await, "one").await;
}

#[tokio::test]
async fn c41_b34_b36_b52_a_second_server_on_the_same_data_is_refused_and_the_first_goes_on() {
    let home = Home::new();
    let daemon = home.start().await;
    let (status, said) = home.refused(&home.data_dir()).await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("is in use by another process"), "{said}");
    hang(&daemon, "one").await;
}

#[tokio::test]
async fn what_is_no_data_directory_is_refused_in_words() {
    let home = Home::new();
    let file = home.path().join("a-file");
    fs::write(&file, "x").unwrap();
    let under_a_file = home.path().join("under-a-file");
    fs::create_dir(&under_a_file).unwrap();
    fs::write(under_a_file.join("store"), "x").unwrap();
    // Where not even root may write.
    let unwritable = Path::new("/proc/sessionplane");
    for dir in [&*file, &*file.join("below"), &*under_a_file, unwritable] {
        let (status, said) = home.refused(dir).await;
        assert_eq!(status.code(), Some(1), "{}: {said}", dir.display());
        assert!(!said.contains("panicked"), "{}: {said}", dir.display());
        assert!(
            said.contains("sessiond: ") && said.contains(dir.to_str().unwrap()),
            "{said}"
        );
    }
}

#[tokio::test]
async fn b54_a_damaged_store_is_refused_in_words() {
    for name in ["db", "conf"] {
        let home = Home::new();
        let daemon = home.start().await;
        hang(&daemon, "one").await;
        daemon.kill().await;
        let path = home.data_dir().join("store").join(name);
        let mut bytes = fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(3) {
            bytes[at] ^= 0x5a;
        }
        fs::write(&path, bytes).unwrap();
        let (status, said) = home.refused(&home.data_dir()).await;
        assert_eq!(status.code(), Some(1), "{name}: {said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("sessiond: the data directory"),
            "{name}: {said}"
        );
    }
}

#[tokio::test]
async fn c60_a_configuration_that_is_wrong_is_told_whole_and_starts_nothing() {
    let home = Home::new();
    let file = home.path().join("wrong.toml");
    fs::write(&file, "[limits]\nring_events = 3\nheartbeat_secs = 5\n").unwrap();
    let place = file.display();
    let told = [
        format!("{place}:2: limits.ring_events is 3; use 16 to 1048576"),
        format!(
            "{place}:3: limits.heartbeat_secs is no setting; did you mean limits.heartbeat_seconds?"
        ),
        "SESSIONPLANE_LISTEN: listen `nowhere` is not an address: use".to_owned(),
    ];
    for words in [&["config", "check"][..], &["config", "explain"], &[]] {
        let mut command = home.command(&sessiond());
        command.args(words).arg("--config").arg(&file);
        command.env("SESSIONPLANE_LISTEN", "nowhere");
        let output = command.stderr(Stdio::piped()).output().await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        for line in &told {
            assert!(said.contains(line), "{line} after {words:?}:\n{said}");
        }
    }
    assert!(!home.data_dir().exists(), "nothing was begun");
}

#[tokio::test]
async fn c60_a_check_tells_what_a_start_would_refuse() {
    let home = Home::new();
    let file = home.path().join("open.toml");
    let text = "listen = \"0.0.0.0:0\"\n[tls]\ncert_file = \"/none\"\nkey_file = \"/none\"\n";
    fs::write(&file, text).unwrap();
    let mut command = home.command(&sessiond());
    command.args(["config", "check", "--config"]).arg(&file);
    let output = command.stderr(Stdio::piped()).output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for line in [
        "open.toml:1: listen is \"0.0.0.0:0\", which others than this host reach, and no identities",
        "open.toml:3: tls.cert_file /none: ",
    ] {
        assert!(said.contains(line), "{line} in\n{said}");
    }
}

/// C61: what is told of the configuration is told to anybody.
#[tokio::test]
async fn c61_an_explanation_names_what_is_set_and_by_whom_and_shows_no_secret() {
    let home = Home::new();
    let daemon = home.start().await;
    let token = fs::read_to_string(home.data_dir().join("owner.token")).unwrap();
    let mut command = home.command(&sessiond());
    command.args(home.flags()).args(["config", "explain"]);
    command.env("SESSIONPLANE_LOG", "warn");
    command.env("SESSIONPLANE_TOKEN", token.trim());
    let output = command.stdout(Stdio::piped()).output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let line = |key: &str| {
        let found = said.lines().find(|line| line.starts_with(key));
        found
            .unwrap_or_else(|| panic!("{key} in:\n{said}"))
            .to_owned()
    };
    assert!(line("listen = \"127.0.0.1:0\"").ends_with("# --listen"));
    assert!(line("limits.idle_seconds = 1").contains("config.toml:"));
    assert!(line("log.filter = \"warn\"").ends_with("# SESSIONPLANE_LOG"));
    assert!(line("agents.scripted.engine = \"scripted\"").contains("config.toml:"));
    assert!(line("store.cache_mib = 256").ends_with("# default"));
    assert!(!said.contains(token.trim()), "{said}");
    drop(daemon);
}

#[tokio::test]
async fn a_second_server_is_told_all_that_keeps_it_from_starting_at_once() {
    let home = Home::new();
    let daemon = home.start().await;
    let (in_use, listens) = ("is in use by another process", "another server listens on");
    let there = daemon.socket().to_string();
    for (listen, workspace, parts) in [
        (&*there, "/nowhere", &[in_use, listens, "/nowhere"][..]),
        (&there, "/", &[in_use, listens]),
        ("127.0.0.1:0", "/", &[in_use]),
    ] {
        let mut command = home.command(&sessiond());
        command.args(["--listen", listen, "--workspace", workspace]);
        command.arg("--data-dir").arg(home.data_dir());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = timeout(PATIENCE, command.output()).await;
        let output = output.expect("it neither refused nor ended").unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let heading = usize::from(parts.len() > 1);
        assert_eq!(said.lines().count(), heading + parts.len(), "{said}");
        for part in parts {
            assert!(said.contains(part), "{part:?} is missing in:\n{said}");
        }
    }
    hang(&daemon, "one").await;
}
