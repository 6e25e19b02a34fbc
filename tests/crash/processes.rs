//! C42: a server that is killed over the processes of its agents. They are dead before the session that
//! they worked for runs again, whatever they do against it, and whoever died with the server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process};
use sessionplane_client::Client;
use sessionplane_client::contract::{
    Agent as _, CallOptions, InvokeEvent, ListEntriesRequest, SessionControl as _,
};
use sessionplane_client::detached;
use sessionplane_client::domain::entry::EntryBody;
use sessionplane_client::domain::ids::{AgentName, SessionName, SessionRef};
use tokio::time::{sleep, timeout};

use crate::daemon::{Home, Started};

const DEADLINE: Duration = Duration::from_secs(60);

/// Ignores what it is asked, in its own session and in others, with and without the mark, and holds
/// what is open. It says the numbers of all, and of the engine.
const HOSTILE: &str = r#"exec 2>/dev/null
echo $PPID
hold() { setsid sh -c 'trap "" TERM HUP INT; echo $$; exec sleep 1000' & }
hold; hold
(hold)
setsid env -i /bin/sh -c 'trap "" TERM; echo $$; exec /bin/sleep 1000' &
sleep 1"#;
const NUMBERS: usize = 5;

/// A home whose agent works in a process of its own.
fn home() -> Home {
    let home = Home::new();
    let (config, work) = (home.path().join("config.toml"), home.path().join("work"));
    fs::create_dir(&work).unwrap();
    let text = fs::read_to_string(&config).unwrap();
    let more = format!(
        "[agents.apart]\nengine = \"scripted-process\"\nworkspace = \"work\"\n\
         require_sandbox = true\n[workspaces.work]\nroot = {work:?}\n"
    );
    fs::write(&config, text + &more).unwrap();
    home
}

fn at() -> SessionRef {
    SessionRef::Name(SessionName::parse("hostile").unwrap())
}

/// Begins a run, and leaves it to itself. Its server may die of it.
async fn begin(client: &Client, scenario: &str) {
    let mut request = detached(at(), scenario.to_owned());
    request.agent = Some(AgentName::parse("apart").unwrap());
    if let Ok(mut stream) = client.invoke(request, CallOptions::default()).await {
        drop(stream.next().await);
    }
}

/// The numbers that the hostile tool says, once it has come back. It does not wait for those that hold
/// its output: the test reads what is in the file that it writes.
async fn hostile(home: &Home, client: &Client) -> Vec<i32> {
    let script = format!("({HOSTILE}) > $TMPDIR/numbers & sleep 1000");
    let script = serde_json::to_string(&script).unwrap();
    begin(client, &format!("sh {script}")).await;
    let told = async {
        loop {
            let numbers = numbers(home);
            if numbers.len() == NUMBERS {
                return numbers;
            }
            // Nothing tells of a file of another process but the file.
            sleep(Duration::from_millis(10)).await;
        }
    };
    let pids = timeout(DEADLINE, told).await.expect("it says all of them");
    assert!(pids.iter().all(|pid| runs(*pid)), "{pids:?}");
    pids
}

/// What the program wrote into the folder that it has for itself.
fn numbers(home: &Home) -> Vec<i32> {
    let folders = fs::read_dir(home.path().join("tmp")).into_iter().flatten();
    let texts = folders.map(|folder| fs::read_to_string(folder.unwrap().path().join("numbers")));
    let texts: String = texts.filter_map(Result::ok).collect();
    texts.lines().filter_map(|line| line.parse().ok()).collect()
}

