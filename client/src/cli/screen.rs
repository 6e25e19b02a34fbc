//! The terminal, or the files in its place: who writes where, in which style, and whose line the
//! cursor is on. Knows nothing of sessions.

mod rows;

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;

use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use serde_json::Value;

use super::{markdown, visible};
pub(crate) use rows::{Row, Tone};

const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";
const CLEAR_LINE: &str = "\r\x1b[2K";
const ONE_UP: &str = "\x1b[1A\x1b[2K";

/// How wide a line of facts may be for a person.
pub(crate) const WIDTH: usize = 80;

/// A row of the foot is one row, however narrow the terminal is.
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";

/// A piece of output, styled by what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// A part of an answer: to standard output as it is, no line end added.
    Answer(String),
    /// Whole lines of an answer that are written in Markdown: as they are, unless a person sees
    /// them on a terminal.
    Prose(String),
    /// A part of what goes on beside it: dimmed, to standard error.
    Aside(String),
    /// What somebody must do something about, or must know to read the answer rightly: beside it too,
    /// but never dimmed nor left out.
    Question(String),
    /// Whatever follows begins on a line of its own.
    Break,
}

/// One of the two outputs.
struct Side {
    writer: Box<dyn Write + Send>,
    is_terminal: bool,
    colour: bool,
    mid_line: bool,
}

/// An output whose rest goes nowhere once nobody reads it any more.
struct Outliving(Box<dyn Write + Send>);

impl Outliving {
    fn unless_unread<T>(&mut self, done: io::Result<T>, instead: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.0 = Box::new(io::sink());
                Ok(instead)
            }
            done => done,
        }
    }
}

impl Write for Outliving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes);
        self.unless_unread(written, bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.0.flush();
        self.unless_unread(flushed, ())
    }
}

/// Both outputs.
pub(crate) struct Screen {
    out: Side,
    err: Side,
    /// Both go to the same place, and what is written to one follows what was written to the other.
    same: bool,
    /// Everything goes to standard output: the command is a view, not an answer.
    merged: bool,
    /// The rows below everything else, which the next output replaces.
    foot: Vec<String>,
    /// Rows of a table that can be drawn again in its place.
    drawn: usize,
    looks: Looks,
}

/// How the outputs may look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Looks {
    /// No colour.
    pub(crate) colourless: bool,
    /// Nothing but text: no colour, no line that replaces another, no Markdown that is laid out.
    pub(crate) plain: bool,
    /// Nothing beside the answer but questions and failures.
    pub(crate) quiet: bool,
}

impl Looks {
    /// With what the environment says: a `NO_COLOR` that is not empty, whatever it says, and a
    /// terminal that can do nothing.
    fn under(self, no_color: &str, term: &str) -> Self {
        let plain = self.plain || !no_color.is_empty() || term == "dumb";
        Self {
            plain,
            colourless: self.colourless || plain,
            ..self
        }
    }
}

impl Screen {
    /// The process's own outputs.
    pub(crate) fn of_process(looks: Looks) -> Self {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let looks = looks.under(&variable("NO_COLOR"), &variable("TERM"));
        let (out, err) = (io::stdout(), io::stderr());
        let (out_is, err_is) = (out.is_terminal(), err.is_terminal());
        let colour = !looks.colourless;
        Self {
            looks,
            same: are_same(io::stdout().as_fd(), io::stderr().as_fd()),
            ..Self::new(
                Side::new(Box::new(out), out_is, colour && out_is),
                Side::new(Box::new(err), err_is, colour && err_is),
            )
        }
    }

    fn new(out: Side, err: Side) -> Self {
        Self {
            same: out.is_terminal && err.is_terminal,
            out,
            err,
            merged: false,
            foot: Vec::new(),
            drawn: 0,
            looks: Looks::default(),
        }
    }

    /// From now on all goes to standard output.
    pub(crate) fn merge(&mut self) {
        self.merged = true;
    }

