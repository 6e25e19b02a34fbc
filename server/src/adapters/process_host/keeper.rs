//! The task that owns one program: it starts it, waits for its end or asks for it, and sees to it that
//! nothing is left.

use std::convert::Infallible;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use sessionplane_core::domain::ids::SessionId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::handover::{self, Streams};
use super::host::{HostError, Inner};
use super::leftover::{self, Alive};
use super::lines::{Lines, MAX_LINE_BYTES};
use super::note::Note;
use super::order::{Order, Plan};
use super::ruleset::Reach;
use super::setup::{GO, Said};
use super::supervise::{ENDED, KILL, SUPERVISE_VERB, TERMINATE};
use super::tree::{self, MARK, Which};
use crate::failpoint;

/// What a program that is about to start says at most.
const SAID_BYTES: usize = 64 * 1024;
/// The longest line of its standard error that is logged.
const ERROR_LINE_BYTES: usize = 8 * 1024;
/// What each wait of an end is cut to once the server stops.
const IN_A_HURRY: Duration = Duration::from_millis(300);

/// A program that runs.
#[derive(Debug)]
pub struct Started {
    /// Its standard input. Dropping it ends it.
    pub input: pipe::Sender,
    /// Its standard output, line by line.
    pub output: Lines<pipe::Receiver>,
    /// How far the system holds it in.
    pub reach: Reach,
    /// Keeps it running.
    pub hold: Hold,
}

/// Keeps a program running: once this is dropped it is ended, within the host's bounds.
#[derive(Debug)]
pub struct Hold(#[allow(dead_code, reason = "held for its drop")] oneshot::Sender<Infallible>);

/// How a program and all that came of it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Nothing of it is left.
    Gone,
    /// Something is alive, or may be.
    Left(Vec<Which>),
}

/// Owns one program.
pub(super) struct Keeper {
    host: Arc<Inner>,
    order: Order,
    mark: String,
    temporary: PathBuf,
    evict: Arc<Notify>,
}

/// A supervisor, and what is beneath it.
struct Tree {
    child: Child,
    control: UnixStream,
    noted: Vec<Which>,
    ended: bool,
}

/// The program's ends of what it is started with, and ours.
struct Ends {
    input: pipe::Sender,
    output: pipe::Receiver,
    error: pipe::Receiver,
}

impl Keeper {
    pub(super) fn new(host: Arc<Inner>, order: Order, mark: String, evict: Arc<Notify>) -> Self {
        let temporary = leftover::folder_of(&host.place.temporary, &mark);
        Self {
            host,
            order,
            mark,
            temporary,
            evict,
        }
    }

    /// Until nothing of the program is left, or that cannot be reached.
    pub(super) async fn run(
        self,
        ready: oneshot::Sender<Result<Started, HostError>>,
        ended: watch::Sender<Option<End>>,
    ) {
        let end = match self.begin().await {
            Err(error) => {
                // Nobody may wait for it any more.
                drop(ready.send(Err(error)));
                End::Gone
            }
            Ok((mut tree, setting_up)) => {
                let started = self.go_on(&mut tree, setting_up).await;
                match hand_over(started, ready) {
                    Some((errors, hold)) => {
                        // Read to the end: a program may say on its way out what became of it.
                        tokio::select! {
                            end = self.keep(tree, hold) => end,
                            never = log_errors(errors, self.order.session) => match never {},
                        }
                    }
                    None => self.end(tree).await,
                }
            }
        };
        if end == End::Gone {
            self.host.clear(&self.mark).await;
        }
        ended.send_replace(Some(end));
    }