fn stat(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

fn runs(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

async fn all_gone(pids: &[i32]) {
    let gone = async {
        while pids.iter().any(|pid| runs(*pid)) {
            // No event tells of the end of a process that is not a child.
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, gone).await.expect("they end");
}

/// The server's temporary folder is the home's: so that what is left in it can be told.
fn own_temporary(home: Home) -> Home {
    let folder = home.path().join("tmp");
    fs::create_dir(&folder).unwrap();
    home.under(vec![("TMPDIR", folder)], || ())
}

fn nothing_is_left(home: &Home) {
    for folder in ["tmp", "data/processes"] {
        let left = fs::read_dir(home.path().join(folder)).unwrap().count();
        assert_eq!(left, 0, "{folder}");
    }
}

/// The session takes a run, and its engine answers.
async fn works_again(home: &Home) {
    let daemon = home.start().await;
    let client = daemon.client();
    let request = detached(at(), "sh \"echo back\"".to_owned());
    let stream = client.invoke(request, CallOptions::default()).await;
    let last = stream.unwrap().collect::<Vec<_>>().await.pop();
    assert!(
        matches!(last, Some(Ok(InvokeEvent::Completed { .. }))),
        "{last:?}"
    );
    let request = ListEntriesRequest {
        session: at(),
        since: None,
        page_size: 500,
    };
    let page = client.list_entries(request, CallOptions::default()).await;
    let is_back = |body: &EntryBody| matches!(body, EntryBody::Tool { output, .. } if &*output.text == "back\n");
    let entries = page.unwrap().entries;
    assert!(
        entries.iter().any(|entry| is_back(&entry.body)),
        "{entries:?}"
    );
    daemon.terminate();
    assert!(daemon.ended(DEADLINE).await.success());
    nothing_is_left(home);
}

#[tokio::test]
async fn c42_the_processes_of_a_server_that_is_killed_end_with_it() {
    let home = own_temporary(home());
    let daemon = home.start().await;
    let pids = hostile(&home, &daemon.client()).await;
    daemon.kill().await;
    // Nobody starts another one: their supervisor hears that the server is gone.
    all_gone(&pids).await;
    works_again(&home).await;
}

/// The supervisor is stopped, so that it hears nothing; nothing but the next start can end them.
#[tokio::test]
async fn c42_processes_that_outlived_a_killed_server_are_dead_before_the_next_one_takes_calls() {
    let home = own_temporary(home());
    let daemon = home.start().await;
    let pids = hostile(&home, &daemon.client()).await;
    // The first that the tool says is the engine itself.
    let (_, supervisor) = stat(pids[0]).expect("the engine runs");
    signal(supervisor, Signal::STOP);
    daemon.kill().await;
    // The engine heeds the end of its input; the others do not.
    assert!(pids[1..].iter().all(|pid| runs(*pid)), "{pids:?}");
    let next = home.start().await;
    let left: Vec<_> = pids.iter().filter(|pid| runs(**pid)).collect();
    assert!(left.is_empty(), "{left:?} of {pids:?}");
    assert!(!runs(supervisor));
    next.kill().await;
    works_again(&home).await;
}

/// Killed between the note and the program: nothing was executed, and what was noted is dead.
#[tokio::test]
async fn c42_a_server_that_dies_before_a_program_is_executed_leaves_nothing_of_it() {
    let home = own_temporary(home());
    let failpoint = "process_host::noted=return(kill)";
    let Started::Ready(daemon) = home.try_start(Some(failpoint)).await else {
        panic!("it starts: {}", home.said());
    };
    begin(&daemon.client(), "sh \"echo done > $TMPDIR/numbers\"").await;
    assert!(!daemon.ended(DEADLINE).await.success());
    let notes = fs::read_dir(home.path().join("data/processes"))
        .unwrap()
        .count();
    assert_eq!(notes, 1, "it is on the disk before the program is executed");
    assert_eq!(numbers(&home), [0; 0]);
    works_again(&home).await;
}

/// Killed where the temporary folder is there and nothing runs yet, and where it is gone and the note is
/// not: the next start finds what is left.
#[tokio::test]
async fn c42_no_temporary_folder_is_left_wherever_a_server_is_killed() {
    for (place, folders) in [("process_host::made", 1), ("process_host::cleared", 0)] {
        let home = own_temporary(home());
        let failpoint = format!("{place}=return(kill)");
        let Started::Ready(daemon) = home.try_start(Some(&failpoint)).await else {
            panic!("it starts: {}", home.said());
        };
        begin(&daemon.client(), "say \"done\"").await;
        assert!(!daemon.ended(DEADLINE).await.success());
        let count = |folder: &str| fs::read_dir(home.path().join(folder)).unwrap().count();
        assert_eq!(
            (count("tmp"), count("data/processes")),
            (folders, 1),
            "{place}"
        );
        home.start().await.kill().await;
        nothing_is_left(&home);
        works_again(&home).await;
    }
}

/// C63: an orderly stop ends them too.
#[tokio::test]
async fn c42_c63_an_orderly_stop_leaves_no_process() {
    let home = own_temporary(home());
    let daemon = home.start().await;
    let pids = hostile(&home, &daemon.client()).await;
    daemon.terminate();
    assert!(daemon.ended(DEADLINE).await.success());
    assert!(!pids.iter().any(|pid| runs(*pid)), "{pids:?}");
    nothing_is_left(&home);
    works_again(&home).await;
}

/// A ruleset of files does not keep a tool from a socket that has a path: the server that listens there
/// must not take it for somebody who can read the data directory.
#[tokio::test]
async fn c57_a_tool_that_reaches_the_socket_for_backups_is_given_none() {
    let home = own_temporary(home());
    let daemon = home.start().await;
    let work = home.path().join("work");
    fs::copy(std::env::current_exe().unwrap(), work.join("asker")).unwrap();
    let socket = home.data_dir().join("backup.sock");
    let socket = socket.to_str().unwrap();
    let script = format!(
        "{SOCKET}={socket} ./asker --exact processes::asks_for_backups_where_it_is_told_to --nocapture"
    );
    let script = serde_json::to_string(&script).unwrap();
    let mut request = detached(at(), format!("sh {script}"));
    request.agent = Some(AgentName::parse("apart").unwrap());
    let client = daemon.client();
    let stream = client.invoke(request, CallOptions::default()).await;
    stream.unwrap().collect::<Vec<_>>().await;
    let request = ListEntriesRequest {
        session: at(),
        since: None,
        page_size: 500,
    };
    let page = client.list_entries(request, CallOptions::default()).await;
    let said = page
        .unwrap()
        .entries
        .into_iter()
        .find_map(|it| match it.body {
            EntryBody::Tool { output, .. } => Some(output.text.clone()),
            _ => None,
        });
    let said = said.expect("the tool came back");
    assert_eq!(said.matches("ANSWER").count(), ASKED.len(), "{said}");
    let given: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("ANSWER") && !line.contains("refused"))
        .collect();
    assert!(given.is_empty(), "{given:?}");
}

/// Where the asker finds the socket.
const SOCKET: &str = "SESSIONPLANE_TEST_BACKUP_SOCKET";
/// What it asks for: as an earlier version did, and with a proof that it does not have.
const ASKED: [&str; 2] = [
    "backup 1\n",
    "backup 2 0000000000000000000000000000000000000000000000000000000000000000\n",
];

/// Does its work only where the test above has started it.
#[test]
fn asks_for_backups_where_it_is_told_to() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixStream;
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    for asked in ASKED {
        let mut answer = String::new();
        match UnixStream::connect(&socket) {
            Ok(mut stream) => {
                stream.write_all(asked.as_bytes()).unwrap();
                BufReader::new(stream).read_line(&mut answer).unwrap();
            }
            // A later edition of Landlock.
            Err(error) => answer = format!("refused: {error}\n"),
        }
        print!("ANSWER {answer}");
    }
}

/// The system keeps a file's content from an agent, not its mode.
#[tokio::test]
async fn c57_what_an_agent_opens_of_the_data_directory_is_closed_again_and_the_next_start_goes_on()
{
    let home = home();
    let daemon = home.start().await;
    let data = home.data_dir();
    let private = ["owner.token", "digest.key"].map(|name| data.join(name));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let modes = || [mode(&data), mode(&private[0]), mode(&private[1])];
    let opened = format!(
        "cd {} && chmod 644 {} digest.key; chmod 755 .",
        data.display(),
        "owner.token"
    );
    let opened = serde_json::to_string(&opened).unwrap();
    begin(&daemon.client(), &format!("sh {opened}")).await;
    for path in &private {
        home.until_said(&format!("file={}", path.display())).await;
    }
    home.until_said("is closed to others again").await;
    let closed = async {
        while modes() != [0o700, 0o600, 0o600] {
            // Nothing tells of a file's mode but the file.
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, closed).await.expect("it is closed again");
    assert!(home.said().contains("MAY HAVE READ it"), "{}", home.said());

    // Also what is opened at the very last: nobody is left to open it once more.
    daemon.terminate();
    for path in &private {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    daemon.ended(DEADLINE).await;
    assert_eq!(modes(), [0o700, 0o600, 0o600], "{}", home.said());
    home.start().await;
}