    /// From now on it does not matter whether anybody reads standard output: the command goes on to
    /// its outcome, which its exit code tells.
    pub(crate) fn outlive_reader(&mut self) {
        let writer = std::mem::replace(&mut self.out.writer, Box::new(io::sink()));
        self.out.writer = Box::new(Outliving(writer));
    }

    /// Whether a person sees what goes on.
    pub(crate) fn is_watched(&self) -> bool {
        self.err.is_terminal
    }

    /// Whether a shell on this terminal has put the command behind itself: the cursor's line is the
    /// shell's then, and what is typed there.
    pub(crate) fn is_behind(&self) -> bool {
        let front = || tcgetpgrp(io::stderr()).ok();
        self.err.is_terminal && front().is_some_and(|front| front != getpgrp())
    }

    /// How wide a line of a list may be: as wide as a terminal, and as it comes in a pipe, where a
    /// program reads all of it.
    pub(crate) fn width(&self) -> usize {
        if self.out.is_terminal {
            WIDTH
        } else {
            usize::MAX
        }
    }

    /// Whether text may be laid out, and lines replaced.
    pub(crate) fn is_rich(&self) -> bool {
        self.out.is_terminal && self.err.is_terminal && !self.looks.plain
    }

    /// Whether standard output is a terminal that may have colours.
    pub(crate) fn is_coloured(&self) -> bool {
        self.out.colour
    }

    /// Writes one piece. What others wrote in it is made safe here.
    pub(crate) fn put(&mut self, piece: &Piece) -> io::Result<()> {
        self.clear_status()?;
        match piece {
            Piece::Prose(text) if self.is_rich() => {
                self.leave_other_line(false)?;
                let width = Side::columns();
                // Part by part: an entry may be long, and what is laid out is longer.
                markdown::parts(text).try_for_each(|part| {
                    let laid_out = markdown::laid_out(&part, self.out.colour, width);
                    self.out.write(&laid_out, false)
                })
            }
            Piece::Answer(text) | Piece::Prose(text) => {
                self.leave_other_line(false)?;
                self.out.write(&visible::lines(text), false)
            }
            Piece::Aside(_) if self.looks.quiet => Ok(()),
            Piece::Aside(text) => self.beside(text, true),
            Piece::Question(text) => self.beside(text, false),
            Piece::Break => {
                self.out.end_line()?;
                self.err.end_line()
            }
        }
    }

    fn beside(&mut self, text: &str, dim: bool) -> io::Result<()> {
        self.leave_other_line(true)?;
        let side = if self.merged {
            &mut self.out
        } else {
            &mut self.err
        };
        side.write(&visible::lines(text), dim)
    }

    /// Writes pieces in their order.
    pub(crate) fn put_all(&mut self, pieces: impl IntoIterator<Item = Piece>) -> io::Result<()> {
        pieces.into_iter().try_for_each(|piece| self.put(&piece))
    }

