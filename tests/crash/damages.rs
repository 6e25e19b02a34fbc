//! A flipped bit and a lost end in every file that a real data directory holds, whatever those are: a
//! start refuses by name or serves the truth, and so do the tools.
//!
//! `SESSIONPLANE_DAMAGED_PLACES` is the number of places in each file (2).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_client::contract::{
    Agent as _, CallOptions, InvokeEvent, ListEntriesRequest, SessionControl as _,
};
use sessionplane_client::detached;
use sessionplane_client::domain::entry::Entry;
use sessionplane_client::domain::ids::{SessionName, SessionRef};
use tokio::time::timeout;

use crate::daemon::{Daemon, Home, Started, sessiond};

const SESSIONS: [&str; 2] = ["rests", "cut"];
const SOON: Duration = Duration::from_secs(60);

/// What is to be said of damage in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A part of the database: told or harmless.
    Database,
    /// Told at the start, whatever is damaged in it.
    Start,
    /// Told by `verify`, whatever is damaged in it; the server refuses the content alone.
    Content,
    /// Nothing of the store: told or harmless, its owners' tests say which.
    Secret,
    /// Nothing is read in it.
    Empty,
}

/// Every file that a server makes has its place here. One that has none fails the test.
fn kind(name: &str) -> Kind {
    match name {
        // Of settings of a few bytes sled makes new ones, which are the same.
        "store/db" | "store/acknowledged" | "store/conf" => Kind::Database,
        name if name.starts_with("store/snap.") => Kind::Database,
        "digest.key" | "audit.key" => Kind::Start,
        name if name.starts_with("artifacts/") => Kind::Content,
        // The public key is written anew where it is another.
        "owner.token" | "tokens.json" | "audit.pub" => Kind::Secret,
        "store/lock" | "tokens.lock" | "backup.sock" | "checkpoints.jsonl" => Kind::Empty,
        name => panic!("nobody has said what damage in {name} does"),
    }
}

fn places() -> usize {
    let setting = std::env::var("SESSIONPLANE_DAMAGED_PLACES");
    setting.map_or(2, |text| text.parse().expect("it is a number"))
}

/// A data directory with one of everything.
async fn busy() -> Home {
    let home = Home::new();
    let config = home.path().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let principal = "[identity.principals.ci]\nkind = \"service\"\n";
    fs::write(&config, text + principal).unwrap();
    let mut command = home.command(&sessiond());
    command.args(["token", "create", "--principal", "ci", "--config"]);
    command.arg(&config).arg("--data-dir").arg(home.data_dir());
    assert!(
        command
            .stdout(Stdio::null())
            .status()
            .await
            .unwrap()
            .success()
    );
    let daemon = home.start().await;
    // An output that no entry holds, and runs enough for more than a page of the database.
    run(&daemon, "rests", "tool-big 300KiB\nsay \"done\"", true).await;
    for n in 0..20 {
        run(&daemon, "rests", &format!("big {n}KiB\nsay \"more\""), true).await;
    }
    run(&daemon, "cut", "say \"x\"\nhang", false).await;
    daemon.kill().await;
    // Settles what was cut, and begins with a snapshot of the log.
    home.start().await.kill().await;
    home
}

async fn run(daemon: &Daemon, name: &str, prompt: &str, to_its_end: bool) {
    let at = SessionRef::Name(SessionName::parse(name).unwrap());
    let request = detached(at, prompt.to_owned());
    let client = daemon.client();
    let mut stream = client
        .invoke(request, CallOptions::default())
        .await
        .unwrap();
    loop {
        let event = timeout(SOON, stream.next()).await.expect("it goes on");
        match event.expect("it ends with a terminal").unwrap() {
            InvokeEvent::Accepted { .. } if !to_its_end => return,
            InvokeEvent::Completed { .. } => return,
            event => assert!(!event.is_terminal(), "{event:?}"),
        }
    }
}

/// All entries of a session, or why there are none.
async fn entries(daemon: &Daemon, name: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let request = ListEntriesRequest {
            session: SessionRef::Name(SessionName::parse(name).unwrap()),
            since: entries.last().map(|entry| entry.id.to_string()),
            page_size: 500,
        };
        let page = daemon
            .client()
            .list_entries(request, CallOptions::default())
            .await
            .map_err(|error| format!("{error:?}"))?;
        entries.extend(page.entries);
        if !page.has_more {
            return Ok(entries);
        }
    }
}

