//! Lines of a stream, each of a bounded length.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest line, in bytes: what an engine may report at once, with every character escaped.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;
/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// A stream, line by line.
#[derive(Debug)]
pub struct Lines<R> {
    from: R,
    most: usize,
    /// What was read and not given out.
    held: Vec<u8>,
    /// How much of it has no line end.
    looked: usize,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most so many bytes.
    pub fn new(from: R, most: usize) -> Self {
        Self {
            from,
            most,
            held: Vec::new(),
            looked: 0,
            ended: false,
        }
    }

    /// The next line without its end, or what is left before the end of the stream; none after that.
    /// Cancel-safe: dropping the future loses nothing.
    ///
    /// # Errors
    /// When a line is too long, or the stream cannot be read. Nothing comes after an error.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(line) = self.held_line() {
                return Ok(Some(line));
            }
            if self.ended {
                let rest = self.take_all();
                return Ok((!rest.is_empty()).then_some(rest));
            }
            if self.looked > self.most {
                self.ended = true;
                drop(self.take_all());
                let problem = format!("a line has more than {} bytes", self.most);
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
            self.held.reserve(CHUNK);
            match self.from.read_buf(&mut self.held).await {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
    }

    fn take_all(&mut self) -> Vec<u8> {
        self.looked = 0;
        std::mem::take(&mut self.held)
    }

    /// The stream itself, to write into it.
    pub(super) fn stream(&mut self) -> &mut R {
        &mut self.from
    }

    /// The stream itself, and nothing of what was read.
    pub(super) fn into_stream(self) -> R {
        self.from
    }

    /// A whole line that was read already. Those that came together can so be taken together.
    pub fn held_line(&mut self) -> Option<Vec<u8>> {
        let at = self.held[self.looked..]
            .iter()
            .position(|byte| *byte == b'\n');
        let Some(at) = at.map(|at| self.looked + at) else {
            self.looked = self.held.len();
            return None;
        };
        let rest = self.held.split_off(at + 1);
        let mut line = std::mem::replace(&mut self.held, rest);
        line.pop();
        self.looked = 0;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_one_by_one_and_the_last_needs_no_end() {
        let mut lines = Lines::new(&b"one\n\ntwo\nthree"[..], 16);
        for expected in ["one", "", "two", "three"] {
            assert_eq!(lines.next().await.unwrap().unwrap(), expected.as_bytes());
        }
        assert_eq!(lines.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn c60_a_line_that_does_not_end_is_not_kept() {
        let endless = tokio::io::repeat(b'a');
        let mut lines = Lines::new(endless, 1024);
        let error = lines.next().await.unwrap_err();
        assert!(error.to_string().contains("1024 bytes"), "{error}");
        assert_eq!(lines.next().await.unwrap(), None);
        assert!(lines.held.capacity() == 0);
    }
}