    /// A whole line of the answer.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.put(&Piece::Break)?;
        self.put(&Piece::Answer(format!("{text}\n")))
    }

    /// A whole dimmed line beside the answer.
    pub(crate) fn aside(&mut self, text: &str) -> io::Result<()> {
        self.put(&Piece::Break)?;
        self.put(&Piece::Aside(format!("{text}\n")))
    }

    /// A whole line that must be known to read the answer rightly.
    pub(crate) fn notice(&mut self, text: &str) -> io::Result<()> {
        self.put(&Piece::Break)?;
        self.put(&Piece::Question(format!("{text}\n")))
    }

    /// A failure, always to standard error and never dimmed.
    pub(crate) fn error(&mut self, words: &str) -> io::Result<()> {
        self.clear_status()?;
        self.out.end_line()?;
        self.err.end_line()?;
        self.err
            .write(&format!("error: {}\n", visible::lines(words)), false)
    }

    /// One JSON object on a line of its own.
    pub(crate) fn json(&mut self, value: &Value) -> io::Result<()> {
        self.clear_status()?;
        // The same order however this was built: what else is built with it may keep that of insertion.
        let mut value = value.clone();
        value.sort_all_objects();
        let object = value.to_string();
        self.out
            .write(&format!("{}\n", visible::json(&object)), false)
    }

    /// Shows a passing line that the next output replaces.
    pub(crate) fn status(&mut self, text: &str) -> io::Result<()> {
        self.foot([text])
    }

    /// Shows rows below everything else, which the next output replaces: nothing is written if they
    /// are there already. Only where a person sees them, and only where the cursor stands at the
    /// beginning of a line.
    pub(crate) fn foot<'t>(&mut self, rows: impl IntoIterator<Item = &'t str>) -> io::Result<()> {
        let silent = self.looks.plain || self.looks.quiet;
        let unseen = !self.err.is_terminal || silent || self.is_behind();
        let mid_line = self.err.mid_line && self.foot.is_empty();
        if unseen || mid_line || self.other_line_is_open() {
            return Ok(());
        }
        let clipped = |row| visible::clipped(row, 79);
        let rows: Vec<_> = rows.into_iter().map(clipped).collect();
        if rows == self.foot {
            return Ok(());
        }
        self.clear_status()?;
        if !rows.is_empty() {
            self.err.write(WRAP_OFF, false)?;
            self.err.write(&rows.join("\n"), true)?;
            self.err.write(WRAP_ON, false)?;
            self.foot = rows;
        }
        Ok(())
    }

    /// A person has typed a line, which its terminal has shown in the foot's last row: it takes the
    /// foot's place.
    pub(crate) fn entered(&mut self, line: &str) -> io::Result<()> {
        if self.foot.is_empty() {
            return Ok(());
        }
        // The line's end has moved the cursor one row down.
        let typed = self.foot.last().cloned().unwrap_or_default();
        self.err.writer.write_all(ONE_UP.as_bytes())?;
        self.clear_status()?;
        self.err
            .write(&format!("{typed}{}\n", visible::line(line)), false)
    }

    fn clear_status(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.foot).len();
        if rows > 0 {
            self.err.mid_line = false;
            let more = ONE_UP.repeat(rows - 1);
            write!(self.err.writer, "{CLEAR_LINE}{more}")?;
            self.err.writer.flush()?;
        }
        Ok(())
    }

    /// Both outputs on one terminal share its cursor, and in one pipe or file its line.
    fn leave_other_line(&mut self, aside: bool) -> io::Result<()> {
        if self.merged || !self.same {
            return Ok(());
        }
        if aside {
            self.out.end_line()
        } else {
            self.err.end_line()
        }
    }

    fn other_line_is_open(&self) -> bool {
        self.out.is_terminal && self.out.mid_line
    }
}

/// Whether two outputs are one terminal, pipe or file.
fn are_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let of = |side: BorrowedFd<'_>| {
        let known = File::from(side.try_clone_to_owned().ok()?)
            .metadata()
            .ok()?;
        Some((known.dev(), known.ino()))
    };
    one.is_terminal() && other.is_terminal() || of(one).is_some_and(|it| of(other) == Some(it))
}

impl Side {
    fn new(writer: Box<dyn Write + Send>, is_terminal: bool, colour: bool) -> Self {
        Self {
            writer,
            is_terminal,
            colour,
            mid_line: false,
        }
    }

    /// How wide the terminal of standard output is at the moment; the usual width where it does not
    /// say so.
    pub(super) fn columns() -> usize {
        let size = tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col));
        size.ok().filter(|columns| *columns > 0).unwrap_or(WIDTH)
    }

    fn write(&mut self, text: &str, dim: bool) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if dim && self.colour {
            write!(self.writer, "{DIM}{text}{RESET}")?;
        } else {
            self.writer.write_all(text.as_bytes())?;
        }
        self.mid_line = !text.ends_with('\n');
        self.writer.flush()
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.mid_line) {
            self.writer.write_all(b"\n")?;
            self.writer.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
