//! A server that is killed within a deletion, at any step of it, and one that cannot remove everything:
//! what can be goes, and nothing that is left looks like damage.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_client::contract::fleet::{DeleteAnswer, DeleteSession, Fleet as _};
use sessionplane_client::contract::{
    Agent as _, CallOptions, InvokeEvent, ListEntriesRequest, SessionControl as _,
};
use sessionplane_client::detached;
use sessionplane_client::domain::entry::{Entry, EntryBody};
use sessionplane_client::domain::error::{CallError, Reason};
use sessionplane_client::domain::ids::{SessionName, SessionRef};
use tokio::time::{sleep, timeout};

use crate::daemon::{Daemon, Home, Started};
use crate::damages::copy;

const SOON: Duration = Duration::from_secs(60);

/// What a deletion comes by, and how often it does so before the server is killed there: the deletion
/// itself first, then rounds that erase.
const KILLS: [(&str, u32); 9] = [
    ("store::before-apply", 0),
    ("store::after-apply", 0),
    ("store::after-sync", 0),
    ("eraser::contents-removed", 0),
    ("store::before-apply", 1),
    ("store::after-sync", 1),
    ("eraser::contents-removed", 1),
    ("store::before-sync", 2),
    ("store::after-sync", 3),
];

fn named(name: &str) -> SessionRef {
    SessionRef::Name(SessionName::parse(name).unwrap())
}

async fn run(daemon: &Daemon, name: &str, scenario: &str) {
    let request = detached(named(name), scenario.to_owned());
    let client = daemon.client();
    let events = async {
        let stream = client.invoke(request, CallOptions::default()).await;
        stream.unwrap().collect::<Vec<_>>().await
    };
    let last = timeout(SOON, events).await.expect("it ends").pop();
    let completed = matches!(last, Some(Ok(InvokeEvent::Completed { .. })));
    assert!(completed, "{last:?}");
}

async fn delete(daemon: &Daemon, name: &str) -> Result<DeleteAnswer, CallError> {
    let request = DeleteSession {
        session: named(name),
        etag: None,
        abort: false,
    };
    let client = daemon.client();
    let deleted = client.delete_session(request, CallOptions::default());
    timeout(SOON, deleted).await.expect("it is answered")
}

async fn entries(daemon: &Daemon, name: &str) -> Vec<Entry> {
    let request = ListEntriesRequest {
        session: named(name),
        since: None,
        page_size: 500,
    };
    let client = daemon.client();
    let page = client.list_entries(request, CallOptions::default()).await;
    page.unwrap().entries
}

/// The contents that entries name, in their order.
fn named_contents(entries: &[Entry]) -> Vec<String> {
    let contents = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::Tool { artifact, .. } => Some(artifact.as_ref()?.id.to_string()),
        _ => None,
    });
    contents.collect()
}

/// Where a content lies.
fn place(home: &Home, content: &str) -> PathBuf {
    let folder = home.data_dir().join("artifacts");
    folder.join(&content[content.len() - 2..]).join(content)
}

/// The contents that are there.
fn contents(home: &Home) -> BTreeSet<String> {
    let folders = fs::read_dir(home.data_dir().join("artifacts")).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let folders = folders.filter(|folder| folder.is_dir());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.contains('.')).collect()
}

/// Waits until these contents are left and no others.
async fn left(home: &Home, wanted: &BTreeSet<String>) {
    let gone = async {
        while contents(home) != *wanted {
            // Nothing tells of a file of another process but the file.
            sleep(Duration::from_millis(5)).await;
        }
    };
    let told = timeout(SOON, gone).await;
    let found = || format!("{:?}, not {wanted:?}: {}", contents(home), home.said());
    told.unwrap_or_else(|_elapsed| panic!("{}", found()));
}

/// What the tools say of a directory that nobody has.
async fn is_whole(home: &Home, case: &str) {
    for tool in ["verify", "export"] {
        let told = home.store_tool(&home.data_dir(), &[tool]).await;
        let said = if tool == "verify" { told.out } else { told.err };
        assert_eq!(told.status, Some(0), "{case}, {tool}: {said}");
    }
}

/// Records of a kind.
async fn records(home: &Home, kind: &str) -> u64 {
    let told = home
        .store_tool(&home.data_dir(), &["stats", "--json"])
        .await;
    let stats: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    let kinds = stats["kinds"].as_array().unwrap();
    let found = kinds.iter().find(|it| it["kind"] == kind);
    found.map_or(0, |it| it["records"].as_u64().unwrap())
}

async fn stopped(daemon: Daemon) {
    daemon.terminate();
    assert!(daemon.ended(SOON).await.success());
}

/// Starts and stops the server until nothing is left to erase.
async fn erased(home: &Home, wanted: &BTreeSet<String>) {
    let end = async {
        loop {
            let daemon = home.start().await;
            left(home, wanted).await;
            stopped(daemon).await;
            if records(home, "deleted").await == 0 {
                return;
            }
        }
    };
    timeout(SOON, end).await.expect("it comes to an end");
}

