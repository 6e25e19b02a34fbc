//! Whether the peer of a connection still says anything: what arrives is counted as it is read.
//!
//! What must never enter: what it says.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::admission::Traffic;

/// A connection's bytes, as they are; each piece that arrives is told to its traffic.
pub(crate) struct Hearing<S> {
    stream: S,
    traffic: Arc<Traffic>,
}

impl<S> Hearing<S> {
    pub(crate) fn new(stream: S, traffic: Arc<Traffic>) -> Self {
        Self { stream, traffic }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut S>
    where
        S: Unpin,
    {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Hearing<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            this.traffic.heard();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Hearing<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, pieces)
    }
}
