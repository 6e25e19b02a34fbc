//! The process that a program and all that comes of it is beneath, for as long as any of it lives.
//!
//! It is this server's binary, started anew. Orphans fall to it, so that nothing leaves its tree. What
//! it hears is one byte at a time; where nothing more can come, because the server is gone, it kills.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::inherited;
use super::setup::SETUP_VERB;
use super::tree::{self, MARK, Seen};

/// The word on the command line that stands for it. Nobody types it.
pub const SUPERVISE_VERB: &str = "__supervise";
/// How often it kills what is left, once it kills.
const AGAIN: Duration = Duration::from_millis(20);

/// Asks all of the tree to end.
pub(super) const TERMINATE: u8 = b'T';
/// Kills all of the tree.
pub(super) const KILL: u8 = b'K';
/// Says that the program has ended.
pub(super) const ENDED: u8 = b'x';

/// What becomes of the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// It works.
    Works,
    /// It was asked to end.
    Asked,
    /// It is killed.
    Killed,
}

/// Starts the process that sets itself up, and stays until it and all beneath it are gone. `grace` is
/// how long what is left may take to end once it was asked to.
#[must_use]
pub fn supervise(grace: Duration) -> ExitCode {
    match run(grace) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(grace: Duration) -> io::Result<()> {
    inherited::close()?;
    // A session of its own: what a terminal tells the server is not meant for it.
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let control = StdStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    control.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // Who stops a service tells all of its processes: it is the server that knows what to do.
        let _heard = [
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        ];
        let children = signal(SignalKind::child())?;
        let main = start()?;
        let control = UnixStream::from_std(control)?;
        let tree = Tree {
            main,
            control,
            course: Course::Works,
        };
        tree.watch(children, grace).await
    })
}

/// Starts the process that sets itself up; its socket came as standard output.
fn start() -> io::Result<i32> {
    let socket = io::stdout().as_fd().try_clone_to_owned()?;
    // The exec of the program is told by the end of the socket: no copy may stay open here.
    let null = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(SETUP_VERB)
        .arg(std::process::id().to_string())
        .env_clear()
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(mark) = std::env::var_os(MARK) {
        command.env(MARK, mark);
    }
    // It is waited for with all that falls to this process.
    Ok(command.spawn()?.id().cast_signed())
}

struct Tree {
    /// The program.
    main: i32,
    control: UnixStream,
    course: Course,
}

impl Tree {
    /// Until nothing is left.
    async fn watch(
        mut self,
        mut children: tokio::signal::unix::Signal,
        grace: Duration,
    ) -> io::Result<()> {
        let mut deadline = std::pin::pin!(sleep(Duration::MAX));
        loop {
            let before = self.course;
            if self.reap()? {
                return Ok(());
            }
            if self.course == Course::Killed {
                tree::strike(&descendants)?;
            }
            if before != self.course {
                deadline.set(sleep(grace));
            }
            let course = self.course;
            tokio::select! {
                _ = children.recv() => {}
                byte = self.control.read_u8(), if course != Course::Killed => match byte {
                    Ok(TERMINATE) => {
                        self.ask()?;
                        deadline.set(sleep(grace));
                    }
                    // The server is gone, or says something that it never says: the safe side.
                    Ok(_) | Err(_) => self.course = Course::Killed,
                },
                () = &mut deadline, if course == Course::Asked => self.course = Course::Killed,
                () = sleep(AGAIN), if course == Course::Killed => {}
            }
        }
    }

    /// Waits for all that has ended; true once nothing is left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, _))) if pid.as_raw_nonzero().get() == self.main => {
                    // The server may be gone; then this ends by itself.
                    let _gone = self.control.try_write(&[ENDED]);
                    self.ask()?;
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(false),
                Err(Errno::CHILD) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Asks what is there to end.
    fn ask(&mut self) -> io::Result<()> {
        if self.course != Course::Works {
            return Ok(());
        }
        self.course = Course::Asked;
        let found = descendants()?;
        tree::tell(&found, Signal::TERM);
        // What is stopped hears it only when it goes on.
        tree::tell(&found, Signal::CONT);
        Ok(())
    }
}

/// What lives beneath this process.
fn descendants() -> io::Result<Vec<Seen>> {
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let mut found = tree::beneath(&tree::all()?, &[us]);
    found.retain(|seen| !seen.ended);
    Ok(found)
}
