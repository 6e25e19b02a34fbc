//! Backups of a store that is being served: a socket in the data directory, at which the server
//! answers with an export of everything as of one round.
//!
//! Whoever may enter the data directory may read the store anyway; so nobody else is answered, and no
//! token is asked for. One backup at a time. Nothing of a session's life waits for it: commits are
//! held up for one page of records at a time.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::adapters::artifacts::FolderArtifacts;
use crate::adapters::sled::SledStore;
use crate::adapters::sled::tools::{LoadError, Loaded, copy, dump_snapshot};
use crate::grpc::seldom::Seldom;

/// The socket's name in the data directory.
pub(super) const SOCKET: &str = "backup.sock";
/// What is asked for, with the version of the answer.
const REQUEST: &[u8] = b"backup 1\n";
/// How long somebody may take to ask, or to take what is written.
const PATIENCE: Duration = Duration::from_secs(60);
/// Who is answered at the same time: one of them with a backup, the others with a refusal.
pub(super) const AT_ONCE: usize = 4;
/// The refusal of one too many.
const BUSY: &str = "others are asking for backups at the moment; try again in a minute";
/// After an error of the system that says nothing of the socket.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket of a server.
pub(super) struct Backups {
    listener: UnixListener,
    path: PathBuf,
}

impl Backups {
    /// Listens in the data directory, which nobody but its owner can enter.
    pub(super) fn listen(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(SOCKET);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let directory = File::open(data_dir)?;
        let listener = UnixListener::bind(short(&directory))?;
        Ok(Self { listener, path })
    }

    /// Answers for as long as it is polled.
    pub(super) async fn serve(&self, store: &Arc<SledStore>, artifacts: &Arc<FolderArtifacts>) {
        // Dropped with this future: what is being written then is given up by its next write, which
        // has a bound.
        let mut answers = JoinSet::new();
        let refused = Seldom::default();
        loop {
            let accepted = tokio::select! {
                Some(ended) = answers.join_next() => {
                    told(ended);
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) if answers.len() >= AT_ONCE => {
                    // Past the runtime, which takes a new socket for one that is not writable yet. So
                    // little fits, or its reader is no reader.
                    let _ = stream
                        .into_std()
                        .and_then(|stream| (&stream).write(&refusal(BUSY)));
                }
                Ok((stream, _)) => {
                    answers.spawn(answer(stream, store.clone(), artifacts.clone()));
                }
                Err(error) => {
                    let tell = |times| {
                        tracing::warn!(times, %error, "cannot take requests for backups; trying again");
                    };
                    refused.tell(tell);
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Says what became of a request that was not answered with a backup.
fn told(ended: Result<Result<(), String>, JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(error, "a backup was not completed"),
        Err(error) => tracing::error!(%error, "a backup failed by a fault of the server"),
    }
}

impl Drop for Backups {
    fn drop(&mut self) {
        // One that stays is removed by the next start.
        let _ = fs::remove_file(&self.path);
    }
}

/// The socket under a path that is short enough for any data directory.
fn short(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))
}

async fn answer(
    stream: tokio::net::UnixStream,
    store: Arc<SledStore>,
    artifacts: Arc<FolderArtifacts>,
) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let stream = stream.into_std().map_err(said)?;
    stream.set_nonblocking(false).map_err(said)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(said)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(said)?;
    let asked = spawn_blocking(move || {
        let mut request = [0; REQUEST.len()];
        let read = (&stream).read_exact(&mut request);
        read.map(|()| (stream, request == REQUEST))
    });
    let (stream, known) = asked
        .await
        .map_err(|error| error.to_string())?
        .map_err(said)?;
    if !known {
        return refuse(
            stream,
            "it asks for something that this server does not know",
        )
        .await;
    }
    let snapshot = match store.snapshot().await {
        Ok(snapshot) => snapshot,
        Err(error) => return refuse(stream, &error.to_string()).await,
    };
    tracing::info!(round = snapshot.round(), "a backup begins");
    let written = spawn_blocking(move || {
        let mut out = BufWriter::with_capacity(256 * 1024, &stream);
        let dumped = dump_snapshot(&snapshot, artifacts.as_ref(), &mut out, &mut |_, _| {});
        if let Err(error) = &dumped {
            // Whoever is gone does not read it.
            let _ = out.write_all(&refusal(&error.to_string()));
            let _ = out.flush();
        }
        dumped.map_err(|error| error.to_string())
    });
    let dumped = written.await.map_err(|error| error.to_string())??;
    tracing::info!(?dumped, "a backup was made");
    Ok(())
}

fn refusal(why: &str) -> Vec<u8> {
    format!("{}\n", serde_json::json!({ "refused": why })).into_bytes()
}

async fn refuse(stream: UnixStream, why: &str) -> Result<(), String> {
    let refusal = refusal(why);
    let told = spawn_blocking(move || (&stream).write_all(&refusal));
    let _ = told.await;
    Err(why.to_owned())
}

/// A connection to the server of a data directory.
pub(super) fn connect(data_dir: &Path) -> io::Result<UnixStream> {
    let directory = File::open(data_dir)?;
    let stream = UnixStream::connect(short(&directory)).map_err(|error| {
        let socket = data_dir.join(SOCKET);
        io::Error::new(
            error.kind(),
            format!(
                "another process has the data directory, and no server answers at {}: {error}",
                socket.display()
            ),
        )
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Asks a server for a backup, and writes what it answers.
pub(super) fn ask(stream: &UnixStream, to: &mut dyn io::Write) -> Result<Loaded, LoadError> {
    let mut asking = stream;
    match asking.write_all(REQUEST) {
        // Refused before it could ask: why is what it reads next.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        asked => asked?,
    }
    let mut lines = BufReader::with_capacity(256 * 1024, stream);
    copy(&mut lines, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c60_a_refusal_that_came_before_the_question_is_told() {
        let (mut server, client) = UnixStream::pair().unwrap();
        server.write_all(&refusal(BUSY)).unwrap();
        drop(server);
        let error = ask(&client, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains(BUSY), "{error}");
    }
}