/// Two sessions with contents; one of them is long enough to be erased in several rounds.
async fn two_sessions() -> (Home, Vec<Entry>, Vec<Entry>) {
    let home = Home::new();
    let daemon = home.start().await;
    let tools = "tool a\n".repeat(70);
    let long = format!("tool-big 100KiB\n{tools}tool-big 100KiB\n{tools}tool-big 100KiB");
    run(&daemon, "long", &long).await;
    run(&daemon, "other", "tool-big 100KiB\nsay \"x\"").await;
    let found = (
        entries(&daemon, "long").await,
        entries(&daemon, "other").await,
    );
    stopped(daemon).await;
    (home, found.0, found.1)
}

/// Begins a deletion on a server that is killed in it. Whether it was acknowledged.
async fn killed(home: &Home, place: &str, passes: u32) -> bool {
    let failpoint = format!("{place}={passes}*off->return(kill)");
    let Started::Ready(daemon) = home.try_start(Some(&failpoint)).await else {
        panic!("{failpoint}: {}", home.said());
    };
    let deleted = delete(&daemon, "long").await;
    let status = daemon.ended(SOON).await;
    assert_eq!(status.signal(), Some(9), "{failpoint}: {}", home.said());
    deleted.is_ok()
}

#[tokio::test]
async fn c39_c44_b54_a_server_that_is_killed_within_a_deletion_leaves_no_damage_and_goes_on() {
    let (made, long, other) = two_sessions().await;
    assert!(
        long.len() > 128,
        "{} entries are erased at once",
        long.len()
    );
    let kept: BTreeSet<String> = named_contents(&other).into_iter().collect();
    for (place, passes) in KILLS {
        let case = format!("{place} after {passes}");
        let home = Home::new();
        copy(&made.data_dir(), &home.data_dir());
        let acknowledged = killed(&home, place, passes).await;
        is_whole(&home, &case).await;
        let daemon = home.start().await;
        let client = daemon.client();
        let found = client.get_session(named("long"), CallOptions::default());
        match found.await {
            Ok(_) => {
                assert!(!acknowledged, "{case}: it came back");
                assert_eq!(entries(&daemon, "long").await, long, "{case}");
                assert_eq!(delete(&daemon, "long").await, Ok(DeleteAnswer::Deleted));
            }
            Err(error) => assert_eq!(error.reason, Reason::NoSuchSession, "{case}"),
        }
        left(&home, &kept).await;
        assert_eq!(entries(&daemon, "other").await, other, "{case}");
        // Its name is free.
        run(&daemon, "long", "say \"new\"").await;
        stopped(daemon).await;
        erased(&home, &kept).await;
        is_whole(&home, &case).await;
        assert_eq!(records(&home, "session").await, 2, "{case}");
        assert_eq!(records(&home, "entry").await, other.len() as u64 + 2);
        assert_eq!(records(&home, "run").await, 2, "{case}");
    }
}

/// The contents that its neighbours name go; what a damaged entry named nobody knows any more.
#[tokio::test]
async fn b54_a_damaged_entry_keeps_no_other_content_of_a_deleted_session() {
    let (home, long, other) = two_sessions().await;
    let names = |entry: &&Entry| !named_contents(std::slice::from_ref(entry)).is_empty();
    let neighbour = long.iter().filter(names).nth(1).unwrap().id;
    let seq = neighbour.seq + 1;
    let key = [&b"e"[..], &neighbour.session.to_bytes(), &seq.to_be_bytes()].concat();
    let db = sled::open(home.data_dir().join("store")).unwrap();
    assert!(db.insert(key, b"?").unwrap().is_some());
    db.flush().unwrap();
    drop(db);
    let daemon = home.start().await;
    assert_eq!(delete(&daemon, "long").await, Ok(DeleteAnswer::Deleted));
    let kept = named_contents(&other).into_iter().collect();
    left(&home, &kept).await;
    stopped(daemon).await;
    erased(&home, &kept).await;
}

/// A session whose content cannot be removed waits; one that was deleted after it does not.
#[tokio::test]
async fn b54_a_content_that_cannot_be_removed_is_in_no_other_sessions_way() {
    let (home, long, other) = two_sessions().await;
    let stuck = named_contents(&long).remove(0);
    let file = place(&home, &stuck);
    fs::rename(&file, home.path().join("aside")).unwrap();
    // What is no file cannot be removed as one.
    fs::create_dir(&file).unwrap();
    let daemon = home.start().await;
    assert_eq!(delete(&daemon, "long").await, Ok(DeleteAnswer::Deleted));
    home.until_said("is not erased yet").await;
    assert_eq!(delete(&daemon, "other").await, Ok(DeleteAnswer::Deleted));
    left(&home, &BTreeSet::from([stuck.clone()])).await;
    // Its entries go after its contents.
    home.until_said("what a deleted session held is erased")
        .await;
    stopped(daemon).await;
    assert_eq!(records(&home, "deleted").await, 1);
    fs::remove_dir(&file).unwrap();
    fs::rename(home.path().join("aside"), &file).unwrap();
    erased(&home, &BTreeSet::new()).await;
    assert_eq!(records(&home, "entry").await, 0, "{} entries", other.len());
}
