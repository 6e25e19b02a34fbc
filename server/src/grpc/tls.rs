//! TLS of the listener's connections: the handshake, and a word to who does not speak it.
//!
//! What must never enter: a file, or who a caller is.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::seldom::Seldom;

/// What the connections speak inside of TLS, as both sides agree on it in the handshake.
pub const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The first byte of every TLS connection: a handshake record.
const HANDSHAKE: u8 = 0x16;
/// What every HTTP/2 connection begins with.
const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What is read at most of a peer that is not let in, in bytes.
const UNREAD_BYTES: usize = 64 * 1024;
/// How long who is not let in may take to hear why.
const HEARS_WITHIN: Duration = Duration::from_secs(1);
/// What who spoke plaintext HTTP/2 hears.
const WORDS: &[u8] = b"this port speaks TLS: use an https:// address";
/// What who spoke plaintext HTTP/1 hears.
const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\
    connection: close\r\ncontent-length: 46\r\n\r\nthis port speaks TLS: use an https:// address\n";

/// The TLS of a listener. What is used changes for the connections to come when its
/// configuration is replaced; those that there are go on.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ArcSwap<ServerConfig>>,
    /// Anybody can make a handshake fail.
    failures: Arc<Seldom>,
}

impl Tls {
    /// TLS by whatever configuration is there at the time of a handshake.
    #[must_use]
    pub fn new(config: Arc<ArcSwap<ServerConfig>>) -> Self {
        Self {
            config,
            failures: Arc::default(),
        }
    }

    /// Shakes hands, within `within`. Who fails is told as far as TLS can say it.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        within: Duration,
    ) -> Option<TlsStream<TcpStream>> {
        let shaken = timeout(within, self.handshake(stream)).await;
        let shaken = shaken.unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()));
        match shaken {
            Ok(stream) => Some(stream),
            // It closed, or never said anything: a probe of its port.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => {
                self.tell(&error);
                None
            }
        }
    }

    async fn handshake(&self, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if first[0] != HANDSHAKE {
            // There is nobody to tell if it does not get there.
            let _unheard = timeout(HEARS_WITHIN, tell_plaintext(&mut stream, first[0])).await;
            return Err(io::Error::other(
                "it spoke plaintext: its address must begin with https://",
            ));
        }
        let accepting = TlsAcceptor::from(self.config.load_full()).accept(stream);
        match accepting.into_fallible().await {
            Ok(stream) => Ok(stream),
            Err((error, mut stream)) => {
                // Why was sent already, if it can be said; a client that is done with its own part
                // of the handshake says more by then.
                let _unheard = timeout(HEARS_WITHIN, until_it_heard(&mut stream)).await;
                Err(error)
            }
        }
    }

    fn tell(&self, error: &io::Error) {
        let tell = |times| tracing::info!(times, last = %error, "TLS handshakes failed");
        self.failures.tell(tell);
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

/// Says in the peer's own protocol that it must speak TLS.
async fn tell_plaintext(stream: &mut TcpStream, first: u8) -> io::Result<()> {
    if first == PREFACE[0] {
        // Who has asked nothing yet takes the answer for the end of an idle connection, without a
        // word of it.
        let _asks_nothing = timeout(HEARS_WITHIN / 2, until_asked(stream)).await;
        stream.write_all(&goaway()).await?;
    } else {
        stream.write_all(BAD_REQUEST).await?;
    }
    until_it_heard(stream).await
}

/// Ends a connection and reads what its peer says before it knows: a connection that is closed over
/// unread bytes loses what was said last.
async fn until_it_heard(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unread = [0; 1024];
    let mut left = UNREAD_BYTES;
    while left > 0 {
        match stream.read(&mut unread).await? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}

/// Reads a plaintext HTTP/2 connection up to the first request on it.
async fn until_asked(stream: &mut TcpStream) -> io::Result<()> {
    const HEADERS: u8 = 1;
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await?;
    let mut left = UNREAD_BYTES;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await?;
        let [high, middle, low, kind, ..] = header;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        if preface != PREFACE || kind == HEADERS || length > left {
            return Ok(());
        }
        left -= length;
        let mut frame = stream.take(length as u64);
        tokio::io::copy(&mut frame, &mut tokio::io::sink()).await?;
    }
}

/// An empty SETTINGS frame and a GOAWAY of `INADEQUATE_SECURITY` that says why.
fn goaway() -> Vec<u8> {
    let mut frames = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    let length = u8::try_from(8 + WORDS.len()).unwrap_or(u8::MAX);
    frames.extend([0, 0, length, 7, 0, 0, 0, 0, 0]);
    frames.extend([0, 0, 0, 0, 0, 0, 0, 0x0c]);
    frames.extend(WORDS);
    frames
}
