//! A process that makes itself what a program is to run in, and then becomes the program.
//!
//! It is this server's binary, started anew and with one thread, so that everything may be done here
//! that nothing may be done of between a fork and an exec.

use std::fmt::Display;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::iter;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::filter;
use super::handover::{self, Streams};
use super::order::{Plan, Program};
use super::ruleset::{self, Grants, Reach};

/// The word on the command line that stands for it. Nobody types it.
pub const SETUP_VERB: &str = "__set-up";
/// This program.
const OWN: &str = "/proc/self/exe";
/// Descriptors that a program may open, unless it asks for more itself.
const OPEN_FILES: u64 = 1024;
/// Descriptors that it may ask for at most.
const MOST_FILES: u64 = 65_536;

/// What is said before it goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// All is set up; it goes on when it is told to.
    Ready { pid: i32, reach: Reach },
    /// It does not go on.
    Failed(String),
}

/// The word that lets it go on.
pub(super) const GO: &[u8] = b"go\n";

/// Sets up and becomes the program. Returns only where that failed, which was told then.
#[must_use]
pub fn setup(parent: i32) -> ExitCode {
    let Ok(socket) = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(UnixStream::from)
    else {
        return ExitCode::FAILURE;
    };
    match become_it(&socket, parent) {
        Ok(()) => {}
        // Whoever was to hear it may be gone: then the end of this process says it.
        Err(error) => drop(say(&socket, &Said::Failed(error.to_string()))),
    }
    ExitCode::FAILURE
}

fn become_it(socket: &UnixStream, parent: i32) -> io::Result<()> {
    let (plan, streams) = handover::take(socket)?;
    separate(parent).map_err(|error| told("a session of its own", &error))?;
    let Streams {
        input,
        output,
        error,
        folder,
        beside,
    } = streams;
    rustix::process::fchdir(&folder).map_err(|error| told("its folder", &error))?;
    bound_resources()?;
    let mut command = command(&plan);
    let reach = hold(&plan, &folder, &beside)?;
    drop((folder, beside));
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    say(socket, &Said::Ready { pid, reach })?;
    wait_for_go(socket)?;
    take_streams(&input, &output, &error)?;
    // Every other descriptor closes with the exec, the socket too: that says that it went well.
    let error = command.exec();
    Err(told("it cannot be executed", &error))
}

/// Leaves the server's terminal, process group and session, and ends with its supervisor.
fn separate(parent: i32) -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before that was asked for.
    let is_there =
        rustix::process::getppid().is_some_and(|pid| pid.as_raw_nonzero().get() == parent);
    if is_there {
        return Ok(());
    }
    Err(io::Error::other("its supervisor is gone"))
}

/// No dumps of memory into the folder, and as many descriptors as programs expect. They may have no more
/// than half of what this server may have: the system counts those that are being sent by all processes
/// of a user, and lets each send until there are as many as it may have open itself.
fn bound_resources() -> io::Result<()> {
    let own = getrlimit(Resource::Nofile).maximum;
    let most = own.map_or(MOST_FILES, |own| (own / 2).min(MOST_FILES));
    let files = Rlimit {
        current: Some(most.min(OPEN_FILES)),
        maximum: Some(most),
    };
    setrlimit(Resource::Nofile, files)?;
    let dumps = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(setrlimit(Resource::Core, dumps)?)
}

fn program(plan: &Plan) -> &Path {
    match &plan.program {
        Program::Own => Path::new(OWN),
        Program::At(path) => path,
    }
}

fn command(plan: &Plan) -> Command {
    let mut command = Command::new(program(plan));
    command.args(&plan.arguments).env_clear();
    command.envs(plan.environment.iter().map(|(name, value)| (name, value)));
    command
}

fn hold(plan: &Plan, folder: &OwnedFd, beside: &[OwnedFd]) -> io::Result<Reach> {
    rustix::thread::set_no_new_privs(true)?;
    let beside = beside.iter().zip(plan.beside.iter().copied());
    let folders = iter::once((folder, plan.may_write)).chain(beside).collect();
    let grants = Grants {
        folders,
        temporary: &plan.temporary,
        reads: &plan.reads,
        program: program(plan),
        edition: plan.edition,
    };
    let mut reach = ruleset::enter(&grants).map_err(|error| told("its ruleset", &error))?;
    // A ruleset alone keeps it from no limit of another process: it could end what holds it in.
    if !plan.filtered || filter::enter().is_err() {
        reach = Reach::Nothing;
    }
    if plan.require_ruleset && !reach.holds_files() {
        return Err(io::Error::other(
            "this system has no Landlock that keeps it in its folder, or no filters of calls, and it is \
             not started without",
        ));
    }
    Ok(reach)
}

fn wait_for_go(socket: &UnixStream) -> io::Result<()> {
    let mut line = Vec::new();
    BufReader::new(socket).read_until(b'\n', &mut line)?;
    if line == GO {
        return Ok(());
    }
    Err(io::Error::other("nobody let it go on"))
}

fn take_streams(input: &OwnedFd, output: &OwnedFd, error: &OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(input)?;
    rustix::stdio::dup2_stdout(output)?;
    Ok(rustix::stdio::dup2_stderr(error)?)
}

fn say(socket: &UnixStream, what: &Said) -> io::Result<()> {
    let mut line = serde_json::to_vec(what).map_err(io::Error::other)?;
    line.push(b'\n');
    (&mut &*socket).write_all(&line)
}

fn told(what: &str, error: &dyn Display) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}
