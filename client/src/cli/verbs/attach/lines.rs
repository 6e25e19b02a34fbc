//! Standard input, cut into lines. A line that cannot be sent is told as such and those after it
//! are read on. What it must not do: hold more of a line than a text may have.

use std::io;

use bytes::{Buf as _, BytesMut};
use sessionplane_core::domain::limits::MAX_TEXT_BYTES;
use tokio_util::codec::Decoder;

/// A line without its end, or why it cannot be sent.
pub(super) type Line = Result<String, BadLine>;

/// Why a line cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum BadLine {
    /// It is longer than one text may be.
    #[error("that line is longer than 1 MiB, the limit of one text; it was not sent")]
    TooLong,
    /// It is not UTF-8.
    #[error("that line is not valid UTF-8; it was not sent")]
    NotText,
}

/// Where in a line the input stands.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// How many bytes of the buffer are known to hold no line end.
    searched: usize,
    /// The line was told to be too long: the rest of it is dropped.
    dropping: bool,
}

impl Lines {
    fn line(&mut self, bytes: &[u8]) -> Option<Line> {
        self.searched = 0;
        if std::mem::take(&mut self.dropping) {
            return None;
        }
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.len() > MAX_TEXT_BYTES {
            return Some(Err(BadLine::TooLong));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| BadLine::NotText);
        Some(text.map(str::to_owned))
    }
}

impl Decoder for Lines {
    type Item = Line;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Line>> {
        loop {
            let end = buffer[self.searched..].iter().position(|b| *b == b'\n');
            if let Some(end) = end {
                let bytes = buffer.split_to(self.searched + end);
                buffer.advance(1);
                match self.line(&bytes) {
                    Some(line) => return Ok(Some(line)),
                    None => continue,
                }
            }
            self.searched = buffer.len();
            // One byte more than a text may have: it may be the `\r` of the line's end.
            if !self.dropping && buffer.len() <= MAX_TEXT_BYTES + 1 {
                return Ok(None);
            }
            buffer.clear();
            self.searched = 0;
            let told = std::mem::replace(&mut self.dropping, true);
            return Ok((!told).then_some(Err(BadLine::TooLong)));
        }
    }

    fn decode_eof(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Line>> {
        if let Some(line) = self.decode(buffer)? {
            return Ok(Some(line));
        }
        if buffer.is_empty() {
            return Ok(None);
        }
        let bytes = buffer.split();
        Ok(self.line(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use tokio_util::codec::FramedRead;

    use super::*;

    async fn lines(input: &[u8]) -> Vec<Line> {
        let lines = FramedRead::new(input, Lines::default());
        lines.map(Result::unwrap).collect().await
    }

    #[tokio::test]
    async fn a_line_that_cannot_be_sent_does_not_end_the_input() {
        let ok = |text: &str| Ok(text.to_owned());
        let mut input = b"one\r\n\xff\xfe\n".to_vec();
        input.extend(vec![b'x'; MAX_TEXT_BYTES * 3]);
        input.extend(b"\ntwo\n\nthree");
        let expected = [
            ok("one"),
            Err(BadLine::NotText),
            Err(BadLine::TooLong),
            ok("two"),
            ok(""),
            ok("three"),
        ];
        assert_eq!(lines(&input).await, expected);
    }

    #[tokio::test]
    async fn the_longest_line_is_sent_and_one_byte_more_is_not() {
        let longest = "x".repeat(MAX_TEXT_BYTES);
        let sent = lines(format!("{longest}\r\n").as_bytes()).await;
        assert_eq!(sent, [Ok(longest.clone())]);
        let more = lines(format!("{longest}x\nnext").as_bytes()).await;
        assert_eq!(more, [Err(BadLine::TooLong), Ok("next".to_owned())]);
        let endless = lines(format!("{longest}{longest}").as_bytes()).await;
        assert_eq!(endless, [Err(BadLine::TooLong)]);
    }
}
