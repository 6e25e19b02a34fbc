//! The terminal, or the files in its place: who writes where, in which style, and whose line the
//! cursor is on. Knows nothing of sessions.

use std::io::{self, IsTerminal as _, Write};

use serde_json::Value;

use super::{markdown, visible};

const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";
const CLEAR_LINE: &str = "\r\x1b[2K";

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

/// Both outputs.
pub(crate) struct Screen {
    out: Side,
    err: Side,
    /// Everything goes to standard output: the command is a view, not an answer.
    merged: bool,
    status: bool,
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
            ..Self::new(
                Side::new(Box::new(out), out_is, colour && out_is),
                Side::new(Box::new(err), err_is, colour && err_is),
            )
        }
    }

    fn new(out: Side, err: Side) -> Self {
        Self {
            out,
            err,
            merged: false,
            status: false,
            looks: Looks::default(),
        }
    }

    /// From now on all goes to standard output.
    pub(crate) fn merge(&mut self) {
        self.merged = true;
    }

    /// Whether a person sees what goes on.
    pub(crate) fn is_watched(&self) -> bool {
        self.err.is_terminal
    }

    /// Whether text may be laid out, and lines replaced.
    pub(crate) fn is_rich(&self) -> bool {
        self.out.is_terminal && self.err.is_terminal && !self.looks.plain
    }

    /// Writes one piece. What others wrote in it is made safe here.
    pub(crate) fn put(&mut self, piece: &Piece) -> io::Result<()> {
        self.clear_status()?;
        match piece {
            Piece::Prose(text) if self.is_rich() => {
                self.leave_other_line(false)?;
                // Part by part: an entry may be long, and what is laid out is longer.
                markdown::parts(text).try_for_each(|part| {
                    let laid_out = markdown::laid_out(&part, self.out.colour);
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
        let object = value.to_string();
        self.out
            .write(&format!("{}\n", visible::json(&object)), false)
    }

    /// Shows a passing line that the next output replaces. Only where a person sees it, and only
    /// where the cursor stands at the beginning of a line.
    pub(crate) fn status(&mut self, text: &str) -> io::Result<()> {
        let unseen = !self.err.is_terminal || self.looks.plain || self.looks.quiet;
        if unseen || self.err.mid_line && !self.status || self.other_line_is_open() {
            return Ok(());
        }
        self.clear_status()?;
        let text = visible::clipped(text, 79);
        self.err.write(&text, true)?;
        self.status = true;
        Ok(())
    }

    fn clear_status(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.status) {
            self.err.mid_line = false;
            self.err.writer.write_all(CLEAR_LINE.as_bytes())?;
            self.err.writer.flush()?;
        }
        Ok(())
    }

    /// Both outputs on one terminal share its cursor.
    fn leave_other_line(&mut self, aside: bool) -> io::Result<()> {
        if self.merged || !self.out.is_terminal || !self.err.is_terminal {
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

impl Side {
    fn new(writer: Box<dyn Write + Send>, is_terminal: bool, colour: bool) -> Self {
        Self {
            writer,
            is_terminal,
            colour,
            mid_line: false,
        }
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
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What was written, both outputs in one text when both are one terminal.
    #[derive(Clone, Default)]
    pub(crate) struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Paper {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// One terminal for both outputs.
    fn terminal(colour: bool) -> (Screen, Paper) {
        let paper = Paper::default();
        let side = || Side::new(Box::new(paper.clone()), true, colour);
        (Screen::new(side(), side()), paper)
    }

    /// A pipe for each output.
    pub(crate) fn pipes() -> (Screen, Paper, Paper) {
        let (out, err) = (Paper::default(), Paper::default());
        let side = |paper: &Paper| Side::new(Box::new(paper.clone()), false, false);
        (Screen::new(side(&out), side(&err)), out, err)
    }

    fn answer(text: &str) -> Piece {
        Piece::Answer(text.to_owned())
    }

    fn aside(text: &str) -> Piece {
        Piece::Aside(text.to_owned())
    }

    #[test]
    fn on_one_terminal_an_aside_does_not_run_into_the_answer() {
        let (mut screen, paper) = terminal(true);
        screen
            .put_all([answer("half a"), aside("* tool\n"), answer("done\n")])
            .unwrap();
        assert_eq!(paper.text(), "half a\n\x1b[2m* tool\n\x1b[0mdone\n");
    }

    #[test]
    fn in_pipes_the_answer_stays_untouched_by_asides() {
        let (mut screen, out, err) = pipes();
        screen
            .put_all([answer("half "), aside("* tool\n"), answer("done")])
            .unwrap();
        screen.put(&Piece::Break).unwrap();
        assert_eq!(
            (out.text().as_str(), err.text().as_str()),
            ("half done\n", "* tool\n")
        );
    }

    #[test]
    fn no_color_is_honoured() {
        let plain = |no_color, term| Looks::default().under(no_color, term).plain;
        assert!(!plain("", "xterm"));
        assert!(plain("1", "xterm"));
        assert!(plain("0", "xterm"));
        assert!(plain("", "dumb"));
        assert!(Looks::default().under("1", "xterm").colourless);
        let (mut screen, paper) = terminal(false);
        screen.put(&aside("plain\n")).unwrap();
        assert_eq!(paper.text(), "plain\n");
    }

    #[test]
    fn prose_is_laid_out_for_a_person_and_left_alone_for_all_others() {
        let prose = Piece::Prose("# Two *words*\n".to_owned());
        let (mut screen, paper) = terminal(true);
        screen.put(&prose).unwrap();
        assert!(paper.text().contains("\x1b[1m"), "{:?}", paper.text());
        let (mut screen, out, _) = pipes();
        screen.put(&prose).unwrap();
        assert_eq!(out.text(), "# Two *words*\n");
        let (mut screen, paper) = terminal(false);
        screen.looks.plain = true;
        screen.put(&prose).unwrap();
        screen.status("waiting").unwrap();
        assert_eq!(paper.text(), "# Two *words*\n");
    }

    #[test]
    fn a_quiet_screen_shows_answers_questions_and_failures_only() {
        let (mut screen, out, err) = pipes();
        screen.looks.quiet = true;
        screen
            .put_all([aside("* tool\n"), answer("done\n")])
            .unwrap();
        screen
            .put(&Piece::Question("? Go on?\n".to_owned()))
            .unwrap();
        screen.aside("settled").unwrap();
        screen.error("no").unwrap();
        assert_eq!(out.text(), "done\n");
        assert_eq!(err.text(), "? Go on?\nerror: no\n");
    }

    #[test]
    fn what_a_model_writes_cannot_steer_the_terminal() {
        let (mut screen, paper) = terminal(false);
        screen.put(&answer("\x1b[2Jhi\n")).unwrap();
        assert_eq!(paper.text(), "\\e[2Jhi\n");
    }

    #[test]
    fn what_a_model_writes_into_json_cannot_steer_the_terminal_and_reads_back() {
        let (mut screen, paper) = terminal(false);
        let text = "\x1b[2J\x7f\u{9b}31m\u{202e}\u{e0041} hi 👩";
        let object = serde_json::json!({ "text": text });
        screen.json(&object).unwrap();
        let line = paper.text();
        assert_eq!(
            line,
            "{\"text\":\"\\u001b[2J\\u007f\\u009b31m\\u202e\\udb40\\udc41 hi 👩\"}\n"
        );
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), object);
    }

    #[test]
    fn a_status_is_replaced_by_what_follows_and_never_seen_in_a_pipe() {
        let (mut screen, paper) = terminal(false);
        screen.status("waiting").unwrap();
        screen.status("waiting more").unwrap();
        screen.line("answer").unwrap();
        assert_eq!(
            paper.text(),
            "waiting\r\x1b[2Kwaiting more\r\x1b[2Kanswer\n"
        );
        let (mut screen, out, err) = pipes();
        screen.status("waiting").unwrap();
        assert_eq!(out.text() + &err.text(), "");
    }
}