/// The files of a directory, by their names in it. Of what is no file, nothing: a socket.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut rooms) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(room) = rooms.pop() {
        for entry in fs::read_dir(room).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                rooms.push(path);
                continue;
            }
            let content = if kind.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            found.insert(name.to_owned(), content);
        }
    }
    found
}

/// A directory as it was, with its modes.
struct Image(tempfile::TempDir);

impl Image {
    fn of(root: &Path) -> Self {
        let kept = tempfile::tempdir().unwrap();
        copy(root, &kept.path().join("data"));
        Self(kept)
    }

    /// Puts it back, with one file as it is told here.
    fn restore(&self, root: &Path, name: &str, content: &[u8]) {
        fs::remove_dir_all(root).unwrap();
        copy(&self.0.path().join("data"), root);
        let path = root.join(name);
        let mode = fs::metadata(&path).map(|found| found.permissions());
        fs::write(&path, content).unwrap();
        if let Ok(mode) = mode {
            fs::set_permissions(&path, mode).unwrap();
        }
    }
}

/// A directory with all that is in it but sockets.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, target) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Some flipped bits and some lost ends of a file; of an empty one, something where nothing was.
fn damages(content: &[u8]) -> Vec<(String, Vec<u8>)> {
    let used = content.iter().rposition(|byte| *byte != 0);
    let Some(used) = used else {
        return vec![("something in it".to_owned(), b"x".to_vec())];
    };
    let mut damages = Vec::new();
    for n in 0..places() {
        let at = used * (2 * n + 1) / (2 * places());
        let mut flipped = content.to_vec();
        flipped[at] ^= 1 << (n % 7);
        damages.push((format!("a flipped bit at {at}"), flipped));
        damages.push((format!("cut at {at}"), content[..at].to_vec()));
    }
    damages.push(("empty".to_owned(), Vec::new()));
    damages
}

/// What a whole directory has, and what it says.
struct Truth {
    entries: Vec<Vec<Entry>>,
    records: Vec<String>,
}

#[tokio::test]
async fn b54_no_damage_in_any_file_of_a_data_directory_is_taken_for_the_truth() {
    let home = busy().await;
    let root = home.data_dir();
    let image = Image::of(&root);
    let found = files(&root);
    let daemon = home.start().await;
    let mut truth = Truth {
        entries: Vec::new(),
        records: Vec::new(),
    };
    for name in SESSIONS {
        truth.entries.push(entries(&daemon, name).await.unwrap());
    }
    daemon.kill().await;
    truth.records = records(&home).await.expect("it is whole");
    let has = |kind_wanted| found.keys().any(|name| kind(name) == kind_wanted);
    for wanted in [Kind::Database, Kind::Start, Kind::Content, Kind::Secret] {
        assert!(has(wanted), "{wanted:?} in {:?}", found.keys());
    }
    let (mut tried, mut refused) = (0, 0);
    for (name, content) in &found {
        for (what, damaged) in damages(content) {
            let case = format!("{name}, {what}");
            image.restore(&root, name, &damaged);
            let whole = records(&home).await;
            if let Some(records) = &whole {
                assert!(*records == truth.records, "{case}: taken for whole");
            }
            let content = kind(name) == Kind::Content;
            assert!(!content || whole.is_none(), "{case}: not told");
            image.restore(&root, name, &damaged);
            let started = starts(&home, &truth, &case).await;
            assert!(kind(name) != Kind::Start || !started, "{case}: not told");
            tried += 1;
            refused += usize::from(!started);
        }
    }
    println!("{refused} of {tried} starts were refused");
}