    /// Starts the supervisor, which starts the process that sets itself up. Nothing of the program is
    /// executed yet.
    async fn begin(&self) -> Result<(Tree, StdStream), HostError> {
        let failed = |error: io::Error| HostError::Start(error.to_string());
        let (notes, mark) = (self.host.notes.clone(), self.mark.clone());
        let temporary = self.temporary.clone();
        // The note comes first: whatever is there from here on, the next start finds it.
        let made = move || {
            notes.begin(&mark)?;
            let made = DirBuilder::new().mode(0o700).create(temporary);
            failpoint::reach("process_host::made");
            Ok(made)
        };
        let made = self.host.blocking(made).await.map_err(failed)?;
        made.map_err(failed)?.map_err(|error| {
            let folder = self.host.place.temporary.display();
            HostError::Start(format!(
                "no folder for it can be made in {folder}: {error}; name another one in TMPDIR"
            ))
        })?;
        let (ours, theirs) = StdStream::pair().map_err(failed)?;
        let (setting_up, its) = StdStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let grace = self.host.bounds.terminate.as_millis().to_string();
        let child = Command::new(&self.host.place.binary)
            .arg(SUPERVISE_VERB)
            .arg(grace)
            .env_clear()
            .env(MARK, &self.mark)
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(its)))
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let seen = pid.and_then(tree::look).map(|seen| seen.which);
        let tree = Tree {
            child,
            control: UnixStream::from_std(ours).map_err(failed)?,
            noted: seen.into_iter().collect(),
            ended: false,
        };
        Ok((tree, setting_up))
    }

    /// Lets the program be executed, once its note is on the disk.
    async fn go_on(
        &self,
        tree: &mut Tree,
        setting_up: StdStream,
    ) -> Result<(Ends, Reach), HostError> {
        let bound = self.host.bounds.start;
        let gone_on = timeout(bound, self.set_up(tree, setting_up)).await;
        match gone_on {
            Ok(Ok(gone_on)) => Ok(gone_on),
            Ok(Err(error)) => Err(HostError::Start(error.to_string())),
            Err(_elapsed) => Err(HostError::Start(format!(
                "not within {} s",
                bound.as_secs()
            ))),
        }
    }

    async fn set_up(&self, tree: &mut Tree, socket: StdStream) -> io::Result<(Ends, Reach)> {
        let ends = self.give(&socket)?;
        socket.set_nonblocking(true)?;
        let mut socket = Lines::new(UnixStream::from_std(socket)?, SAID_BYTES);
        let (pid, reach) = match said(&mut socket).await? {
            Some(Said::Ready { pid, reach }) => (pid, reach),
            Some(Said::Failed(problem)) => return Err(io::Error::other(problem)),
            None => return Err(io::Error::other("it ended before it was set up")),
        };
        let seen =
            tree::look(pid).ok_or_else(|| io::Error::other("it ended once it was set up"))?;
        tree.noted.push(seen.which);
        self.note(tree.noted.clone()).await?;
        failpoint::reach("process_host::noted");
        socket.stream().write_all(GO).await?;
        // The end of the socket is the exec's doing.
        match said(&mut socket).await? {
            None => Ok((ends, reach)),
            Some(Said::Failed(problem)) => Err(io::Error::other(problem)),
            Some(Said::Ready { .. }) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Makes the streams, and gives the program's ends of them away with the plan.
    fn give(&self, socket: &StdStream) -> io::Result<Ends> {
        let (input, our_input) = pipe_with(PipeFlags::CLOEXEC)?;
        let (our_output, output) = pipe_with(PipeFlags::CLOEXEC)?;
        let (our_error, error) = pipe_with(PipeFlags::CLOEXEC)?;
        let plan = Plan::of(
            &self.order,
            &self.mark,
            self.temporary.clone(),
            &self.host.place,
        );
        let streams = Streams {
            input: input.as_fd(),
            output: output.as_fd(),
            error: error.as_fd(),
            folder: self.order.folder.as_fd(),
            beside: self.order.beside.iter().map(AsFd::as_fd).collect(),
        };
        handover::give(socket, &plan, &streams)?;
        Ok(Ends {
            input: pipe::Sender::from_owned_fd(our_input)?,
            output: pipe::Receiver::from_owned_fd(our_output)?,
            error: pipe::Receiver::from_owned_fd(our_error)?,
        })
    }

    async fn note(&self, processes: Vec<Which>) -> io::Result<()> {
        let (notes, mark) = (self.host.notes.clone(), self.mark.clone());
        let note = Note {
            session: self.order.session.to_string(),
            boot: tree::boot(),
            processes,
            temporary: self.temporary.clone(),
        };
        self.host
            .blocking(move || notes.write(&mark, &note))
            .await?
    }

    /// Until the program has ended or nobody holds it any more, and then to the end of all.
    async fn keep(&self, mut tree: Tree, mut hold: oneshot::Receiver<Infallible>) -> End {
        tokio::select! {
            _ = &mut hold => {}
            () = self.evict.notified() => {}
            () = self.closing() => {}
            () = tree.program_ends() => {}
        }
        self.end(tree).await
    }

    async fn closing(&self) {
        let mut closing = self.host.closing.subscribe();
        if closing.wait_for(|closing| *closing).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// A wait of an end; a short one once the server stops.
    async fn patience(&self, bound: Duration) {
        let hurry = async {
            self.closing().await;
            sleep(IN_A_HURRY).await;
        };
        tokio::select! {
            () = sleep(bound) => {}
            () = hurry => {}
        }
    }

    /// By the end of its input, by SIGTERM, by SIGKILL; then by what the note tells.
    async fn end(&self, mut tree: Tree) -> End {
        let bounds = self.host.bounds;
        if !tree.ended {
            // Its input has ended: who held the program held that.
            tokio::select! {
                () = tree.program_ends() => {}
                () = self.patience(bounds.input) => {}
            }
        }
        // A supervisor that is gone hears nothing; what it left is found below.
        drop(tree.control.write_all(&[TERMINATE]).await);
        let mut orderly = tokio::select! {
            status = tree.child.wait() => Some(status),
            () = self.patience(bounds.terminate) => None,
        };
        if orderly.is_none() {
            drop(tree.control.write_all(&[KILL]).await);
            orderly = timeout(bounds.kill, tree.child.wait()).await.ok();
        }
        match orderly {
            // It says so only when nothing is left.
            Some(Ok(status)) if status.success() => End::Gone,
            _ => self.strike(tree).await,
        }
    }

    /// The supervisor is of no use any more.
    async fn strike(&self, mut tree: Tree) -> End {
        let (mark, noted) = (self.mark.clone(), tree.noted.clone());
        tracing::warn!(session = %self.order.session, "a program's supervisor was lost; its tree is killed");
        let killed = self
            .host
            .blocking(move || leftover::end(&mark, &noted))
            .await;
        match killed {
            Ok(Ok(_)) => {
                // Killed with the rest, or gone before.
                drop(timeout(self.host.bounds.kill, tree.child.wait()).await);
                End::Gone
            }
            Ok(Err(Alive::Process(pid))) => {
                tracing::error!(session = %self.order.session, pid, "a process does not end");
                End::Left(tree.noted)
            }
            Ok(Err(Alive::Unknown(error))) | Err(error) => {
                tracing::error!(session = %self.order.session, %error, "processes cannot be looked for");
                End::Left(tree.noted)
            }
        }
    }
}

impl Tree {
    /// The program has ended, or its supervisor is gone. Cancel-safe.
    async fn program_ends(&mut self) {
        while !self.ended {
            match self.control.read_u8().await {
                Ok(ENDED) | Err(_) => self.ended = true,
                Ok(_) => {}
            }
        }
    }
}

/// Hands the program over to whoever asked for it. Returns its standard error, and what ends when it
/// is not held any more; nothing if there is no program.
fn hand_over(
    started: Result<(Ends, Reach), HostError>,
    ready: oneshot::Sender<Result<Started, HostError>>,
) -> Option<(pipe::Receiver, oneshot::Receiver<Infallible>)> {
    let (ends, reach) = match started {
        Ok(started) => started,
        Err(error) => {
            // Nobody may wait for it any more.
            drop(ready.send(Err(error)));
            return None;
        }
    };
    let (hold, held) = oneshot::channel();
    let started = Started {
        input: ends.input,
        output: Lines::new(ends.output, MAX_LINE_BYTES),
        reach,
        hold: Hold(hold),
    };
    // Where nobody takes it, it is dropped with its hold.
    drop(ready.send(Ok(started)));
    Some((ends.error, held))
}

/// The next thing that the process says which sets itself up; none at the end.
async fn said(socket: &mut Lines<UnixStream>) -> io::Result<Option<Said>> {
    let line = socket.next().await?;
    line.map(|line| serde_json::from_slice(&line).map_err(io::Error::other))
        .transpose()
}

/// Reads what a program says on its standard error, so that it never waits, and logs it where somebody
/// looks for it. Never ends.
async fn log_errors(error: pipe::Receiver, session: SessionId) -> Infallible {
    let mut lines = Lines::new(error, ERROR_LINE_BYTES);
    while let Ok(Some(line)) = lines.next().await {
        let line = String::from_utf8_lossy(&line);
        tracing::debug!(%session, ?line, "an agent's standard error");
    }
    // What comes after a line that is too long is of no use, but must not make the program wait.
    let mut rest = lines.into_stream();
    drop(tokio::io::copy(&mut rest, &mut tokio::io::sink()).await);
    std::future::pending().await
}
