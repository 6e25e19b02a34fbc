//! The real server, as a process: started, killed, stopped and looked at from outside.
//!
//! What must never enter: what a test expects of what the server says.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sessionplane_client::{Backoff, Client, ClientOptions, Token};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// How long a start may take on a machine that is busy with other tests.
const START: Duration = Duration::from_secs(60);
/// How long a process that was killed or has refused to start may take to be gone.
const END: Duration = Duration::from_secs(30);

const CONFIG: &str = r#"
default_agent = "scripted"
[agents.scripted]
engine = "scripted"
[drain]
deadline_seconds = 1
[limits]
cancel_grace_seconds = 1
rejoin_grace_seconds = 1
abort_grace_seconds = 1
heartbeat_seconds = 1
idle_seconds = 1
"#;

/// The server's binary, with failpoints in it.
pub(crate) fn sessiond() -> PathBuf {
    static CHECKED: OnceLock<PathBuf> = OnceLock::new();
    CHECKED.get_or_init(checked).clone()
}

fn checked() -> PathBuf {
    let build = "run `cargo build --workspace --bins --features sessionplane-server/failpoints`";
    let here = std::env::current_exe().unwrap();
    let binary = here
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("sessiond");
    assert!(binary.exists(), "{} is missing: {build}", binary.display());
    // A failpoint that kills at the first step; without failpoints the missing file is an error.
    let probe = std::process::Command::new(&binary)
        .args(["--config", "/nonexistent/sessionplane.toml"])
        .env("FAILPOINTS", "process::beginning=return(kill)")
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(
        probe.code().is_none(),
        "{} was built without failpoints: {build}",
        binary.display()
    );
    binary
}

/// A data directory and what goes with it, for any number of starts.
pub(crate) struct Home {
    dir: TempDir,
    under: Option<Under>,
}

/// What the processes of a home run under.
struct Under {
    environment: Vec<(&'static str, PathBuf)>,
    /// Done before each of them starts, when the one before is gone.
    between: Box<dyn Fn() + Send + Sync>,
}

/// How a tool ended.
#[derive(Debug)]
#[allow(dead_code, reason = "only some suites have a use for it")]
pub(crate) struct Told {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// How a start went.
#[expect(
    clippy::large_enum_variant,
    reason = "one of them exists per start of a process"
)]
pub(crate) enum Started {
    /// It takes calls.
    Ready(Daemon),
    /// It ended before it did.
    Ended(ExitStatus),
}

