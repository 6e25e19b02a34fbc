//! Reads some lines of a file, however large the file and however long its lines.

use std::sync::atomic::AtomicBool;

use super::files::{MOST_FILE_BYTES, Page, Unread, written};
use super::lines::{Lines, MOST_LINES};
use super::withheld::told_of_line;
use crate::adapters::boundary::OpenFile;

/// How much is read at a time, in bytes.
const PART_BYTES: u64 = 64 * 1024;
/// How far into a file lines are looked for, in bytes.
const FAR_BYTES: u64 = 256 * 1024 * 1024;
/// How much of a line is kept, in bytes: more than is shown.
const LINE_BYTES: usize = 600;
/// Where a byte that no text has shows that a file is none.
const SNIFFED_BYTES: usize = 8 * 1024;

/// Some lines of a file. The rest of a small one is read for its number of lines.
pub(super) fn page(file: &OpenFile, lines: Lines, stop: &AtomicBool) -> Result<Page, Unread> {
    let mut reading = Reading::new(lines);
    let mut left = FAR_BYTES;
    let whole = file.bytes() <= MOST_FILE_BYTES;
    let mut is_end = false;
    while left > 0 && !is_end && (whole || !reading.is_done()) {
        let part = file.head(PART_BYTES, stop)?;
        is_end = part.is_empty();
        if left == FAR_BYTES && part.iter().take(SNIFFED_BYTES).any(|byte| *byte == 0) {
            return Err(Unread::NoText);
        }
        left = left.saturating_sub(part.len() as u64);
        reading.take(&part);
    }
    if is_end {
        reading.finish();
    }
    Ok(Page {
        path: written(file.path()),
        from: lines.from,
        lines: reading.kept,
        total: is_end.then_some(reading.number - 1),
        bytes: file.bytes(),
    })
}

struct Reading {
    lines: Lines,
    kept: Vec<String>,
    /// The number of the line that is being read.
    number: usize,
    /// What is known of it.
    line: Vec<u8>,
    is_begun: bool,
}

impl Reading {
    fn new(lines: Lines) -> Self {
        Self {
            lines,
            kept: Vec::new(),
            number: 1,
            line: Vec::new(),
            is_begun: false,
        }
    }

    fn is_done(&self) -> bool {
        self.number > self.lines.to
    }

    fn take(&mut self, part: &[u8]) {
        for piece in part.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            if (self.lines.from..=self.lines.to).contains(&self.number) {
                let room = LINE_BYTES.saturating_sub(self.line.len());
                self.line.extend_from_slice(&text[..text.len().min(room)]);
            }
            self.is_begun = true;
            if text.len() < piece.len() {
                self.end();
            }
        }
    }

    fn finish(&mut self) {
        if self.is_begun {
            self.end();
        }
    }

    fn end(&mut self) {
        let within = (self.lines.from..=self.lines.to).contains(&self.number);
        if within && self.kept.len() < MOST_LINES {
            let line = String::from_utf8_lossy(&self.line);
            let is_cut = self.line.len() == LINE_BYTES;
            let line = told_of_line(line.trim_end_matches('\r'), is_cut);
            self.kept.push(line);
        }
        self.line.clear();
        self.number += 1;
        self.is_begun = false;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::files::folder_at;
    use super::*;

    fn read(text: &[u8], from: usize, to: usize) -> Result<Page, Unread> {
        let at = tempfile::tempdir().expect("a folder");
        fs::write(at.path().join("f"), text).expect("written");
        let running = AtomicBool::new(false);
        folder_at(at.path()).page("f", Lines { from, to }, &running)
    }

    #[test]
    fn lines_are_those_that_are_meant() {
        let page = read(b"one\ntwo\r\nthree\nfour", 2, 3).expect("read");
        assert_eq!(page.lines, ["two", "three"]);
        assert_eq!(page.total, Some(4));
        assert_eq!(read(b"", 1, 3).expect("read").total, Some(0));
        assert_eq!(read(b"a\n", 1, 3).expect("read").total, Some(1));
        assert_eq!(read(b"a\n", 5, 9).expect("read").lines, [""; 0]);
        assert_eq!(read(b"a\0b", 1, 3), Err(Unread::NoText));
        let latin = read(b"caf\xe9\n", 1, 1).expect("read");
        assert_eq!(latin.lines, ["caf\u{fffd}"]);
    }

    #[test]
    fn a_line_without_end_and_a_file_of_gibibytes_cost_little() {
        let long = read(&b"x".repeat(400_000), 1, 9).expect("read");
        assert_eq!((long.lines.len(), long.total), (1, Some(1)));
        assert_eq!(long.lines[0].len(), LINE_BYTES);
        let at = tempfile::tempdir().expect("a folder");
        let mut text = "line\n".repeat(100_000).into_bytes();
        text.extend(b"last\n");
        fs::write(at.path().join("f"), text).expect("written");
        let file = fs::OpenOptions::new().write(true).open(at.path().join("f"));
        file.expect("opened").set_len(10 << 30).expect("sparse");
        let lines = Lines {
            from: 100_000,
            to: 100_001,
        };
        let running = AtomicBool::new(false);
        let page = folder_at(at.path())
            .page("f", lines, &running)
            .expect("read");
        assert_eq!(page.lines, ["line", "last"]);
        assert_eq!((page.total, page.bytes), (None, 10 << 30));
    }
}
