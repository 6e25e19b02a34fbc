//! The servers under test: started as processes of their own, on fresh data, and ended with their
//! handle.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use crate::Outcome;

/// How long a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// What the benchmarked `sessiond` is told: queues that never fill, and a ring that a client on a
/// busy machine is not lapped in.
const CONFIG: &str = r#"
default_agent = "scripted"
[agents.scripted]
engine = "scripted"
[limits]
max_pending_inputs = 10000000
beyond_ranges = true
[log]
filter = "warn"
"#;

/// A running server. Dropping it kills the process and removes its data.
pub(crate) struct Server {
    child: Child,
    /// `http://ADDRESS:PORT`.
    pub(crate) address: String,
    /// The owner token; empty for a floor.
    pub(crate) token: String,
    /// The authority of its certificate, PEM, if it speaks TLS.
    pub(crate) authority: Option<String>,
    /// What goes with it, unless its home stays.
    data: Option<TempDir>,
}

/// How `sessiond` is started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// As it is bound to the machine itself by default.
    Plain,
    /// With a certificate of an authority that is made for it.
    Tls,
}

impl Server {
    /// Starts the floor: this very program in another role.
    pub(crate) fn floor(state: &[u8], event: &[u8]) -> Outcome<Self> {
        let data = data_dir()?;
        fs::write(data.path().join("state"), state)?;
        fs::write(data.path().join("event"), event)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("floor").arg(data.path());
        let ready = data.path().join("ready");
        let (child, address) = start(&mut command, &ready)?;
        let address = address.trim().to_owned();
        Ok(Self {
            child,
            address,
            token: String::new(),
            authority: None,
            data: Some(data),
        })
    }

    /// Starts the release build of `sessiond` on a fresh data directory.
    pub(crate) fn sessiond(wire: Wire) -> Outcome<Self> {
        let home = Home::new(wire)?;
        let mut server = home.start()?;
        server.data = Some(home.directory);
        Ok(server)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The CPU time that each thread of the server has used so far.
    ///
    /// From `schedstat`, in nanoseconds: `utime` and `stime` in `stat` are the same time in steps
    /// of 10 ms, which is more than some rounds use in all.
    pub(crate) fn cpu(&self) -> Outcome<Cpu> {
        let mut threads = HashMap::new();
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let path = thread?.path();
            // A thread that ends meanwhile has been idle for seconds.
            let Ok(text) = fs::read_to_string(path.join("schedstat")) else {
                continue;
            };
            let used = text.split(' ').next().and_then(|first| first.parse().ok());
            threads.insert(path, used.ok_or("schedstat is not readable here")?);
        }
        Ok(Cpu(threads))
    }
}

/// A data directory of `sessiond` and what goes with it, for any number of starts.
pub(crate) struct Home {
    directory: TempDir,
    authority: Option<String>,
}

impl Home {
    /// A fresh one.
    pub(crate) fn new(wire: Wire) -> Outcome<Self> {
        let directory = data_dir()?;
        let mut config = CONFIG.to_owned();
        let authority = match wire {
            Wire::Plain => None,
            Wire::Tls => {
                let authority = certify(directory.path())?;
                config.push_str("[tls]\n");
                for file in ["cert", "key"] {
                    let path = directory.path().join(file).with_extension("pem");
                    writeln!(config, "{file}_file = {:?}", path.display().to_string())?;
                }
                Some(authority)
            }
        };
        fs::write(directory.path().join("config.toml"), config)?;
        Ok(Self {
            directory,
            authority,
        })
    }

    /// Where `sessiond` keeps its data.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Starts the release build, which gives back at once what memory it frees: its size says what
    /// it uses.
    pub(crate) fn start_lean(&self) -> Outcome<Server> {
        self.launch(&[("MIMALLOC_PURGE_DELAY", "0")])
    }

    /// Starts the release build.
    pub(crate) fn start(&self) -> Outcome<Server> {
        self.launch(&[])
    }

    fn launch(&self, environment: &[(&str, &str)]) -> Outcome<Server> {
        let binary = release_dir()?.join("sessiond");
        if !binary.exists() {
            let build = "cargo build --release -p sessionplane-server";
            return Err(format!("{} is not built; run `{build}`", binary.display()).into());
        }
        let ready = self.directory.path().join("ready");
        // That of an earlier start says nothing of this one.
        if ready.exists() {
            fs::remove_file(&ready)?;
        }
        let mut command = Command::new(binary);
        command.args(["--listen", "127.0.0.1:0", "--config"]);
        command.arg(self.directory.path().join("config.toml"));
        command.arg("--ready-file").arg(&ready);
        command.arg("--data-dir").arg(self.data());
        command.envs(environment.iter().copied());
        let (child, told) = start(&mut command, &ready)?;
        let told: serde_json::Value = serde_json::from_str(&told)?;
        let address = told["address"]
            .as_str()
            .ok_or("the ready file names no address")?;
        let token = fs::read_to_string(self.data().join("owner.token"))?;
        Ok(Server {
            child,
            address: address.to_owned(),
            token: token.trim().to_owned(),
            authority: self.authority.clone(),
            data: None,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already; either way it is waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time by thread.
pub(crate) struct Cpu(HashMap<PathBuf, u64>);

impl Cpu {
    /// Seconds used since an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> f64 {
        let used = self
            .0
            .iter()
            .map(|(thread, now)| now.saturating_sub(earlier.0.get(thread).copied().unwrap_or(0)));
        Duration::from_nanos(used.sum()).as_secs_f64()
    }
}

/// A directory beside the build, so that data lies on the same device as everything else.
pub(crate) fn data_dir() -> Outcome<TempDir> {
    Ok(tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(release_dir()?)?)
}

/// Where release builds are: this program is one directory below.
pub(crate) fn release_dir() -> Outcome<PathBuf> {
    let program = std::env::current_exe()?;
    let directory = program.parent().and_then(Path::parent);
    Ok(directory
        .ok_or("this program lies in no directory")?
        .to_owned())
}

/// A certificate for this machine in a directory, as the configuration names it; gives its authority.
fn certify(directory: &Path) -> Outcome<String> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let cert = CertificateParams::new(names)?.signed_by(&key, &authority)?;
    fs::write(directory.join("cert.pem"), cert.pem())?;
    let path = directory.join("key.pem");
    fs::write(&path, key.serialize_pem())?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(authority.pem())
}

fn start(command: &mut Command, ready: &Path) -> Outcome<(Child, String)> {
    let mut child = command.stdout(Stdio::null()).spawn()?;
    for _ in 0..START_WITHIN.as_millis() / POLL.as_millis() {
        if let Some(status) = child.try_wait()? {
            return Err(format!("{command:?} ended with {status}").into());
        }
        match fs::read_to_string(ready) {
            Ok(told) => return Ok((child, told)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => sleep(POLL),
            Err(error) => return Err(error.into()),
        }
    }
    child.kill()?;
    child.wait()?;
    Err(format!("{command:?} was not ready in time").into())
}
