//! A host on a data directory, a workspace beside it, and programs of a shell.
//!
//! What must never enter: what a test expects.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::ids::SessionId;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_server::adapters::boundary::{Access, Boundary};
use sessionplane_server::adapters::clock::{OsEntropy, TokioSpawner};
use sessionplane_server::adapters::process_host::{
    Bounds, Edition, HostError, Order, ProcessHost, Program, Started, Where,
};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

/// How long anything may take on a machine that is busy with other tests.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Waits are short, so that what ignores them is met soon.
pub(crate) const SHORT: Bounds = Bounds {
    start: Duration::from_secs(30),
    input: Duration::from_millis(200),
    terminate: Duration::from_millis(200),
    kill: Duration::from_secs(20),
};

/// The server's binary.
pub(crate) fn sessiond() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let binary = here
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("sessiond");
    assert!(
        binary.exists(),
        "{} is missing: run `cargo build --workspace --bins --features sessionplane-server/failpoints`",
        binary.display()
    );
    binary
}

/// Where programs run.
pub(crate) struct Hall {
    pub(crate) host: ProcessHost,
    pub(crate) dir: TempDir,
    /// What of Landlock the system has, and whether it has filters of calls.
    system: (Edition, bool),
    bounds: Bounds,
}

impl Hall {
    pub(crate) fn new() -> Self {
        Self::within(SHORT)
    }

    pub(crate) fn within(bounds: Bounds) -> Self {
        Self::on(Edition::NEWEST, bounds)
    }

    /// On a system that has no newer Landlock than this.
    pub(crate) fn on(edition: Edition, bounds: Bounds) -> Self {
        Self::with((edition, true), bounds)
    }

    /// On a system that has no filters of calls.
    pub(crate) fn unfiltered() -> Self {
        Self::with((Edition::NEWEST, false), SHORT)
    }

    fn with(system: (Edition, bool), bounds: Bounds) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["data", "work", "other", "tmp"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self {
            host: host(dir.path(), system, bounds),
            dir,
            system,
            bounds,
        }
    }

    /// Another host of the same data directory: what the next server is.
    pub(crate) fn next_host(&self) -> ProcessHost {
        host(self.dir.path(), self.system, self.bounds)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// How many notes and temporary folders there are.
    pub(crate) fn left(&self) -> (usize, usize) {
        let count = |path: PathBuf| fs::read_dir(path).unwrap().count();
        (count(self.path("data/processes")), count(self.path("tmp")))
    }

    /// An order for a shell's program, in the workspace.
    pub(crate) fn shell(&self, script: &str, access: Access) -> Order {
        Order {
            session: session(1),
            program: Program::At("/bin/sh".into()),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: Vec::new(),
            folder: Boundary::open(&self.path("work"), access).unwrap(),
            beside: Vec::new(),
            reads: Vec::new(),
            require_ruleset: true,
        }
    }

    pub(crate) async fn try_start(&self, order: Order) -> Result<Started, HostError> {
        let spawner = TokioSpawner::current();
        let started = timeout(DEADLINE, self.host.start(order, &spawner)).await;
        started.expect("a start is bounded")
    }

    pub(crate) async fn start(&self, order: Order) -> Started {
        let started = self.try_start(order).await;
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    /// What a shell's program says before it ends.
    pub(crate) async fn says(&self, script: &str, access: Access) -> Vec<String> {
        let mut started = self.start(self.shell(script, access)).await;
        let mut lines = Vec::new();
        while let Some(line) = line(&mut started).await {
            lines.push(line);
        }
        lines
    }

    /// Waits until nothing is kept for the session any more.
    pub(crate) async fn gone(&self) {
        let gone = async {
            while self.host.is_kept(session(1)) {
                // The next program of the session would wait for it; this test starts none.
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(DEADLINE, gone).await.expect("it ends");
    }
}

fn host(home: &Path, (edition, filtered): (Edition, bool), bounds: Bounds) -> ProcessHost {
    let place = Where {
        binary: sessiond(),
        data_dir: home.join("data"),
        temporary: home.join("tmp"),
        edition,
        filtered,
    };
    ProcessHost::open(place, bounds, Arc::new(OsEntropy)).unwrap()
}

pub(crate) fn session(number: u128) -> SessionId {
    SessionId::mint(Timestamp::from_millis(1_700_000_000_000), number)
}

/// The next line that a program says.
pub(crate) async fn line(started: &mut Started) -> Option<String> {
    let line = timeout(DEADLINE, started.output.next()).await;
    let line = line.expect("it says something or ends").unwrap();
    line.map(|line| String::from_utf8(line).unwrap())
}

/// The next numbers that a program says, a line each.
pub(crate) async fn numbers(started: &mut Started, count: usize) -> Vec<i32> {
    let mut numbers = Vec::new();
    for _ in 0..count {
        let line = line(started).await.expect("it says more");
        numbers.push(
            line.parse()
                .unwrap_or_else(|_| panic!("{line:?} is no number")),
        );
    }
    numbers
}

/// Tells a program something.
pub(crate) async fn tell(started: &mut Started, text: &str) {
    started.input.write_all(text.as_bytes()).await.unwrap();
}

/// Whether a process runs: one that has ended and waits for its parent does not.
pub(crate) fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Waits until none of them runs.
pub(crate) async fn all_gone(pids: &[i32]) {
    let gone = async {
        while pids.iter().any(|pid| runs(*pid)) {
            // No event tells of the end of a process that is not a child.
            sleep(Duration::from_millis(5)).await;
        }
    };
    let left = || pids.iter().filter(|pid| runs(**pid)).collect::<Vec<_>>();
    timeout(DEADLINE, gone)
        .await
        .unwrap_or_else(|_| panic!("still there: {:?}", left()));
}