/// A running server.
pub(crate) struct Daemon {
    child: Child,
    address: String,
    token: PathBuf,
    stderr: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.toml"), CONFIG).unwrap();
        Self { dir, under: None }
    }

    /// Its processes get these variables, and between two of them something is done.
    #[allow(dead_code, reason = "only some suites have a use for it")]
    pub(crate) fn under(
        mut self,
        environment: Vec<(&'static str, PathBuf)>,
        between: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        self.under = Some(Under {
            environment,
            between: Box::new(between),
        });
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn ready_file(&self) -> PathBuf {
        self.dir.path().join("ready.json")
    }

    /// What the processes of this home have said so far, all starts together.
    pub(crate) fn said(&self) -> String {
        let text = |name: &str| fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        text("stdout") + &text("stderr")
    }

    /// A command that serves this home; its output is kept for [`Self::said`].
    pub(crate) fn command(&self, program: &Path) -> Command {
        let log = |name: &str| {
            let path = self.dir.path().join(name);
            File::options()
                .create(true)
                .append(true)
                .open(path)
                .unwrap()
        };
        let mut command = Command::new(program);
        command
            .stdin(Stdio::null())
            .stdout(log("stdout"))
            .stderr(log("stderr"))
            .env_remove("FAILPOINTS")
            .env("RUST_BACKTRACE", "0")
            // What is freed is given back at once: what is resident is what is in use.
            .env("MIMALLOC_PURGE_DELAY", "0")
            .kill_on_drop(true);
        if let Some(under) = &self.under {
            command.envs(under.environment.iter().map(|(name, value)| (name, value)));
        }
        command
    }

    /// The last process is gone, the next one not yet there.
    fn between(&self) {
        if let Some(under) = &self.under {
            (under.between)();
        }
    }

    /// The flags of this home's server.
    pub(crate) fn flags(&self) -> Vec<String> {
        let path = |path: PathBuf| path.to_str().unwrap().to_owned();
        vec![
            "--listen".into(),
            "127.0.0.1:0".into(),
            "--data-dir".into(),
            path(self.data_dir()),
            "--config".into(),
            path(self.dir.path().join("config.toml")),
            "--ready-file".into(),
            path(self.ready_file()),
        ]
    }

    /// Starts and waits until it takes calls or has ended.
    pub(crate) async fn try_start(&self, failpoints: Option<&str>) -> Started {
        let mut command = self.command(&sessiond());
        command.args(self.flags());
        if let Some(failpoints) = failpoints {
            command.env("FAILPOINTS", failpoints);
        }
        self.launch(command).await
    }

    /// As [`Self::try_start`], for a command that ends in a server of this home.
    pub(crate) async fn launch(&self, mut command: Command) -> Started {
        self.between();
        let _absent = fs::remove_file(self.ready_file());
        let mut child = command.spawn().unwrap();
        let ready = async {
            loop {
                if let Ok(text) = fs::read_to_string(self.ready_file()) {
                    let ready: serde_json::Value = serde_json::from_str(&text).unwrap();
                    return Ok(ready["address"].as_str().unwrap().to_owned());
                }
                if let Some(status) = child.try_wait().unwrap() {
                    return Err(status);
                }
                // Nothing tells of a file of another process but the file.
                sleep(Duration::from_millis(5)).await;
            }
        };
        let started = timeout(START, ready).await;
        let started = started.unwrap_or_else(|_elapsed| {
            panic!("not ready within {START:?}; it said:\n{}", self.said())
        });
        match started {
            Ok(address) => Started::Ready(self.daemon(child, address)),
            Err(status) => Started::Ended(status),
        }
    }

    /// Begins a start that does not get to take calls, and waits until it is under way.
    pub(crate) async fn begin(&self, failpoints: &str) -> Daemon {
        let mut command = self.command(&sessiond());
        command.args(self.flags()).env("FAILPOINTS", failpoints);
        let daemon = self.daemon(command.spawn().unwrap(), String::new());
        let begun = async {
            // Made when it already listens to signals.
            while !self.data_dir().exists() {
                // Nothing tells of a directory of another process but the directory.
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(START, begun).await.expect("it begins");
        daemon
    }

    fn daemon(&self, child: Child, address: String) -> Daemon {
        Daemon {
            child,
            address,
            token: self.data_dir().join("owner.token"),
            stderr: self.dir.path().join("stderr"),
        }
    }

    /// Waits until the processes of this home have said something.
    pub(crate) async fn until_said(&self, what: &str) {
        let said = async {
            while !self.said().contains(what) {
                // Nothing tells of a file of another process but the file.
                sleep(Duration::from_millis(5)).await;
            }
        };
        let told = timeout(END, said).await;
        told.unwrap_or_else(|_elapsed| panic!("no {what:?} in:\n{}", self.said()));
    }

    /// Runs `sessiond store` with arguments; gives its status and what it said, standard output and
    /// standard error apart.
    #[allow(dead_code, reason = "only some suites have a use for it")]
    pub(crate) async fn store_tool(&self, data_dir: &Path, arguments: &[&str]) -> Told {
        self.between();
        let mut command = self.store_command(data_dir, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = timeout(START, command.output()).await;
        let output = output.expect("the tool ends").unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Told {
            status: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// The command of such a run.
    #[allow(dead_code, reason = "only some suites have a use for it")]
    pub(crate) fn store_command(&self, data_dir: &Path, arguments: &[&str]) -> Command {
        let mut command = self.command(&sessiond());
        command
            .arg("store")
            .args(arguments)
            .arg("--data-dir")
            .arg(data_dir)
            .env_remove("SESSIONPLANE_CONFIG");
        command
    }

    /// Starts; anything but a server that takes calls is a failure.
    pub(crate) async fn start(&self) -> Daemon {
        match self.try_start(None).await {
            Started::Ready(daemon) => daemon,
            Started::Ended(status) => panic!("did not start: {status}; it said:\n{}", self.said()),
        }
    }

    /// Runs a server that is to refuse; gives its status and what it said.
    pub(crate) async fn refused(&self, data_dir: &Path) -> (ExitStatus, String) {
        let mut command = self.command(&sessiond());
        command
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = timeout(END, command.output()).await;
        let output = output.expect("it neither refused nor ended").unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status, String::from_utf8_lossy(&said).into_owned())
    }
}

impl Daemon {
    /// A client of its own connection, which tries everything once: a test judges each attempt.
    pub(crate) fn client(&self) -> Client {
        self.client_at(self.socket())
    }

    /// As [`Self::client`], by way of another address.
    pub(crate) fn client_at(&self, address: SocketAddr) -> Client {
        let mut options = ClientOptions::new(format!("http://{address}").parse().unwrap())
            .token(Token::from_file(&self.token).unwrap());
        options.retry = Backoff {
            attempts: 1,
            ..Backoff::CALLS
        };
        Client::connect(options).unwrap()
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> SocketAddr {
        let (_scheme, place) = self.address.split_once("://").unwrap();
        place.parse().unwrap()
    }

    /// Its address, as clients take it.
    #[allow(dead_code, reason = "most suites speak to sockets")]
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The file with its owner's token.
    #[allow(dead_code, reason = "only some suites have a use for it")]
    pub(crate) fn token_file(&self) -> &Path {
        &self.token
    }

    /// Its process.
    #[allow(dead_code, reason = "only some suites have a use for it")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("it is not waited for yet")
    }

    /// The bytes of it that are in memory.
    #[allow(dead_code, reason = "the crash suite has no use for it")]
    pub(crate) fn resident(&self) -> usize {
        let pid = self.child.id().expect("it is not waited for yet");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let kib = status.lines().find_map(|line| {
            let kib = line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?;
            kib.parse::<usize>().ok()
        });
        kib.expect("a process has a size") * 1024
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) async fn kill(mut self) {
        self.child.start_kill().unwrap();
        self.child.wait().await.unwrap();
    }

    /// Asks for an orderly end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends it any signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().expect("it is not waited for yet")).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(mut self, within: Duration) -> ExitStatus {
        let status = timeout(within, self.child.wait()).await;
        let status = status.unwrap_or_else(|_elapsed| {
            let said = fs::read_to_string(&self.stderr).unwrap_or_default();
            panic!("still there after {within:?}; it said:\n{said}")
        });
        status.unwrap()
    }
}
