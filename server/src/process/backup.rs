//! Backups of a store that is being served: a socket in the data directory, at which the server
//! answers with an export of everything as of one round.
//!
//! Whoever can read the data directory may have a backup, and no token is asked for; but it is asked
//! for what only such a one can say. To connect is not to be able to read: a ruleset that keeps an
//! agent's processes from files does not keep them from sockets (before Landlock's ninth edition), and
//! they are the same user's. One backup at a time. Nothing of a session's life waits for it: commits are
//! held up for one page of records at a time.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use tokio::time::sleep;

use subtle::ConstantTimeEq as _;

use crate::adapters::artifacts::FolderArtifacts;
use crate::adapters::secret;
use crate::adapters::sled::SledStore;
use crate::adapters::sled::tools::{LoadError, Loaded, copy, dump_snapshot};
use crate::grpc::seldom::Seldom;

/// The socket's name in the data directory.
pub(super) const SOCKET: &str = "backup.sock";
/// What is asked for, with the version of the answer; a proof follows, and a line's end.
const REQUEST: &[u8] = b"backup 2 ";
/// What the proof is of.
const PURPOSE: &str = "backup";
/// What a request is, in bytes.
const REQUEST_BYTES: usize = REQUEST.len() + 64 + 1;
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
    wanted: Arc<[u8]>,
}

impl Backups {
    /// Listens in the data directory, which nobody but its owner can enter.
    pub(super) fn listen(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(SOCKET);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let wanted = request(data_dir)?.into();
        let directory = File::open(data_dir)?;
        let listener = UnixListener::bind(short(&directory))?;
        Ok(Self {
            listener,
            path,
            wanted,
        })
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
                    let wanted = self.wanted.clone();
                    answers.spawn(answer(stream, wanted, store.clone(), artifacts.clone()));
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

/// What a backup is asked for with.
fn request(data_dir: &Path) -> io::Result<Vec<u8>> {
    let proof = secret::proof(data_dir, PURPOSE).map_err(io::Error::other)?;
    Ok([REQUEST, proof.as_bytes(), b"\n"].concat())
}

/// Reads a request; why it is refused, if it is.
fn judged(stream: &mut impl io::Read, wanted: &[u8]) -> io::Result<Option<&'static str>> {
    let mut asked = [0; REQUEST_BYTES];
    // Another version's request is shorter, and more of it does not come.
    stream.read_exact(&mut asked[..REQUEST.len()])?;
    if asked[..REQUEST.len()] != *REQUEST {
        return Ok(Some("it asks for something that this server does not know"));
    }
    stream.read_exact(&mut asked[REQUEST.len()..])?;
    let is_known = bool::from(asked.ct_eq(wanted));
    Ok((!is_known).then_some(
        "whoever asks for a backup must be able to read the data directory: its digest.key as it \
         was when this server started",
    ))
}

async fn answer(
    stream: tokio::net::UnixStream,
    wanted: Arc<[u8]>,
    store: Arc<SledStore>,
    artifacts: Arc<FolderArtifacts>,
) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let stream = stream.into_std().map_err(said)?;
    stream.set_nonblocking(false).map_err(said)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(said)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(said)?;
    let asked = spawn_blocking(move || {
        let refused = judged(&mut &stream, &wanted);
        refused.map(|refused| (stream, refused))
    });
    let (stream, refused) = asked
        .await
        .map_err(|error| error.to_string())?
        .map_err(said)?;
    if let Some(why) = refused {
        return refuse(stream, why).await;
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

/// A connection to the server of a data directory, and what it is to be asked.
pub(super) struct Asking {
    stream: UnixStream,
    request: Vec<u8>,
}

/// Connects to the server of a data directory.
pub(super) fn connect(data_dir: &Path) -> io::Result<Asking> {
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
    let request = request(data_dir)?;
    Ok(Asking { stream, request })
}

/// Asks a server for a backup, and writes what it answers.
pub(super) fn ask(server: &Asking, to: &mut dyn io::Write) -> Result<Loaded, LoadError> {
    let mut stream = &server.stream;
    match stream.write_all(&server.request) {
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
        let asking = Asking {
            stream: client,
            request: REQUEST.to_vec(),
        };
        let error = ask(&asking, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains(BUSY), "{error}");
    }

    #[test]
    fn c57_who_cannot_read_the_data_directory_cannot_ask() {
        let folder = tempfile::tempdir().unwrap();
        secret::open(folder.path()).unwrap();
        let wanted = request(folder.path()).unwrap();
        let says = |request: &[u8]| judged(&mut &*request, &wanted).ok();
        assert_eq!(says(&wanted), Some(None));
        let guessed = [REQUEST, &[b'0'; 64], b"\n"].concat();
        assert!(says(&guessed).flatten().unwrap().contains("digest.key"));
        let earlier = says(b"backup 1\n").flatten().unwrap();
        assert!(earlier.contains("does not know"), "{earlier}");
        // It says nothing more.
        assert_eq!(says(&wanted[..40]), None);
    }
}
