//! Backups of a server under load, and what is made of them; the tools as an operator runs them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sessionplane_client::contract::{CallOptions, SessionControl as _};
use sessionplane_client::domain::error::Reason;
use sessionplane_client::domain::ids::{SessionName, SessionRef};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use crate::daemon::{Daemon, Home, Started, sessiond};
use crate::ledger::Shared;
use crate::{load, verify};

/// How long something that a process does may take.
const SOON: Duration = Duration::from_secs(60);

fn sessions(prefix: &str) -> Vec<Shared> {
    let named = |n: usize| SessionName::parse(&format!("{prefix}-{n}")).unwrap();
    (0..3)
        .map(|n| Shared::new(SessionRef::Name(named(n))))
        .collect()
}

/// Waits until a file is there that another process writes. It has something in it only once so much
/// was written that it may be done a moment later.
async fn there(path: &Path) {
    let found = async {
        while !path.exists() {
            // Nothing tells of a file of another process but the file.
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(SOON, found).await.expect("it is begun");
}

/// Lets clients work until a number of runs have settled.
async fn worked(sessions: &[Shared]) {
    let enough = async {
        while sessions
            .iter()
            .any(|session| session.lock().settled.len() < 2)
        {
            // What the clients were told is in the ledger alone.
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, enough).await.expect("runs settle");
}

async fn started(home: &Home, failpoints: &str) -> Daemon {
    match home.try_start(Some(failpoints)).await {
        crate::daemon::Started::Ready(daemon) => daemon,
        crate::daemon::Started::Ended(status) => panic!("{status}: {}", home.said()),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c39_a_backup_under_load_is_of_one_moment_and_a_killed_one_is_none() {
    let home = Home::new();
    // Slow enough to be killed in its middle, and for much to be written meanwhile.
    let daemon = started(&home, "store::snapshot-page=sleep(30)").await;
    let sessions = sessions("b");
    let work = load::start(&daemon.client(), &sessions, 0, 1);
    worked(&sessions).await;
    let (file, killed) = (home.path().join("b.jsonl"), home.path().join("k.jsonl"));
    let told = home
        .store_tool(&home.data_dir(), &["backup", "--to", text(&file)])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    // Whoever makes it is killed.
    let mut command = home.store_command(&home.data_dir(), &["backup", "--to", text(&killed)]);
    let mut child = command.spawn().unwrap();
    there(&home.path().join("k.jsonl.partial")).await;
    child.start_kill().unwrap();
    child.wait().await.unwrap();
    assert!(!killed.exists(), "half a backup looks like a whole one");
    // The server goes on, and gives the next one as soon as it has noticed.
    let again = async {
        loop {
            let told = home
                .store_tool(&home.data_dir(), &["backup", "--to", text(&killed)])
                .await;
            match told.status {
                Some(0) => return,
                _ => assert!(told.err.contains("another snapshot"), "{told:?}"),
            }
        }
    };
    timeout(SOON, again)
        .await
        .expect("the killed one is given up");
    // The server is killed.
    let last = home.path().join("l.jsonl");
    let mut command = home.store_command(&home.data_dir(), &["backup", "--to", text(&last)]);
    let mut child = command.spawn().unwrap();
    there(&home.path().join("l.jsonl.partial")).await;
    daemon.kill().await;
    let status = timeout(SOON, child.wait()).await.unwrap().unwrap();
    assert_ne!(status.code(), Some(0), "the backup of a dead server");
    assert!(!last.exists());
    drop(work);
    for (n, backup) in [file, killed].iter().enumerate() {
        restored_is_whole(&home, backup, n).await;
    }
}

/// A restored directory verifies, starts, and takes runs; it has none of the tokens.
async fn restored_is_whole(home: &Home, backup: &Path, n: usize) {
    let mode = fs::metadata(backup).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "others may read it");
    let lines = fs::read_to_string(backup).unwrap();
    for secret in ["owner.token", "digest.key", "audit.key"] {
        let secret = fs::read_to_string(home.data_dir().join(secret)).unwrap();
        assert!(!lines.contains(secret.trim()), "a secret is in it");
    }
    let second = Home::new();
    let told = second
        .store_tool(&second.data_dir(), &["restore", text(backup)])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let made: Vec<PathBuf> = fs::read_dir(second.data_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(made.len(), 2, "{made:?}");
    let again = second.path().join("again.jsonl");
    let told = second
        .store_tool(&second.data_dir(), &["export", "--to", text(&again)])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    // But for the first line, which tells of the directory, and the last, which sums up.
    let records = |file: &Path| -> Vec<String> {
        let lines = fs::read_to_string(file).unwrap();
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        lines[1..lines.len() - 1].to_vec()
    };
    assert!(records(&again) == records(backup));
    let daemon = second.start().await;
    let fresh = Shared::new(SessionRef::Name(
        SessionName::parse(&format!("new-{n}")).unwrap(),
    ));
    verify::session(&daemon.client(), &fresh, &second.data_dir(), n).await;
    daemon.kill().await;
    let told = second
        .store_tool(&second.data_dir(), &["verify", "--json"])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let found: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(found["whole"], true);
    assert!(found["sessions"].as_u64() >= Some(3), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b54_the_tools_refuse_a_directory_that_a_server_has_and_tell_by_their_status() {
    let home = Home::new();
    let nothing = home.path().join("nothing");
    for tool in [&["verify"][..], &["stats"], &["export"]] {
        let told = home.store_tool(&nothing, tool).await;
        assert_eq!(told.status, Some(2), "{told:?}");
    }
    let daemon = home.start().await;
    for tool in [&["verify"][..], &["stats", "--json"], &["export"]] {
        let told = home.store_tool(&home.data_dir(), tool).await;
        assert_eq!(told.status, Some(2), "{told:?}");
        assert!(told.err.contains("in use by another process"), "{told:?}");
    }
    let full = home.store_tool(&home.data_dir(), &["import", "-"]).await;
    assert_eq!(full.status, Some(2), "{full:?}");
    let into = home.path().join("into");
    fs::create_dir(&into).unwrap();
    let told = home
        .store_tool(&home.data_dir(), &["backup", "--to", text(&into)])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1);
    let folder = format!("{}/", text(&home.path().join("none")));
    let told = home
        .store_tool(&home.data_dir(), &["backup", "--to", &folder])
        .await;
    assert_eq!(told.status, Some(2), "{told:?}");
    assert!(told.err.contains("there is no folder"), "{told:?}");
    daemon.terminate();
    assert_eq!(daemon.ended(SOON).await.code(), Some(0));
    assert!(!home.data_dir().join("backup.sock").exists());
    let told = home.store_tool(&home.data_dir(), &["stats"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    // Without a server it is made of the directory itself.
    let file = home.path().join("cold.jsonl");
    let told = home
        .store_tool(&home.data_dir(), &["backup", "--to", text(&file), "--json"])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let taken = home
        .store_tool(&home.data_dir(), &["backup", "--to", text(&file)])
        .await;
    assert_eq!(taken.status, Some(2), "it was written over: {taken:?}");
    // A backup that was cut is told, and makes nothing that would start.
    let lines = fs::read(&file).unwrap();
    fs::write(&file, &lines[..lines.len() - 10]).unwrap();
    let second = home.path().join("second");
    let told = home.store_tool(&second, &["restore", text(&file)]).await;
    assert_eq!(told.status, Some(1), "{told:?}");
    assert!(told.err.contains("cut"), "{told:?}");
    assert!(told.err.contains("remove it"), "{told:?}");
    let (status, said) = home.refused(&second).await;
    assert_eq!(status.code(), Some(1), "half a restore is served: {said}");
    assert!(said.contains("import"), "{said}");
}

/// However little of it is on the disk: a start makes nothing of its own of it.
#[tokio::test]
async fn b54_an_import_that_is_killed_at_any_place_is_no_store_and_verify_says_what_it_is() {
    let home = Home::new();
    home.start().await.kill().await;
    let file = home.path().join("all.jsonl");
    let words = ["export", "--to", text(&file)];
    let told = home.store_tool(&home.data_dir(), &words).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let places = [
        "store::importing",
        "store::opening",
        "store::opening=1*off->",
    ];
    for (n, place) in places.iter().enumerate() {
        let directory = home.path().join(format!("into-{n}"));
        let mut command = home.store_command(&directory, &["import", text(&file)]);
        let sets = if place.contains('=') { "" } else { "=" };
        command.env("FAILPOINTS", format!("{place}{sets}return(kill)"));
        let status = timeout(SOON, command.status()).await.unwrap().unwrap();
        assert_eq!(status.code(), None, "{place}: it was not killed");
        let told = home.store_tool(&directory, &["verify"]).await;
        assert_eq!(told.status, Some(1), "{place}: {told:?}");
        assert!(told.out.contains("import"), "{place}: {told:?}");
        let (status, said) = home.refused(&directory).await;
        assert_eq!(status.code(), Some(1), "{place}: {said}");
        assert!(said.contains("import"), "{place}: {said}");
    }
}

/// What the storage engine gives up on is told in the tool's own words, by the process too.
#[tokio::test]
async fn b54_a_tool_goes_on_after_a_panic_of_the_storage_engine_and_tells_what_it_means() {
    let home = Home::new();
    home.start().await.kill().await;
    let file = home.path().join("all.jsonl");
    let told = home
        .store_tool(&home.data_dir(), &["export", "--to", text(&file)])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let directory = home.path().join("into");
    let mut command = home.store_command(&directory, &["import", text(&file)]);
    command.env(
        "FAILPOINTS",
        "store::importing=panic(a page that is no page)",
    );
    let ended = timeout(SOON, command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(
        said.contains("sessiond store: cannot write the store"),
        "{said}"
    );
}

#[tokio::test]
async fn a_restore_of_what_is_no_backup_makes_nothing_that_is_in_the_way_of_the_next() {
    let home = Home::new();
    let (fresh, empty) = (home.path().join("fresh"), home.path().join("empty"));
    fs::create_dir(&empty).unwrap();
    let wrong = home.path().join("config.toml");
    let missing = home.path().join("no-such-file");
    for (file, status) in [(&missing, 2), (&wrong, 1)] {
        for directory in [&fresh, &empty] {
            let told = home.store_tool(directory, &["restore", text(file)]).await;
            assert_eq!(told.status, Some(status), "{told:?}");
            assert!(told.err.contains("sessiond store: "), "{told:?}");
        }
        assert!(!fresh.exists(), "{file:?}");
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "{file:?}");
    }
}

/// What blocks for others has threads of its own.
#[tokio::test]
async fn c60_who_is_slow_to_take_a_backup_keeps_no_thread_from_who_reads() {
    let home = Home::new();
    let mut command = home.command(&sessiond());
    command.args(home.flags());
    command.args(["--set", "limits.blocking_threads=4"]);
    let Started::Ready(daemon) = home.launch(command).await else {
        panic!("it did not start; it said:\n{}", home.said());
    };
    let mut silent = Vec::new();
    for _ in 0..4 {
        let socket = home.data_dir().join("backup.sock");
        silent.push(UnixStream::connect(&socket).await.unwrap());
    }
    // All are at it once one more is refused.
    let out = home.path().join("b.jsonl");
    let words = ["backup", "--to", text(&out)];
    let told = home.store_tool(&home.data_dir(), &words).await;
    assert_eq!(told.status, Some(2), "{told:?}");
    let options = CallOptions {
        deadline: Some(SOON),
        ..CallOptions::default()
    };
    let session = SessionRef::Name(SessionName::parse("none").unwrap());
    let told = daemon.client().get_state(session, None, options).await;
    assert_eq!(told.unwrap_err().reason, Reason::NoSuchSession);
    drop((silent, daemon));
}

/// Who connects and says nothing takes a place, and whoever finds none is told so.
#[tokio::test]
async fn c60_one_request_for_a_backup_too_many_is_refused_in_words() {
    let home = Home::new();
    let daemon = home.start().await;
    let socket = home.data_dir().join("backup.sock");
    let ask = async || {
        let out = home.path().join("b.jsonl");
        let words = ["backup", "--to", text(&out)];
        home.store_tool(&home.data_dir(), &words).await
    };
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(UnixStream::connect(&socket).await.unwrap());
    }
    // More than once: it must not hang on who of the server's threads was faster.
    for _ in 0..5 {
        let told = ask().await;
        assert_eq!(told.status, Some(2), "{told:?}");
        assert!(told.err.contains("try again"), "{told:?}");
    }
    drop(silent);
    let again = async { while ask().await.status != Some(0) {} };
    timeout(SOON, again).await.expect("there is room again");
    drop(daemon);
}