/// What the tools export of what they call whole; nothing if they name what is not.
async fn records(home: &Home) -> Option<Vec<String>> {
    let told = home.store_tool(&home.data_dir(), &["verify"]).await;
    if told.status != Some(0) {
        // A status of its own is a panic's.
        assert_eq!(told.status, Some(1), "{told:?}");
        assert!(told.out.contains("not whole"), "{told:?}");
        return None;
    }
    let told = home.store_tool(&home.data_dir(), &["export"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let lines: Vec<String> = told.out.lines().map(str::to_owned).collect();
    Some(lines[1..lines.len() - 1].to_vec())
}

/// Whether a server starts. One that does tells the truth, or what it cannot read; one that does not
/// says why.
async fn starts(home: &Home, truth: &Truth, case: &str) -> bool {
    for log in ["stdout", "stderr"] {
        fs::write(home.path().join(log), "").unwrap();
    }
    let daemon = match home.try_start(None).await {
        Started::Ready(daemon) => daemon,
        Started::Ended(status) => {
            let said = home.said();
            assert_eq!(status.code(), Some(1), "{case}: {said}");
            let last = said.lines().last().unwrap_or_default();
            let place: PathBuf = home.data_dir();
            let named = last.starts_with("sessiond: ") && last.contains(place.to_str().unwrap());
            assert!(named, "{case}: {said}");
            return false;
        }
    };
    for (name, truth) in SESSIONS.iter().zip(&truth.entries) {
        match entries(&daemon, name).await {
            Ok(entries) => assert!(entries == *truth, "{case}: {name} is another"),
            Err(error) => assert!(error.contains("StoreFailed"), "{case}: {name}: {error}"),
        }
    }
    daemon.kill().await;
    let said = home.said();
    assert!(!said.contains("panicked at"), "{case}: {said}");
    true
}

/// One damaged record refuses the exports and backups of everything; each refusal names the way out,
/// and that names what it leaves out.
#[tokio::test]
async fn b54_what_is_whole_is_exported_out_of_a_damaged_directory_and_what_is_not_is_named() {
    let home = Home::new();
    let daemon = home.start().await;
    for name in SESSIONS {
        run(&daemon, name, "say \"done\"", true).await;
    }
    daemon.kill().await;
    let tool = async |words: &[&str]| home.store_tool(&home.data_dir(), words).await;
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (plain, whole) = (file("plain"), file("whole"));
    let told = tool(&["export", "--to", &plain]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let told = tool(&["export", "--whole", "--to", &whole]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(!told.err.contains("left out"), "{told:?}");
    assert!(fs::read(&plain).unwrap() == fs::read(&whole).unwrap());
    let told = tool(&["export", "--whole", "--session", "x"]).await;
    assert_eq!(told.status, Some(2), "{told:?}");

    damage_a_head(&home.data_dir());
    for words in [
        &["verify"][..],
        &["export"],
        &["backup", "--to", &file("backup")],
    ] {
        let told = tool(words).await;
        assert_eq!(told.status, Some(1), "{told:?}");
        let said = told.out + &told.err;
        assert!(said.contains("`sessiond store export --whole`"), "{said}");
    }
    let (part, fresh) = (file("part"), home.path().join("fresh"));
    let told = tool(&["export", "--whole", "--to", &part]).await;
    assert_eq!(told.status, Some(1), "{told:?}");
    assert!(
        told.err.contains("left out: 1 session that is not"),
        "{told:?}"
    );
    let found = tool(&["verify", "--json"]).await;
    let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    let left_out = found["not_whole"][0].as_str().unwrap();
    let named = format!("  {left_out}: head {left_out}: its checksum does not match");
    assert!(told.err.contains(&named), "{told:?}");
    assert_eq!(found["not_whole"].as_array().unwrap().len(), 1);
    let lines = fs::read_to_string(&part).unwrap();
    assert!(!lines.contains(left_out), "something of it is exported");
    // The whole one is, and only as what it is: no backup of everything.
    let told = home.store_tool(&fresh, &["restore", &part]).await;
    assert_eq!(told.status, Some(2), "{told:?}");
    let told = home.store_tool(&fresh, &["import", &part]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(told.out.contains("whole: 1 session, "), "{told:?}");
}

/// Flips a bit of one session's head, past the server.
fn damage_a_head(data_dir: &Path) {
    let settings = sled::Config::new().path(data_dir.join("store"));
    let db = settings.flush_every_ms(None).open().unwrap();
    let (key, value) = db.scan_prefix(b"h").next().unwrap().unwrap();
    let mut value = value.to_vec();
    *value.last_mut().unwrap() ^= 1;
    db.insert(&key, value).unwrap();
    db.flush().unwrap();
}
