//! Tables: rows of spans in different tones, and a table that is drawn again in its place.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use rustix::termios::tcgetwinsize;

use super::{RESET, Screen, Side};
use crate::cli::visible;

/// How a span of a row stands out. Its words say all of it, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Tone {
    /// Not at all.
    #[default]
    Plain,
    /// Less than the rest.
    Faint,
    /// Somebody is needed.
    Alarm,
    /// Something is wrong.
    Wrong,
    /// Something goes on.
    Busy,
}

impl Tone {
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Faint => Some("\x1b[2m"),
            Self::Alarm => Some("\x1b[1;33m"),
            Self::Wrong => Some("\x1b[31m"),
            Self::Busy => Some("\x1b[32m"),
        }
    }
}

/// A row of a table: its spans, side by side.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Row(pub(crate) Vec<(Tone, String)>);

impl Row {
    /// A row of one tone.
    pub(crate) fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self(vec![(tone, text.into())])
    }

    /// Its words.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The rows that a terminal of so many columns makes of it.
    fn broken(self, width: usize) -> Vec<Self> {
        let (mut rows, mut row, mut used) = (Vec::new(), Vec::new(), 0);
        for (tone, text) in self.0 {
            let pieces = visible::broken(&text, width.saturating_sub(used), width);
            for (at, piece) in pieces.into_iter().enumerate() {
                if at > 0 {
                    rows.push(Self(std::mem::take(&mut row)));
                    used = 0;
                }
                used += visible::columns(&piece);
                row.push((tone, piece));
            }
        }
        rows.push(Self(row));
        rows
    }

    fn styled(&self, colour: bool) -> String {
        let mut out = String::new();
        for (tone, text) in &self.0 {
            let text = visible::line(text);
            // Writing to a String cannot fail.
            let _ = match tone.code().filter(|_| colour) {
                Some(code) => write!(out, "{code}{text}{RESET}"),
                None => write!(out, "{text}"),
            };
        }
        out
    }
}

/// How many rows the terminal has.
fn height() -> usize {
    const USUAL: usize = 24;
    let told = tcgetwinsize(io::stdout()).ok();
    let told = told.map(|size| usize::from(size.ws_row));
    told.filter(|rows| *rows > 0).unwrap_or(USUAL)
}

impl Screen {
    /// How wide a row may be: as wide as the terminal is, and as it comes in a pipe, where a program
    /// reads all of it.
    pub(crate) fn columns(&self) -> usize {
        if !self.out.is_terminal {
            return usize::MAX;
        }
        Side::columns()
    }

    /// Whether a table can be drawn again in its place.
    pub(crate) fn redraws(&self) -> bool {
        self.out.is_terminal && !self.looks.plain
    }

    /// Writes rows of the answer.
    pub(crate) fn rows(&mut self, rows: &[Row]) -> io::Result<()> {
        self.clear_status()?;
        self.out.end_line()?;
        self.leave_other_line(false)?;
        let lines: String = rows
            .iter()
            .map(|row| row.styled(self.out.colour) + "\n")
            .collect();
        self.out.write(&lines, false)
    }

    /// Draws rows in the place of those that were drawn last, as many of them as the terminal has
    /// room for; the last one is always there.
    pub(crate) fn redraw(&mut self, rows: Vec<Row>) -> io::Result<()> {
        // One that the terminal broke itself would be counted as one, and what is above it stay.
        let width = self.columns();
        let rows = rows.into_iter().flat_map(|row| row.broken(width));
        let mut rows: Vec<_> = rows.collect();
        // One row is the cursor's.
        let most = height().saturating_sub(1).max(2);
        if rows.len() > most {
            let last = rows.pop();
            let hidden = rows.len() - (most - 2);
            rows.truncate(most - 2);
            let words = format!("... {hidden} more rows; a larger window shows them");
            let words = visible::clipped_to_columns(&words, width);
            rows.push(Row::of(Tone::Faint, words));
            rows.extend(last);
        }
        self.clear_status()?;
        let drawn = std::mem::replace(&mut self.drawn, rows.len());
        if drawn > 0 {
            write!(self.out.writer, "\x1b[{drawn}F\x1b[J")?;
        }
        self.rows(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::screen::tests::{pipes, terminal};

    fn asks() -> Row {
        Row(vec![
            (Tone::Alarm, "asks".to_owned()),
            (Tone::Plain, " docs\x1b[2J".to_owned()),
        ])
    }

    #[test]
    fn colour_is_for_terminals_and_never_alone() {
        let (mut screen, paper) = terminal(true);
        screen.rows(&[asks()]).unwrap();
        assert_eq!(paper.text(), "\x1b[1;33masks\x1b[0m docs\\e[2J\n");
        let (mut screen, paper) = terminal(false);
        screen.rows(&[asks()]).unwrap();
        assert_eq!(paper.text(), "asks docs\\e[2J\n");
        let (mut screen, out, _) = pipes();
        screen.rows(&[asks()]).unwrap();
        assert_eq!(out.text(), "asks docs\\e[2J\n");
    }

    #[test]
    fn a_table_is_drawn_in_its_own_place_and_no_larger_than_the_terminal() {
        let (mut screen, paper) = terminal(false);
        let row = |number: usize| Row::of(Tone::Plain, number.to_string());
        screen.redraw(vec![row(1), row(2)]).unwrap();
        screen.redraw(vec![row(3)]).unwrap();
        assert_eq!(paper.text(), "1\n2\n\x1b[2F\x1b[J3\n");
        screen.redraw((1..=1000).map(row).collect()).unwrap();
        let text = paper.text();
        let last = text.rsplit("\x1b[J").next().unwrap();
        assert!(last.lines().count() < 1000 && last.ends_with("\n1000\n"));
        assert!(last.contains("more rows"), "{last}");
    }

    #[test]
    fn a_row_that_is_longer_than_the_line_is_counted_as_the_terminal_shows_it() {
        let (mut screen, paper) = terminal(true);
        let width = screen.columns();
        let long = Row(vec![
            (Tone::Plain, "a".repeat(width - 1)),
            (Tone::Wrong, "bc".to_owned()),
        ]);
        screen
            .redraw(vec![Row::of(Tone::Plain, "head"), long])
            .unwrap();
        screen.redraw(Vec::new()).unwrap();
        let text = paper.text();
        assert!(
            text.contains("a\x1b[31mb\x1b[0m\n\x1b[31mc\x1b[0m\n\x1b[3F"),
            "{text:?}"
        );
        assert_eq!(Row::default().broken(width), [Row::default()]);
    }
}
